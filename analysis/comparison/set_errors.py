"""Errors of the models in several tables, told apart, for means over sets of corruptions."""

import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from analysis import derived
from analysis.comparison.set_means import unnormalised_errors
from analysis.errors import files, joint
from analysis.errors.benchmarks import LEVELS
from analysis.errors.choice import REFUSE, choose
from analysis.errors.scores import FIELDS, MEAN
from analysis.tables import Count


class Table(NamedTuple):
    """The counts.csv in a folder, and what each of its models is called: {model: name}."""

    folder: pathlib.Path
    counts: list[Count]
    called: dict[str, str]


def told_apart(paths: Sequence[pathlib.Path]) -> list[Table]:
    """Reads counts.csv of several workdirs and gives every model a name of its own.

    A model is called by its name. Where two tables hold the same model and seed, as those of
    imported weights do, every model is called by its workdir, WORKDIR or, of several in one,
    WORKDIR:MODEL.
    """
    folders, rows = [path.parent for path in paths], [derived.read_counts(path) for path in paths]
    keys = [key for counts in rows for key in {count.key[:2] for count in counts}]
    distinct = len(set(keys)) == len(keys)
    tables = []
    for folder, counts, name in zip(folders, rows, joint.names(folders), strict=True):
        models = list(dict.fromkeys(count.model for count in counts))
        called = {model: model if distinct else name if len(models) == 1 else f"{name}:{model}" for model in models}
        tables.append(Table(folder, counts, called))
    return tables


def mean_errors(tables: Iterable[Table]) -> dict[str, dict[str, float]]:
    """Averages errors over severities and seeds: {what the model is called: {corruption: percent}}."""
    return unnormalised_errors(
        count._replace(model=table.called[count.model]) for table in tables for count in table.counts
    )


def relative_errors(
    tables: Iterable[Table], reference: str, mismatch: str = REFUSE
) -> tuple[dict[str, dict[str, dict[str, float]]], list[str]]:
    """Divides errors by those of a reference, averaged over seeds.

    A corruption evaluated at its levels and at random severities counts by its levels.

    Args:
      tables: of `told_apart`; each folder says in evaluation.json what it was measured under.
      reference, mismatch: as `analysis.errors.choice.choose`.

    Returns:
      ({measure of `analysis.errors.scores.FIELDS`: {what the model is called: {corruption:
      percent}}}, sentences on what differs from the reference's conditions). NaN where the
      reference has no errors.

    Raises:
      ValueError: no record of the conditions, or others than the reference's.
    """
    cells: dict[tuple[str, str], dict[str, list]] = {}
    notes = []
    for table in tables:
        evaluated = joint.read(table.folder, table.folder.name)
        choice = choose(reference, mismatch, evaluated.conditions)
        notes += choice.sentences()
        rows, _ = files.score(evaluated.errors, choice, evaluated.conditions, stored=evaluated.stored)
        for row in rows:
            if row.corruption != MEAN:
                cells.setdefault((table.called[row.model], row.corruption), {}).setdefault(row.severities, []).append(
                    row
                )
    values: dict[str, dict[str, dict[str, float]]] = {measure: {} for measure in FIELDS}
    for (model, corruption), by_kind in cells.items():
        rows = by_kind.get(LEVELS) or next(iter(by_kind.values()))
        for measure, field in FIELDS.items():
            value = float(np.mean([getattr(row, field).value for row in rows]))
            values[measure].setdefault(model, {})[corruption] = value
    return values, list(dict.fromkeys(notes))


def require(values: Mapping[str, Mapping[str, float]], names: Iterable[str], reference: str) -> None:
    """Refuses corruptions that the reference has no errors of, or loses nothing under.

    Raises:
      ValueError: a NaN among the values of `names`; names them.
    """
    without = sorted({name for of_model in values.values() for name in names if np.isnan(of_model.get(name, 0))})
    if without:
        raise ValueError(
            f"expected --reference={reference or 'alexnet'} with errors of {', '.join(without)} under the same "
            "conditions, larger than its clean error, found none; evaluate a reference under them and give its workdir"
        )
