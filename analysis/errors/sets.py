"""Errors of models by corruption: a table of a benchmark, means over sets of corruptions, the balance of a benchmark.

A benchmark is cut into the corruptions of largest mean overlap and the rest. A model made robust to a few overlapping
corruptions gains on the first set more than on the second. Source: Laugros, Caplier, Ospici, "Using the Overlapping
Score to Improve Corruption Benchmarks", Table 1.

A benchmark is balanced where models that are each trained with one of its corruptions have similar means over all of
them. Source: Laugros, Caplier, Ospici, "Increasing the Coverage and Balance of Robustness Benchmarks by Using
Non-Overlapping Corruptions", Tables 2, 7 and 8; the paper's Tables 5 and 6 are tables by corruption.
"""

import pathlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

import corruptions
from analysis import frames
from analysis.errors.joint import Evaluated, check_same
from analysis.errors.printed import PRINTED
from analysis.errors.reference import LABEL, NONE, REFUSE, choose, versions
from analysis.errors.scores import CE, FIELDS, LEAST, LEVELS, MEAN, MEAN_ERROR, OTHERS, RELATIVE
from analysis.errors.summary import GAP, MEASURES, score
from analysis.frames import CLEAN, RANDOM, STANDARD, fixed, with_error
from analysis.overlap.score import Balance, balance
from runtime.files import write_atomically

TITLES = {MEAN_ERROR: "mean error", CE: "raw CE", RELATIVE: "relative CE"}
_OF_SUMMARY = dict(zip(MEASURES, FIELDS, strict=True))  # measure of a summary -> measure of a corruption
_KEY = ["model", "benchmark", "severities", "corruption", "measure"]
COLUMNS = (*_KEY, "mean", "se", "std", "seeds", "reference", "mismatch", "frost")
_UNIT = ["benchmark", "severities", "measure"]  # equal within a table


class BalanceTable(NamedTuple):
    """The models of a benchmark on the benchmark."""

    benchmark: str
    severities: str  # `levels` or `random`
    measure: str  # a key of `analysis.errors.scores.FIELDS`
    reference: str  # errors are divided by it; or `none`
    mismatch: str  # differences from its conditions
    # Percent, a row for each model, the standard one first; columns `clean`, the corruptions, `mean`.
    values: pd.DataFrame
    se: pd.Series  # standard errors of the means over test images
    spread: Balance  # spread of the means, without the standard model's


def labelled(evaluated: Sequence[Evaluated]) -> dict[str, dict[str, str]]:
    """Tells the models of several workdirs apart: {name of the workdir: {model: label}}.

    A model is labelled by its name. Where two workdirs hold the same model and seed, as workdirs of imported weights
    do, or a model that was trained with other settings, every model is labelled by its workdir, WORKDIR or, of several
    in one, WORKDIR:MODEL. So numbers are averaged over seeds only where all else is equal.
    """
    keys = {workdir.name: list(dict.fromkeys(cell[:2] for cell in workdir.errors.counts)) for workdir in evaluated}
    every = [key for of_workdir in keys.values() for key in of_workdir]
    recipes = {
        model: [workdir.recipe for workdir in evaluated if any(model == of for of, _ in keys[workdir.name])]
        for model, _ in every
    }
    alike = all(recipe == of_model[0] for of_model in recipes.values() for recipe in of_model)
    distinct = len(set(every)) == len(every) and alike
    labels = {}
    for name, of_workdir in keys.items():
        models = list(dict.fromkeys(model for model, _ in of_workdir))
        labels[name] = {m: m if distinct else name if len(models) == 1 else f"{name}:{m}" for m in models}
    return labels


