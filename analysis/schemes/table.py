"""schemes.csv: a row for each scheme; clean error, mean error of each benchmark, C-bar minus C.

scheme,seeds,then for each column NAME,NAME_se,NAME_std: percent, the standard error over test
images, the standard deviation over seeds (n - 1). Columns are `clean`, benchmarks by their names
(`_random` after those at random severities), and `gap_` before C-bar's.
"""

import math
import pathlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from analysis.errors.summary import GAP, Summary
from analysis.figures import BLUE, GREY
from analysis.lines import write_rows
from analysis.rounding import with_error
from analysis.tables import CLEAN, RANDOM

MEAN = "mean_error"
_FIRST, _LAST = 20, 5  # rows that are printed of a long table
_DRAWN = 60


class Cell(NamedTuple):
    """Percent; NaN where there is none."""

    mean: float = math.nan
    se: float = math.nan
    std: float = math.nan


class Row(NamedTuple):
    """A scheme, its number of seeds, and {column: `Cell`}."""

    scheme: str
    seeds: int
    cells: dict[str, Cell]

    def get(self, column: str) -> Cell:
        """Gives the cell of a column, of NaN where there is none."""
        return self.cells.get(column, Cell())


def rows(summaries: Iterable[Summary], schemes: Sequence[str]) -> list[Row]:
    """Collects the mean errors and the gaps of schemes, in their order.

    Args:
      summaries: what errors_summary.csv holds.
      schemes: names of models; those without an error are left out.
    """
    cells: dict[str, dict[str, Cell]] = {name: {} for name in schemes}
    seeds: dict[str, int] = {}
    for summary in summaries:
        if summary.model in cells and summary.measure in (MEAN, GAP):
            cells[summary.model][_column(summary)] = Cell(summary.mean, summary.se, summary.std)
            seeds[summary.model] = summary.seeds
    return [Row(name, seeds[name], of_scheme) for name, of_scheme in cells.items() if of_scheme]


def _column(summary):
    name = summary.benchmark + (f"_{RANDOM}" if summary.severities == RANDOM else "")
    return f"gap_{name}" if summary.measure == GAP else name


def columns(table: Sequence[Row]) -> list[str]:
    """Lists the columns of a table: clean first, then benchmarks, C-bar last, then gaps."""
    names = list(dict.fromkeys(name for row in table for name in row.cells))
    return sorted(names, key=lambda name: (name != CLEAN, name.startswith("gap_"), "c_bar" in name))


def write(path: pathlib.Path, table: Sequence[Row], comment: str) -> None:
    """Writes schemes.csv atomically."""
    names = columns(table)
    header = ("scheme", "seeds", *(f"{name}{part}" for name in names for part in ("", "_se", "_std")))
    lines = [(row.scheme, row.seeds, *(value for name in names for value in row.get(name))) for row in table]
    write_rows(path, header, lines, comment)


def text(table: Sequence[Row]) -> str:
    """Tabulates the schemes; of many those of least and of largest error in the first benchmark."""
    names = columns(table)
    shown, note = list(table), ""
    if len(table) > _FIRST + _LAST:
        key = next((name for name in names if name != CLEAN), CLEAN)
        ordered = sorted(table, key=lambda row: (math.isnan(row.get(key).mean), row.get(key).mean))
        shown = ordered[:_FIRST] + ordered[-_LAST:]
        note = f"\n({_FIRST} of least and {_LAST} of largest error in {key}, of {len(table)})"
    cells = [["scheme", "seeds", *names]]
    cells += [[row.scheme, str(row.seeds), *(_said(row.get(name)) for name in names)] for row in shown]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    several = any(row.seeds > 1 for row in shown)
    over = "standard deviation over seeds" if several else "standard error over test images, of one seed"
    return "\n".join(lines) + f"\n(errors in percent, ± {over}){note}"


def drawable(table: Sequence[Row]) -> bool:
    """Tells whether schemes are so few that `panels` can name each."""
    return 1 < len(table) <= _DRAWN


def panels(table: Sequence[Row], *, title: str = "", provenance: str = "") -> Figure:
    """Draws the errors of each scheme, a panel for clean images and each benchmark, from the largest
    mean error of the last one up, schemes without it on top. Bars are standard errors of the mean
    over seeds, with one seed over test images.
    """
    names = [name for name in columns(table) if not name.startswith("gap_")]
    last = names[-1]
    ordered = sorted(table, key=lambda row: (math.isnan(row.get(last).mean), -row.get(last).mean))
    figure = Figure(figsize=(2.4 * len(names) + 1.6, 0.17 * len(table) + 1.4), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(names), sharey=True, squeeze=False)[0], names, strict=True):
        cells = [row.get(name) for row in ordered]
        errors = [
            cell.se if math.isnan(cell.std) else cell.std / math.sqrt(row.seeds)
            for cell, row in zip(cells, ordered, strict=True)
        ]
        places = range(len(cells))
        axes.errorbar([cell.mean for cell in cells], places, xerr=errors, fmt="o", color=BLUE, markersize=3, capsize=2)
        axes.set_yticks(places, [row.scheme for row in ordered])
        axes.set_xlabel(f"error, {name} (%)", fontsize=7)
        axes.tick_params(labelsize=6)
        axes.grid(axis="x", color=GREY, linewidth=0.3, alpha=0.5)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle("\n".join(filter(None, (title, provenance))), fontsize=7)
    return figure


def _said(cell):
    return with_error(cell.mean, cell.se if math.isnan(cell.std) else cell.std) if not math.isnan(cell.mean) else ""
