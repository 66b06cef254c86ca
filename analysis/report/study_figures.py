"""The figures of a study for print and for its report, and the geometry of small bars in tables."""

import io
import math
import pathlib
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from scipy.cluster import hierarchy
from tqdm import tqdm

from analysis import figures, heatmaps
from analysis.overlap.balance import mean_overlap
from analysis.report.inputs import Study
from analysis.selection.algorithm import Selection

VALUES, ERRORS = 30, 16  # largest matrices whose cells show values, and errors too
_DPI = 300


def write(study: Study, selections: Sequence[Selection] | None, strips, folder: pathlib.Path) -> None:
    """Writes every figure that the study has results for as PNG and PDF; arguments as in
    `analysis.report.document.document`.
    """
    drawn = dict(_drawn(study, selections, strips))
    for stem, figure in tqdm(
        drawn.items(), desc="figures", unit="figure", dynamic_ncols=True, leave=False, disable=None
    ):
        figures.save(figure, folder / stem, dpi=_DPI)


def sweep(study: Study, selections: Sequence[Selection], mark: float) -> Figure:
    """Draws the benchmark's size and mean overlap by threshold for page and print; `mark` is the study's threshold."""
    return figures.threshold_sweep(selections, mark=mark, provenance=_provenance(study))


def _drawn(study, selections, strips):
    """Yields (name of the file, Matplotlib figure)."""
    overlap_, errors, labels = study.overlap, study.errors, study.labels
    label_of = dict(zip(study.names, labels))
    small = {"provenance": _provenance(study)}
    yield "overlap", overlap(overlap_.overlap, labels, errors.overlap, flags=overlap_.flags, **small)
    order = heatmaps.cluster_order(overlap_.overlap)
    options = {"flags": overlap_.flags, "title": "Directed transfer", **small}
    yield "transfer", transfer(overlap_.transfer, labels, order, errors.transfer, **options)
    options = {"se": errors.mean_overlap, "ylabel": "mean overlap", "title": "Mean overlap", **small}
    yield "balance", figures.balance_bars(mean_overlap(overlap_.overlap), labels, **options)
    if selections is not None:
        yield "sweep", sweep(study, selections, study.threshold)
    if study.stability:
        shares = [study.stability["members"].get(name, 0) for name in study.names]
        members = {label_of[name] for name in (study.benchmark or {"members": ()})["members"]}
        yield "stability", stability(shares, labels, members, **small)
    if not isinstance(strips, str) and strips.pictures:
        rows = [label_of[name] for name in strips.pictures]
        yield "samples", sample_rows(list(strips.pictures.values()), rows, list(strips.columns.values()))


def _provenance(study):
    revision = str(study.provenance.get("git_revision", "unknown"))[:12]
    return f"{study.setting('dataset', 'name')}, {study.setting('model', 'name')}, revision {revision}"


def svg(figure: Figure) -> bytes:
    """Draws a figure as SVG, the same bytes for the same figure."""
    buffer = io.BytesIO()
    with figures.style():
        figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
    return buffer.getvalue()


def overlap(matrix, names, se=None, **options):
    """Draws `heatmaps.heatmap` in the order of the clusters, with their dendrogram at the right: two branches join at
    the mean overlap of their members.
    """
    n = len(names)
    figure = heatmaps.heatmap(
        matrix, names, se=se if n <= ERRORS else None, values=n <= VALUES, cluster=True, **options
    )
    if n < 3:
        return figure
    axes = figure.axes[0]
    beside = axes.inset_axes((1.01, 0, 0.16, 1))
    drawn = hierarchy.dendrogram(heatmaps.cluster_tree(matrix), no_plot=True)
    for y, x in zip(drawn["icoord"], drawn["dcoord"]):
        beside.plot(1 - np.array(x), np.array(y) / 10, color="black", linewidth=0.7)
    beside.set(xlim=(1, 0), ylim=(n, 0))
    beside.set_yticks([])
    beside.set_xticks([1, 0], ["1", "0"], fontsize=6)
    beside.set_xlabel("mean overlap", fontsize=6, labelpad=1)
    beside.tick_params(length=2, pad=1)
    beside.patch.set_alpha(0)
    beside.spines[["top", "left", "right"]].set_visible(False)
    return figure


