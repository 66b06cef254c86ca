"""Error of models trained with few stored transforms against how many there are: supplement A and
its Figure 1 of Mintun, Kirillov, Xie (2021).

transforms.csv   kind,transforms,seeds,column,error,error_se,error_std

Stored schemes are called `stored=KIND_K@DIGEST`, as tools.msd_subsets names its files.
"""

import math
import pathlib
import re
from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from analysis.distances.subsets import KINDS
from analysis.figures import BLUE, GREY, ORANGE
from analysis.lines import write_rows
from analysis.schemes.table import Row, columns
from analysis.tables import CLEAN

_STORED = re.compile(rf"stored=({'|'.join(KINDS)})_(\d+)@[0-9a-f]+")
_COLOURS = dict(zip(KINDS, (BLUE, ORANGE, GREY), strict=True))


class Point(NamedTuple):
    """A line of transforms.csv: error in percent of `column` (see `table`), of so many
    transforms.
    """

    kind: str
    transforms: int
    seeds: int
    column: str
    error: float
    error_se: float
    error_std: float


def points(table: Sequence[Row]) -> list[Point]:
    """Lists the errors of the stored schemes among the rows of a table, by kind and number."""
    listed = []
    for row in table:
        if match := _STORED.fullmatch(row.scheme):
            kind, number = match[1], int(match[2])
            cells = [(name, cell) for name, cell in row.cells.items() if not name.startswith("gap_")]
            listed += [Point(kind, number, row.seeds, name, *cell) for name, cell in cells]
    return sorted(listed, key=lambda point: (KINDS.index(point.kind), point.transforms))


def write(path: pathlib.Path, found: Sequence[Point], comment: str) -> None:
    """Writes transforms.csv atomically."""
    write_rows(path, Point._fields, found, comment)


def panels(found: Sequence[Point], table: Sequence[Row], *, title: str = "", provenance: str = "") -> Figure:
    """Draws error against the number of transforms, a panel for each benchmark, a line for each
    kind, with the errors of whole schemes as levels.

    Args:
      found: of `points`, not empty.
      table: rows, for the schemes that are not stored.
      title, provenance: lines above the panels.
    """
    measured = {point.column for point in found}
    names = [name for name in columns(table) if name in measured and name != CLEAN] or [CLEAN]
    whole = [row for row in table if "=" not in row.scheme]
    figure = Figure(figsize=(3.6 * len(names), 3.4), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for kind, colour in _COLOURS.items():
            line = [point for point in found if (point.kind, point.column) == (kind, name)]
            spread = [p.error_se if math.isnan(p.error_std) else p.error_std for p in line]
            if line:
                xs, ys = [p.transforms for p in line], [p.error for p in line]
                axes.errorbar(xs, ys, spread, fmt="o-", color=colour, markersize=3, linewidth=1, label=kind)
        for number, row in enumerate(whole):
            style = ("--", ":", "-.")[number % 3]
            axes.axhline(row.get(name).mean, color="black", linewidth=0.8, linestyle=style, label=row.scheme)
        axes.set_xscale("log")
        axes.set_xlabel("transforms", fontsize=8)
        axes.set_ylabel(f"error on {name} (%)", fontsize=8)
        axes.tick_params(which="both", labelsize=7)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=7, frameon=False)
    figure.suptitle("\n".join(filter(None, (title, provenance))), fontsize=8)
    return figure
