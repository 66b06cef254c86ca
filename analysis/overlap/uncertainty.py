"""The standard errors of an overlap study, in overlap_long.csv, overlap.png and the report.

All models answer the same images, and hard images are hard for all of them: so errors of differences between models are
smaller than under independent answers. Errors of accuracies, of robustness and of gains come from the answers to each image
(`image_errors`). Those of overlaps and their means, which divide by gains, come from resamples of the accuracies. A resample
weights the test images anew. Beside the images each accuracy has half an image that is answered right and half a one that is
answered wrong, so that no resample takes few images, or all of them right, for certain. With several seeds, or with one seed
and `Repeats` of some models, a resample draws the noise of training, too (`training_noise`); else it cannot be known, and
every table says "test images only". `benchmarks/results/intervals.md` has the share of true values that 1.96 errors hold.
Overlaps of weak gains have wide errors, which hold up to 100 %: where a divisor may be 0, only intervals without end hold
what they say (L. J. Gleser, J. T. Hwang, "The Nonexistence of 100(1 - a)% Confidence Sets of Finite Expected Diameter in
Errors-in-Variables and Related Models", 1987), and a weak gain is flagged.
"""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from analysis.overlap.score import above_zero, compute
from corruptions.scoring import intervals

RESAMPLES = 1000
_CENTRAL = (0.15866, 0.84134)  # one standard deviation from the middle of a normal distribution
_INSIDE = (np.float32(1e-6), np.float32(1 - 1e-6))  # rounding may give 1
_BLOCK = 1 << 22  # numbers at a time, so that their arrays stay small


class Repeats(NamedTuple):
    """Models of a study that were trained several times, while its numbers come from one training of each."""

    bits: np.ndarray  # correctness of k models, [S >= 2, k, 1 + n, N]
    rows: tuple[int, ...]  # their places among the 1 + n models, 0 is the standard one


@dataclasses.dataclass(frozen=True, eq=False)
class Errors:
    """Standard errors; arrays as in `analysis.overlap.Overlap`."""

    clean: np.ndarray  # of clean accuracies, [1 + n]
    # standard, trained: of R[0,j] and R[j,j], the robustness of the standard model and of the one trained with
    # j, [n].
    standard: np.ndarray
    trained: np.ndarray
    gain: np.ndarray  # of G[j], [n]
    overlap: np.ndarray  # errors of the unclipped overlap, standard deviations over resamples, [n, n]
    # mean_overlap, outgoing, incoming: of means over the other corruptions, [n].
    mean_overlap: np.ndarray
    outgoing: np.ndarray
    incoming: np.ndarray
    samples: np.ndarray  # the accuracies in each resample, float32 [B, 1 + n, 1 + n]
    held: str  # the noise that they hold

    @functools.cached_property
    def unclipped_samples(self) -> np.ndarray:
        """Computes the unclipped overlap in each resample, [B, n, n]; NaN where G <= 0 in that resample."""
        return compute(self.samples)[-1]

    @functools.cached_property
    def transfer(self) -> np.ndarray:
        """Computes the errors of T, [n, n]."""
        parts = [_half_width(outgoing) for outgoing, _ in _transfers(self.samples)]
        return np.concatenate(parts)


def held_noise(seeds: int, repeated: int = 0) -> str:
    """Names the noise in standard errors from so many trainings, or from one and so many models with several."""
    if seeds == 1 and not repeated:
        return "test images only"
    return f"test images and {seeds} trainings" if seeds > 1 else f"test images and trainings (of {repeated} models)"


