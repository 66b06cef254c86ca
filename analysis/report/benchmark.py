"""Sections of a report about benchmarks: balance of the candidates, thresholds, the selected one
and its stability.
"""

from collections.abc import Sequence

import numpy as np

from analysis import heatmaps
from analysis.overlap.balance import balance, mean_overlap
from analysis.report import svg
from analysis.report.html import Html, data_uri, figure_files, join, missing, section, table, tag
from analysis.report.inputs import Study
from analysis.report.matrices import central
from analysis.rounding import fixed, percent, with_error
from analysis.selection import algorithm
from analysis.selection.algorithm import Selection

_SETS = 10  # most frequent sets that are listed


def balance_section(study: Study) -> Html:
    """Shows the mean overlap of each corruption, and the spread of these means."""
    values, ses = mean_overlap(study.overlap.overlap), study.errors.mean_overlap
    members = set(study.benchmark["members"]) if study.benchmark else set()
    low, high = svg.bar_range(values, ses)
    rows = [
        (
            (tag("span", study.labels[k], title=study.names[k]), None),
            (with_error(values[k], ses[k]), "number"),
            svg.bar(values[k], ses[k], low, high, "member" if study.names[k] in members else None),
        )
        for k in np.argsort(-np.nan_to_num(values, nan=-1), kind="stable")
    ]
    spread = _spread(values)
    if members and len(members) > 1:
        index = [study.names.index(name) for name in study.benchmark["members"]]
        inside = mean_overlap(study.overlap.overlap[np.ix_(index, index)])
        spread = join((spread, tag("br"), "Within the selected benchmark: ", _spread(inside)))
    return section(
        "balance",
        "How balanced the candidates are",
        tag(
            "p",
            "Mean overlap of each corruption with the others. In a balanced benchmark all are alike: one that overlaps "
            "with many others counts for each of them in a mean score. ",
            central(study),
            class_=None,
        ),
        table(("corruption", ("mean overlap", "number"), ""), rows, class_="bars wide"),
        tag("p", spread, class_="statistics"),
        tag("p", tag("i", class_="swatch member"), " members of the selected benchmark.", class_="legend")
        if members
        else None,
        figure_files("balance"),
    )


def sweep_section(study: Study, swept: Sequence[Selection] | None) -> Html:
    """Shows which benchmark every threshold selects.

    Args:
      study: `analysis.report.inputs.Study`.
      swept: `analysis.selection.Selection` at ascending thresholds, or None where nothing can be
        selected.
    """
    if swept is None:
        return section(
            "sweep", "What each threshold selects", tag("p", "No overlap is defined, so nothing can be selected.")
        )
    thresholds, current = [s.threshold for s in swept], threshold(study)
    charts = (
        svg.steps(thresholds, [s.size for s in swept], "members of the benchmark", "first", current),
        svg.steps(thresholds, [s.mean_overlap for s in swept], "mean overlap of the members", "second", current, 2),
    )
    kind = ["own" if s.threshold == current else None for s in swept]
    rows = [
        ("members", *((s.size, k) for s, k in zip(swept, kind))),
        ("mean overlap", *((fixed(s.mean_overlap, 2).replace("0.", ".", 1), k) for s, k in zip(swept, kind))),
    ]
    for k in heatmaps.cluster_order(study.overlap.overlap):
        cells = [(tag("b", "●") if study.names[k] in s.members else "", c) for s, c in zip(swept, kind)]
        rows.append((tag("span", study.labels[k], title=study.names[k]), *cells))
    header = ("largest overlap allowed", *((f"{s.threshold:g}".replace("0.", ".", 1), k) for s, k in zip(swept, kind)))
    return section(
        "sweep",
        "What each threshold selects",
        tag(
            "p",
            "The largest set in which no two corruptions overlap more than a threshold; among the largest sets the one "
            f"of the smallest mean overlap. Shaded: threshold {current:g}. "
            "Sets of neighbouring thresholds need not hold each other.",
        ),
        tag("div", *charts, class_="charts"),
        table(header, rows, class_="sweep", label="Members of the benchmark by threshold"),
        figure_files("sweep"),
    )


def benchmark_section(study, strips):
    """The selected benchmark with sample pictures, and how stable it is.

    Args:
      study: `analysis.report.inputs.Study`.
      strips: `analysis.report.samples.Strips`, or a sentence that says why there are none.
    """
    selected = study.benchmark
    if selected is None:
        body = missing("No benchmark was selected yet.", f"python select_noc.py --workdir={study.workdir}")
        return section("benchmark", "The selected benchmark", body, _stability(study))
    index = [study.names.index(name) for name in selected["members"]]
    inside = study.overlap.overlap[np.ix_(index, index)].copy()
    np.fill_diagonal(inside, np.nan)
    cards = [_card(study, k, inside[row], index, strips) for row, k in enumerate(index)]
    sign = "below" if selected["strict"] else "at most"
    pictures = strips if isinstance(strips, str) else strips.caption
    return section(
        "benchmark",
        "The selected benchmark",
        tag(
            "p",
            f"{len(index)} of {len(study.names)} candidates, every pair with an overlap {sign} {selected['threshold']:g}; "
            f"mean overlap {fixed(selected['mean_overlap'], 3)}. Largest sets: {selected['summary']}.",
        ),
        tag("div", *cards, class_="cards"),
        tag("p", pictures, class_="caption"),
        tag("img", src=data_uri(study.samples), alt="Sample images of the study", class_="samples")
        if study.samples
        else None,
        _stability(study),
    )


