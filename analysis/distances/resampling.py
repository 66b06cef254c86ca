"""How far the distance of one transform to one corruption varies with the images and draws it is
measured on.

A transform a and a corruption c have the distance |f(a) - fbar(c)|, f the mean feature of a set of
images and fbar(c) the mean of f over draws of c. With other images and other draws it is another
number: the spread of n images and m draws is its standard deviation over resamplings divided by its
mean, averaged over pairs (a, c).

Source: E. Mintun, A. Kirillov, S. Xie, "On Interaction Between Augmentations and Corruptions in
Natural Corruption Robustness" (2021), supplement, Figure 6: 100 pairs, 100 resamplings of each, and
about 5 % at 100 images and 100 draws.
"""

import pathlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from analysis.lines import write_rows


class Spread(NamedTuple):
    """One line of resampling.csv: means over the pairs, at a number of images and of draws.

    Attributes:
      images, draws: behind each distance.
      pairs, resamplings: how many there are.
      distance: mean distance.
      spread: standard deviation over resamplings, in percent of the pair's mean distance.
      spread_error: standard error of `spread` over the pairs (NaN for one pair).
    """

    images: int
    draws: int
    pairs: int
    resamplings: int
    distance: float
    spread: float
    spread_error: float


def nested_distances(transform: ArrayLike, draws: ArrayLike, numbers: Sequence[int]) -> np.ndarray:
    """Measures the distances of a transform to the centres of the first m draws, for each m.

    Args:
      transform: its features, [G, D], one row for each set of images.
      draws: features of the corruption's draws, [M, G, D].
      numbers: of draws, up to M.

    Returns:
      float64 [G, len(numbers)].
    """
    transform, draws = np.asarray(transform, np.float64), np.asarray(draws, np.float64)
    centres = [draws[:number].mean(axis=0) for number in numbers]
    return np.stack([np.linalg.norm(transform - centre, axis=-1) for centre in centres], axis=-1)


def spreads(distances: ArrayLike, images: Sequence[int], draws: Sequence[int]) -> list[Spread]:
    """Computes the spread at every number of images and draws.

    Args:
      distances: [pairs, resamplings, images, draws].
      images, draws: the numbers along the last two axes.

    Raises:
      ValueError: another shape, or fewer than two resamplings.
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
    cells = [(i, j) for i in range(len(images)) for j in range(len(draws))]
    return [
        Spread(
            *(images[i], draws[j], pairs, resamplings),
            *map(float, (mean[:, i, j].mean(), relative[:, i, j].mean(), error[i, j])),
        )
        for i, j in cells
    ]


def write_spreads(path: str | pathlib.Path, rows: Iterable[Spread], comment: str | None = None) -> None:
    """Writes resampling.csv atomically."""
    write_rows(path, Spread._fields, rows, comment)


def spreads_text(rows: Sequence[Spread]) -> str:
    """Tabulates the spreads: a line for each number of images, a column for each of draws."""
    draws = list(dict.fromkeys(row.draws for row in rows))
    lines = [
        f"spread of the distance in percent, mean over {rows[0].pairs} pairs (standard error)",
        f"{'images':>6s}  " + "  ".join(f"{f'{number} draws':>13s}" for number in draws),
    ]
    for images in dict.fromkeys(row.images for row in rows):
        cells = [f"{f'{row.spread:.1f} ({row.spread_error:.1f})':>13s}" for row in rows if row.images == images]
        lines.append(f"{images:6d}  " + "  ".join(cells))
    return "\n".join(lines)


def spread_panel(rows: Sequence[Spread], *, title: str = "") -> Figure:
    """Draws the spread against the number of images, a line for each number of draws, with standard
    errors over the pairs.
    """
    figure = Figure(figsize=(5.0, 3.6), layout="constrained")
    axes = figure.subplots()
    for draws in dict.fromkeys(row.draws for row in rows):
        own = [row for row in rows if row.draws == draws]
        axes.errorbar(
            [row.images for row in own],
            [row.spread for row in own],
            [row.spread_error for row in own],
            fmt="o-",
            markersize=4,
            linewidth=1,
            capsize=2,
            label=f"{draws} draws",
        )
    axes.set_xscale("log")
    numbers = list(dict.fromkeys(row.images for row in rows))
    axes.set_xticks(numbers, map(str, numbers))
    axes.minorticks_off()
    axes.set_xlabel("images", fontsize=8)
    axes.set_ylabel("standard deviation (% of the distance)", fontsize=8)
    axes.set_ylim(0)
    axes.tick_params(labelsize=7)
    figure.legend(loc="outside lower center", ncols=4, fontsize=7, frameon=False)
    figure.suptitle(title, fontsize=8)
    return figure
