"""Figures of a whole study: overlap with its dendrogram, stability of the selection, sample
pictures.
"""

import numpy as np
from matplotlib.figure import Figure
from scipy.cluster import hierarchy

from analysis import figures, heatmaps

VALUES, ERRORS = 30, 16  # largest matrices whose cells show values, and errors too


def overlap(matrix, names, se=None, **options):
    """`heatmaps.heatmap` in the order of the clusters, with their dendrogram at the right: two
    branches join at the mean overlap of their members."""
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
    """`heatmaps.heatmap` of directed transfers, rows trained and columns tested."""
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
    """Percentage of resamples that select each corruption, sorted, members of the benchmark in
    another colour.
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


def strips(pictures, names, columns):
    """A row of pictures for each corruption, clean first.

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
