"""Intervals over base images, and paired differences of models.

All cells of a model show the same images, so an image is drawn with its answers in every cell, in both models of a
difference: resampling cells, or each cell on its own, would be wrong.
"""

from collections.abc import Container, Mapping, Sequence

import numpy as np
from scipy import sparse

from analysis import frames
from analysis.confidence import metrics
from analysis.confidence.cells import Key, Severity
from corruptions.scoring.confidence import Confidence

MEASURES = ("accuracy", "nll", "brier", "ece", "debiased", "aurc", "auroc")
PIVOTAL = ("ece", "debiased")
"""Measures whose resamples carry a bias that depends on the number of images: 2 theta - quantile, in place of the quantile.
Those of ECE carry its own bias twice. `debiased` has no bias, so its resamples carry one only once: see `interval`."""
Condition = tuple[str, Severity]
_CHUNK = 50  # resamples at a time, so that their arrays stay small


class Resamples:
    """Draws of N images with replacement, the same for every cell.

    Args:
      images: N.
      number: number of draws.
      seed: seed of the draws.
    """

    def __init__(self, images: int, number: int = 1000, seed: int = 0):
        generator = np.random.default_rng([seed, images])
        drawn = (np.bincount(generator.integers(0, images, images), minlength=images) for _ in range(number))
        self._weights = np.stack([np.ones(images, int), *drawn]).astype(np.uint8)  # no image is drawn 256 times
        self._harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, images + 1))])

    def of(self, found: Confidence, bins: int = metrics.BINS) -> np.ndarray:
        """Computes each measure of a cell of the images themselves and of every draw: [measures, 1 + number].

        The bins of equal mass of `debiased` keep the edges of the images themselves.

        Raises:
          ValueError: a cell of another number of images.
        """
        if len(found.loss) != self._weights.shape[1]:
            raise ValueError(
                f"expected answers to the same {self._weights.shape[1]} images in every cell, found {len(found.loss)}"
            )
        hit = found.correct.astype(float)
        means = np.stack([hit, found.loss, found.brier], 1)
        of_bins = [_columns(found.top, hit, bins, mass) for mass in (False, True)]
        order = np.argsort(found.rest, kind="stable")
        ordered = found.rest[order]
        starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        parts = []
        for start in range(0, len(self._weights), _CHUNK):
            weights = self._weights[start : start + _CHUNK].astype(float)
            ece, debiased = (_calibration(weights, columns) for columns in of_bins)
            ranks = _ranks(weights[:, order], 1 - hit[order], starts, self._harmonic)
            parts.append(np.stack([*(weights @ means / weights.sum(1)[:, None]).T, ece[0], debiased[1], *ranks]))
        return np.concatenate(parts, axis=1)


def _columns(top, hit, bins, mass):
    """Sparse [3 B, N]: of each image its bin, and there k and the hit."""
    edges = metrics.edges(top, bins, mass)
    place, number, images = np.searchsorted(edges, top, side="left"), len(edges) + 1, np.arange(len(top))
    rows = np.concatenate([place, place + number, place + 2 * number])
    values = np.concatenate([np.ones(len(top)), top, hit])
    return sparse.csr_array((values, (rows, np.tile(images, 3))), shape=(3 * number, len(top)))


def _calibration(weights, columns):
    """(ECE, debiased square) [R] each."""
    number, confident, right = np.split((columns @ weights.T).T, 3, axis=1)
    there = np.where(number > 0, number, 1)
    confident, right = confident / there, right / there
    gap, share = np.abs(confident - right), number / number.sum(1)[:, None]
    noise = right * (1 - right) / np.where(number > 1, number - 1, 1)
    return (share * gap).sum(1), (share * np.where(number > 1, gap**2 - noise, 0)).sum(1)


def _ranks(weights, wrong, starts, harmonic):
    """(AURC, AUROC) [R] each, of images in the order of their confidence; groups of equal ones begin at `starts`.

    Within a group of n images with w errors after n_b with E_b, E_i = E_b + (i - n_b) w / n, so the sum of E_i / i is
    E_b S + w / n (n - n_b S), S the sum of 1 / i.
    """
    number = np.add.reduceat(weights, starts, axis=1)
    errors = np.add.reduceat(weights * wrong, starts, axis=1)
    end, up_to = number.cumsum(1).astype(int), errors.cumsum(1)
    begin, before = end - number.astype(int), up_to - errors
    sums = harmonic[end] - harmonic[begin]
    rate = errors / np.where(number > 0, number, 1)
    aurc = (before * sums + rate * (number - begin * sums)).sum(1) / end[:, -1]
    right, every = number - errors, up_to[:, -1:]
    pairs = right.sum(1) * every[:, 0]
    above = (right * (every - up_to + errors / 2)).sum(1)
    return aurc, above / np.where(pairs > 0, pairs, np.nan)


