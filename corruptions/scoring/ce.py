"""Corruption errors: the errors of a classifier relative to a reference network's errors.

    CE_c  = sum_s E_cs / sum_s E_cs(reference)                                        mCE: its mean over a benchmark
    rCE_c = sum_s (E_cs - E_clean) / sum_s (E_cs(reference) - E_clean(reference))     relative CE

E_cs is the top-1 error under corruption c at severity s. Relative CE is undefined where the reference loses less than
`LEAST` on average: it would be divided by little more than sampling error. D. Hendrycks, T. Dietterich, "Benchmarking Neural Network
Robustness to Common Corruptions and Perturbations" (2019), section 4.
"""

import dataclasses
import itertools
import json
import math
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from corruptions.core import registry
from corruptions.scoring.conditions import CLEAN, RANDOM
from corruptions.scoring.counts import Count, of_one_evaluation, uneven
from corruptions.scoring.folder import read_wrong
from corruptions.scoring.intervals import of_accuracy, of_mean, too_few
from corruptions.scoring.values import LEAST, Divisors, Value, average

ALEXNET = "alexnet"
ALEXNET_FILE = pathlib.Path(__file__).with_name("alexnet.json")
"""AlexNet's published errors by the prefix of corruptions: {"imagenet_c": {"clean", "severities", "errors"}, ...}."""
_EXACT = "+- standard error over the images; the reference is taken as exact."
_BOUND = (
    "+- upper bound of the standard error, the mean of the conditions' ones; ce_table(counts, path=FOLDER_OF_EVALUATE)\n"
    "computes it from the answers to each image. The reference is taken as exact."
)
_UNDEFINED = f"undefined: the reference's error rises by less than {100 * LEAST:g} point on average, which is too little to divide by."
_HOLD = (
    "AlexNet's errors hold for ImageNet's 1,000 classes at 224x224 pixels. CE of other images says nothing beside published\n"
    "ones; ce_table(counts, reference=COUNTS_OF_ANOTHER_CLASSIFIER) compares classifiers on them."
)
_Errors = Mapping[int | float | str, tuple[float, float]]
"""The published errors of a corruption: {severity: (error, clean error)}."""


class CE(NamedTuple):
    """The errors under a corruption, or their means over a benchmark, as fractions; NaN where there is no reference.

    Attributes:
      name: `clean`, a corruption or a benchmark.
      error: top-1 error, a mean over the severities.
      error_se: its standard error over the images. Without the answers to each image it is the mean of the conditions'
        standard errors; all conditions show the same images, so this is an upper bound.
      ce: corruption error, mCE for a benchmark.
      ce_se: its standard error, the reference taken as exact.
      relative_ce: relative corruption error; NaN, too, where the reference loses less than `LEAST`.
      relative_ce_se: its standard error.
    """

    name: str
    error: float
    error_se: float
    ce: float = math.nan
    ce_se: float = math.nan
    relative_ce: float = math.nan
    relative_ce_se: float = math.nan


