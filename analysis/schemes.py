"""Results of a scheme study: what training with each augmentation scheme brings. Errors are in percent.

    schemes.csv              scheme,seeds, then for each column NAME,NAME_se,NAME_std: a row for each scheme
    scheme_corruptions.csv   scheme,corruption,severities,seeds,error,error_std: mean over severities, then over seeds
    transforms.csv           kind,transforms,seeds,column,error,error_se,error_std: schemes of few stored transforms

Columns are `clean`, benchmarks by their names (`_random` after those at random severities), and `gap_` before C-bar's.
`_se` is the standard error over test images, `_std` the standard deviation over seeds (n - 1), NaN of one seed.
scheme_corruptions.csv is Table 3, transforms.csv Figure 1 of the supplement of Mintun, Kirillov, Xie (2021).
"""

import math
import pathlib
import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis import figures, frames
from analysis.distances import results
from analysis.distances.experiments import KINDS
from analysis.errors.summary import GAP, Summary
from analysis.figures import BLUE, GREY, ORANGE
from analysis.rounding import with_error
from analysis.tables import CLEAN, RANDOM, Count

MEAN = "mean_error"
_FIRST, _LAST = 20, 5  # rows that are printed of a long table
_DRAWN = 60  # most schemes that a figure names
_STORED = re.compile(rf"stored=({'|'.join(KINDS)})_(\d+)@[0-9a-f]+")  # as tools.msd names its files
_COLOURS = dict(zip(KINDS, (BLUE, ORANGE, GREY), strict=True))


class Cell(NamedTuple):
    """Percent; NaN where there is none."""

    mean: float = math.nan
    se: float = math.nan
    std: float = math.nan

    def error(self) -> float:
        """Gives the error that is printed: between seeds where there are several, else over test images."""
        return self.se if math.isnan(self.std) else self.std


class Row(NamedTuple):
    """A scheme, its number of seeds, and {column: `Cell`}."""

    scheme: str
    seeds: int
    cells: dict[str, Cell]

    def get(self, column: str) -> Cell:
        """Gives the cell of a column, of NaN where there is none."""
        return self.cells.get(column, Cell())


class Point(NamedTuple):
    """A row of transforms.csv."""

    kind: str
    transforms: int
    seeds: int
    column: str
    error: float
    error_se: float
    error_std: float


def write_results(
    folder: pathlib.Path,
    summaries: Iterable[Summary],
    counts: Sequence[Count],
    schemes: Sequence[str],
    measured: pathlib.Path,
    origin: str,
) -> str:
    """Writes schemes.csv, its figure where schemes are few, and scheme_corruptions.csv; transforms.csv and
    transforms.png where there are stored schemes; correlations with distance and their figures where distances were
    measured.

    Args:
      folder: workdir.
      summaries: errors of the models on benchmarks.
      counts: of the evaluation.
      schemes: canonical names of the schemes of the study, in their order.
      measured: folder of tools.msd, which may be missing.
      origin: where the numbers come from, for provenance.json and above the figures.

    Returns:
      The text to print.
    """
    table = rows(summaries, schemes)
    frames.write(folder / "schemes.csv", _frame(table), origin)
    frames.write(folder / "scheme_corruptions.csv", by_corruption(counts, schemes), origin)
    for stem in (
        "scheme_errors",
        "transforms",
        "correlations",
        "correlations_mmd",
        "within_schemes",
    ):  # of an earlier run
        for ending in ("csv", "png", "pdf"):
            (folder / f"{stem}.{ending}").unlink(missing_ok=True)
    if 1 < len(table) <= _DRAWN:
        figures.save(panels(table, title="Errors of schemes", provenance=origin), folder / "scheme_errors")
    if found := points(table):
        frames.write(folder / "transforms.csv", frames.of_rows(found, Point._fields), origin)
        drawn = transform_panels(found, table, title="Error and number of transforms", provenance=origin)
        figures.save(drawn, folder / "transforms")
    return f"{text(table)}\n\n{_correlated(folder, counts, schemes, measured, origin)}"


def _correlated(folder, counts, schemes, measured, origin):
    """Correlates error with the distances that were measured; says why not where too few schemes have both."""
    if not (measured / "schemes").is_dir():
        return (
            f"(no distances yet: tools.msd with this workdir writes {measured}, and the same command again correlates)"
        )
    found = results.read_distances(measured)
    targets = {(row.corruption, row.severity) for row in found}
    of_schemes = [count for count in counts if count.model in schemes and (count.corruption, count.severity) in targets]
    names = {row.scheme for row in found} & {count.model for count in of_schemes}
    if len(names) < results.MIN_SCHEMES:
        return (
            f"(no correlation of error with distance: expected at least {results.MIN_SCHEMES} schemes with both under the "
            f"same severities, found {len(names)} in {measured})"
        )
    return results.write_correlations(folder, found, results.mean_errors(of_schemes), origin)


