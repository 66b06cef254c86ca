"""Errors of models by corruption: means over sets of corruptions, and the balance of a benchmark.

A benchmark is cut into the corruptions of largest mean overlap and the rest. A model made robust to a few overlapping
corruptions gains on the first set more than on the second. Source: Laugros, Caplier, Ospici, "Using the Overlapping
Score to Improve Corruption Benchmarks", Table 1.

Models each trained with one corruption of a benchmark, on all of them: where training with one corruption helps with
many others and with another does not, the spread of the models' means is large. Source: Laugros, Caplier, Ospici,
"Increasing the Coverage and Balance of Robustness Benchmarks by Using Non-Overlapping Corruptions", Tables 2, 7 and 8.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

import corruptions
from analysis import frames, scores
from analysis.errors.joint import Evaluated
from analysis.errors.reference import NONE, REFUSE, Choice, choose
from analysis.errors.scores import CE, FIELDS, LEVELS, MEAN, MEAN_ERROR, RELATIVE
from analysis.errors.summary import MEASURES, score
from analysis.overlap.balance import Balance, balance
from analysis.overlap.mixtures import reference_errors
from analysis.references import Reference
from analysis.rounding import fixed, with_error
from analysis.tables import CLEAN, RANDOM, STANDARD, Count

_OF_MEAN = dict(zip(FIELDS, MEASURES, strict=True))  # measure of a corruption -> measure of a summary


class CorruptionErrors(NamedTuple):
    """Raw and relative CE of one model, corruption -> percent."""

    raw: dict[str, float]
    relative: dict[str, float]


class Trained(NamedTuple):
    """Errors of a model, averaged over its seeds, in percent.

    Attributes:
      model: corruption that it was trained with.
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
      benchmark: its name; severities: `levels` or `random`; measure: see `balance_table`.
      reference: the reference that errors are divided by, or `none`; mismatch: differences from its conditions.
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


def corruption_errors(
    errors: Mapping[str, float | Sequence[float]], clean_error: float, reference: Reference
) -> CorruptionErrors:
    """Computes raw and relative CE of any corruptions that the reference has; a whole benchmark is
    not needed.

    Args:
      errors: corruption (plain or qualified name) -> error at each severity of the reference, in
        [0, 1]; a single number is the mean over severities.
      clean_error: the model's error on clean images.
      reference: whose errors are divided by.

    Raises:
      ValueError: a corruption that the reference has no errors of.
    """
    raw, relative = {}, {}
    for name, error in errors.items():
        normaliser = reference_errors(reference, name)
        if np.ndim(error) == 0:
            normaliser = [float(np.mean(normaliser))]
        raw[name] = scores.corruption_error(error, normaliser)
        relative[name] = scores.relative_corruption_error(error, clean_error, normaliser, reference.clean)
    return CorruptionErrors(raw, relative)


def labelled(evaluated: Sequence[Evaluated]) -> dict[str, dict[str, str]]:
    """Tells the models of several workdirs apart: {name of the workdir: {model: label}}.

    A model is labelled by its name. Where two workdirs hold the same model and seed, as workdirs of imported weights
    do, every model is labelled by its workdir, WORKDIR or, of several in one, WORKDIR:MODEL.
    """
    keys = {workdir.name: list(dict.fromkeys(cell[:2] for cell in workdir.errors.counts)) for workdir in evaluated}
    every = [key for of_workdir in keys.values() for key in of_workdir]
    distinct = len(set(every)) == len(every)
    labels = {}
    for name, of_workdir in keys.items():
        models = list(dict.fromkeys(model for model, _ in of_workdir))
        labels[name] = {m: m if distinct else name if len(models) == 1 else f"{name}:{m}" for m in models}
    return labels


def mean_errors(counts: Iterable[Count]) -> pd.DataFrame:
    """Averages errors over severities and seeds: percent, a row for each model, a column for each corruption."""
    frame = frames.of_counts(count for count in counts if count.corruption != CLEAN)
    frame["error"] = 1 - frame.correct / frame.total
    cells = frame.groupby(["model", "corruption"], sort=False).error.agg(lambda errors: 100 * float(np.mean(errors)))
    return cells.unstack(sort=False)


def errors_by_corruption(evaluated: Sequence[Evaluated]) -> pd.DataFrame:
    """Gives the `mean_errors` of the models of several workdirs, under their labels."""
    labels = labelled(evaluated)
    return mean_errors(
        count._replace(model=labels[workdir.name][count.model])
        for workdir in evaluated
        for count in workdir.errors.counts.values()
    )


