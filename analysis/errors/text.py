"""Errors of models, printed: what a table in a paper would have, and what it must say beside it."""

import math
from collections.abc import Sequence

from analysis.errors.choice import Choice
from analysis.errors.summary import TITLES, Summary, notes
from analysis.rounding import with_error
from analysis.tables import CLEAN


def summary_text(summaries: Sequence[Summary], choice: Choice) -> str:
    """Writes a block for each model and a line for each benchmark, then what to know of the
    numbers.
    """
    lines = []
    for model in dict.fromkeys(summary.model for summary in summaries):
        of_model = [summary for summary in summaries if summary.model == model]
        lines += ["", f"{model}, errors in percent{_seeds(of_model[0])}"]
        for benchmark, severities in dict.fromkeys((summary.benchmark, summary.severities) for summary in of_model):
            of_benchmark = [
                summary for summary in of_model if (summary.benchmark, summary.severities) == (benchmark, severities)
            ]
            parts = [value(summary) for summary in of_benchmark if not math.isnan(summary.mean)]
            where = CLEAN if benchmark == CLEAN else f"{benchmark} ({severities})"
            lines.append(f"  {where:32s} {'   '.join(parts)}")
    lines += [f"({sentence})" for sentence in choice.sentences()]
    return "\n".join(lines)


def value(summary: Summary) -> str:
    """Writes `mCE 76.7 ± 0.2 (std 0.4), frost procedural`."""
    spread = f" (std {summary.std:.2g})" if not math.isnan(summary.std) else ""
    text = f"{TITLES[summary.measure]} {with_error(summary.mean, summary.se)}{spread}"
    return text + "".join(f", {note}" for note in notes(summary))


def _seeds(summary):
    return f", mean of {summary.seeds} seeds" if summary.seeds > 1 else ""