class Resampled:
    """Gathers the resamples of cells, those of accuracies with a prior; a `cells.Visit`.

    Args:
      conditions: whose cells are resampled.
      number, seed: see `Resamples`.
      bins: bins of ECE and the squared error.
    """

    def __init__(self, conditions: Container[Condition], number: int, seed: int = 0, bins: int = metrics.BINS):
        self._conditions, self._about, self._bins = conditions, (number, seed), bins
        self._of_images: dict[int, Resamples] = {}
        self._cells: dict[tuple, np.ndarray] = {}

    def __call__(self, condition: Condition, by_key: Mapping[Key, Confidence]) -> None:
        if condition not in self._conditions or not self._about[0]:
            return
        for key, found in by_key.items():
            images = len(found.loss)
            if images not in self._of_images:
                self._of_images[images] = Resamples(images, *self._about)
            cell = self._cells[key, condition] = self._of_images[images].of(found, self._bins)
            # An exponential number of images right and another wrong: no accuracy is certain, if all answers are alike.
            place = list(dict.fromkeys(of for of, _ in self._cells)).index(key)
            right, wrong = np.random.default_rng([self._about[1], images, place]).exponential(size=(2, self._about[0]))
            cell[0, 1:] = (images * cell[0, 1:] + right) / (images + right + wrong)

    def means(self, grid: Sequence[Sequence[Condition]]) -> dict[tuple[str, str], dict[str, np.ndarray]]:
        """Averages over the conditions of each row of a grid, then over the rows and the seeds.

        Returns:
          {(model, set): {measure: [1 + number]}} of the models that have all of the cells.
        """
        seeds: dict[tuple[str, str], list[Key]] = {}
        for key in dict.fromkeys(key for key, _ in self._cells):
            if all((key, condition) in self._cells for row in grid for condition in row):
                seeds.setdefault((key[0], key[2]), []).append(key)
        return {
            of: mean([[self._cells[key, condition] for condition in row] for key in keys for row in grid])
            for of, keys in seeds.items()
        }


def mean(grid: Sequence[Sequence[np.ndarray]]) -> dict[str, np.ndarray]:
    """Averages the cells of `Resamples.of` within each row of a grid, then the rows, each where a measure is defined:
    {measure: [1 + number]}.
    """
    rows = [_known_mean(np.stack(row)) for row in grid]
    return dict(zip(MEASURES, _known_mean(np.stack(rows)), strict=True))


def _known_mean(stacked):
    known = ~np.isnan(stacked)
    number = known.sum(0)
    return np.where(known, stacked, 0).sum(0) / np.where(number > 0, number, np.nan)


def interval(measure: str, values: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """Computes the interval of a measure, or of a difference of two, from its value and its resamples.

    Percentiles; for `PIVOTAL` ones 2 theta - percentile. For `debiased` theta + mean - percentile, with the mean of the
    resamples: 2 theta - percentile lies too low by their bias, and holds too little (of calibrated models 45 % in place of 95 %).
    """
    low, high = frames.percentile_interval(values[1:], level, known=0.5)
    if measure in PIVOTAL:
        centre = float(values[0] + (np.nanmean(values[1:]) if measure == "debiased" else values[0]))
        low, high = centre - high, centre - low
    return low, high


def intervals(values: Mapping[str, np.ndarray], level: float = 0.95) -> dict[str, tuple[float, float]]:
    """Computes the intervals of a model: {measure: (low, high)}. ECE has none, its bias is too large for either kind."""
    return {name: interval(name, of, level) for name, of in values.items() if name != "ece"}


def differences(
    first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray], level: float = 0.95
) -> dict[str, tuple[float, float, float]]:
    """Computes paired differences second - first of two models on the same images: {measure: (difference, low, high)}.

    The bias of ECE largely cancels in a difference.
    """
    apart = {name: second[name] - first[name] for name in MEASURES}
    return {name: (float(of[0]), *interval(name, of, level)) for name, of in apart.items()}
