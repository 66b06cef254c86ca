"""Measures how often an error bar holds the true value, on simulated test sets whose true values are known.

    python -m benchmarks.intervals [--trials=4000] [--out=benchmarks/results/intervals.md]

All numbers are of what tables show: m +- 1.96 errors, or two ends. Accuracies and differences of two models: exactly, from the
binomial and trinomial distribution of the right answers, at accuracies .01 .. .99 where the share jumps. Means over five severities,
and gains G of a study: simulated in arrays. Overlaps: one study at a time, errors of `analysis.overlap.uncertainty`. The
answers to an image correlate over models and severities (.3, .7 and .95).
"""

from runtime import command  # isort: skip

import itertools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd
from absl import flags
from scipy import special, stats

from analysis import frames
from analysis.overlap import overlap_matrix
from analysis.overlap.score import compute
from analysis.overlap.uncertainty import image_errors, standard_errors
from corruptions.scoring import intervals
from runtime.files import write_atomically

NUMBERS = (20, 50, 100, 300, 1000)
FEW = 6.5
"""Fewer expected images outside the most frequent answer: the discrete distribution decides what an error holds."""
RARE = 2.6
"""Expected rare answers up to which more than 98 % are held by every error that holds 92 % everywhere, within a tenth."""
GAINS = (
    0.02,
    0.0225,
    0.025,
    0.03,
    0.0425,
    0.06,
    0.08,
    0.1,
    0.15,
    0.2,
    0.3,
    0.4,
    0.5,
    0.6,
    0.7,
    0.76,
    0.8,
    0.84,
    0.9,
    0.92,
    0.9375,
    0.945,
    0.9575,
    0.965,
    0.9725,
    0.98,
)
LOST = (0, 0.002, 0.005, 0.01, 0.015, 0.02, 0.04, 0.065, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4, 0.45)
"""Shares of images that the model without the gain alone answers right."""
MODELS = [
    (clean, standard, gain)
    for clean in (0.7, 0.99)
    for standard in (0.01, 0.05, 0.2, 0.5, 0.9, 0.97)
    for gain in (0.02, 0.1, 0.3, 0.6, 0.9)
    if standard + gain <= clean + 0.005
]
"""(clean accuracy, accuracy of the standard model, gain in accuracy of the model trained with the corruption)."""
STUDIES = (
    (0.99, 0.01, 0.02),
    (0.9, 0.5, 0.1),
    (0.9, 0.5, 0.3),
    (0.99, 0.9, 0.08),
    (0.95, 0.3, 0.6),
    (0.99, 0.01, 0.95),
)
"""As `MODELS`, of two corruptions."""
ALIKE = (0.3, 0.7, 0.95)
RESAMPLES = 100
"""Resamples of a study. 100 give its standard error within 7 %, and this moves a share near 95 % by .2 %."""
_EDGE = 1e-9


class Held(NamedTuple):
    """How often 1.96 standard errors hold the true value, and of which quantity."""

    share: float
    expected: float  # images outside the most frequent answer
    of: tuple[float, ...]  # the true values


def accuracies(number: int) -> list[Held]:
    """Computes the share of test sets whose error holds the accuracy, where it jumps and between."""
    mean = np.arange(number + 1) / number
    reach = 1.96 * intervals.of_accuracy(mean, number)
    return _exactly(number, mean - reach, mean + reach)


def ends(number: int) -> list[Held]:
    """Computes the share of test sets whose interval with two ends holds the accuracy, where it jumps and between."""
    return _exactly(number, *intervals.wilson(np.arange(number + 1) / number, number))


def forced(number: int) -> list[Held]:
    """Computes the least share that an error of an accuracy can hold which holds 92 % of every accuracy.

    An error is taken to be no smaller than the deviation of the answers, and its two ends to grow with the count k. Then an
    accuracy p above k / N is missed by k only with all smaller counts. So k covers all p with P(X <= k; p) > .08, whose
    largest is a quantile of a beta distribution, and likewise below. Differences without images that are lost are accuracies.
    """
    right = np.arange(number + 1)
    mean = right / number
    above = stats.beta.ppf(0.92, right + 1, np.maximum(number - right, 1e-9)) - mean
    least = np.maximum(np.maximum(above, above[::-1]), 1.96 * np.sqrt(mean * (1 - mean) / number)) - 2 * _EDGE
    return _exactly(number, mean - least, mean + least)