def by_corruption(
    evaluated: Sequence[Evaluated], reference: str = "", mismatch: str = REFUSE
) -> tuple[pd.DataFrame, list[str]]:
    """Scores every model on every corruption, averaged over its seeds.

    Args:
      evaluated: the workdirs, measured under the same conditions.
      reference, mismatch: see `analysis.errors.reference.choose`.

    Returns:
      (a row for each model, benchmark, kind of severities, corruption and measure, with the columns `COLUMNS`;
      sentences on differences from the reference's conditions). The corruption `mean` is the mean of the benchmark;
      the benchmark `clean` has one row for each model. Percent, NaN where the reference has no errors. `se` is the
      standard error over test images; of one corruption and several seeds it is the mean of theirs, an upper bound.
    Raises ValueError for workdirs under other conditions than the first, or than the reference's, and for a corruption
    of no complete benchmark that models were shown at different levels; with the mismatch `label` notes say so.
    """
    notes, lines, exact, labels = check_same(evaluated, mismatch), [], {}, labelled(evaluated)
    others = []  # (corruption of no complete benchmark, its levels, model)
    for workdir in evaluated:
        choice = choose(reference, mismatch, workdir.conditions)
        notes += choice.sentences()
        rows, summaries = score(workdir.errors, choice, workdir.conditions, stored=workdir.stored)
        of, at_levels = labels[workdir.name], workdir.errors.at_levels()
        for row in rows:
            if (row.benchmark, row.severities) == (OTHERS, LEVELS) and row.corruption != MEAN:
                others.append((row.corruption, at_levels[row.model, row.seed, row.corruption], of[row.model]))
            for measure, field in FIELDS.items():
                by = (NONE, NONE) if measure == MEAN_ERROR else (row.reference, row.mismatch)
                key = (of[row.model], row.benchmark, row.severities, row.corruption, measure)
                lines.append((*key, *getattr(row, field)[:2], *by, row.frost))
        for summary in summaries:
            if summary.measure != GAP:
                name = CLEAN if summary.benchmark == CLEAN else MEAN
                key = (of[summary.model], *summary[1:3], name, _OF_SUMMARY[summary.measure])
                exact[*key, summary.seeds] = summary.se
                if name == CLEAN:
                    lines += [(*key, *value[:2], NONE, NONE, NONE) for value in summary.by_seed]
    notes += _unlike_levels(others, mismatch)
    notes += versions(*(workdir.conditions for workdir in evaluated))
    frame = pd.DataFrame(lines, columns=[*_KEY, "value", "se", *COLUMNS[-3:]])
    cells = frame.groupby(_KEY, sort=False)
    mean = lambda values: float(np.mean(values.to_numpy()))  # noqa: E731 (NaN stays NaN)
    columns = {"mean": ("value", mean), "se": ("se", mean), "std": ("value", "std"), "seeds": ("value", "size")}
    table = cells.agg(**columns, **{name: (name, "first") for name in COLUMNS[-3:]}).reset_index()
    keys = zip(*(table[name] for name in (*_KEY, "seeds")), strict=True)
    table["se"] = [exact.get(key, se) for key, se in zip(keys, table.se, strict=True)]
    return table[list(COLUMNS)], list(dict.fromkeys(notes))


def check_levels(evaluated: Sequence[Evaluated], names: Iterable[str], mismatch: str) -> list[str]:
    """Checks that `wide` compares models at the same levels, of the corruptions `names`; returns sentences on those that it
    does not, or raises them as a ValueError unless `mismatch` is `label`.
    """
    names, labels = set(names), labelled(evaluated)
    shown = [
        (name, levels, labels[workdir.name][model])
        for workdir in evaluated
        for (model, _, name), levels in workdir.errors.at_levels().items()
        if name in names
    ]
    at_random = {name for name, levels, _ in shown if not levels}  # all models are compared by random severities
    return _unlike_levels([one for one in shown if one[0] not in at_random], mismatch)


def _unlike_levels(shown, mismatch):
    """Sentences on corruptions that models were shown at different levels, of (corruption, levels, model) each; refuses them
    by a ValueError if they are not to be labelled.
    """
    first: dict[str, dict[tuple, str]] = {}  # {corruption: {levels: the first model that was shown these}}
    for name, levels, model in shown:
        first.setdefault(name, {}).setdefault(levels, model)
    sentences = []
    for name, of_name in first.items():
        if len(of_name) > 1:
            found = " and ".join(f"{', '.join(map(str, levels))} of {model}" for levels, model in of_name.items())
            sentences.append(f"expected {name} at the same levels of all models, found levels {found}")
    if sentences and mismatch != LABEL:
        remedy = "evaluate the models at the same levels, or mark the numbers with --mismatch=label"
        raise ValueError("\n  ".join([*sentences, remedy]))
    return sentences


