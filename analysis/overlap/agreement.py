"""Do the overlap matrices of two or more studies of the same corruptions agree?

One may come from a full study and one from fine-tuned models, or from two architectures (Laugros, Caplier, Ospici,
"Increasing the Coverage and Balance of Robustness Benchmarks by Using Non-Overlapping Corruptions", Fig. 8, compare
three by eye). Entries are compared over the n (n - 1) / 2 pairs, and the benchmarks that Algorithm 1 selects from each.

Pairs that share a corruption are not independent, so intervals resample corruptions, not pairs: a corruption drawn k
times carries weight k in each of its pairs with others (Snijders and Borgatti, 1999).
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis import correlation, figures, frames
from analysis.frames import fixed, percentile_interval
from analysis.overlap.measured import MeasuredOverlap
from analysis.overlap.score import mean_overlap
from analysis.selection import algorithm, select
from runtime.files import without_nan

ONE_OF_NOISE = "about 1 if only noise differs, with other test images and errors that hold the noise of training"
WINNER, TIE, MAXIMUM, OTHER = "winner", "tie", "maximum set", "not a maximum set"


class Agreement(NamedTuple):
    """Agreement of two matrices over pairs of corruptions.

    Attributes:
      pearson, spearman: correlations over pairs; NaN where one matrix does not vary.
      pearson_interval, spearman_interval: (lower, upper) of the percentile interval over resampled corruptions.
      mean_difference: mean absolute difference.
      standardised: root mean square of difference / sqrt(se^2 + se'^2): about 1 if the matrices differ by independent
        noise alone, such as that of other test images; the same images make it smaller, noise of training that the errors
        do not hold makes it larger. NaN without standard errors.
      pairs: number of pairs.
      dropped: corruptions undefined in either matrix, left out.
    """

    pearson: float
    pearson_interval: tuple[float, float]
    spearman: float
    spearman_interval: tuple[float, float]
    mean_difference: float
    standardised: float
    pairs: int
    dropped: tuple[str, ...]


class BenchmarkAgreement(NamedTuple):
    """Benchmarks selected at one threshold from two matrices."""

    threshold: float  # largest overlap allowed between two members
    # first, second: the selected members.
    first: tuple[str, ...]
    second: tuple[str, ...]
    shared: tuple[str, ...]  # members of both
    jaccard: float  # shared members over members of either
    # first_in_second, second_in_first: whether a benchmark is, in the other matrix, the `winner`, a `tie` (as
    # large and of the same mean overlap), a `maximum set` (as large, with every pair allowed) or `not a maximum
    # set`.
    first_in_second: str
    second_in_first: str


def agreement(
    first: MeasuredOverlap, second: MeasuredOverlap, *, resamples: int = 1000, seed: int = 0, level: float = 0.95
) -> Agreement:
    """Compares the entries of two matrices of the same corruptions in one order, before they are clipped at 0, which
    makes ties. Corruptions that are undefined in either are left out.

    The intervals come from `resamples` of the corruptions, drawn from `seed`, and cover `level`, in (0, 1). Raises
    ValueError for fewer than three corruptions left, or NaN between two of them.
    """
    names, dropped = _defined(first, second)
    if len(names) < 3:
        raise ValueError(f"expected three or more corruptions defined in both matrices, found {len(names)}")
    i, j = np.triu_indices(len(names), 1)
    studies = [study.ordered(names) for study in (first, second)]
    x, y = (study.unclipped[i, j] for study in studies)
    if np.isnan(x).any() or np.isnan(y).any():
        raise ValueError("expected an overlap for every pair of corruptions defined in both matrices, found NaN")
    standardised = float("nan")
    if all(study.se is not None for study in studies):
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.hypot(*(study.se[i, j] for study in studies))
            standardised = float(np.sqrt(np.mean(((x - y) / errors) ** 2)))
    drawn = correlation.draw(len(names), resamples, seed)
    weights = drawn[:, i] * drawn[:, j]
    pearson, spearman = (statistic(x, y, weights) for statistic in (correlation.pearson, correlation.spearman))
    of_both = (part for of in (pearson, spearman) for part in (float(of[0]), percentile_interval(of[1:], level)))
    return Agreement(*of_both, float(np.abs(x - y).mean()), standardised, len(x), dropped)


def benchmark_agreement(first: MeasuredOverlap, second: MeasuredOverlap, threshold: float) -> BenchmarkAgreement:
    """Compares the benchmarks that `analysis.selection.select` finds in two matrices of the same corruptions.

    Corruptions that are undefined in either matrix are left out of both.
    """
    names, _ = _defined(first, second)
    studies = [study.ordered(names) for study in (first, second)]
    selections = [select(study.overlap, names, threshold, unclipped=study.unclipped) for study in studies]
    members = [selected.members for selected in selections]
    shared = tuple(name for name in members[0] if name in members[1])
    jaccard = len(shared) / len({*members[0], *members[1]})
    standing = [_standing(members[k], selections[1 - k], studies[1 - k]) for k in range(2)]
    return BenchmarkAgreement(float(threshold), *members, shared, jaccard, *standing)


def compare_two(
    first: MeasuredOverlap, second: MeasuredOverlap, threshold: float
) -> tuple[Agreement, tuple[BenchmarkAgreement, ...]]:
    """Compares the overlaps of two studies, and the benchmarks that are selected from each at thresholds 0, .05, ... 1
    and at `threshold`; ValueError for studies of other corruptions.
    """
    if set(first.names) != set(second.names):
        only = sorted({*first.names} ^ {*second.names})
        raise ValueError(f"expected studies of the same corruptions, found only in one: {', '.join(only)}")
    second = second.ordered(first.names)
    benchmarks = (benchmark_agreement(first, second, at) for at in sorted({*algorithm.THRESHOLDS, threshold}))
    return agreement(first, second), tuple(benchmarks)


def content_of_two(matrices: Agreement, benchmarks: Iterable[BenchmarkAgreement], threshold: float) -> dict[str, Any]:
    """Collects the content of comparison.json on the result of `compare_two`."""
    return {
        "matrices": without_nan(matrices),
        "threshold": threshold,
        "benchmarks": [benchmark._asdict() for benchmark in benchmarks],
    }


def text_of_two(matrices: Agreement, benchmarks: Sequence[BenchmarkAgreement], threshold: float) -> str:
    """Writes the result of `compare_two` for people."""
    low, high = matrices.spearman_interval
    at_threshold = next(b for b in benchmarks if b.threshold == threshold)
    return "\n".join(
        [
            f"{matrices.pairs} pairs of corruptions; undefined in one of the two: {', '.join(matrices.dropped) or 'none'}",
            f"Spearman {matrices.spearman:.3f} (95 % interval {low:.3f} to {high:.3f}), Pearson {matrices.pearson:.3f}",
            f"mean absolute difference {matrices.mean_difference:.3f}; root mean square difference "
            f"{matrices.standardised:.1f} of its standard errors ({ONE_OF_NOISE})",
            "",
            f"benchmarks at threshold {threshold}: {len(at_threshold.shared)} shared, Jaccard {at_threshold.jaccard:.2f}",
            f"  first:  {', '.join(at_threshold.first)}   ({at_threshold.first_in_second} in the second matrix)",
            f"  second: {', '.join(at_threshold.second)}   ({at_threshold.second_in_first} in the first matrix)",
            "Jaccard by threshold: " + ", ".join(f"{b.threshold:.2f}: {b.jaccard:.2f}" for b in benchmarks),
        ]
    )


def compare_several(
    studies: Mapping[str, MeasuredOverlap], threshold: float
) -> tuple[dict[str, Any], str, dict[str, MeasuredOverlap]]:
    """Compares every two of three or more studies, {name: overlaps}, and the benchmarks that are selected from each.

    Corruptions whose overlap is undefined in one study are left out of all benchmarks, and of the comparison of every
    pair that the study is in. `threshold` is the largest overlap between two members of a benchmark. Source: Laugros,
    Caplier, Ospici, Fig. 8, sets three side by side.

    Returns (content for JSON, text for people, the studies with their corruptions in the first's order); raises as
    `compare_two`.
    """
    pairs = {
        (a, b): content_of_two(*compare_two(studies[a], studies[b], threshold), threshold)
        for a, b in itertools.combinations(studies, 2)
    }
    first = next(iter(studies.values()))
    studies = {label: study.ordered(first.names) for label, study in studies.items()}
    names, dropped = _defined(*studies.values())
    kept = {label: study.ordered(names) for label, study in studies.items()}
    benchmarks = {
        label: select(study.overlap, names, threshold, unclipped=study.unclipped).members
        for label, study in kept.items()
    }
    content = {
        "studies": list(studies),
        "threshold": threshold,
        "dropped": list(dropped),
        "mean_overlap": {
            label: without_nan(dict(zip(first.names, mean_overlap(study.overlap).tolist(), strict=True)))
            for label, study in studies.items()
        },
        "benchmarks": benchmarks,
        "in_all": sorted(set.intersection(*map(set, benchmarks.values()))),
        "pairs": [{"of": list(pair), **compared} for pair, compared in pairs.items()],
    }
    return content, _several_text(content, pairs, first.names), studies


def _several_text(content, pairs, names):
    threshold = content["threshold"]
    titles = ("studies", "Spearman (95 %)", "Pearson (95 %)", "mean difference", "in standard errors")
    rows = []
    for pair, compared in pairs.items():
        matrices = compared["matrices"]
        [jaccard] = [b["jaccard"] for b in compared["benchmarks"] if b["threshold"] == threshold]
        numbers = fixed(matrices["mean_difference"], 3), fixed(matrices["standardised"], 1), fixed(jaccard, 2)
        rows.append((", ".join(pair), _interval(matrices, "spearman"), _interval(matrices, "pearson"), *numbers))
    agreements = pd.DataFrame(rows, columns=[*titles, f"Jaccard at {threshold:g}"])
    studies = content["studies"]
    cells = [[name, *(fixed(content["mean_overlap"][label][name], 2) for label in studies)] for name in names]
    bold = [[False, *(name in content["benchmarks"][label] for label in studies)] for name in names]
    lines = [
        frames.markdown(agreements),
        "",
        f"Mean overlap of each corruption with the others; ** is in the benchmark at threshold {threshold:g}:",
        "",
        frames.markdown(pd.DataFrame(cells, columns=["corruption", *studies]), np.array(bold)),
        "",
        f"in the benchmark of every study: {', '.join(content['in_all']) or 'none'}",
    ]
    if content["dropped"]:
        lines.append(f"undefined in one study and in no benchmark: {', '.join(content['dropped'])}")
    return "\n".join(lines)


def _interval(matrices, name):
    low, high = matrices[f"{name}_interval"]
    return f"{fixed(matrices[name], 2)} ({fixed(low, 2)} to {fixed(high, 2)})"


def _defined(*studies):
    """(corruptions that are defined in all studies, the others), in the order of the first."""
    missing = {name for study in studies for name in np.array(study.names)[algorithm.undefined(study.overlap)].tolist()}
    names = studies[0].names
    return tuple(name for name in names if name not in missing), tuple(name for name in names if name in missing)


def _standing(members, selection, study):
    if members == selection.members:
        return WINNER
    inside = study.ordered(members).overlap[np.triu_indices(len(members), 1)]
    if len(members) != selection.size or not (inside <= selection.threshold).all():
        return OTHER
    mean = inside.mean() if inside.size else 0.0
    return TIE if abs(mean - selection.mean_overlap) <= algorithm.RESOLUTION else MAXIMUM


def side_by_side(matrices: Mapping[str, np.ndarray], names: Sequence[str]) -> Figure:
    """Draws the overlap matrices [n, n] of several studies side by side, in one order and on one scale of colours."""
    n, side = len(names), 1.2 + 0.17 * len(names)
    figure = Figure(figsize=(side * len(matrices) + 1.5, side + 1), layout="constrained")
    panels = figure.subplots(1, len(matrices), sharey=True, squeeze=False)[0]
    for axes, (label, matrix) in zip(panels, matrices.items(), strict=True):
        image = figures.draw_cells(axes, matrix, figures.OVERLAP, linewidth=0.3)
        axes.set_xticks(np.arange(n) + 0.5, names, rotation=90, fontsize=6)
        axes.set_yticks(np.arange(n) + 0.5, names, fontsize=6)
        axes.set_title(label, fontsize=9)
    bar = figure.colorbar(image, ax=panels, shrink=0.7, pad=0.02, extend="max")
    bar.set_label(figures.OVERLAP.label, fontsize=8)
    return figure
