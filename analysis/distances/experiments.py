"""The experiments around MSD: mixtures of two corruptions, subsets of transforms, other images and draws.

Source: E. Mintun, A. Kirillov, S. Xie, "On Interaction Between Augmentations and Corruptions in Natural Corruption
Robustness" (2021): section 4 (mixtures), supplement A (subsets, in the order of the released code), and the
supplement's Figure 6 (resampling: 100 pairs, 100 resamplings of each, and a spread of about 5 % at 100 images and 100
draws).
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis import frames
from analysis.distances.msd_mmd import finite, measure_distances

KINDS = ("closest", "farthest", "random")


class MixtureDistance(NamedTuple):
    """A row of toy.csv: distances of a mixture, with `fraction` of its first corruption, to one of its two."""

    fraction: float
    corruption: str
    msd: float
    mmd: float


class SubsetDistance(NamedTuple):
    """A row of subsets.csv: mean MSD of a subset (closest, farthest or random) of `size` transforms."""

    kind: str
    size: int
    msd: float


class Spread(NamedTuple):
    """A row of resampling.csv: means over the pairs, at a number of images and of draws."""

    # Numbers behind each distance, and numbers of pairs and of resamplings.
    images: int
    draws: int
    pairs: int
    resamplings: int
    distance: float  # mean distance
    spread: float  # standard deviation over resamplings, in percent of the pair's mean distance
    spread_error: float  # standard error of `spread` over the pairs (NaN for one pair)


def mixture_distances(
    first: ArrayLike, second: ArrayLike, centres: ArrayLike, fractions: Sequence[float]
) -> tuple[np.ndarray, np.ndarray]:
    """Measures mixtures of two distributions of transforms by MSD and MMD, as in the paper's toy experiment.

    A mixture of fraction p in [0, 1] takes round(p n) transforms of the first, [n, D], and the others of the second, as
    many. With centres [m, D] of the second, MSD should stay low until the fraction is 1, while MMD grows with it.
    Returns (msd, mmd), each [len(fractions), m].
    """
    first, second = finite("features", first, 2), finite("features", second, 2)
    if first.shape != second.shape:
        raise ValueError(f"expected as many features of both, found shapes {first.shape} and {second.shape}")
    if not all(0 <= p <= 1 for p in fractions):
        raise ValueError(f"expected fractions in [0, 1], found {list(fractions)}")
    number = len(first)
    mixed = [np.concatenate([first[:k], second[k:]]) for k in (round(p * number) for p in fractions)]
    streams = [measure_distances(features, centres) for features in mixed]
    return np.stack([stream.msd[0] for stream in streams]), np.stack([stream.mmd[0] for stream in streams])


def closest_first(distances: ArrayLike) -> np.ndarray:
    """Orders transforms by closeness to any of the references: a permutation of 0 .. N-1, int64 [N].

    For r = 1, 2, ...: take the r-th nearest transform of each reference, order these by their distance to it, and
    append those not yet listed. Equal distances [N, m], of transform n to reference c, keep the order of the
    transforms, then the order of the references.
    """
    distances = np.asarray(distances)
    if distances.ndim != 2 or not distances.size or not np.isfinite(distances).all():
        raise ValueError(f"expected finite distances [transforms, references], found shape {distances.shape}")
    nearest = np.argsort(distances, axis=0, kind="stable")  # row r - 1: the r-th nearest of each reference
    within = np.argsort(np.take_along_axis(distances, nearest, axis=0), axis=1, kind="stable")
    listed = np.take_along_axis(nearest, within, axis=1).ravel()
    _, first = np.unique(listed, return_index=True)  # where each transform is listed first
    return np.argsort(first, kind="stable")


def choose(order: np.ndarray, size: int, kind: str, rng: np.random.Generator | None) -> np.ndarray:
    """Chooses `size` transforms, 1 .. N, out of the order of `closest_first`, int64 [size].

    The kind is `closest` (the first), `farthest` (the last) or `random` (uniform without replacement, drawn by `rng`).
    """
    if not 1 <= size <= len(order):
        raise ValueError(f"expected a size in 1..{len(order)}, found {size}")
    if kind not in KINDS:
        raise ValueError(f"expected a kind among {', '.join(KINDS)}, found {kind!r}")
    if kind == "random":
        return rng.choice(len(order), size, replace=False)
    return order[:size] if kind == "closest" else order[-size:]


def nested_distances(transform: ArrayLike, draws: ArrayLike, numbers: Sequence[int]) -> np.ndarray:
    """Measures the distances of a transform to the centres of the first m draws, for each m of `numbers`.

    Features of the transform are [G, D], one row for each set of images, those of the corruption's M draws [M, G, D].
    Returns float64 [G, len(numbers)].
    """
    transform, draws = np.asarray(transform, np.float64), np.asarray(draws, np.float64)
    centres = [draws[:number].mean(axis=0) for number in numbers]
    return np.stack([np.linalg.norm(transform - centre, axis=-1) for centre in centres], axis=-1)


def spreads(distances: ArrayLike, images: Sequence[int], draws: Sequence[int]) -> list[Spread]:
    """Computes the spread of distances [pairs, resamplings, images, draws] at every number of `images` and `draws`.

    Raises ValueError for another shape, or fewer than two resamplings.
    """
    distances = np.asarray(distances, float)
    if distances.ndim != 4 or distances.shape[2:] != (len(images), len(draws)) or min(distances.shape[:2]) < 1:
        raise ValueError(
            f"expected distances [pairs, resamplings, {len(images)}, {len(draws)}], found shape {distances.shape}"
        )
    pairs, resamplings = distances.shape[:2]
    if resamplings < 2:
        raise ValueError("expected at least 2 resamplings, found 1, which has no spread")
    mean = distances.mean(axis=1)
    relative = 100 * distances.std(axis=1, ddof=1) / mean
    error = relative.std(axis=0, ddof=1) / np.sqrt(pairs) if pairs > 1 else np.full(relative.shape[1:], np.nan)
    found = np.stack([mean.mean(axis=0), relative.mean(axis=0), error], axis=-1).tolist()
    places = itertools.product(range(len(images)), range(len(draws)))
    return [Spread(images[i], draws[j], pairs, resamplings, *found[i][j]) for i, j in places]


def spreads_text(rows: Sequence[Spread]) -> str:
    """Tabulates the spreads: a line for each number of images, a column for each number of draws."""
    table = pd.DataFrame({"images": list(dict.fromkeys(row.images for row in rows))})
    for draws in dict.fromkeys(row.draws for row in rows):
        table[f"{draws} draws"] = [f"{row.spread:.1f} ({row.spread_error:.1f})" for row in rows if row.draws == draws]
    return f"spread of the distance in percent, mean over {rows[0].pairs} pairs (standard error)\n{frames.text(table)}"
