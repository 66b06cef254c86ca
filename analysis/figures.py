"""Figures of balance and of a threshold sweep; colours, titles and files of all figures.

Drawn with Matplotlib's object interface (no global state, no display); Okabe and Ito's colours,
readable with colour-blindness and in grey.
"""

import io
import pathlib
from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from runtime.files import write_atomically

FORMATS = ("png", "pdf")
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"


def save(figure, stem, formats=FORMATS, dpi=200):
    """Writes `<stem>.<format>` for every format, atomically; returns the paths."""
    paths = []
    for name in formats:
        buffer = io.BytesIO()
        # Without dates equal figures are equal files.
        metadata = {"CreationDate": None} if name == "pdf" else {"Software": None}
        with style():
            figure.savefig(buffer, format=name, dpi=dpi, bbox_inches="tight", metadata=metadata)
        path = pathlib.Path(f"{stem}.{name}")
        write_atomically(path, buffer.getvalue())
        paths.append(path)
    return paths


def style():
    """Gives a context in which equal figures are equal files, and text in a PDF stays text."""
    return matplotlib.rc_context({"pdf.fonttype": 42, "svg.hashsalt": "overlap"})


def balance_bars(values, names, *, se=None, ylabel="mCE (%)", title="Balance of the benchmark", provenance=""):
    """One bar per corruption (mCE of the model trained with it, or its mean overlap), sorted, with
    the mean as a line and mean, population standard deviation and range in the title's second
    line."""
    values, names = np.asarray(values, float), tuple(names)
    if values.shape != (len(names),) or not len(names):
        raise ValueError(f"expected one value for each of {len(names)} names, found {values.shape}")
    order = np.argsort(-values, kind="stable")
    wide = 0.35 if len(names) <= 25 else 0.15
    figure = Figure(figsize=(max(3.5, wide * len(names) + 1.5), 3.2), layout="constrained")
    axes = figure.add_subplot()
    errors = None if se is None else np.asarray(se, float)[order]
    axes.bar(np.arange(len(names)), values[order], yerr=errors, color=BLUE, ecolor="black", capsize=2)
    if np.nanmin(values) >= 0:
        axes.set_ylim(bottom=0)
    axes.axhline(np.nanmean(values), color=ORANGE, linestyle="--", linewidth=1)
    axes.set_xticks(np.arange(len(names)), [names[i] for i in order], rotation=60, ha="right", fontsize=7)
    axes.set_ylabel(ylabel, fontsize=8)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.tick_params(axis="y", labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    spread = np.nanmax(values) - np.nanmin(values)
    note = f"mean {np.nanmean(values):.3g}, std {np.nanstd(values):.3g}, range {spread:.3g}"
    set_titles(axes, title, provenance, [note])
    return figure


def threshold_sweep(
    selections: Sequence,
    *,
    mark: float | None = None,
    title: str = "Selected benchmark by threshold",
    provenance: str = "",
) -> Figure:
    """Draws size and mean overlap of the winner at every threshold (from
    `analysis.selection.algorithm.sweep`), and a
    dashed line at the threshold `mark`.
    """
    if not selections:
        raise ValueError("expected at least one selection, found none")
    thresholds = [s.threshold for s in selections]
    figure = Figure(figsize=(4.5, 3.6), layout="constrained")
    upper, lower = figure.subplots(2, sharex=True, height_ratios=(3, 2))
    upper.step(thresholds, [s.size for s in selections], where="post", color=BLUE, marker="o", ms=3)
    upper.set_ylabel("members", fontsize=8)
    upper.yaxis.get_major_locator().set_params(integer=True)
    lower.step(thresholds, [s.mean_overlap for s in selections], where="post", color=ORANGE, marker="s", ms=3)
    lower.set_ylabel("their mean overlap", fontsize=8)
    lower.set_xlabel("largest overlap allowed", fontsize=8)
    for axes in (upper, lower):
        axes.set_ylim(bottom=0)
        if mark is not None:
            axes.axvline(mark, color="black", linestyle="--", linewidth=0.8)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#eaeef2", linewidth=0.6)
        axes.set_axisbelow(True)
    set_titles(upper, title, provenance)
    return figure


def set_titles(axes, title, provenance, notes=()):
    """Title and, small below it, notes and provenance."""
    small = [*notes, provenance] if provenance else list(notes)
    axes.set_title(title, fontsize=9, loc="left", pad=6 + 9 * len(small))
    for k, line in enumerate(reversed(small)):
        axes.annotate(
            line,
            (0, 1),
            xytext=(0, 4 + 9 * k),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=6,
            color="#555555",
        )
