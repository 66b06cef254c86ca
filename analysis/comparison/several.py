"""The overlap matrices of several studies of the same corruptions, such as of several architectures.

Source: Laugros, Caplier, Ospici, "Increasing the Coverage and Balance of Robustness Benchmarks by
Using Non-Overlapping Corruptions", Fig. 8, which sets three side by side.
"""

import itertools
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from analysis.comparison.files import compare_studies
from analysis.errors import joint
from analysis.heatmaps import OVERLAP, draw_cells
from analysis.overlap.balance import mean_overlap
from analysis.overlap.files import MeasuredOverlap, read_measured
from analysis.rounding import fixed
from analysis.selection import algorithm, select
from runtime.files import without_nan


def compare_several(
    folders: Sequence[pathlib.Path], threshold: float
) -> tuple[dict[str, Any], str, dict[str, MeasuredOverlap]]:
    """Compares every two of three or more studies, and the benchmarks that are selected from each.

    Corruptions whose overlap is undefined in one study are left out of all benchmarks, and of the
    comparison of every pair that the study is in.

    Args:
      folders: workdirs with overlap.csv and overlap_long.csv.
      threshold: largest overlap between two members of a benchmark.

    Returns:
      (content for JSON, text for people, {name of the study: its overlaps, in the first's order}).

    Raises:
      FileNotFoundError, ValueError: as `compare_studies`; a folder is given twice.
    """
    labels = joint.names(folders)
    by_label = dict(zip(labels, folders, strict=True))
    pairs = {
        pair: compare_studies(by_label[pair[0]], by_label[pair[1]], threshold)[0]
        for pair in itertools.combinations(labels, 2)
    }
    first = read_measured(folders[0] / "overlap.csv")
    studies = {label: read_measured(folder / "overlap.csv").ordered(first.names) for label, folder in by_label.items()}
    dropped = np.any([algorithm.undefined(study.overlap) for study in studies.values()], axis=0)
    kept = np.flatnonzero(~dropped)
    names = tuple(first.names[k] for k in kept)
    benchmarks = {}
    for label, study in studies.items():
        overlap, unclipped = (matrix[np.ix_(kept, kept)] for matrix in (study.overlap, study.unclipped))
        benchmarks[label] = select(overlap, names, threshold, unclipped=unclipped).members
    content = {
        "studies": labels,
        "threshold": threshold,
        "dropped": [first.names[k] for k in np.flatnonzero(dropped)],
        "mean_overlap": {
            label: without_nan(dict(zip(first.names, mean_overlap(study.overlap).tolist(), strict=True)))
            for label, study in studies.items()
        },
        "benchmarks": benchmarks,
        "in_all": sorted(set.intersection(*map(set, benchmarks.values()))),
        "pairs": [{"of": list(pair), **compared} for pair, compared in pairs.items()],
    }
    return content, _text(content, pairs, studies), studies


def _text(content, pairs, studies):
    threshold = content["threshold"]
    lines = [
        f"| studies | Spearman (95 %) | Pearson (95 %) | mean difference | in standard errors | Jaccard at {threshold:g} |",
        "|---|" + "---:|" * 5,
    ]
    for pair, compared in pairs.items():
        matrices = compared["matrices"]
        cells = [_interval(matrices, "spearman"), _interval(matrices, "pearson")]
        cells += [fixed(matrices["mean_difference"], 3), fixed(matrices["standardised"], 1)]
        [jaccard] = [
            agreement["jaccard"] for agreement in compared["benchmarks"] if agreement["threshold"] == threshold
        ]
        lines.append(f"| {pair[0]}, {pair[1]} | {' | '.join([*cells, fixed(jaccard, 2)])} |")
    lines += [
        "",
        f"Mean overlap of each corruption with the others; ** is in the benchmark at threshold {threshold:g}:",
        "",
        f"| corruption | {' | '.join(studies)} |",
        "|---|" + "---:|" * len(studies),
    ]
    for name in next(iter(studies.values())).names:
        cells = []
        for label in studies:
            value = fixed(content["mean_overlap"][label][name], 2)
            cells.append(f"**{value}**" if name in content["benchmarks"][label] else value)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", f"in the benchmark of every study: {', '.join(content['in_all']) or 'none'}"]
    if content["dropped"]:
        lines.append(f"undefined in one study and in no benchmark: {', '.join(content['dropped'])}")
    return "\n".join(lines)


def _interval(matrices, name):
    low, high = matrices[f"{name}_interval"]
    return f"{fixed(matrices[name], 2)} ({fixed(low, 2)} to {fixed(high, 2)})"


def matrices_figure(studies: dict[str, MeasuredOverlap]) -> Figure:
    """Draws the matrices of several studies side by side, in one order and on one scale of colours.

    The diagonal and what is undefined are grey.
    """
    names = next(iter(studies.values())).names
    n, side = len(names), 1.2 + 0.17 * len(names)
    figure = Figure(figsize=(side * len(studies) + 1.5, side + 1), layout="constrained")
    panels = figure.subplots(1, len(studies), sharey=True, squeeze=False)[0]
    for axes, (label, study) in zip(panels, studies.items(), strict=True):
        image = draw_cells(axes, study.overlap, OVERLAP, linewidth=0.3)
        axes.set_xticks(np.arange(n) + 0.5, names, rotation=90, fontsize=6)
        axes.set_yticks(np.arange(n) + 0.5, names, fontsize=6)
        axes.set_title(label, fontsize=9)
    bar = figure.colorbar(image, ax=panels, shrink=0.7, pad=0.02, extend="max")
    bar.set_label(OVERLAP.label, fontsize=8)
    return figure