def _exactly(number, low, high):
    right, jumps = np.arange(number + 1), np.concatenate([low, high])
    points = np.concatenate([jumps - _EDGE, jumps + _EDGE, np.linspace(0.01, 0.99, 981)])
    points = points[(points >= 0.01) & (points <= 0.99)]
    held = (low <= points[:, None]) & (points[:, None] <= high)
    shares = np.sum(stats.binom.pmf(right, number, points[:, None]) * held, axis=1)
    return [Held(float(s), number * min(p, 1 - p), (float(p),)) for s, p in zip(shares, points, strict=True)]


def differences(number: int) -> list[Held]:
    """Computes the share of test sets whose error holds the difference of two models, as of relative CE, of `GAINS`."""
    more, less, chances = _pairs(number)
    squares = np.where(more + less <= number, more + less, 0)
    reach = 1.96 * intervals.of_sums(squares, *(np.where(squares, of, 0) for of in (more, less)), number)
    return [
        _held(number, chances(gain, lost), (more - less) / number, reach, gain, lost)
        for gain in GAINS
        for lost in (*LOST, (1 - gain) / 2)
        if gain + 2 * lost <= 1 + _EDGE
    ]


def forced_differences(number: int, truths: Iterable[tuple[float, float]]) -> list[Held]:
    """Computes the least share that an error of a difference can hold which holds 92 % of it under each (gain, lost) of `truths`.

    An error is taken to be no smaller than the deviation of the differences, and the ends of two test sets to be in order where the
    one has no fewer images that only the one model answers rightly, and no more that only the other does. Then a truth is missed
    only with all test sets beyond, which must have a chance of at most 8 % together.
    """
    more, less, chances = _pairs(number)
    apart = (more - less) / number
    least, truths = 1.96 * np.sqrt(np.maximum(more + less - number * apart**2, 0)) / number, list(truths)
    for gain, lost in truths:
        chance = chances(gain, lost)
        beyond = chance[::-1].cumsum(axis=0)[::-1].cumsum(axis=1)
        least = np.maximum(least, np.where(beyond > 0.08, apart - gain, 0))
    least = np.maximum(least, least.T)  # by models that change places
    return [_held(number, chances(*truth), apart, least, *truth) for truth in truths]


def _pairs(number):
    """Returns images that only one model answers rightly, and only the other: [N + 1, N + 1], of all test sets; and a function
    from (gain, lost) to the chances of each, 0 where the two are more than there are.
    """
    more, less = np.meshgrid(np.arange(number + 1), np.arange(number + 1), indexing="ij")
    same = np.maximum(number - more - less, 0)
    ways = special.gammaln(number + 1) - sum(special.gammaln(of + 1) for of in (more, less, same))
    ways[more + less > number] = -np.inf

    def chances(gain, lost):
        shares = gain + lost, lost, max(0.0, 1 - gain - 2 * lost)
        return np.exp(
            ways + sum(special.xlogy(of, share) for of, share in zip((more, less, same), shares, strict=True))
        )

    return more, less, chances


def _held(number, chances, apart, reach, gain, lost):
    expected = number * (1 - max(gain + lost, lost, 1 - gain - 2 * lost))
    return Held(float(chances[np.abs(apart - gain) <= reach + _EDGE].sum()), expected, (gain, lost))


def means(number: int, trials: int, seed: int = 0) -> list[Held]:
    """Simulates the share of test sets whose error holds a mean error over five severities."""
    rng, found = np.random.default_rng([seed, number]), []
    for share, alike in itertools.product((0.01, 0.05, 0.2, 0.5, 0.9, 0.98), ALIKE):
        truth, held = np.clip(share * np.array([0.4, 0.7, 1, 1.3, 1.6]), 0, 0.99), []
        for bits in _blocks(rng, truth, number, trials, alike):
            of_image = bits.mean(axis=1)
            errors = np.array([intervals.of_mean(of) for of in of_image])
            held.append(np.abs(of_image.mean(axis=-1) - truth.mean()) <= 1.96 * errors)
        mean = float(truth.mean())
        found.append(Held(float(np.mean(np.concatenate(held))), number * min(mean, 1 - mean), (share, alike)))
    return found


