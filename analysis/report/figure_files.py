"""The figures of a report for print: PNG and PDF files in the folder `figures` beside the page."""

import pathlib
from collections.abc import Sequence

from tqdm import tqdm

from analysis import figures, heatmaps
from analysis.overlap.balance import mean_overlap
from analysis.report import study_figures
from analysis.report.inputs import Study
from analysis.report.study_page import setting
from analysis.selection.algorithm import Selection

_DPI = 300


def write_figures(study: Study, selections: Sequence[Selection] | None, strips, folder: pathlib.Path) -> None:
    """Writes every figure that the study has results for; arguments as of
    `analysis.report.document.document`.
    """
    drawn = dict(_figures(study, selections, strips))
    for stem, figure in tqdm(
        drawn.items(), desc="figures", unit="figure", dynamic_ncols=True, leave=False, disable=None
    ):
        figures.save(figure, folder / stem, dpi=_DPI)


def _figures(study, selections, strips):
    """Yields (name of the file, Matplotlib figure)."""
    overlap, errors, labels = study.overlap, study.errors, study.labels
    label_of = dict(zip(study.names, labels))
    source = f"{setting(study.config, 'dataset', 'name')}, {setting(study.config, 'model', 'name')}"
    small = {"provenance": f"{source}, revision {str(study.provenance.get('git_revision', 'unknown'))[:12]}"}
    yield "overlap", study_figures.overlap(overlap.overlap, labels, errors.overlap, flags=overlap.flags, **small)
    yield (
        "transfer",
        study_figures.transfer(
            overlap.transfer,
            labels,
            heatmaps.cluster_order(overlap.overlap),
            errors.transfer,
            flags=overlap.flags,
            title="Directed transfer",
            **small,
        ),
    )
    yield (
        "balance",
        figures.balance_bars(
            mean_overlap(overlap.overlap),
            labels,
            se=errors.mean_overlap,
            ylabel="mean overlap",
            title="Mean overlap",
            **small,
        ),
    )
    if selections is not None:
        yield "sweep", figures.threshold_sweep(selections, **small)
    if study.stability:
        shares = [study.stability["members"].get(name, 0) for name in study.names]
        members = {label_of[name] for name in (study.benchmark or {"members": ()})["members"]}
        yield "stability", study_figures.stability(shares, labels, members, **small)
    if not isinstance(strips, str) and strips.pictures:
        rows = [label_of[name] for name in strips.pictures]
        yield "samples", study_figures.strips(list(strips.pictures.values()), rows, list(strips.columns.values()))