def transfer(matrix, names, order, se=None, **options):
    """Draws `heatmaps.heatmap` of directed transfers, rows trained and columns tested."""
    n = len(names)
    figure = heatmaps.heatmap(
        matrix,
        names,
        se=se if n <= ERRORS else None,
        values=n <= VALUES,
        scale=heatmaps.TRANSFER,
        order=order,
        directed=True,
        **options,
    )
    axes = figure.axes[0]
    axes.set_ylabel("trained with", fontsize=8)
    axes.set_xlabel("tested on", fontsize=8)
    return figure


def stability(shares, names, members, *, title="Stability of the selection", provenance=""):
    """Draws the percentage of resamples that select each corruption, sorted, members of the benchmark in another
    colour.
    """
    shares, names = np.asarray(shares, float), tuple(names)
    if shares.shape != (len(names),) or not len(names):
        raise ValueError(f"expected one share for each of {len(names)} names, found {shares.shape}")
    order = np.argsort(shares, kind="stable")
    figure = Figure(figsize=(4.5, max(1.6, 0.2 * len(names) + 0.9)), layout="constrained")
    axes = figure.add_subplot()
    colours = [figures.ORANGE if names[i] in members else figures.BLUE for i in order]
    axes.barh(np.arange(len(names)), 100 * shares[order], color=colours)
    axes.set_yticks(np.arange(len(names)), [names[i] for i in order], fontsize=7)
    axes.set_xlabel("selected in % of resamples (orange: members of the selected benchmark)", fontsize=7)
    axes.set_xlim(0, 100)
    axes.tick_params(axis="x", labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    figures.set_titles(axes, title, provenance)
    return figure


def sample_rows(pictures, names, columns):
    """Draws a row of pictures for each corruption, clean first.

    Args:
      pictures: uint8 [k, H, W, 3] for each.
      names: labels of the rows.
      columns: k - 1 texts of severities for each.
    """
    if not len(pictures):
        raise ValueError("expected pictures of at least one corruption, found none")
    rows, width = len(pictures), len(pictures[0])
    figure = Figure(figsize=(0.8 * width + 1.2, 0.95 * rows), layout="constrained")
    for i, (row, name, texts) in enumerate(zip(pictures, names, columns, strict=True)):
        for j, (picture, text) in enumerate(zip(row, ("clean", *texts), strict=True)):
            axes = figure.add_subplot(rows, width, i * width + j + 1)
            axes.imshow(picture, interpolation="nearest")
            axes.set_xticks([])
            axes.set_yticks([])
            axes.set_title(text, fontsize=6, pad=2)
            if j == 0:
                axes.set_ylabel(name, fontsize=7, rotation=0, ha="right", va="center")
    return figure


def bar(value: float, se: float, low: float, high: float) -> dict | None:
    """Places a bar from 0 to `value` on the axis low..high, drawn 100 units wide; None for an undefined value.

    Returns:
      `left`, `width` of the bar, `zero` (place of 0, or None where the axis begins there), `error`
      (ends of the line over value +- se, or None).
    """
    if not math.isfinite(value):
        return None

    def place(x):
        return 100 * (min(max(x, low), high) - low) / (high - low)

    left, right = sorted((place(0), place(value)))
    error = [f"{place(value + k * se):.2f}" for k in (-1, 1)] if math.isfinite(se) and se > 0 else None
    zero = f"{place(0):.2f}" if low < 0 else None
    return {"left": f"{left:.2f}", "width": f"{right - left:.2f}", "zero": zero, "error": error}


def bar_range(values: Sequence[float], ses: Sequence[float]) -> tuple[float, float]:
    """Computes the axis (low, high) of bars: it holds 0, every value, and error bars up to twice the largest value."""
    known = [(v, s if math.isfinite(s) else 0.0) for v, s in zip(values, ses) if math.isfinite(v)]
    room = 2 * max((abs(v) for v, _ in known), default=0.0) or 1.0
    low = min((v - min(s, room) for v, s in known), default=0.0) if any(v < 0 for v, _ in known) else 0.0
    return low, max([v + min(s, room) for v, s in known if v > 0] or [room])