def gains(number: int, trials: int, seed: int = 0) -> list[Held]:
    """Simulates the share of studies whose error holds G, for each of `MODELS`."""
    rng, found = np.random.default_rng([seed, number]), []
    for (clean, standard, gain), alike in itertools.product(MODELS, ALIKE):
        truth, held, apart = np.array([[clean, standard], [clean, standard + gain]]), [], np.zeros(3)
        for bits in _blocks(rng, truth, number, trials, alike):
            bits = bits.astype(np.float32)
            mean = bits.mean(axis=-1, dtype=float)
            with np.errstate(all="ignore"):
                measured = mean[:, 1, 1] / mean[:, 1, 0] - mean[:, 0, 1] / mean[:, 0, 0]
            *_, errors = image_errors(bits[:, 0, 0], bits[:, 0, 1], bits[:, 1, 0], bits[:, 1, 1])
            held.append(np.abs(measured - gain / clean) <= 1.96 * errors + _EDGE)
            apart += [np.mean(bits[:, 1, 1] - bits[:, 0, 1] == of) for of in (-1, 0, 1)]
        expected = number * (1 - apart.max() / len(held))
        found.append(Held(float(np.mean(np.concatenate(held))), float(expected), (clean, standard, gain, alike)))
    return found


def overlaps(number: int, trials: int, seed: int = 0) -> tuple[list[Held], list[Held]]:
    """Simulates the share of studies whose error holds an overlap that is defined, for each of `STUDIES`.

    Returns (of studies that are flagged as weak at most once in 50, of the others). All studies count,
    flagged or not: among those that are not flagged alone, large gains are too many.
    """
    rng, found = np.random.default_rng([seed, number]), ([], [])
    for clean, standard, gain in STUDIES:
        truth = np.full((3, 3), standard + 0.4 * gain)
        truth[0], truth[[1, 2], [1, 2]], truth[:, 0] = standard, standard + gain, clean
        true, held, weak = compute(truth)[-1][0, 1], [], 0
        for bits in itertools.chain.from_iterable(_blocks(rng, truth, number, trials, 0.7)):
            study = overlap_matrix(bits.mean(axis=-1), names="ab", number=number)
            if np.isfinite(measured := study.unclipped[0, 1]):
                error = standard_errors(bits[None], RESAMPLES, int(rng.integers(1 << 31))).overlap[0, 1]
                held.append(abs(measured - true) <= 1.96 * error)
            weak += "weak" in study.flags
        expected = number * min(standard + gain, 1 - standard)
        found[50 * weak > trials].append(Held(float(np.mean(held)), expected, (clean, standard, gain)))
    return found


