"""The standard errors of an overlap study, in overlap_long.csv, overlap.png and the report.

All errors come from resamples of the accuracies. A resample draws the test images anew. All models answer the same
images, and hard images are hard for all of them: so errors of differences between models are smaller than under
independent answers. With several seeds, or with one seed and `Repeats` of some models, a resample draws the noise of
training, too (`training_noise`); else it cannot be known, and every table says "test images only".
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from analysis.overlap.score import compute

RESAMPLES = 1000
_CENTRAL = (15.866, 84.134)  # percentiles one standard deviation from the middle of a normal distribution
_CHUNK_BYTES = 256 << 20


class Repeats(NamedTuple):
    """Models of a study that were trained several times, while its numbers come from one training of each."""

    bits: np.ndarray  # correctness of k models, [S >= 2, k, 1 + n, N]
    rows: tuple[int, ...]  # their places among the 1 + n models, 0 is the standard one


class Errors(NamedTuple):
    """Standard errors; arrays as in `analysis.overlap.Overlap`."""

    clean: np.ndarray  # of clean accuracies, [1 + n]
    # standard, trained: of R[0,j] and R[j,j], the robustness of the standard model and of the one trained with
    # j, [n].
    standard: np.ndarray
    trained: np.ndarray
    gain: np.ndarray  # of G[j], [n]
    overlap: np.ndarray  # errors of the unclipped overlap, standard deviations over resamples, [n, n]
    transfer: np.ndarray  # of T, [n, n]
    # mean_overlap, outgoing, incoming: of means over the other corruptions, [n].
    mean_overlap: np.ndarray
    outgoing: np.ndarray
    incoming: np.ndarray
    samples: np.ndarray  # the accuracies in each resample, [B, 1 + n, 1 + n]
    # The unclipped overlap in each resample, [B, n, n]; NaN where G <= 0 in that resample.
    unclipped_samples: np.ndarray
    held: str  # the noise that they hold


def held_noise(seeds: int, repeated: int = 0) -> str:
    """Names the noise in standard errors from so many trainings, or from one and so many models with several."""
    if seeds == 1 and not repeated:
        return "test images only"
    return f"test images and {seeds} trainings" if seeds > 1 else f"test images and trainings (of {repeated} models)"


def standard_errors(
    bits: np.ndarray, resamples: int = RESAMPLES, seed: int = 0, repeats: Repeats | None = None
) -> Errors:
    """Computes the standard errors of a study from correctness [S, 1 + n, 1 + n, N], see `resample_accuracies`.

    With S = 1, the noise of training comes from `repeats`. All errors but `overlap` are half the width of the central
    68 % of the resamples. This is the standard deviation of normal resamples, and the few resamples in which a weak gain
    all but vanishes do not change it.
    """
    drawn = resample_accuracies(bits, resamples, seed)
    if len(bits) > 1:
        repeats = Repeats(bits, tuple(range(bits.shape[1])))
    if repeats:
        noise = training_noise(repeats, len(bits), resamples, seed)
        drawn = 1 / (1 + np.exp(-(_logit(drawn, bits.shape[-1]) + noise)))
    held = held_noise(len(bits), len(repeats.rows) if repeats else 0)
    with np.errstate(divide="ignore", invalid="ignore"):  # a resample without a correct clean answer
        samples = _derived(drawn)
        errors = {name: _half_width(values) for name, values in samples.items()}
        errors["overlap"] = _deviation(samples["overlap"])
    return Errors(**errors, samples=drawn, unclipped_samples=samples["overlap"], held=held)


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

    Returns additions to logits, float64 [B, 1 + n, 1 + n], for B resamples.
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
    rng, noise = np.random.default_rng([seed, 1]), np.zeros((resamples, models, models))
    for model in range(models):
        own = rows.copy()
        if model:
            own[trained, model], own[trained, donors[trained]] = rows[trained, donors[trained]], rows[trained, model]
        noise[:, model] = rng.normal(size=(resamples, len(rows))) @ own
    return np.sqrt(held / averaged / len(rows)) * noise


def _logit(accuracy, number):
    """log(a / (1 - a)); accuracies of 0 and 1 count as half an image away from them."""
    accuracy = np.clip(accuracy, 0.5 / number, 1 - 0.5 / number)
    return np.log(accuracy / (1 - accuracy))


def _derived(full):
    """Computes every number that has a standard error, from accuracies [B, 1 + n, 1 + n]."""
    robustness, gain, transfer, unclipped = compute(full)
    n = gain.shape[-1]
    diagonal = np.eye(n, dtype=bool)
    others = np.where(diagonal, np.nan, transfer)
    return {
        "clean": full[..., 0],
        "standard": robustness[..., 0, :],
        "trained": robustness[..., 1 + np.arange(n), np.arange(n)],
        "gain": gain,
        "overlap": unclipped,
        "transfer": transfer,
        "mean_overlap": _mean(np.where(diagonal, np.nan, np.maximum(unclipped, 0)), -1),
        "outgoing": _mean(others, -1),
        "incoming": _mean(others, -2),
    }


def _mean(values, axis):
    present = ~np.isnan(values)
    return np.where(present, values, 0).sum(axis=axis) / present.sum(axis=axis)


def _half_width(samples):
    """Half the width of the central 68 % over the first axis; NaN where every sample is."""
    undefined = np.isnan(samples).all(axis=0)
    low, high = np.nanpercentile(np.where(undefined, 0, samples), _CENTRAL, axis=0)
    return np.where(undefined, np.nan, (high - low) / 2)


def _deviation(samples):
    undefined = np.isnan(samples).all(axis=0)
    return np.where(undefined, np.nan, np.nanstd(np.where(undefined, 0, samples), axis=0))


def resample_accuracies(bits: ArrayLike, resamples: int, seed: int = 0) -> np.ndarray:
    """Resamples test images with replacement and recomputes every accuracy.

    All models and corruptions are shown the same resampled images. Counts of correct answers under all resamples are
    one matrix product of the bits with the images' multinomial multiplicities. With several seeds of training the
    accuracies are averaged over them; the noise of training is not in the result.

    Args:
      bits: correctness of each answer, bool or 0/1, [1 + n, 1 + n, N] or [S, 1 + n, 1 + n, N]: models (standard first)
        x conditions (clean first) x test images in one order for all.
      resamples: number of resamples B, >= 2.
      seed: seed of the NumPy generator; equal seeds give equal results.

    Returns accuracies, float64 [B, 1 + n, 1 + n]; raises ValueError for another shape or values besides 0 and 1, or
    fewer than two resamples.
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
    bits = bits.reshape(-1, models * conditions, number)
    rng = np.random.default_rng(seed)
    multiplicities = np.stack(
        [np.bincount(rng.integers(0, number, number), minlength=number) for _ in range(resamples)]
    ).astype(np.float32)
    # float32 holds integers up to 2^24 exactly, so these products are exact counts.
    correct = np.zeros((models * conditions, resamples))
    rows = max(1, _CHUNK_BYTES // (4 * number))
    for training in bits:
        for start in range(0, len(training), rows):
            correct[start : start + rows] += training[start : start + rows].astype(np.float32) @ multiplicities.T
    return correct.T.reshape(resamples, models, conditions) / (number * len(bits))