def wide(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Arranges one measure: a row for each model, a column for each corruption.

    A corruption counts by its levels where every model that was shown it has errors at levels, else by random severities.
    """
    rows = table[(table.measure == measure) & ~table.corruption.isin([MEAN, CLEAN])]
    at_levels = rows.severities == LEVELS
    everywhere = (
        at_levels.groupby([rows.model, rows.corruption]).transform("max").groupby(rows.corruption).transform("min")
    )
    cells = rows[at_levels == everywhere].groupby(["model", "corruption"], sort=False)["mean"]
    return cells.agg(lambda values: float(np.mean(values.to_numpy()))).unstack(sort=False)


def undefined(table: pd.DataFrame) -> pd.Series:
    """Marks the rows of relative CE that the reference has errors for and that have no value all the same."""
    return (table.measure == RELATIVE) & (table.reference != NONE) & table["mean"].isna()


def select(
    table: pd.DataFrame, benchmarks: Sequence[str], measures: Sequence[str], models: Sequence[str]
) -> pd.DataFrame:
    """Keeps the rows of some benchmarks, measures and models, () for all, and the rows of clean images.

    Raises ValueError where nothing but clean images is left.
    """
    kept = table.measure.isin([_OF_SUMMARY.get(name, name) for name in measures])
    kept &= table.benchmark.isin(list(benchmarks)) if benchmarks else table.benchmark != CLEAN
    kept &= table.model.isin(list(models)) if models else True
    some = kept & table["mean"].notna()
    kept = some | (kept & undefined(table))
    if not some.any():
        found = table[_UNIT].drop_duplicates().itertuples(index=False, name=None)
        raise ValueError(
            f"expected scores of models {', '.join(models) or 'of any name'} on {', '.join(benchmarks) or 'a benchmark'} in "
            f"{', '.join(measures)}, found {'; '.join(map(' '.join, found))} of {', '.join(table.model.unique())}"
        )
    return table[kept | ((table.benchmark == CLEAN) & table.model.isin(table[kept].model))]


def texts(table: pd.DataFrame, dataset: str = "", printed: bool = False) -> Iterable[tuple[str, pd.DataFrame]]:
    """Writes a table of text for each benchmark, kind of severities and measure of `table` (of `by_corruption` or
    `select`).

    Yields (title with the name `dataset`, a row for each model with its clean error, the error or CE of each
    corruption, and the mean). With `printed` the rows that papers print of the same dataset, benchmark, severities
    and measure stand below.
    """
    clean = {row.model: _cell(row) for row in table[table.benchmark == CLEAN].itertuples()}
    for unit, rows in table[table.benchmark != CLEAN].groupby(_UNIT, sort=False):
        benchmark, severities, measure = unit
        names = [name for name in rows.corruption.unique() if name != MEAN]
        cells = rows.assign(text=[_cell(row) for row in rows.itertuples()]).set_index(["model", "corruption"]).text
        names += [MEAN] if MEAN in set(rows.corruption) else []
        wide_cells = cells.unstack(sort=False).reindex(columns=names).astype(object).fillna("\N{EN DASH}")
        last = _mean_of(measure)
        wide_cells.columns = [last if name == MEAN else name.rpartition("/")[2] for name in names]
        wide_cells.insert(0, "clean error", [clean.get(model, "") for model in wide_cells.index])
        for of in (table for table in PRINTED if printed and (table.dataset, *table[2:5]) == (dataset, *unit)):
            for model, (error, *values, mean) in of.rows.items():
                row = dict(zip(of.columns, values, strict=True)) | {"clean error": error, last: mean}
                wide_cells.loc[f"{model} ({of.source})"] = [row[name] for name in wide_cells.columns]
        by = " and ".join(rows.reference[rows.reference != NONE].unique())
        title = f"{benchmark}, {severities}: {TITLES[measure]} in percent{f' by {by}' if by else ''}"
        yield title, wide_cells.rename_axis("model").reset_index()


def printed(benchmarks: Collection[str] = ()) -> Iterator[tuple[str, pd.DataFrame]]:
    """Gives the tables that papers print of some benchmarks, () for all, as `texts` does: (title, a row for each model)."""
    for of in PRINTED:
        if not benchmarks or of.benchmark in benchmarks:
            columns = ("clean error", *of.columns, _mean_of(of.measure))
            frame = pd.DataFrame([(model, *row) for model, row in of.rows.items()], columns=["model", *columns])
            yield f"{of.source}: {of.dataset}, {of.benchmark}, {of.severities}, {TITLES[of.measure]} in percent", frame


def _mean_of(measure):
    return "mean" if measure == MEAN_ERROR else "mCE"


def _cell(row):
    """`76.7 ± 0.2 (0.4)†`: the mean, its standard error, the standard deviation over seeds, another condition."""
    text = with_error(row.mean, row.se)
    return text + (f" ({row.std:.2g})" if row.seeds > 1 else "") + ("†" if row.mismatch != NONE else "")


def write(folder: pathlib.Path, table: pd.DataFrame, tables: Sequence[tuple[str, pd.DataFrame]], notes: Sequence[str]):
    """Writes by_corruption.csv, .md and .tex, the notes in its captions, into a folder; returns their paths."""
    paths = [folder / f"by_corruption.{kind}" for kind in ("csv", "md", "tex")]
    frames.write(paths[0], table, " ".join(notes))
    write_atomically(paths[1], text(tables, notes))
    said = ["Mean ± standard error over test images.", *notes]
    write_atomically(
        paths[2], "\n".join(frames.latex(frame, " ".join([f"{title}.", *said])) for title, frame in tables)
    )
    return paths


def text(tables: Iterable[tuple[str, pd.DataFrame]], notes: Iterable[str]) -> str:
    """Writes tables and sentences as Markdown."""
    parts = [f"{frames.markdown_escaped(title)}\n\n{frames.markdown(frame)}" for title, frame in tables]
    return "\n\n".join([*parts, *map(frames.markdown_escaped, notes)]) + "\n"


def require(values: pd.DataFrame, names: Iterable[str], reference: str) -> None:
    """Refuses, by a ValueError, corruptions among `names` that the reference has no errors of, or loses nothing under."""
    without = sorted({name for name in names if name in values and values[name].isna().any()})
    if without:
        raise ValueError(
            f"expected --reference={reference or 'alexnet'} with errors of {', '.join(without)} under the same "
            f"conditions, larger than its clean error by {LEAST:g} point or more, found none; evaluate a reference under them and give its workdir"
        )


def set_means(values: pd.DataFrame, sets: Mapping[str, Sequence[str]], standard: str = STANDARD) -> pd.DataFrame:
    """Averages the errors of every model over sets of corruptions, and counts gains from the model `standard`.

    Values are percent, a row for each model, a column for each corruption; sets {label: names of corruptions}. Returns
    a row for each model; for each set its mean, and `LABEL gain`. Raises ValueError for no standard model, an empty
    set, or a corruption that a model was not shown.
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


def set_means_text(means: pd.DataFrame, sets: Mapping[str, Sequence[str]], beside: Mapping[str, pd.Series]) -> str:
    """Writes the result of `set_means` as Markdown; `beside`: title of a further column -> percent of each model."""
    lines = [frames.markdown_escaped(f"{label}: {', '.join(members)}") for label, members in sets.items()]
    cells = pd.DataFrame({"model": means.index})
    for label in sets:
        cells[label] = [f"{mean:.1f}" for mean in means[label]]
        cells[f"{label} gain"] = [f"{gain:+.1f}" for gain in means[f"{label} gain"]]
    for title, values in beside.items():
        cells[title] = [f"{values[model]:.1f}" for model in means.index]
    return "\n".join([*lines, "", frames.markdown(cells)])


def balance_table(table: pd.DataFrame, where: str | pathlib.Path, benchmark: str, measure: str) -> BalanceTable:
    """Makes the table of a benchmark from the scores of a workdir of overlap.py.

    `table` is the result of `by_corruption`, with a standard model and one for each corruption of the benchmark,
    which was evaluated at its levels, or else at random severities; `where` names the workdir in messages; `measure`
    is a key of `analysis.errors.scores.FIELDS`. Raises ValueError for a missing model, one that was not shown the
    whole benchmark, or no reference to divide by.
    """
    names = corruptions.names(benchmark)
    models = [STANDARD, *names]
    if missing := [name for name in models if name not in set(table.model)]:
        raise ValueError(
            f"expected in {where} the standard model and one trained with each corruption of {benchmark}, found none of "
            f"{', '.join(missing)}; train them with overlap.py --config.study.corruptions=\"('{benchmark}',)\""
        )
    rows = table[(table.benchmark == benchmark) & (table.measure == measure) & table.model.isin(models)]
    shown = {kind: set(rows.model[rows.severities == kind]) for kind in (LEVELS, RANDOM)}
    severities = next((kind for kind, seen in shown.items() if len(seen) == len(models)), None)
    if severities is None:
        most = max(shown.values(), key=len)
        raise ValueError(
            f"expected every model in {where} evaluated on all of {benchmark}, found it not so of "
            f"{', '.join(name for name in models if name not in most)}; run eval.py with "
            f"--config.eval.corruptions=\"('{benchmark}',)\""
        )
    rows = rows[rows.severities == severities]
    values = rows.pivot(index="model", columns="corruption", values="mean").loc[models, [*names, MEAN]]
    if undefined := [name for name in names if values[name].isna().any()]:
        raise ValueError(
            f"expected a reference with errors of {', '.join(undefined)} under the same conditions, found none; "
            "--reference=alexnet --mismatch=label divides by AlexNet's and marks the numbers"
        )
    values.insert(0, CLEAN, table[table.benchmark == CLEAN].set_index("model")["mean"].loc[models])
    means = rows[rows.corruption == MEAN].set_index("model").loc[models]
    by, spread = means.iloc[0][["reference", "mismatch"]], balance(values[MEAN].to_numpy()[1:])
    return BalanceTable(benchmark, severities, measure, *by, values, means.se, spread)


def balance_text(table: BalanceTable) -> str:
    """Writes a table as Markdown: a row for each model, in whole percent as printed."""
    by = f" by {table.reference}" if table.reference != NONE else ""
    mark = "†" if table.mismatch != NONE else ""
    cells = table.values.map(lambda value: fixed(value, 0))
    cells[CLEAN] = [fixed(value, 1) for value in table.values[CLEAN]]
    cells[MEAN] = [with_error(*pair) for pair in zip(table.values[MEAN], table.se, strict=True)]
    short = [name.rpartition("/")[2] for name in cells.columns[1:-1]]
    cells.columns = ["clean error", *short, "mean" if table.measure == MEAN_ERROR else "mCE"]
    cells.insert(0, "trained with", [name.rpartition("/")[2] for name in cells.index])
    head = f"{table.benchmark}, {table.severities}: {TITLES[table.measure]} in percent{by}{mark}"
    return f"{head}\n\n{frames.markdown(cells)}"


def spread_text(tables: Sequence[BalanceTable]) -> str:
    """Writes the spreads of several benchmarks side by side, as Markdown."""
    columns = ["benchmark", "models", "mean", "standard deviation", "with n - 1", "range"]
    rows = [[table.benchmark, len(table.values) - 1, *(fixed(value, 1) for value in table.spread)] for table in tables]
    head = "Spread of the means of the models, without the standard one: smaller is better balanced."
    return f"{head}\n\n{frames.markdown(pd.DataFrame(rows, columns=columns))}"
