"""Sections of a report that show matrices: overlap with its dendrogram, and directed transfer."""

import numpy as np

from analysis import heatmaps
from analysis.overlap.balance import mean_transfer
from analysis.report import svg
from analysis.report.grid import framed, legend, matrix
from analysis.report.html import Html, figure_files, join, section, table, tag
from analysis.report.inputs import Study
from analysis.rounding import with_error


def overlap_section(study: Study) -> Html:
    """Shows the overlap matrix, ordered by clustering."""
    overlap, n = study.overlap, len(study.names)
    grid = matrix(study, overlap.overlap, study.errors.overlap, "Blues", (0, 1), _pair_text, "Overlap matrix")
    tree = tag(
        "div",
        svg.dendrogram(heatmaps.cluster_tree(overlap.overlap), n),
        tag("div", tag("span", "1"), tag("span", "overlap"), tag("span", "0"), class_="axis"),
        class_="side",
    )
    source = "by resampling the test images 1,000 times, as in overlap.png"
    if len(study.seeds) > 1:
        source += ", and by the jackknife over seeds"
    return section(
        "overlap",
        "Which corruptions overlap",
        tag(
            "p",
            "Two corruptions overlap where training on one brings robustness to the other: ",
            _formula("O"),
            " is the mean of the two transfers of the next section, or 0 where that is negative. 1 says that either does "
            "as much for the other as for itself. Values with ± are standard errors ",
            source,
            ".",
        ),
        framed(study, grid, tree, legend(study, "Blues", "0", "overlap", "1")),
        tag(
            "p",
            "Rows and columns are ordered by hierarchical clustering, average linkage on the distance 1 \N{MINUS SIGN} O (O clipped "
            "to [0, 1]",
            ", undefined counts as 0" if np.isnan(overlap.overlap).any() else "",
            "), leaves in optimal order; two branches of the tree join at the mean overlap of their members.",
            class_="caption",
        ),
        _clear_pairs(study),
        figure_files("overlap"),
    )


def transfer_section(study: Study) -> Html:
    """Shows the directed transfers and their means."""
    outgoing, incoming = mean_transfer(study.overlap.transfer)
    errors = study.errors
    margins = (outgoing, errors.outgoing), (incoming, errors.incoming)
    grid = matrix(
        study,
        study.overlap.transfer,
        errors.transfer,
        "RdBu",
        (-1, 1),
        _transfer_text,
        "Directed transfer",
        margins,
        directed=True,
    )
    weak = [flag == "weak" for flag in study.overlap.flags]
    incoming = np.where(weak, np.nan, incoming)
    order = np.argsort(-np.nan_to_num(outgoing, nan=-np.inf), kind="stable")
    low, high = svg.bar_range([*outgoing, *incoming], [*errors.outgoing, *errors.incoming])
    rows = [
        (
            (tag("span", study.labels[k], title=study.names[k]), None),
            (with_error(outgoing[k], errors.outgoing[k], sign=True), "number"),
            svg.bar(outgoing[k], errors.outgoing[k], low, high),
            ("weak" if weak[k] else with_error(incoming[k], errors.incoming[k], sign=True), "number"),
            svg.bar(incoming[k], errors.incoming[k], low, high, "second"),
        )
        for k in order
    ]
    header = ("corruption", ("mean outgoing", "number"), "", ("mean incoming", "number"), "")
    return section(
        "transfer",
        "Which way robustness transfers",
        tag(
            "p",
            _formula("T"),
            ": of the robustness that training on j brings on j, the part that training on i brings. "
            "1 is as much as j itself, 0 nothing, below 0 harm. The row is trained, the column tested.",
        ),
        framed(study, grid, None, legend(study, "RdBu", "\N{MINUS SIGN}1 or less", "transfer", "1 or more")),
        tag(
            "p",
            "Means over the other corruptions: outgoing says how much training on a corruption helps with the others, "
            "incoming how much the others help with it. ",
            central(study),
        ),
        table(header, rows, class_="bars"),
        figure_files("transfer"),
    )


def central(study: Study) -> str:
    """Says what ± means beside means over several corruptions."""
    return "± is half the width of the central 68\N{NO-BREAK SPACE}% of 1,000 resamples of the test images."


def _pair_text(study, i, j):
    """What a cell of the overlap matrix tells: overlap, unclipped overlap, standard error, both
    transfers; of a pair with a weak gain only that."""
    overlap, errors = study.overlap, study.errors
    first, second, se = study.names[i], study.names[j], errors.overlap[i, j]
    if np.isnan(overlap.overlap[i, j]):
        return f"{first} and {second}: undefined, training on one of them did not help with itself"
    if weak := _weak(study, i, j):
        return f"{first} and {second}: not to be told, {weak}"
    return (
        f"{first} and {second}: O = {with_error(overlap.overlap[i, j], se)}, unclipped {with_error(overlap.unclipped[i, j], se)}; "
        f"{_one_way(study, i, j)}; {_one_way(study, j, i)}"
    )


def _transfer_text(study, i, j):
    if weak := _weak(study, j):
        return f"T from {study.names[i]} → {study.names[j]}: not to be told, {weak}"
    return f"T from {_one_way(study, i, j)[2:]}"


def _one_way(study, i, j):
    value = with_error(study.overlap.transfer[i, j], study.errors.transfer[i, j])
    return f"T {study.names[i]} → {study.names[j]} = {value}"


def _weak(study, *which):
    names = [study.names[k] for k in which if study.overlap.flags[k] == "weak"]
    return f"weak gain of {' and '.join(names)}" if names else ""


def _clear_pairs(study):
    """The largest overlaps that are known well: no flag on either corruption, more than two
    standard errors above 0.
    """
    overlap, se = study.overlap, study.errors.overlap
    good = [k for k, flag in enumerate(overlap.flags) if not flag]
    pairs = [(i, j) for a, i in enumerate(good) for j in good[a + 1 :] if overlap.unclipped[i, j] > 2 * se[i, j]]
    pairs = sorted(pairs, key=lambda pair: -overlap.overlap[pair])[:5]
    if not pairs:
        return None
    texts = [
        join(
            (
                study.labels[i],
                " \N{EN DASH} ",
                study.labels[j],
                " ",
                tag("b", with_error(overlap.overlap[i, j], se[i, j])),
            )
        )
        for i, j in pairs
    ]
    return tag(
        "p", "Largest overlaps between corruptions without a flag, above 0 by two errors: ", join(texts, "; "), "."
    )


def _formula(which):
    texts = {
        "O": "<i>O</i>[<i>i</i>, <i>j</i>] = max(0, (<i>T</i>[<i>i</i> → <i>j</i>] + <i>T</i>[<i>j</i> → <i>i</i>]) / 2)",
        "T": "<i>T</i>[<i>i</i> → <i>j</i>] = (<i>R</i><sub>ij</sub> &minus; <i>R</i><sub>0j</sub>) / <i>G</i><sub>j</sub>",
    }
    return tag("span", Html(texts[which]), class_="formula")