@dataclasses.dataclass(frozen=True, repr=False)
class CETable:
    """Errors, CE and mCE; as text a table in percent.

    Attributes:
      reference: name of the reference.
      rows: `clean`, each corruption, then each benchmark all of whose corruptions were evaluated.
      exact: whether standard errors are those of the images, as in `tools.tables`, or upper bounds.
      images: their number.
      without_mean: a line for each benchmark, most of which was evaluated, that has no mean, with the reason.
    """

    reference: str
    rows: tuple[CE, ...]
    exact: bool
    images: int
    without_mean: tuple[str, ...] = ()

    def __repr__(self) -> str:
        lines = [f"{self._title:44s}{'error':>13s}{'CE':>14s}{'relative CE':>18s}"]
        for name, *cells in self._cells("+-"):
            lines.append(f"{name:44s}{cells[0]:>13s}{cells[1]:>14s}{cells[2]:>18s}")
        return "\n".join([*lines, *self._notes()])

    def latex(self) -> str:
        """Writes the table for LaTeX with booktabs, its notes as the caption."""
        rows = [("", "error", "CE", "relative CE"), *self._cells(r"$\pm$")]
        head, *lines = (" & ".join(cells).replace("_", r"\_") + r" \\" for cells in rows)
        caption = " ".join(f"{line.rstrip('.')}." for line in (self._title, *self._notes()))
        for letter, written in (("_", r"\_"), ("%", r"\%"), ("&", r"\&"), ("#", r"\#"), ("+-", r"$\pm$")):
            caption = caption.replace(letter, written)
        top = (r"\begin{table}", r"\centering", r"\begin{tabular}{lrrr}", r"\toprule", head, r"\midrule")
        end = (r"\bottomrule", r"\end{tabular}", rf"\caption{{{caption}}}", r"\end{table}", "")
        return "\n".join([*top, *lines, *end])

    @property
    def _title(self) -> str:
        return f"percent, CE relative to {self.reference}"

    def _cells(self, sign: str) -> Iterable[tuple[str, ...]]:
        for row in self.rows:
            pairs = row[1:3], row[3:5], row[5:7]
            cells = [_percent(*pair, sign) for pair in pairs]
            yield row.name, *cells[:2], "undefined" if self._undefined(row) else cells[2]

    @staticmethod
    def _undefined(row: CE) -> bool:
        return math.isfinite(row.ce) and not math.isfinite(row.relative_ce)

    def _notes(self) -> list[str]:
        notes = [_EXACT if self.exact else _BOUND, *(f"{sentence}." for sentence in too_few(self.images))]
        if any(map(self._undefined, self.rows)):
            notes.append(_UNDEFINED)
        return [*notes, *self.without_mean] + ([_HOLD] if self.reference == ALEXNET else [])


def ce_table(
    counts: Iterable[Count], reference: str | Iterable[Count] = ALEXNET, path: str | os.PathLike | None = None
) -> CETable:
    """Computes errors, CE and mCE of counts of `evaluate`; `print` shows them as a table, `.latex()` writes it for LaTeX.

    Args:
      counts: of `evaluate`, with clean images.
      reference: `alexnet`, whose published errors hold for ImageNet's validation images at 224 pixels: ImageNet-C at
        levels, the candidates of ImageNet-NOC at random severities in their published ranges. Or counts of another
        classifier under the same conditions.
      path: the folder that `evaluate` wrote the answers to; with them standard errors are exact, not upper bounds.

    Raises:
      ValueError: no clean images, another reference, or a folder with other answers.
    """
    counts = list(counts)
    by_corruption = of_one_evaluation(counts)
    if CLEAN not in by_corruption:
        raise ValueError("expected counts with clean images, as corruptions.evaluate gives them, found none")
    if isinstance(reference, str) and reference != ALEXNET:
        raise ValueError(f'expected reference="{ALEXNET}" or counts of corruptions.evaluate, found {reference!r}')
    name, errors = (ALEXNET, _alexnet()) if isinstance(reference, str) else ("the other classifier", _of(reference))
    (clean,) = by_corruption.pop(CLEAN)
    wrong = None if path is None else _wrong(path, counts)
    scored = {one: _row(one, rows, clean, errors.get(one, {}), wrong) for one, rows in by_corruption.items()}

    def row(name, counts):  # over some of the severities
        every = len(counts) == len(by_corruption[name])
        return scored[name] if every else _row(name, counts, clean, errors.get(name, {}), wrong)

    means = [_mean(benchmark, by_corruption, row) for benchmark in registry.benchmarks()]
    notes = tuple(note for mean in means if isinstance(note := mean, str) and note)
    of_clean = CE(CLEAN, clean.error, _standard_error(clean) if wrong is None else of_mean(wrong[_key(clean)]))
    rows = (of_clean, *itertools.starmap(_joined, scored.items()), *(mean for mean in means if isinstance(mean, CE)))
    return CETable(name, rows, wrong is not None, clean.total, notes)