def relative_errors(
    evaluated: Sequence[Evaluated], reference: str, mismatch: str = REFUSE
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Divides errors by those of a reference, averaged over seeds.

    A corruption evaluated at its levels and at random severities counts by its levels.

    Args:
      evaluated: the workdirs.
      reference, mismatch: see `analysis.errors.reference.choose`.

    Returns:
      ({measure of `analysis.errors.scores.FIELDS`: percent, a row for each model, a column for each corruption},
      sentences on differences from the reference's conditions). NaN where the reference has no errors.

    Raises:
      ValueError: other conditions than the reference's.
    """
    labels, notes, lines = labelled(evaluated), [], []
    for workdir in evaluated:
        choice = choose(reference, mismatch, workdir.conditions)
        notes += choice.sentences()
        rows, _ = score(workdir.errors, choice, workdir.conditions, stored=workdir.stored)
        lines += [
            (labels[workdir.name][row.model], row.corruption, row.severities == LEVELS, row.error.value)
            + (row.ce.value, row.relative.value)
            for row in rows
            if row.corruption != MEAN
        ]
    frame = pd.DataFrame(lines, columns=["model", "corruption", "at_levels", *FIELDS])
    best = frame.at_levels == frame.groupby(["model", "corruption"]).at_levels.transform("max")
    cells = frame[best].groupby(["model", "corruption"], sort=False)
    mean = lambda values: float(np.mean(values.to_numpy()))  # noqa: E731 (NaN stays NaN)
    return {name: cells[name].agg(mean).unstack(sort=False) for name in FIELDS}, list(dict.fromkeys(notes))


def require(values: pd.DataFrame, names: Iterable[str], reference: str) -> None:
    """Refuses corruptions that the reference has no errors of, or loses nothing under.

    Raises:
      ValueError: a NaN among the values of `names`; names them.
    """
    without = sorted({name for name in names if name in values and values[name].isna().any()})
    if without:
        raise ValueError(
            f"expected --reference={reference or 'alexnet'} with errors of {', '.join(without)} under the same "
            "conditions, larger than its clean error, found none; evaluate a reference under them and give its workdir"
        )


def set_means(values: pd.DataFrame, sets: Mapping[str, Sequence[str]], standard: str = STANDARD) -> pd.DataFrame:
    """Averages the errors of every model over sets of corruptions, and counts gains from the standard model.

    Args:
      values: percent, a row for each model, a column for each corruption; one row is `standard`.
      sets: label -> names of corruptions.
      standard: the model that gains are counted from.

    Returns:
      A row for each model; for each set its mean, and `LABEL gain`.

    Raises:
      ValueError: no standard model, an empty set, or a corruption that a model was not shown.
    """
    if standard not in values.index:
        raise ValueError(f"expected values of the model {standard!r}, found {sorted(values.index)}")
    means = pd.DataFrame(index=values.index)
    for label, members in sets.items():
        missing = [name for name in members if name not in values or values[name].isna().any()]
        if missing or not members:
            raise ValueError(f"expected values of the corruptions in {label!r} for every model, missing {missing}")
        means[label] = [float(np.mean(row)) for row in values[list(members)].to_numpy()]
        means[f"{label} gain"] = means.loc[standard, label] - means[label]
    return means


def set_means_text(
    means: pd.DataFrame, sets: Mapping[str, Sequence[str]], beside: Mapping[str, pd.Series] | None = None
) -> str:
    """Lists mean error and gain of every model on every set, as Markdown.

    Args:
      means: of `set_means`.
      sets: label -> corruptions.
      beside: title of a further column -> percent of each model.
    """
    lines = [f"{label}: {', '.join(members)}" for label, members in sets.items()]
    cells = pd.DataFrame({"model": means.index})
    for label in sets:
        cells[label] = [f"{mean:.1f}" for mean in means[label]]
        cells[f"{label} gain"] = [f"{gain:+.1f}" for gain in means[f"{label} gain"]]
    for title, values in (beside or {}).items():
        cells[title] = [f"{values[model]:.1f}" for model in means.index]
    return "\n".join([*lines, "", frames.markdown(cells)])


def balance_table(evaluated: Evaluated, choice: Choice, benchmark: str, measure: str) -> BalanceTable:
    """Makes the table of a benchmark from an evaluated workdir of overlap.py.

    Args:
      evaluated: the workdir, with a standard model and one for each corruption of the benchmark.
      choice: of the reference.
      benchmark: registered name; evaluated at its levels, or else at random severities.
      measure: a key of `analysis.errors.scores.FIELDS`.

    Raises:
      ValueError: a model is not there, a model was not shown the whole benchmark, or there is no
        reference to divide by.
    """
    names = corruptions.names(benchmark)
    rows, summaries = score(evaluated.errors, choice, evaluated.conditions, stored=evaluated.stored)
    models = (STANDARD, *names)
    there = {row.model for row in rows} | {cell[0] for cell in evaluated.errors.counts}
    if missing := [name for name in models if name not in there]:
        raise ValueError(
            f"expected in {evaluated.folder} the standard model and one trained with each corruption of {benchmark}, found "
            f"none of {', '.join(missing)}; train them with overlap.py --config.study.corruptions=\"('{benchmark}',)\""
        )
    rows = [row for row in rows if row.benchmark == benchmark and row.model in models]
    shown = {kind: {row.model for row in rows if row.severities == kind} for kind in (LEVELS, RANDOM)}
    severities = next((kind for kind, seen in shown.items() if len(seen) == len(models)), None)
    if severities is None:
        most = max(shown.values(), key=len)
        raise ValueError(
            f"expected every model in {evaluated.folder} evaluated on all of {benchmark}, found it not so of "
            f"{', '.join(name for name in models if name not in most)}; run eval.py with "
            f"--config.eval.corruptions=\"('{benchmark}',)\""
        )
    rows = [row for row in rows if row.severities == severities]
    by_measure = {summary[:4]: summary for summary in summaries}
    table = []
    for model in models:
        of_model = [row for row in rows if row.model == model]
        values = {
            name: float(np.mean([getattr(row, FIELDS[measure]).value for row in of_model if row.corruption == name]))
            for name in names
        }
        if undefined := [name for name, value in values.items() if np.isnan(value)]:
            raise ValueError(
                f"expected a reference with errors of {', '.join(undefined)} under the same conditions, found none; "
                "--reference=alexnet --mismatch=label divides by AlexNet's and marks the numbers"
            )
        clean = by_measure[model, CLEAN, NONE, "mean_error"]
        mean = by_measure[model, benchmark, severities, _OF_MEAN[measure]]
        table.append(Trained(model, clean.mean, values, mean.mean, mean.se))
    means = [row for row in rows if row.corruption == MEAN]
    spread = balance([row.mean for row in table[1:]])
    reference, mismatch = (means[0].reference, means[0].mismatch) if measure != MEAN_ERROR else (NONE, NONE)
    return BalanceTable(benchmark, severities, measure, reference, mismatch, tuple(table), spread)


def balance_text(table: BalanceTable) -> str:
    """Writes a table as Markdown: a row for each model, in whole percent as printed."""
    title = {MEAN_ERROR: "mean error", CE: "raw CE", RELATIVE: "relative CE"}[table.measure]
    by = f" by {table.reference}" if table.reference != NONE else ""
    mark = "†" if table.mismatch != NONE else ""
    short = [name.rpartition("/")[2] for name in table.rows[0].values]
    columns = ["trained with", "clean error", *short, "mean" if table.measure == MEAN_ERROR else "mCE"]
    rows = [
        [row.model.rpartition("/")[2], fixed(row.clean, 1)]
        + [*(fixed(value, 0) for value in row.values.values()), with_error(row.mean, row.se)]
        for row in table.rows
    ]
    head = f"{table.benchmark}, {table.severities}: {title} in percent{by}{mark}"
    return f"{head}\n\n{frames.markdown(pd.DataFrame(rows, columns=columns))}"


def spread_text(tables: Sequence[BalanceTable]) -> str:
    """Writes the spreads of several benchmarks side by side, as Markdown."""
    columns = ["benchmark", "models", "mean", "standard deviation", "with n - 1", "range"]
    rows = [[table.benchmark, len(table.rows) - 1, *(fixed(value, 1) for value in table.spread)] for table in tables]
    head = "Spread of the means of the models, without the standard one: smaller is better balanced."
    return f"{head}\n\n{frames.markdown(pd.DataFrame(rows, columns=columns))}"