def standard_errors(
    bits: np.ndarray, resamples: int = RESAMPLES, seed: int = 0, repeats: Repeats | None = None
) -> Errors:
    """Computes the standard errors of a study from correctness [S, 1 + n, 1 + n, N], see `resample_accuracies`.

    With S = 1, the noise of training comes from `repeats`. Errors of accuracies, robustness and gains are those of test
    images (`corruptions.scoring.intervals`, `image_errors`), to whose square the noise of training adds what it adds to the
    square of half the width of the central 68 % of the resamples; that of an overlap is the deviation over resamples; those of
    means are half that width. This is the standard deviation of normal resamples, and the few resamples in which a weak gain
    all but vanishes do not change it.
    """
    drawn = resample_accuracies(bits, resamples, seed)
    if len(bits) > 1:
        repeats = Repeats(bits, tuple(range(bits.shape[1])))
    own = 1 + np.arange(bits.shape[1] - 1)
    pairs = [bits[:, models, conditions].mean(axis=0) for models in (0, own) for conditions in (0, own)]
    clean = intervals.of_accuracy(bits[:, :, 0].mean(axis=(0, -1)), bits.shape[-1])
    errors = clean, *image_errors(np.broadcast_to(pairs[0], pairs[1].shape), *pairs[1:])
    if repeats:
        of_images = _widths(drawn)
        for model, noise in enumerate(np.swapaxes(training_noise(repeats, len(bits), resamples, seed), 0, 1)):
            odds = drawn[:, model] / (1 - drawn[:, model]) * np.exp(noise)
            drawn[:, model] = odds / (1 + odds)
        added = (np.maximum(a**2 - b**2, 0) for a, b in zip(_widths(drawn), of_images, strict=True))
        errors = tuple(np.sqrt(error**2 + more) for error, more in zip(errors, added, strict=True))
    held = held_noise(len(bits), len(repeats.rows) if repeats else 0)
    overlap, means = [], []
    for outgoing, incoming in _transfers(drawn):
        both = (outgoing + incoming) / 2
        overlap.append(_deviation(both))
        first = sum(len(of) for of in overlap[:-1])
        rows = np.arange(both.shape[1])
        for values in (both, outgoing, incoming):
            values[:, rows, first + rows] = np.nan
        np.maximum(both, 0, out=both)
        means.append([_half_width(_mean(values)) for values in (both, outgoing, incoming)])
    means = np.concatenate(means, axis=1)
    return Errors(*errors, np.concatenate(overlap), *means, samples=drawn, held=held)


