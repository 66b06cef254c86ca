"""Values of the sections about benchmarks: balance of the candidates, thresholds, the selected one and its stability."""

import base64
from collections.abc import Sequence

import numpy as np

from analysis import heatmaps
from analysis.overlap.balance import balance, mean_overlap
from analysis.report import study_figures
from analysis.report.inputs import Study
from analysis.rounding import fixed, percent, with_error
from analysis.selection import algorithm
from analysis.selection.algorithm import Selection

_SETS = 10  # most frequent sets that are listed


def values(study: Study, selections: Sequence[Selection] | None, strips) -> dict:
    """Makes the values of balance.html, sweep.html and benchmark.html; arguments as in
    `analysis.report.document.document`.
    """
    members = study.benchmark["members"] if study.benchmark else []
    index = [study.names.index(name) for name in members]
    means, ses = mean_overlap(study.overlap.overlap), study.errors.mean_overlap
    axis = study_figures.bar_range(means, ses)
    inside = mean_overlap(study.overlap.overlap[np.ix_(index, index)]) if len(index) > 1 else None
    return {
        "members": members,
        "balance": [
            _bar_row(study, k, with_error(means[k], ses[k]), study_figures.bar(means[k], ses[k], *axis), members)
            for k in np.argsort(-np.nan_to_num(means, nan=-1), kind="stable")
        ],
        "spread": _spread(means),
        "spread_inside": None if inside is None else _spread(inside),
        "threshold": study.threshold,
        "sweep": _sweep(study, selections),
        "cards": [_card(study, k, index, strips) for k in index],
        "caption": strips if isinstance(strips, str) else strips.caption,
        "stability": _stability(study, members) if study.stability else None,
    }


def sweep(study: Study) -> tuple[Selection, ...] | None:
    """Selects benchmarks at thresholds 0, .05, ... 1 and at the study's; None where no overlap is
    defined.
    """
    if algorithm.undefined(study.overlap.overlap).all():
        return None
    thresholds = sorted({*(round(0.05 * k, 2) for k in range(21)), study.threshold})
    strict = bool(study.benchmark and study.benchmark["strict"])
    return algorithm.sweep(study.overlap.overlap, study.names, thresholds, strict, study.overlap.unclipped)


def _bar_row(study, k, value, bar, members):
    name = study.names[k]
    return {"name": name, "label": study.labels[k], "value": value, "bar": bar, "member": name in members}


def _sweep(study, selections):
    """Makes the chart and the table of thresholds, a row for each corruption in the order of the clusters."""
    if selections is None:
        return None
    rows = [
        {"name": "", "label": "members", "cells": [s.size for s in selections]},
        {"name": "", "label": "mean overlap", "cells": [_bare(fixed(s.mean_overlap, 2)) for s in selections]},
    ]
    for k in heatmaps.cluster_order(study.overlap.overlap):
        cells = ["●" if study.names[k] in s.members else "" for s in selections]
        rows.append({"name": study.names[k], "label": study.labels[k], "cells": cells})
    chart = study_figures.svg(study_figures.sweep(study, selections, study.threshold))
    return {
        "chart": f"data:image/svg+xml;base64,{base64.b64encode(chart).decode()}",
        "header": [_bare(f"{s.threshold:g}") for s in selections],
        "kinds": ["own" if s.threshold == study.threshold else "" for s in selections],
        "rows": rows,
    }


def _bare(text):
    return text.replace("0.", ".", 1)


def _card(study, k, index, strips):
    """Makes the card of a member: facts, and its pictures where there are some."""
    overlap, errors, name = study.overlap, study.errors, study.names[k]
    facts = [
        f"R of the standard model {with_error(overlap.robustness[0, k], errors.standard[k])}",
        f"gain {with_error(overlap.gain[k], errors.gain[k], sign=True)}" + (" (weak)" if overlap.flags[k] else ""),
    ]
    others = [j for j in index if j != k and np.isfinite(overlap.overlap[k, j])]
    if others:
        most = max(others, key=lambda j: overlap.overlap[k, j])
        value = with_error(overlap.overlap[k, most], errors.overlap[k, most])
        facts.append(f"largest overlap with another member {value} ({study.labels[most]})")
    share = (study.stability or {}).get("members", {}).get(name)
    if share is not None:
        facts.append(f"selected in {percent(share)} of resamples")
    pictured = not isinstance(strips, str) and name in strips.images
    return {
        "name": name,
        "label": study.labels[k],
        "facts": facts,
        "picture": strips.images[name] if pictured else None,
        "columns": strips.columns[name] if pictured else (),
    }


def _stability(study, members):
    stability = study.stability
    shares = [stability["members"].get(name, 0) for name in study.names]
    return {
        "shares": [
            _bar_row(study, k, percent(shares[k]), study_figures.bar(shares[k], 0, 0, 1), members)
            for k in np.argsort(-np.array(shares), kind="stable")
        ],
        "sets": [(share, selected) for selected, share in stability["sets"][:_SETS]],
        "won": next((share for selected, share in stability["sets"] if set(selected) == set(members)), None),
    }


def _spread(values):
    finite = [v for v in values if np.isfinite(v)]
    if len(finite) < 2:
        return "spread undefined."
    spread = balance(finite)
    return f"mean {spread.mean:.2f}, population standard deviation {spread.std:.2f}, range {spread.range:.2f}."
