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
        own = [summary for summary in summaries if summary.model == model]
        lines += ["", f"{model}, errors in percent{_seeds(own[0])}"]
        for benchmark, severities in dict.fromkeys((one.benchmark, one.severities) for one in own):
            here = [one for one in own if (one.benchmark, one.severities) == (benchmark, severities)]
            parts = [value(one) for one in here if not math.isnan(one.mean)]
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
