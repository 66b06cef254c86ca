"""The metrics of models under conditions, a row for each cell, and their means over benchmarks as published.

cNLL, cAcc, cECE and the like are means of cells: each metric in each cell on its own, then the mean over the corruptions
at each severity, then over the severities; clean images do not count. Z. Nado et al., "Uncertainty Baselines" (2021).
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis import frames
from analysis.answers import PLAIN, Answers
from analysis.confidence import metrics
from analysis.confidence.metrics import binned, ranked
from analysis.confidence.temperature import disagreement
from analysis.errors.scores import Benchmark, complete_benchmarks
from analysis.frames import CLEAN, RANDOM
from corruptions.scoring.confidence import Confidence
from runtime.log import bar

Key = tuple[str, int, str]
"""(model, seed, set of the confidence)."""
Severity = int | float | str
Visit = Callable[[tuple[str, Severity], Mapping[Key, Confidence]], object]
"""Sees a condition and the confidence of the models there."""
ALL = "all"
_SEVENTEEN = (
    *("brightness", "contrast", "defocus_blur", "elastic_transform", "fog", "frost", "glass_blur", "gaussian_blur"),
    *("gaussian_noise", "impulse_noise", "jpeg_compression", "pixelate", "saturate", "shot_noise", "spatter"),
    *("speckle_noise", "zoom_blur"),
)
CIFAR100_C = {"cifar100_c_of_17": tuple(f"imagenet_c/{name}" for name in _SEVENTEEN)}
"""Uncertainty Baselines averages CIFAR-100 over these, without motion_blur and snow: not comparable with a mean of 15."""
BASE = (CLEAN, 0)
_OF_CELL = ("model", "seed", "set", "corruption", "severity", "images")
MEASURES = (
    *("accuracy", "confidence", "over", "nll", "brier", "ece", "ece_bias", "ace", "debiased", "aurc", "e_aurc"),
    *("auroc", "fpr95"),
)
"""Columns of a cell: accuracy; mean confidence, and its excess over the accuracy; NLL in nats; Brier score in 0..2; ECE and
the ECE that a calibrated model would show; ECE in bins of equal mass; squared error without bias; AURC, its excess; AUROC of
right against wrong answers; FPR95."""


def measure(found: Confidence, bins: int = metrics.BINS) -> dict[str, float]:
    """Computes `MEASURES` of the answers to N images."""
    wide, even = (binned(found.top, found.correct, bins, mass) for mass in (False, True))
    order = ranked(-found.rest, found.correct)
    values = (
        *(found.correct.mean(), found.top.mean(), found.top.mean() - found.correct.mean(), found.loss.mean()),
        *(found.brier.mean(), metrics.ece(wide), bias(wide), metrics.ece(even), metrics.debiased_square(even)),
        *(metrics.aurc(order), metrics.excess_aurc(order), metrics.auroc(order), metrics.fpr95(order)),
    )
    return dict(zip(MEASURES, map(float, values), strict=True))


def bias(of: metrics.Bins) -> float:
    """The ECE to expect of a calibrated model, about sum_b sqrt(2 acc_b (1 - acc_b) n_b / pi) / N."""
    noise = np.sqrt(2 * of.accuracy * (1 - of.accuracy) * of.number / math.pi)
    return float(noise.sum() / of.number.sum())


class Cells:
    """The confidence of models under conditions.

    Args:
      read: reads a condition: {(model, seed, set): `Confidence`}.
      conditions: (corruption, severity), clean images first.
      benchmarks: complete ones among them, see `complete_benchmarks`.
    """

    def __init__(self, read, conditions: Sequence[tuple[str, Severity]], benchmarks: Sequence[Benchmark]):
        self._read, self.conditions, self.benchmarks = read, tuple(conditions), tuple(benchmarks)

    @classmethod
    def of_answers(cls, answers: Answers) -> "Cells":
        """Takes the answers of a workdir."""
        conditions, drawn = dict.fromkeys(cell[2:] for cell in answers), {}
        for cell in answers:
            if cell[3] == RANDOM:
                drawn.setdefault(cell[2], set()).add(answers.record(cell).levels)
        found = complete_benchmarks(conditions, CIFAR100_C, stored=answers.stored, drawn=drawn)
        return cls(answers.confidence, list(conditions), found)

    def of_models(self, models: Collection[str]) -> "Cells":
        """Takes some of the models.

        Raises:
          ValueError: one of them is not there.
        """
        known = dict.fromkeys(key[0] for condition in self.conditions[:1] for key in self.read(condition))
        if unknown := sorted(set(models) - set(known)):
            raise ValueError(f"expected models among {', '.join(known)}, found {', '.join(unknown)}")

        def read(*condition):
            return {key: found for key, found in self._read(*condition).items() if key[0] in models}

        return Cells(read, self.conditions, self.benchmarks)

    def read(self, condition: tuple[str, Severity]) -> dict[Key, Confidence]:
        """Reads the answers of all models to a condition.

        Raises:
          ValueError: some have no confidence.
        """
        return self._read(*condition)

    def table(self, bins: int = metrics.BINS, visit: Sequence[Visit] = ()) -> pd.DataFrame:
        """Makes the frame of cells.csv: a row for each model, set and condition.

        Args:
          bins: bins of ECE and the like.
          visit: functions that see the answers to each condition too; each file of a workdir is read once.
        """
        rows = []
        for condition in bar("condition", self.conditions):
            by_key = self.read(condition)
            for function in visit:
                function(condition, by_key)
            for key, found in by_key.items():
                cell = measure(found, bins).values()
                rows.append((*key, *condition, len(found.loss), *cell, int(found.clipped.sum())))
        return frames.of_rows(rows, (*_OF_CELL, *MEASURES, "clipped"))

    @property
    def averaged(self) -> set[tuple[str, Severity]]:
        """Gives the conditions whose means are taken: clean images and the benchmarks."""
        members = {(name, at) for of in self.benchmarks for name, row in of.members.items() for at in row}
        return members | ({BASE} & set(self.conditions))


class Mean(NamedTuple):
    """A mean over the cells of a benchmark.

    Attributes:
      model, seed, set: of the cells.
      benchmark: its name, or `clean`.
      severities: `levels` or `random`, "" for clean images.
      severity: the place of the severity among the ones of its corruption, 1, 2, ..., or `all`.
      corruptions: how many.
      undefined: cells where a measure is not defined, which its mean leaves out.
      values: {measure: mean}.
    """

    model: str
    seed: int
    set: str
    benchmark: str
    severities: str
    severity: str
    corruptions: int
    undefined: int
    values: Mapping[str, float]


def means(table: pd.DataFrame, benchmarks: Iterable[Benchmark]) -> Iterator[Mean]:
    """Averages the cells of `Cells.table` over benchmarks: at each severity over the corruptions, then over severities.

    Where corruptions have different numbers of severities the mean is over the severities of each corruption first.
    """
    for key, of_model in table.groupby(["model", "seed", "set"], sort=False):
        cells = {(row.corruption, row.severity): row for row in of_model.itertuples()}
        if BASE in cells:
            values, undefined = _mean([[cells[BASE]]])
            yield Mean(*key, CLEAN, "", ALL, 0, undefined, values)
        for benchmark in benchmarks:
            grid = [[cells.get((name, at)) for at in row] for name, row in benchmark.members.items()]
            if any(cell is None for row in grid for cell in row):
                continue
            about = (*key, benchmark.name, benchmark.severities)
            if len({len(row) for row in grid}) == 1 and len(grid[0]) > 1:
                for place, column in enumerate(zip(*grid, strict=True), 1):
                    values, undefined = _mean([column])
                    yield Mean(*about, str(place), len(grid), undefined, values)
            values, undefined = _mean(grid)
            yield Mean(*about, ALL, len(grid), undefined, values)


class Disagreement:
    """Gathers how often the seeds of a training disagree; a `Visit`."""

    def __init__(self) -> None:
        self._rows: list[tuple] = []

    def __call__(self, condition: tuple[str, Severity], by_key: Mapping[Key, Confidence]) -> None:
        predicted: dict[str, list[np.ndarray]] = {}
        for (model, _, name), found in by_key.items():
            if name == PLAIN:
                predicted.setdefault(model, []).append(found.predicted)
        self._rows += [(model, *condition, len(of), disagreement(of)) for model, of in predicted.items() if len(of) > 1]

    def table(self) -> pd.DataFrame:
        """Makes the frame of disagreement.csv: share of (image, pair of seeds) with different predictions."""
        return frames.of_rows(self._rows, ("model", "corruption", "severity", "seeds", "disagreement"))


def _mean(grid):
    """({measure: mean over the rows of a grid of cells of their means}, cells with an undefined measure)."""
    values = {name: _nanmean([_nanmean([getattr(cell, name) for cell in row]) for row in grid]) for name in MEASURES}
    undefined = sum(any(math.isnan(getattr(cell, name)) for name in MEASURES) for row in grid for cell in row)
    return values, undefined


def _nanmean(values):
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


SUMMARY = ("model", "set", "benchmark", "severities", "severity", "corruptions", "measure", "mean", "std", "seeds")
SUMMARY += ("undefined", "low", "high")


def summary(found: Sequence[Mean], intervals: Mapping[tuple, tuple[float, float]] | None = None) -> pd.DataFrame:
    """Makes the frame of summary.csv: the means of `means` over the seeds, with their deviation over seeds.

    Args:
      found: means of single models.
      intervals: {(model, set, benchmark, severities, measure): (low, high)} over the images, for the severity `all`.
    """
    groups: dict[tuple, list[Mean]] = {}
    for one in found:
        groups.setdefault((one.model, *one[2:7]), []).append(one)
    rows = []
    for (model, *about), of in groups.items():
        for name in MEASURES:
            values = [one.values[name] for one in of]
            ends = (math.nan, math.nan)
            if about[3] == ALL and intervals:
                ends = intervals.get((model, *about[:3], name), ends)
            spread = frames.spread_over_seeds(values)
            undefined = sum(one.undefined for one in of)
            rows.append((model, *about, name, _nanmean(values), spread, len(values), undefined, *ends))
    return frames.of_rows(rows, SUMMARY)
