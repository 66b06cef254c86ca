"""errors_summary.csv: a number for each model, benchmark and measure, over seeds. Needs no JAX."""

import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from analysis.lines import read_lines, write_rows

NAME = "errors_summary.csv"
HEADER = (
    "model",
    "benchmark",
    "severities",
    "measure",
    "mean",
    "se",
    "std",
    "seeds",
    "reference",
    "mismatch",
    "frost",
)
NONE = "none"  # no severities, no reference, nothing that differs
PROCEDURAL, ORIGINAL = "procedural", "original_photographs"  # sources of frost
GAP = "gap"
MEASURES = ("mean_error", "mCE", "relative_mCE")
TITLES = {
    "mean_error": "mean error",
    "mCE": "mCE",
    "relative_mCE": "relative mCE",
    GAP: "minus mean error on imagenet_c",
}


class Summary(NamedTuple):
    """A number of one model, over its seeds, in percent.

    Attributes:
      model: name.
      benchmark: its name, `clean`, or C-bar's of a gap; severities: `levels` or `random`.
      measure: `mean_error`, `mCE`, `relative_mCE`, or `gap` (mean error on C-bar minus that on
        ImageNet-C).
      mean: over seeds.
      se: of the mean, over test images.
      std: between seeds (n - 1), NaN of one.
      seeds: how many.
      reference: the name of what it is relative to, or `none`.
      mismatch: what differs from the reference's conditions, or `none`.
      frost: its source, where frost is among the corruptions, else `none`.
      by_seed: the `analysis.errors.scores.Value`s that were averaged, where they are known.
    """

    model: str
    benchmark: str
    severities: str
    measure: str
    mean: float
    se: float
    std: float
    seeds: int
    reference: str
    mismatch: str
    frost: str
    by_seed: tuple[Any, ...] = ()


def write(path: pathlib.Path, summaries: Sequence[Summary], comment: str | None = None) -> None:
    """Writes errors_summary.csv atomically; `nan` where there is no number."""
    write_rows(path, HEADER, [summary[:-1] for summary in summaries], comment)


def read(path: pathlib.Path) -> list[Summary]:
    """Reads errors_summary.csv.

    Raises:
      FileNotFoundError, ValueError: no such table, or another.
    """
    summaries = []
    for number, fields in read_lines(path, HEADER):
        try:
            values = *map(float, fields[4:7]), int(fields[7])
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
        summaries.append(Summary(*fields[:4], *values, *fields[8:]))
    return summaries


def notes(summary: Summary) -> list[str]:
    """Lists what a normalised number must be marked with: frost that is not the original's, and
    conditions that differ.
    """
    if summary.reference == NONE:
        return []
    marks = [] if summary.frost in (NONE, ORIGINAL) else [f"frost {summary.frost.replace('_', ' ')}"]
    marks += [] if summary.mismatch == NONE else [f"other conditions than {summary.reference}: {summary.mismatch}"]
    return marks
