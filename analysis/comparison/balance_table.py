"""Models each trained with one corruption of a benchmark, on all of them: is the benchmark balanced?

A row for the standard model and one for each model, a column for each corruption, and the spread of
the models' means: where training with one corruption helps with many others and with another does
not, the spread is large. Source: Laugros, Caplier, Ospici, "Increasing the Coverage and Balance of
Robustness Benchmarks by Using Non-Overlapping Corruptions", Tables 2, 7 and 8.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import corruptions
from analysis.errors import files
from analysis.errors.benchmarks import LEVELS
from analysis.errors.choice import Choice
from analysis.errors.joint import Evaluated
from analysis.errors.scores import CE, FIELDS, MEAN, MEAN_ERROR, RELATIVE
from analysis.errors.summary import MEASURES, NONE
from analysis.overlap.balance import Balance, balance
from analysis.rounding import fixed, with_error
from analysis.tables import CLEAN, RANDOM, STANDARD

_OF_MEAN = dict(zip(FIELDS, MEASURES, strict=True))  # what each is called in a summary


class Trained(NamedTuple):
    """Errors of a model, averaged over its seeds, in percent.

    Attributes:
      model: what it was trained with.
      clean: error on clean images.
      values: corruption -> its measure.
      mean: over the corruptions; se: its standard error over test images.
    """

    model: str
    clean: float
    values: dict[str, float]
    mean: float
    se: float


class BalanceTable(NamedTuple):
    """The models of a benchmark on the benchmark.

    Attributes:
      benchmark: its name; severities: `levels` or `random`; measure: as of `balance_table`.
      reference: what errors are divided by, or `none`; mismatch: what differs from its conditions.
      rows: the standard model first, then the others in the order of the benchmark.
      spread: of the means, without the standard model's.
    """

    benchmark: str
    severities: str
    measure: str
    reference: str
    mismatch: str
    rows: tuple[Trained, ...]
    spread: Balance


def balance_table(evaluated: Evaluated, choice: Choice, benchmark: str, measure: str) -> BalanceTable:
    """Makes the table of a benchmark from an evaluated workdir of overlap.py.

    Args:
      evaluated: the workdir, with a standard model and one for each corruption of the benchmark.
      choice: of the reference.
      benchmark: registered name; evaluated at its levels, or else at random severities.
      measure: a key of `analysis.errors.scores.FIELDS`.

    Raises:
      ValueError: a model is not there, one was not shown the whole benchmark, or there is no
        reference to divide by.
    """
    names = corruptions.names(benchmark)
    rows, summaries = files.score(evaluated.errors, choice, evaluated.conditions, stored=evaluated.stored)
    models = (STANDARD, *names)
    there = {row.model for row in rows} | {count.model for count in evaluated.errors.counts.values()}
    if missing := [name for name in models if name not in there]:
        raise ValueError(
            f"expected in {evaluated.folder} the standard model and one trained with each corruption of {benchmark}, found "
            f"none of {', '.join(missing)}; train them with overlap.py --config.study.corruptions=\"('{benchmark}',)\""
        )
    of_benchmark = [row for row in rows if row.benchmark == benchmark and row.model in models]
    shown = {kind: {row.model for row in of_benchmark if row.severities == kind} for kind in (LEVELS, RANDOM)}
    severities = next((kind for kind, seen in shown.items() if len(seen) == len(models)), None)
    if severities is None:
        most = max(shown.values(), key=len)
        raise ValueError(
            f"expected every model in {evaluated.folder} evaluated on all of {benchmark}, found it not so of "
            f"{', '.join(name for name in models if name not in most)}; run eval.py with "
            f"--config.eval.corruptions=\"('{benchmark}',)\""
        )
    of_benchmark = [row for row in of_benchmark if row.severities == severities]
    by_measure = {(s.model, s.benchmark, s.severities, s.measure): s for s in summaries}
    table = []
    for model in models:
        of_model = [row for row in of_benchmark if row.model == model]
        values = {
            name: float(np.mean([getattr(row, FIELDS[measure]).value for row in of_model if row.corruption == name]))
            for name in names
        }
        if undefined := [name for name, value in values.items() if np.isnan(value)]:
            raise ValueError(
                f"expected a reference with errors of {', '.join(undefined)} under the same conditions, found none; "
                "--reference=alexnet --mismatch=label divides by AlexNet's and marks the numbers"
            )
        clean, mean = (
            by_measure[model, CLEAN, NONE, "mean_error"],
            by_measure[model, benchmark, severities, _OF_MEAN[measure]],
        )
        table.append(Trained(model, clean.mean, values, mean.mean, mean.se))
    means = [row for row in of_benchmark if row.corruption == MEAN]
    spread = balance([row.mean for row in table[1:]])
    reference, mismatch = (means[0].reference, means[0].mismatch) if measure != MEAN_ERROR else (NONE, NONE)
    return BalanceTable(benchmark, severities, measure, reference, mismatch, tuple(table), spread)


def table_text(table: BalanceTable) -> str:
    """Writes a table as Markdown: a row for each model, in whole percent as printed."""
    names = list(table.rows[0].values)
    what = {MEAN_ERROR: "mean error", CE: "raw CE", RELATIVE: "relative CE"}[table.measure]
    by = f" by {table.reference}" if table.reference != NONE else ""
    mark = "†" if table.mismatch != NONE else ""
    mean = "mean" if table.measure == MEAN_ERROR else "mCE"
    short = [name.rpartition("/")[2] for name in names]
    lines = [f"{table.benchmark}, {table.severities}: {what} in percent{by}{mark}", ""]
    lines.append(f"| trained with | clean error | {' | '.join(short)} | {mean} |")
    lines.append("|---|" + "---:|" * (len(names) + 2))
    for row in table.rows:
        cells = [fixed(row.clean, 1), *(fixed(row.values[name], 0) for name in names), with_error(row.mean, row.se)]
        lines.append(f"| {row.model.rpartition('/')[2]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def spread_text(tables: Sequence[BalanceTable]) -> str:
    """Writes the spreads of several benchmarks side by side, as Markdown."""
    lines = [
        "Spread of the means of the models, without the standard one: smaller is better balanced.",
        "",
        "| benchmark | models | mean | standard deviation | with n - 1 | range |",
        "|---|" + "---:|" * 5,
    ]
    for table in tables:
        number, spread = len(table.rows) - 1, table.spread
        cells = [fixed(value, 1) for value in (spread.mean, spread.std, spread.sample_std, spread.range)]
        lines.append(f"| {table.benchmark} | {number} | {' | '.join(cells)} |")
    return "\n".join(lines)
