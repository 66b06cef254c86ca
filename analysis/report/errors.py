"""Part of a report: errors of models on benchmarks, marked where they hold for other conditions."""

import math
from collections.abc import Sequence

from analysis.errors.summary import NONE, TITLES, Summary, notes
from analysis.report.html import Html, join, table, tag
from analysis.rounding import fixed, with_error


def errors_part(summaries: Sequence[Summary] | None) -> Html | None:
    """Shows errors_summary.csv: a line for each number that is there."""
    there = [one for one in summaries or () if not math.isnan(one.mean)]
    if not there:
        return None
    rows = [
        (
            one.model,
            one.benchmark if one.severities == NONE else f"{one.benchmark} ({one.severities})",
            TITLES[one.measure],
            (with_error(one.mean, one.se), "number"),
            (fixed(one.std, 2), "number"),
            "" if one.reference == NONE else one.reference,
            "; ".join(notes(one)),
        )
        for one in there
    ]
    header = ("model", "benchmark", "measure", ("percent", "number"), ("std of seeds", "number"), "relative to", "note")
    text = "Top-1 errors, mean ± standard error over test images; all numbers are in errors_summary.csv."
    return join((tag("h3", "Errors"), tag("p", text), table(header, rows, label="Errors on benchmarks")))
