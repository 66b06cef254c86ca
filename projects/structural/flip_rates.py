"""How often predictions flip under small perturbations: flip probability, top-5 distance, mFR.

D. Hendrycks, T. Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and
Perturbations" (2019), section 4. A frame is compared with the one before it; where noise is drawn
anew in each frame (perturbations called `..._noise...`), with the first.

    flip probability   mean over sequences and frames of [f(x_j) != f(x_i)]
    top-5 distance     the same mean of sum_{k=1..5} |k - min(place of class k of x_i in x_j, 6)|
    mFR, mT5D          means over perturbations of both, each divided by the reference's, AlexNet's
"""

import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis import frames
from analysis.frames import fixed, with_error
from corruptions.scoring.intervals import of_mean

BEST = 5
FILE = "flips.csv"


class Flips(NamedTuple):
    """One model under one perturbation; a line of flips.csv: means over sequences, with standard errors over them."""

    model: str
    seed: int
    perturbation: str
    sequences: int
    frames: int
    flip_probability: float
    flip_probability_se: float
    top_distance: float
    top_distance_se: float


def flip_probabilities(best: np.ndarray, noise: bool) -> np.ndarray:
    """Computes the fraction of frames at which the answer of each sequence flips: float [N].

    `best` are classes by falling logit, int [N, frames, K]; `noise` compares each frame with the first, not the one before.
    """
    before, after = _pairs(best, noise)
    return (before[..., 0] != after[..., 0]).mean(axis=1)


def top_distances(best: np.ndarray, noise: bool) -> np.ndarray:
    """Computes the top-5 distance of each sequence, float [N]; arguments as in `flip_probabilities`.

    With K classes for each frame, 5 becomes K: other classes count as place K + 1.
    """
    before, after = _pairs(best, noise)
    same = before[..., :, None] == after[..., None, :]
    number = best.shape[-1]
    place = np.where(same.any(axis=-1), same.argmax(axis=-1), number)
    return np.abs(np.arange(number) - place).sum(axis=-1).mean(axis=1)


def _pairs(best, noise):
    after = best[:, 1:]
    return (np.broadcast_to(best[:, :1], after.shape) if noise else best[:, :-1]), after


def measure(key: tuple[str, int], perturbation: str, best: np.ndarray) -> Flips:
    """Measures the flips of a model (name, seed) from its best classes, int [N, frames, K]."""
    noise, number = "noise" in perturbation, len(best)
    flips, distances = flip_probabilities(best, noise), top_distances(best, noise)
    spread = float(distances.std(ddof=1) / np.sqrt(number)) if number > 1 else np.nan
    means = [float(flips.mean()), of_mean(flips), float(distances.mean()), spread]
    return Flips(*key, perturbation, number, best.shape[1], *means)


class Rates(NamedTuple):
    """A model relative to a reference, in percent; 100 is the reference."""

    flips: dict[str, float]  # {perturbation: flip rate}
    mean_flip_rate: float  # mFR
    mean_top_rate: float  # mT5D


def divisors(reference: Sequence[Flips], asked: Iterable[tuple[str, int, int]]) -> dict[str, Flips]:
    """Selects the flips of a reference, the rows of `read_flips`, for each (perturbation, sequences, frames) in `asked`.

    Raises ValueError where the reference is not one model, saw other sequences, or never flips.
    """
    if len({row[:2] for row in reference}) != 1:
        raise ValueError(f"expected a reference of one model, found {sorted({row[:2] for row in reference}) or 'none'}")
    of_reference, found = {row.perturbation: row for row in reference}, {}
    for name, sequences, length in asked:
        row = of_reference.get(name)
        if row is None or (row.sequences, row.frames) != (sequences, length):
            has = f"{row.sequences} of {row.frames} frames" if row else "none"
            raise ValueError(
                f"expected {sequences} sequences of {length} frames of {name} in the reference, found {has}"
            )
        if not row.flip_probability or not row.top_distance:
            raise ValueError(f"expected a reference whose answers change under {name}, found none change")
        found[name] = row
    return found


def rates(rows: Sequence[Flips], reference: Sequence[Flips]) -> dict[tuple[str, int], Rates]:
    """Divides the flips of every model by a reference's under the same perturbation; raises as `divisors`."""
    by, found = divisors(reference, [row[2:5] for row in rows]), {}
    for key in dict.fromkeys(row[:2] for row in rows):
        pairs = [(row, by[row.perturbation]) for row in rows if row[:2] == key]
        flips = {row.perturbation: 100 * row.flip_probability / other.flip_probability for row, other in pairs}
        distances = [100 * row.top_distance / other.top_distance for row, other in pairs]
        found[key] = Rates(flips, float(np.mean(list(flips.values()))), float(np.mean(distances)))
    return found


def text(rows: Sequence[Flips], relative: Mapping[tuple[str, int], Rates]) -> str:
    """Tabulates flip probabilities in percent with their standard errors, and rates if there are any."""
    names = list(dict.fromkeys(row.perturbation for row in rows))
    keys = list(dict.fromkeys((row.model, row.seed) for row in rows))
    values = {((row.model, row.seed), row.perturbation): row for row in rows}
    header, lines = ["perturbation", *(f"{model} {seed}" for model, seed in keys)], []
    for name in names:
        cells = [values[key, name] for key in keys]
        lines.append([name, *(with_error(100 * c.flip_probability, 100 * c.flip_probability_se) for c in cells)])
    of_model = [[values[key, name] for name in names] for key in keys]
    means = [float(np.mean([row.flip_probability for row in of_one])) for of_one in of_model]
    lines.append(["mean", *(fixed(100 * mean, 2) for mean in means)])
    distances = [float(np.mean([row.top_distance for row in of_one])) for of_one in of_model]
    lines.append(["top-5 distance", *(fixed(distance, 2) for distance in distances)])
    for title, field in (("mFR", "mean_flip_rate"), ("mT5D", "mean_top_rate")):
        if relative:
            lines.append([title, *(fixed(getattr(relative[key], field), 1) for key in keys)])
    return frames.markdown(frames.of_rows(lines, header))


def write_flips(path: pathlib.Path, rows: Sequence[Flips], origin: str) -> None:
    """Writes flips.csv; `origin` goes to provenance.json."""
    frames.write(path, frames.of_rows(rows, Flips._fields), origin)


def read_flips(path: str | pathlib.Path) -> list[Flips]:
    """Reads the flips of a reference: a file flips.csv, or the one in a workdir.

    Raises FileNotFoundError where there is none; ValueError for other columns or a malformed line.
    """
    path = pathlib.Path(path)
    path = path / FILE if path.is_dir() else path
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except ValueError as error:  # not UTF-8, or no table
        raise ValueError(f"{path}: expected a table, found none ({str(error).strip()})") from None
    if tuple(table.columns) != Flips._fields:
        raise ValueError(f"{path}: expected the columns {','.join(Flips._fields)}, found {','.join(table.columns)}")
    rows = []
    for number, (model, seed, name, sequences, length, *means) in enumerate(table.itertuples(index=False), 2):
        try:
            row = Flips(model, int(seed), name, int(sequences), int(length), *map(float, means))
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: expected a row of numbers, found an error: {error}") from None
        if not (0 <= row.flip_probability <= 1 and 0 <= row.top_distance <= BEST * (BEST + 1) / 2):
            raise ValueError(
                f"{path}, line {number}: expected a flip probability in [0, 1] and a top-5 distance, found "
                f"{row.flip_probability:g} and {row.top_distance:g}"
            )
        rows.append(row)
    return rows