def _key(count):
    return count.corruption, str(count.severity)


def _wrong(path, counts):
    """Reads which images were answered wrongly, {(corruption, severity): float64 [N]}, of the conditions of `counts`."""
    found = read_wrong(path)
    for count in counts:
        of_count = found.get(_key(count), np.zeros(0))
        if (count.total, count.total - count.correct) != (len(of_count), of_count.sum()):
            raise ValueError(
                f"expected in {os.fspath(path)} the answers that were counted, found others, or none, for "
                f"{' '.join(_key(count))}; give the path of the call of corruptions.evaluate that returned the counts"
            )
    return found


def _alexnet() -> Mapping[str, _Errors]:
    content = json.loads(ALEXNET_FILE.read_text(encoding="utf-8"))
    return {
        f"{prefix}/{name}": {s: (error, of["clean"]) for s, error in zip(of["severities"], errors, strict=True)}
        for prefix, of in content.items()
        if isinstance(of, dict)
        for name, errors in of["errors"].items()
    }


def _of(counts: Iterable[Count]) -> Mapping[str, _Errors]:
    counts = list(counts)
    clean = [count.error for count in counts if count.corruption == CLEAN]
    if not clean:
        raise ValueError("expected a reference with clean images, found counts without them")
    return {
        name: {count.severity: (count.error, clean[0]) for count in rows}
        for name, rows in of_one_evaluation(counts).items()
    }


def _row(name, counts, clean, reference, wrong):
    """Computes error, CE and relative CE under one corruption; without `wrong` from the counts alone."""
    number, divisors = len(counts), Divisors()
    if all(count.severity in reference for count in counts):
        of_reference = [reference[count.severity] for count in counts]
        divisors = Divisors.from_errors([error for error, _ in of_reference], of_reference[0][1])
    if wrong is not None:
        return divisors.measures(sum(wrong[_key(count)] for count in counts) / number, wrong[_key(clean)])
    error, se = (sum(of_count) / number for of_count in ([c.error for c in counts], map(_standard_error, counts)))
    return divisors.bounds(error, clean.error, se, _standard_error(clean))


def _mean(benchmark, by_corruption, row):
    """Averages the rows of a benchmark at the severities it selects; else the reason, "" where less than half was evaluated."""
    members = {name: _selected(benchmark, name, by_corruption.get(name, ())) for name in registry.names(benchmark)}
    if missing := [name for name, of_one in members.items() if not of_one]:
        most = 2 * len(missing) < len(members)
        return f"{benchmark} has no mean: {len(missing)} of {len(members)} missing, {missing[0]} first." if most else ""
    if odd := uneven(members, benchmark):
        return f"{benchmark} has no mean: {odd}."
    of_members = [row(name, list(of_one.values())) for name, of_one in members.items()]
    return _joined(
        f"{benchmark}, mean of {len(members)}", [average(of_one) for of_one in zip(*of_members, strict=True)]
    )


def _selected(benchmark, name, counts):
    """{severity as the benchmark numbers it: count} of a member: of all severities, or of the levels it selects."""
    levels = registry.selected_levels(name, benchmark)
    numbered = {} if levels is None else {level: number for number, level in enumerate(levels, 1)}
    return {
        numbered.get(count.severity, count.severity): count
        for count in counts
        if levels is None or count.severity in numbered or count.severity == RANDOM
    }


def _joined(name: str, values: Sequence[Value]) -> CE:
    return CE(name, *(number for value in values for number in value[:2]))


def _standard_error(count):
    return float(of_accuracy(count.error, count.total))


def _percent(value, error, sign):
    if not math.isfinite(value):
        return "-"
    return f"{100 * value:.1f}" + (f" {sign} {100 * error:.1f}" if math.isfinite(error) else "")