def _blocks(rng, truth, number, trials, alike):
    """Yields right answers, bool [trials, ..., number], of these accuracies, the latent variables of an image correlated.

    The answers to an image are one of 2^k patterns. How many images have each is multinomial: two lines draw what a normal
    variable for each answer would give. Images come in the order of their patterns, on which no error depends.
    """
    common = np.linspace(-8.5, 8.5, 1701)
    right = stats.norm.cdf(
        (stats.norm.ppf(truth.ravel())[:, None] - np.sqrt(alike) * common) / np.sqrt(1 - alike)
    )  # of each answer, under each value of the variable that all share
    patterns, chances = np.zeros((1, 0), bool), stats.norm.pdf(common)[None]
    for share in right:
        patterns = np.concatenate([np.insert(patterns, patterns.shape[1], bit, axis=1) for bit in (False, True)])
        chances = np.concatenate([chances * (1 - share), chances * share])
    chances = chances.sum(axis=1) / chances.sum()
    patterns = patterns.reshape(-1, *truth.shape)
    block = max(1, min(trials, (1 << 21) // (truth.size * number)))
    for start in range(0, trials, block):
        counts = rng.multinomial(number, chances, min(block, trials - start))
        of_images = np.repeat(np.tile(np.arange(len(patterns)), len(counts)), counts.ravel()).reshape(-1, number)
        yield np.moveaxis(patterns[of_images], 1, -1)


def spread(held: list[Held]) -> str:
    """Writes the smallest and largest share in percent, such as `92.0 to 97.5`, or `-` for none."""
    shares = [100 * of.share for of in held]
    return f"{min(shares):.1f} to {max(shares):.1f}" if shares else "-"


def above(held: list[Held]) -> str:
    """Writes where more than 98 % are held: up to how many expected images, and the largest share beyond `RARE` in percent."""
    over = [of for of in held if of.share > 0.98 + _EDGE]
    beyond = [100 * of.share for of in over if of.expected > RARE]
    return f"{max(of.expected for of in over):.1f} ({max(beyond):.1f})" if beyond else f"{RARE}" if over else "-"


def tables(trials: int) -> tuple[str, str, str]:
    """Writes for each number of images the spreads where `FEW` or more are expected, and of the others, and `above`."""
    rows = ([], [], [])
    for number in NUMBERS:
        clear, weak = overlaps(number, max(1, trials // 4))
        of_answers = ends(number), accuracies(number), means(number, trials), differences(number), gains(number, trials)
        for few, into in zip((False, True), rows[:2], strict=True):
            parts = [spread([of for of in held if (of.expected < FEW) == few]) for held in of_answers]
            into.append((number, *parts, spread(weak if few else clear)))
        rows[2].append((number, *(above(held) for held in (*of_answers, forced(number)))))
    heads = ["images", "accuracy, two ends", "accuracy", "mean of five severities", "difference", "gain G"]
    last = "overlap, clear gains", "overlap, weak gains", "accuracy, any error"
    return tuple(frames.markdown(pd.DataFrame(of, columns=[*heads, name])) for of, name in zip(rows, last, strict=True))


def main(argv):
    given = command.given(argv)
    many, few, over = tables(given.trials)
    print(f"{many}\n\n{few}\n\n{over}")
    if given.out:
        numbers = {"trials": given.trials, "studies": max(1, given.trials // 4)}
        write_atomically(given.out, _PAGE.format(many=many, few=few, over=over, least=FEW, rare=RARE, **numbers))


_PAGE = """# Shares of true values that nominal 95 % errors hold

Smallest and largest share, in percent, of true values within 1.96 errors, over accuracies .01 to .99 and gains from .02
(`python -m benchmarks.intervals --trials={trials} --out=benchmarks/results/intervals.md`). Accuracies and differences are exact;
means and gains are from {trials:,} test sets for each setting, overlaps from {studies:,} studies, so that a share of 95 % has a standard
error of .5 and 1.0.

{least} images or more are expected outside the most frequent answer (right or wrong; of a difference: only one model, only the
other, or none of the two); overlaps of studies that are flagged as weak at most once in 50:

{many}

Fewer than {least} are expected; overlaps of the other studies, as far as they are defined:

{few}

Where more than 98 % are held: up to how many expected images ({rare}: these or fewer), and in brackets the largest share where more
than {rare} are expected. "Any error" is the least that can be:

{over}

An error that holds 92 % everywhere, whose ends grow with the count, misses from above no accuracy under which its own count and
all smaller ones together have a chance above 8 %. So every count has a least error. These alone hold more than 98 % where fewer
than 2.5 rare answers are expected, and from 4.0 to 4.1 of 140 to 400 images, where errors are no smaller than the deviation of the
answers: no symmetric error can hold less there, unless it is drawn at random. Those of the library do so up to {rare} and from 4.0 to 4.2.
Of 100 images, two ends cannot hold 92 to 98 % at accuracies of .0100 to .0102: 0 to 2 answers are too few, 0 to 3 too many.
The library's differences hold more than 98 % at two more places, up to 300 images: gains below .03 with up to 4.3 images that
differ, and gains that lack up to 8.5 images of all. Of those that lack up to 4.3 images every symmetric error does, where the ends of
two test sets are in the order of what was gained and lost (`forced_differences`): as many images may be lost, which count twice. Above 5.3
the library's hold up to 98.6 %. An overlap divides by gains; where these may be 0, no finite error holds what it says, the error is
large and holds up to 100 %, and the corruptions are flagged as weak. Fewer than 20 images are flagged, too.
"""

if __name__ == "__main__":
    flags.DEFINE_integer("trials", 4000, "Simulated test sets for each setting; a quarter of them for overlaps.")
    flags.DEFINE_string("out", None, "Markdown file of the tables.")
    command.run(main)