def threshold(study: Study) -> float:
    """Finds the threshold of the benchmark, or else of the study's settings."""
    if study.benchmark:
        return float(study.benchmark["threshold"])
    return float(study.config.get("study", {}).get("threshold", 0.1))


def sweep(study: Study) -> tuple[Selection, ...] | None:
    """Selects benchmarks at thresholds 0, .05, ... 1 and at the study's; None where no overlap is
    defined.
    """
    if algorithm.undefined(study.overlap.overlap).all():
        return None
    thresholds = sorted({*(round(0.05 * k, 2) for k in range(21)), threshold(study)})
    strict = bool(study.benchmark and study.benchmark["strict"])
    return algorithm.sweep(study.overlap.overlap, study.names, thresholds, strict, study.overlap.unclipped)


def _card(study, k, overlaps, index, strips):
    overlap, errors, name = study.overlap, study.errors, study.names[k]
    share = (study.stability or {}).get("members", {}).get(name)
    facts = [
        f"R of the standard model {with_error(overlap.robustness[0, k], errors.standard[k])}",
        f"gain {with_error(overlap.gain[k], errors.gain[k], sign=True)}" + (" (weak)" if overlap.flags[k] else ""),
    ]
    if len(index) > 1 and np.isfinite(overlaps).any():
        most = int(np.nanargmax(overlaps))
        value = with_error(overlaps[most], errors.overlap[k, index[most]])
        facts.append(f"largest overlap with another member {value} ({study.labels[index[most]]})")
    if share is not None:
        facts.append(f"selected in {percent(share)} of resamples")
    picture = None
    if not isinstance(strips, str) and name in strips.images:
        columns = strips.columns[name]
        picture = tag(
            "figure",
            tag(
                "img",
                src=data_uri(strips.images[name]),
                alt=f"{study.labels[k]}: clean, then severity {', '.join(columns)}",
            ),
            tag("figcaption", tag("span", "clean"), *(tag("span", text) for text in columns)),
        )
    return tag(
        "div",
        tag("h3", study.labels[k], " ", tag("small", name)),
        picture,
        tag("p", "; ".join(facts), "."),
        class_="card",
    )


def _stability(study):
    title = tag("h3", "How stable the selection is")
    if study.stability is None:
        command = f"python overlap.py --workdir={study.workdir} ..."
        return join(
            (title, missing("The selection was not repeated on resampled test images (stability.json).", command))
        )
    stability, members = study.stability, set(study.benchmark["members"]) if study.benchmark else set()
    shares = stability["members"]
    rows = [
        (
            (tag("span", label, title=name), None),
            (percent(shares.get(name, 0)), "number"),
            svg.bar(shares.get(name, 0), 0, 0, 1, "member" if name in members else None),
        )
        for name, label in sorted(zip(study.names, study.labels), key=lambda pair: -shares.get(pair[0], 0))
    ]
    short = dict(zip(study.names, study.labels))
    sets = [
        (
            (percent(share), "number"),
            join([tag("b", short.get(m, m)) if m in members else short.get(m, m) for m in selected], ", "),
        )
        for selected, share in stability["sets"][:_SETS]
    ]
    share_of_members = next((share for selected, share in stability["sets"] if set(selected) == members), None)
    said = "is not among the most frequent sets" if share_of_members is None else f"wins {percent(share_of_members)}"
    sizes = ", ".join(f"{size} members {percent(share)}" for size, share in stability["sizes"].items())
    return join(
        (
            title,
            tag(
                "p",
                f"Algorithm and threshold repeated on {stability['resamples']:,} resamples of the test images. "
                f"Sizes: {sizes}. " + (f"The selected set itself {said}." if members else ""),
            ),
            table(("corruption", ("selected in", "number"), ""), rows, class_="bars wide"),
            tag("h4", "The most frequent sets"),
            table((("resamples", "number"), "members"), sets, class_="sets"),
            figure_files("stability"),
        )
    )


def _spread(values):
    finite = [v for v in values if np.isfinite(v)]
    if len(finite) < 2:
        return "spread undefined."
    spread = balance(finite)
    return f"mean {spread.mean:.2f}, population standard deviation {spread.std:.2f}, range {spread.range:.2f}."
