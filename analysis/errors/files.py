"""errors.csv, a row for each model, seed and corruption; errors_summary.csv, one for each model."""

import math
import pathlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from analysis.errors import benchmarks, scores, summary
from analysis.errors.choice import Choice
from analysis.errors.conditions import Conditions
from analysis.errors.images import ImageErrors
from analysis.errors.scores import Row, Value
from analysis.errors.summary import GAP, MEASURES, NONE, Summary
from analysis.lines import write_rows
from analysis.tables import CLEAN

ERRORS = "errors.csv"
ERRORS_HEADER = (
    "model",
    "seed",
    "benchmark",
    "reference",
    "corruption",
    "mean_error",
    "CE",
    "CE_se",
    "relative_CE",
    "relative_CE_se",
    "mean_error_se",
    "severities",
    "mismatch",
    "frost",
)


def score(
    errors: ImageErrors,
    choice: Choice,
    conditions: Conditions,
    own: Mapping[str, Iterable[str]] | None = None,
    *,
    stored: bool = False,
) -> tuple[list[Row], list[Summary]]:
    """Scores every model and seed on every benchmark that its counts hold completely.

    Args:
      errors: counts and answers.
      choice: of the reference.
      conditions: that the errors were measured under.
      own, stored: see `benchmarks.complete`.

    Returns:
      (rows by corruption and their means, summaries over seeds).
    """
    keys = list(dict.fromkeys(cell[:2] for cell in errors.counts if (*cell[:2], CLEAN, 0) in errors.counts))
    rows: list[Row] = []
    of_model: dict[tuple[str, ...], list[tuple[Value, Row | None]]] = {}
    for key in keys:
        evaluated = benchmarks.complete((cell[2:] for cell in errors.counts if cell[:2] == key), own, stored=stored)
        head = (key[0], CLEAN, NONE, "mean_error")
        of_model.setdefault(head, []).append((scores.clean_error(errors, key), None))
        means = {}
        for benchmark in evaluated:
            members = scores.rows(errors, key, benchmark, choice, conditions)
            rows += [_light(row) for row in members]
            if benchmark.name == benchmarks.OTHERS:
                continue
            means[benchmark.name, benchmark.severities] = row = scores.mean(members, choice)
            rows.append(_light(row))
            for measure, value in zip(MEASURES, (row.error, row.ce, row.relative), strict=True):
                of_model.setdefault((key[0], *row[2:4], measure), []).append((value, row))
        for bar, plain in benchmarks.gaps(evaluated):
            first, second = (means[benchmark.name, benchmark.severities] for benchmark in (bar, plain))
            value = scores.difference(first.error, second.error)
            of_model.setdefault((key[0], *first[2:4], GAP), []).append((value, second))
    return rows, [summarise(head, found) for head, found in of_model.items()]


def write(folder: pathlib.Path, rows: Sequence[Row], summaries: Sequence[Summary], comment: str | None = None) -> None:
    """Writes errors.csv and errors_summary.csv atomically; percent, `nan` where there is no
    number.
    """
    lines = [
        (
            row.model,
            row.seed,
            row.benchmark,
            row.reference,
            row.corruption,
            row.error.value,
            row.ce.value,
            row.ce.se,
            row.relative.value,
            row.relative.se,
            row.error.se,
            row.severities,
            row.mismatch,
            row.frost,
        )
        for row in rows
    ]
    write_rows(folder / ERRORS, ERRORS_HEADER, lines, comment)
    summary.write(folder / summary.NAME, summaries, comment)


def summarise(head: tuple[str, str, str, str], found: Sequence[tuple[Value, Row | None]]) -> Summary:
    """Summarises the numbers of one model over its seeds.

    Args:
      head: model, benchmark, severities and measure.
      found: of each seed its number and, of a benchmark, the row it stands in.
    """
    values = tuple(value for value, _ in found)
    row = found[0][1]
    undefined = math.isnan(values[0].value)
    whole = scores.average(values)
    std = float(np.std([value.value for value in values], ddof=1)) if len(values) > 1 and not undefined else math.nan
    normalised = row is not None and head[3] in ("mCE", "relative_mCE")
    about = (row.reference, row.mismatch) if normalised else (NONE, NONE)
    frost = NONE if row is None else row.frost
    return Summary(*head, whole.value, whole.se, std, len(values), *about, frost, values)


def _light(row):
    """A row without its images: of many models and corruptions they would fill the memory."""
    return row._replace(**{name: getattr(row, name)._replace(images=None) for name in scores.FIELDS.values()})
