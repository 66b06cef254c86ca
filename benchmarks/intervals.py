"""Measures how often an error bar holds the true value, on simulated test sets whose true values are known.

    python -m benchmarks.intervals [--trials=4000] [--out=benchmarks/results/intervals.md]

All numbers are of what tables show: m +- 1.96 errors, or two ends. Accuracies and differences of two models: exactly, from the
binomial and trinomial distribution of the right answers, at accuracies .01 .. .99 where the share jumps. Means over five severities,
and gains G of a study: simulated in arrays. Overlaps: one study at a time, errors of `analysis.overlap.uncertainty`. The
answers to an image correlate over models and severities (.3, .7 and .95).
"""

from runtime import command  # isort: skip

import itertools
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
FEW = 8
"""Fewer expected images outside the most frequent answer: the discrete distribution decides what an error holds."""
GAINS = (
    0.02,
    0.03,
    0.04,
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
    0.95,
    0.97,
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
RESAMPLES = 200
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


def _exactly(number, low, high):
    right, jumps = np.arange(number + 1), np.concatenate([low, high])
    points = np.concatenate([jumps - _EDGE, jumps + _EDGE, np.linspace(0.01, 0.99, 981)])
    points = points[(points >= 0.01) & (points <= 0.99)]
    held = (low <= points[:, None]) & (points[:, None] <= high)
    shares = np.sum(stats.binom.pmf(right, number, points[:, None]) * held, axis=1)
    return [Held(float(s), number * min(p, 1 - p), (float(p),)) for s, p in zip(shares, points, strict=True)]


def differences(number: int) -> list[Held]:
    """Computes the share of test sets whose error holds the difference of two models, as of relative CE, of `GAINS`."""
    more, less = np.meshgrid(np.arange(number + 1), np.arange(number + 1), indexing="ij")
    more, less = (of[more + less <= number] for of in (more, less))
    same, apart = number - more - less, (more - less) / number
    ways = special.gammaln(number + 1) - sum(special.gammaln(of + 1) for of in (more, less, same))
    reach, found = 1.96 * intervals.of_sums(more + less, more, less, number), []
    for gain, lost in [(of, less) for of in GAINS for less in (*LOST, (1 - of) / 2)]:
        if gain + 2 * lost > 1 + _EDGE:
            continue
        shares = gain + lost, lost, max(0.0, 1 - gain - 2 * lost)
        terms = sum(special.xlogy(of, share) for of, share in zip((more, less, same), shares, strict=True))
        held = np.exp(ways + terms)[np.abs(apart - gain) <= reach + _EDGE].sum()
        found.append(Held(float(held), number * (1 - max(shares)), (gain, lost)))
    return found


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

    Returns (of studies with two gains that no flag calls weak, of the others), where there is a tenth of all studies or more.
    """
    rng, found = np.random.default_rng([seed, number]), ([], [])
    for clean, standard, gain in STUDIES:
        truth = np.full((3, 3), standard + 0.4 * gain)
        truth[0], truth[[1, 2], [1, 2]], truth[:, 0] = standard, standard + gain, clean
        true, held = compute(truth)[-1][0, 1], ([], [])
        for bits in itertools.chain.from_iterable(_blocks(rng, truth, number, trials, 0.7)):
            study = overlap_matrix(bits.mean(axis=-1), names="ab", number=number)
            if np.isfinite(measured := study.unclipped[0, 1]):
                error = standard_errors(bits[None], RESAMPLES, int(rng.integers(1 << 31))).overlap[0, 1]
                held["weak" in study.flags].append(abs(measured - true) <= 1.96 * error)
        for of, into in zip(held, found, strict=True):
            if len(of) >= trials / 10:
                into.append(
                    Held(float(np.mean(of)), number * min(standard + gain, 1 - standard), (clean, standard, gain))
                )
    return found


def _blocks(rng, truth, number, trials, alike):
    """Yields right answers, bool [trials, ..., number], of these accuracies, the latent variables of an image correlated."""
    block = max(1, min(trials, (1 << 21) // (truth.size * number)))
    for _ in range(-(-trials // block)):
        common = rng.standard_normal((block, *(1,) * truth.ndim, number), np.float32)
        own = rng.standard_normal((block, *truth.shape, number), np.float32)
        yield (
            np.sqrt(np.float32(alike)) * common + np.sqrt(np.float32(1 - alike)) * own
            < stats.norm.ppf(truth)[..., None]
        )


def spread(held: list[Held]) -> str:
    """Writes the smallest and largest share in percent, such as `92.0 to 97.5`, or `-` for none."""
    shares = [100 * of.share for of in held]
    return f"{min(shares):.1f} to {max(shares):.1f}" if shares else "-"


def tables(trials: int) -> tuple[str, str]:
    """Writes the spreads for each number of images as Markdown: where `FEW` images or more are expected, and the others."""
    rows = ([], [])
    for number in NUMBERS:
        clear, weak = overlaps(number, max(1, trials // 4))
        of_answers = ends(number), accuracies(number), means(number, trials), differences(number), gains(number, trials)
        for few, into in zip((False, True), rows, strict=True):
            parts = [spread([of for of in held if (of.expected < FEW) == few]) for held in of_answers]
            into.append((number, *parts, spread(weak if few else clear)))
    heads = ["images", "accuracy, two ends", "accuracy", "mean of five severities", "difference", "gain G"]
    return tuple(
        frames.markdown(pd.DataFrame(of, columns=[*heads, f"overlap, {kind}"]))
        for of, kind in zip(rows, ("clear gains", "weak gains"), strict=True)
    )


def main(argv):
    given = command.given(argv)
    many, few = tables(given.trials)
    print(f"{many}\n\n{few}")
    if given.out:
        numbers = {"trials": given.trials, "studies": max(1, given.trials // 4)}
        write_atomically(given.out, _PAGE.format(many=many, few=few, least=FEW, **numbers))


_PAGE = """# Shares of true values that nominal 95 % errors hold

Smallest and largest share, in percent, of true values within 1.96 errors, over accuracies .01 to .99 and gains from .02
(`python -m benchmarks.intervals --trials={trials} --out=benchmarks/results/intervals.md`). Accuracies and differences are exact;
means and gains are from {trials:,} test sets for each setting, overlaps from {studies:,} studies.

{least} images or more are expected outside the most frequent answer (right or wrong; of a difference: only one model, only the
other, or none of the two); overlaps of studies whose gains are not flagged:

{many}

Fewer than {least} are expected; overlaps of studies with a weak gain, as far as they are defined:

{few}

An error that holds 92 % everywhere misses no true value under which its own count has a chance above 8 %. Of 100 images these
least errors alone hold more than 98 % where fewer than 1.2 are expected: no symmetric error can hold less there, unless it is
drawn at random (`tests/corruptions/scoring/intervals_test.py` has the arithmetic). From 1.2 to {least} expected images one count more
or less decides, and shares lie above 98 % at some values. An overlap divides by gains; where these may be 0, its error is large
and holds up to 100 %, and the corruptions are flagged as weak. Fewer than 20 images are flagged, too.
"""

if __name__ == "__main__":
    flags.DEFINE_integer("trials", 4000, "Simulated test sets for each setting; a quarter of them for overlaps.")
    flags.DEFINE_string("out", None, "Markdown file of the tables.")
    command.run(main)