def image_errors(
    standard_clean: np.ndarray, standard: np.ndarray, clean: np.ndarray, trained: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Computes the errors over test images of R[0,j], of R[j,j] and of the gain G[j], each [...].

    The arguments are right answers to the same images, or shares of several trainings, [..., N]: of the standard model to
    clean images and under j, and of the model trained with j to the same. To first order the ratio R = a_c / a_0 of the mean
    answers x_c and x_0 is the mean over images of r[i] = R + (x_c[i] - R x_0[i]) / a_0. So a gain is the mean of a
    difference of two such numbers of an image, of at most 1 / sqrt(a_0 b_0) for right answers, a_0 and b_0 the clean
    accuracies; its error is `corruptions.scoring.intervals.of_differences`. NaN where a clean accuracy is 0.
    """
    (first, base), (second, other) = _ratio(standard_clean, standard), _ratio(clean, trained)
    with np.errstate(divide="ignore"):
        of_standard, of_trained = (intervals.of_differences(of, 1 / at) for of, at in ((first, base), (second, other)))
        change = np.mean(trained, -1) / other - np.mean(standard, -1) / base
        gain = intervals.of_differences(second - first + change[..., None], 1 / np.sqrt(base * other))
    return of_standard, of_trained, gain


def _ratio(clean, corrupted):
    """(what each image adds to the ratio of the means of answers [..., N] to first order, the mean of `clean`, NaN for 0)."""
    base = above_zero(np.mean(clean, axis=-1))
    ratio = np.mean(corrupted, axis=-1) / base
    return (corrupted - ratio[..., None] * clean) / base[..., None], base


def _widths(drawn):
    """Half the widths of the central 68 % of resampled clean accuracies, both robustnesses, and gains: four arrays."""
    standard, trained = _robustness(drawn)
    return [_half_width(values) for values in (drawn[:, :, 0], standard, trained, trained - standard)]


def training_noise(repeats: Repeats, averaged: int, resamples: int, seed: int = 0) -> np.ndarray:
    """Draws the noise that the mean of A trainings leaves in the logits of the accuracies, pooled over the repeats.

    With L[s,m,c] the logit of the accuracy of seed s (of S), model m, condition c, and its mean L[.,m,c] over seeds:

        d[s,m,c] = sqrt(S / (S - 1)) (L[s,m,c] - L[.,m,c])     the deviation of a training; E d^2 is its variance
        h        = 1 - mean_mc(F[m,c]) / mean_mc(V[m,c])       the share of its variance V that other images would show
        noise[m] = sqrt(max(0, h) / A) sum_sk z[s,k] d[s,k] / sqrt(S K)     z normal, drawn for each m; K repeated models k

    F is the part of V from images that change between right and wrong from seed to seed: the variance over seeds of the
    answer to an image, averaged over the N images, over N and over (a (1 - a))^2 of the accuracy a. Resampled images
    hold that part already. So the noise is normal with the pooled covariance of the conditions, in which the condition that
    k was trained with takes the place of the condition that m was trained with. Models of one seed count as independent.
    This is the two-way random-effects model of images and trainings, with the variance of trainings pooled over the models:
    two seeds give one degree of freedom for each model, but K in all.

    Returns additions to logits, float32 [B, 1 + n, 1 + n], for B resamples.
    """
    bits, places = repeats.bits, np.array(repeats.rows)
    seeds, _, models, number = bits.shape
    accuracy = bits.mean(axis=-1)
    logits = _logit(accuracy, number)
    mean = accuracy.mean(axis=0)
    # The variance over seeds of 0 and 1 whose mean over seeds is p is p (1 - p) S / (S - 1).
    share = bits.mean(axis=0)
    flips = (share * (1 - share)).mean(axis=-1) * seeds / (seeds - 1) / number
    flips = flips / np.maximum(mean * (1 - mean), 0.5 / number) ** 2
    total = logits.var(axis=0, ddof=1).mean()
    held = max(0.0, 1 - flips.mean() / total) if total > 0 else 0.0
    deviations = np.sqrt(seeds / (seeds - 1)) * (logits - logits.mean(axis=0))
    rows, donors = deviations.reshape(-1, models), np.tile(places, seeds)  # [S K, condition], [S K]
    (trained,) = np.nonzero(donors)  # the standard model (0) was trained with no condition: no entry is exchanged
    rng, noise = np.random.default_rng([seed, 1]), np.zeros((resamples, models, models), np.float32)
    for model in range(models):
        own = rows.copy()
        if model:
            own[trained, model], own[trained, donors[trained]] = rows[trained, donors[trained]], rows[trained, model]
        noise[:, model] = rng.normal(size=(resamples, len(rows))) @ own
    noise *= np.sqrt(held / averaged / len(rows))
    return noise


def _logit(accuracy, number):
    """log(a / (1 - a)); accuracies of 0 and 1 count as half an image away from them."""
    accuracy = np.clip(accuracy, 0.5 / number, 1 - 0.5 / number)
    return np.log(accuracy / (1 - accuracy))


def _robustness(full):
    """(R of the standard model, R of each model on its own corruption) [B, n], from accuracies [B, 1 + n, 1 + n]."""
    own = 1 + np.arange(full.shape[-1] - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return full[:, 0, 1:] / full[:, 0, :1], full[:, own, own] / full[:, own, 0]


def _transfers(full):
    """Yields of a few corruptions i at a time T[i->j] and T[j->i], [B, few, n], NaN where the gain is not above 0."""
    standard, trained = _robustness(full)
    gain = np.where(trained > standard, trained - standard, np.nan)
    clean, number = full[:, 1:, 0], full.shape[-1] - 1
    few = max(1, _BLOCK // (len(full) * number))
    for start in range(0, number, few):
        at = slice(start, start + few)
        rows, columns = full[:, 1:, 1:][:, at], np.ascontiguousarray(np.swapaxes(full[:, 1:, 1:][..., at], 1, 2))
        outgoing = (rows / clean[:, at, None] - standard[:, None]) / gain[:, None]
        incoming = (columns / clean[:, None] - standard[:, at, None]) / gain[:, at, None]
        yield outgoing, incoming


def _mean(values):
    present = ~np.isnan(values)
    number = present.sum(axis=-1)
    return np.where(number, np.where(present, values, 0).sum(axis=-1) / np.maximum(number, 1), np.nan)


def _percentiles(samples, shares):
    """Percentiles of the known values over the first axis, [B, ...], NaN where there are none: a list."""
    ordered = np.sort(np.moveaxis(samples, 0, -1), axis=-1)  # NaN last
    known = (~np.isnan(ordered)).sum(axis=-1, keepdims=True)
    found = []
    for share in shares:
        place = share * np.maximum(known - 1, 0)
        low = np.floor(place).astype(int)
        ends = (np.take_along_axis(ordered, np.minimum(at, np.maximum(known - 1, 0)), -1) for at in (low, low + 1))
        first, second = (end[..., 0].astype(float) for end in ends)
        found.append(first + (second - first) * (place - low)[..., 0])
    return found


def _half_width(samples):
    """Half the width of the central 68 % over the first axis; NaN where every sample is."""
    low, high = _percentiles(samples, _CENTRAL)
    return (high - low) / 2


def _deviation(samples):
    known = ~np.isnan(samples)
    number = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, samples, 0).sum(axis=0, dtype=float) / number
    square = np.where(known, samples - mean.astype(samples.dtype), 0) ** 2
    return np.where(known.any(axis=0), np.sqrt(square.sum(axis=0, dtype=float) / number), np.nan)


def resample_accuracies(bits: ArrayLike, resamples: int, seed: int = 0) -> np.ndarray:
    """Weights test images anew and recomputes every accuracy: D. Rubin, "The Bayesian Bootstrap" (1981), with a prior.

    All models and corruptions are shown the same images: weights w[i] are exponential, and each accuracy has its own
    weights u and v of images that are right and wrong, gamma variables of shape and mean 1/2:

        accuracy = (sum_i w[i] right[i] + u) / (sum_i w[i] + u + v)

    Of the answers to one condition alone this is the posterior under Jeffreys' prior. With several seeds of training the
    accuracies are averaged over them; the noise of training is not in the result.

    Args:
      bits: correctness of each answer, bool or 0/1, [1 + n, 1 + n, N] or [S, 1 + n, 1 + n, N]: models (standard first)
        x conditions (clean first) x test images in one order for all.
      resamples: number of resamples B, >= 2.
      seed: seed of the NumPy generator; equal seeds give equal results.

    Returns accuracies, float32 [B, 1 + n, 1 + n], inside (0, 1); raises ValueError for another shape or values besides 0
    and 1, or fewer than two resamples.
    """
    bits = np.asarray(bits)
    if bits.ndim not in (3, 4) or bits.shape[-3] != bits.shape[-2] or bits.shape[-2] < 2:
        raise ValueError(
            f"expected correctness [1 + n, 1 + n, images] or [seeds, 1 + n, 1 + n, images], found shape {bits.shape}"
        )
    if not bits.size or (bits.dtype != bool and not np.isin(bits, (0, 1)).all()):
        raise ValueError(f"expected correctness of 0 and 1, found dtype {bits.dtype} with others")
    if resamples < 2:
        raise ValueError(f"expected at least 2 resamples, found {resamples}")
    *_, models, conditions, number = bits.shape
    seeds = len(bits) if bits.ndim == 4 else 1
    rng = np.random.default_rng(seed)
    weights = rng.standard_exponential((resamples, number), np.float32)
    drawn = np.empty((models, resamples, conditions), np.float32)
    quantiles = _gamma_quantiles()
    total = weights.sum(axis=1, dtype=np.float64).astype(np.float32)[:, None]
    few = max(1, _BLOCK // (conditions * max(number, resamples)))
    for start in range(0, models, few):
        at = slice(start, start + few)
        answers = bits[..., at, :, :].reshape(seeds, -1, number)
        right = sum(weights @ of.astype(np.float32).T for of in answers) / np.float32(seeds)
        right = right.reshape(resamples, -1, conditions).swapaxes(0, 1)
        prior, wrong = quantiles[rng.integers(0, 1 << 16, (2, *right.shape), np.uint16)]
        np.divide(right + prior, total + prior + wrong, out=drawn[at])
    return np.swapaxes(np.clip(drawn, *_INSIDE, out=drawn), 0, 1)


@functools.cache
def _gamma_quantiles():
    """Quantiles of the gamma variable of shape 1/2."""
    return special.gammaincinv(0.5, (np.arange(1 << 16) + 0.5) / (1 << 16)).astype(np.float32)
