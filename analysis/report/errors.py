"""Part of a report: errors of models on benchmarks, marked where they hold for other conditions."""

import math
from collections.abc import Sequence

from analysis.errors.summary import NONE, TITLES, Summary, notes
from analysis.report.html import Html, join, table, tag
from analysis.rounding import fixed, with_error


def errors_part(summaries: Sequence[Summary] | None) -> Html | None:
    """Shows errors_summary.csv: a line for each number that is there."""
    defined = [summary for summary in summaries or () if not math.isnan(summary.mean)]
    if not defined:
        return None
    rows = [
        (
            summary.model,
            summary.benchmark if summary.severities == NONE else f"{summary.benchmark} ({summary.severities})",
            TITLES[summary.measure],
            (with_error(summary.mean, summary.se), "number"),
            (fixed(summary.std, 2), "number"),
            "" if summary.reference == NONE else summary.reference,
            "; ".join(notes(summary)),
        )
        for summary in defined
    ]
    header = ("model", "benchmark", "measure", ("percent", "number"), ("std of seeds", "number"), "relative to", "note")
    text = "Top-1 errors, mean ± standard error over test images; all numbers are in errors_summary.csv."
    return join((tag("h3", "Errors"), tag("p", text), table(header, rows, label="Errors on benchmarks")))