def rows(summaries: Iterable[Summary], schemes: Sequence[str]) -> list[Row]:
    """Collects the mean errors and the gaps of schemes, in their order; schemes without an error are left out."""
    cells: dict[str, dict[str, Cell]] = {name: {} for name in schemes}
    seeds: dict[str, int] = {}
    for summary in summaries:
        if summary.model in cells and summary.measure in (MEAN, GAP):
            name = summary.benchmark + (f"_{RANDOM}" if summary.severities == RANDOM else "")
            column = f"gap_{name}" if summary.measure == GAP else name
            cells[summary.model][column] = Cell(summary.mean, summary.se, summary.std)
            seeds[summary.model] = summary.seeds
    return [Row(name, seeds[name], of_scheme) for name, of_scheme in cells.items() if of_scheme]


def columns(table: Sequence[Row]) -> list[str]:
    """Lists the columns of a table: clean first, then benchmarks, C-bar last, then gaps."""
    names = list(dict.fromkeys(name for row in table for name in row.cells))
    return sorted(names, key=lambda name: (name != CLEAN, name.startswith("gap_"), "c_bar" in name))


def _frame(table):
    names = columns(table)
    header = ("scheme", "seeds", *(f"{name}{part}" for name in names for part in ("", "_se", "_std")))
    return frames.of_rows(
        [(row.scheme, row.seeds, *(value for name in names for value in row.get(name))) for row in table], header
    )


def by_corruption(counts: Iterable[Count], schemes: Collection[str]) -> pd.DataFrame:
    """Averages errors over severities, then over seeds: the frame of scheme_corruptions.csv."""
    cells: dict[tuple[str, str], dict[int, list[float]]] = {}
    for count in counts:
        if count.model in schemes and count.corruption != CLEAN:
            by_seed = cells.setdefault((count.model, count.corruption), {})
            by_seed.setdefault(count.seed, []).append(100 * count.error)
    lines = []
    for key, by_seed in cells.items():
        means = [float(np.mean(errors)) for errors in by_seed.values()]
        severities = max(map(len, by_seed.values()))
        lines.append((*key, severities, len(means), float(np.mean(means)), frames.spread_over_seeds(means)))
    return frames.of_rows(lines, ("scheme", "corruption", "severities", "seeds", "error", "error_std"))


def text(table: Sequence[Row]) -> str:
    """Tabulates the schemes; of many schemes those of least and of largest error in the first benchmark."""
    names = columns(table)
    printed, note = list(table), ""
    if len(table) > _FIRST + _LAST:
        key = next((name for name in names if name != CLEAN), CLEAN)
        ordered = sorted(table, key=lambda row: (math.isnan(row.get(key).mean), row.get(key).mean))
        printed = ordered[:_FIRST] + ordered[-_LAST:]
        note = f"\n({_FIRST} of least and {_LAST} of largest error in {key}, of {len(table)})"
    lines = [[row.scheme, row.seeds, *(_cell_text(row.get(name)) for name in names)] for row in printed]
    several = any(row.seeds > 1 for row in printed)
    over = "standard deviation over seeds" if several else "standard error over test images, of one seed"
    aligned = frames.text(pd.DataFrame(lines, columns=["scheme", "seeds", *names]))
    return f"{aligned}\n(errors in percent, ± {over}){note}"


def _cell_text(cell):
    return "" if math.isnan(cell.mean) else with_error(cell.mean, cell.error())


def panels(table: Sequence[Row], *, title: str = "", provenance: str = "") -> Figure:
    """Draws the errors of each scheme, a panel for clean images and each benchmark, from the largest mean error of the
    last one up, schemes without it on top. Bars are standard errors of the mean over seeds, with one seed over test
    images.
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


def points(table: Sequence[Row]) -> list[Point]:
    """Lists the errors of the stored schemes among the rows of a table, by kind and number of transforms."""
    listed = []
    for row in table:
        if match := _STORED.fullmatch(row.scheme):
            cells = [(name, cell) for name, cell in row.cells.items() if not name.startswith("gap_")]
            listed += [Point(match[1], int(match[2]), row.seeds, name, *cell) for name, cell in cells]
    return sorted(listed, key=lambda point: (KINDS.index(point.kind), point.transforms))


def transform_panels(found: Sequence[Point], table: Sequence[Row], *, title: str = "", provenance: str = "") -> Figure:
    """Draws error against the number of transforms, a panel for each benchmark, a line for each kind, with the errors
    of whole schemes as levels.

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
