"""A study of a table of models: what predicts natural robustness, as frames, as Markdown, and as files.

natural_shift.md                                      the tables as printed
predictions.csv, benchmarks.csv, clean.csv, together.csv, lines.csv, leaders.csv, effects.csv
section.json                                          the section of a report on the workdir above this folder
provenance.json                                       where the files come from
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from analysis import frames
from analysis.correlation import draw
from analysis.frames import CLEAN, NATURAL, fixed, percent
from analysis.selection.nk_benchmarks import Clusters
from projects.natural_shift import prediction
from projects.natural_shift.benchmarks import compare_benchmarks, leaders
from projects.natural_shift.prediction import p_value
from projects.natural_shift.sources import Table
from runtime import files
from runtime.files import write_atomically, write_json

TITLES = {
    "imagenet_v2": "ImageNet-V2",
    "imagenet_a": "ImageNet-A",
    "imagenet_r": "ImageNet-R",
    "imagenet_sketch": "ImageNet-Sketch",
    "objectnet": "ObjectNet",
    "cifar10_1": "CIFAR-10.1",
    "cinic10": "CINIC-10",
    "imagenet_real": "ImageNet ReaL",
    "vid_robust": "ImageNet-Vid-Robust",
    "ytbb_robust": "YTBB-Robust",
}
UNITS = "drop r, clean as a fraction"
_UNITS_NOTE = (
    f"“{UNITS}” repeats an error of the published code: clean accuracy counts from 0 to 1 and the others in percent, so "
    "clean accuracy is hardly subtracted, and r is nearly the correlation of the accuracies themselves. For comparison with its numbers "
    "only."
)
_MEAN = "mean"  # the benchmark: mean over its corruptions
_PARTIAL, _RESIDUAL = "partial r given clean accuracy", "r of residuals, same classes"
_NOTES = (
    f"“{_PARTIAL}”: both logits after lines in the logit of the accuracy on all clean images. “{_RESIDUAL}”: the shift after "
    "the line in the accuracy on clean images of its own classes, the benchmark after the line in all clean images; this is "
    "no partial correlation. “p” is of drop r = 0 by Student's t: it takes models for independent, and is not corrected for the "
    "number of shifts."
)


class Study(NamedTuple):
    """Results of a table; frames that the table does not allow are empty."""

    source: str
    models: int
    complete: int  # models with all accuracies that are compared
    standard: int  # models that lines are fitted to
    shown: int  # models whose effective robustness is compared
    shifts: tuple[str, ...]  # natural ones
    members: tuple[str, ...]  # corruptions of the benchmark
    resamples: int
    clean: pd.DataFrame  # this one to `predictions`: see `prediction`
    together: pd.DataFrame
    lines: pd.DataFrame
    predictions: pd.DataFrame = pd.DataFrame()
    leaders: pd.DataFrame = pd.DataFrame()  # this one to `effects`: see `benchmarks`
    bins: pd.DataFrame = pd.DataFrame()
    effects: pd.DataFrame = pd.DataFrame()
    categories: tuple[tuple[str, ...], ...] = ()  # categories of the members; empty if unknown


def study(
    table: Table,
    shifts: Sequence[str] = (),
    benchmark: Sequence[str] = (),
    clusters: Clusters = (),
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> Study:
    """Compares predictors of natural robustness.

    `shifts` and `benchmark` are as in `Table.shifts` and `Table.members`; `clusters` are categories of the corruptions,
    for (n, k) benchmarks; () compares none. The intervals are over `resamples` resamples of the models, `seed` is that
    of all draws. Raises ValueError for names that the table lacks, fewer than 4 models, or categories of other
    corruptions.
    """
    shifts, members = table.shifts(shifts), table.members(benchmark)
    if clusters and sorted(members) != sorted(name for cluster in clusters for name in cluster):
        raise ValueError(f"expected categories of the benchmark's {len(members)} corruptions, found others")
    complete = table.complete(shifts, members)
    weights = draw(len(complete), resamples, seed)
    of_complete = draw(int(complete.sum()), resamples, seed)  # resamples only the complete models
    numbers = [len(complete), *(int(chosen.sum()) for chosen in (complete, table.standard, table.shown))]
    result = Study(
        *(table.source, *numbers, shifts, members, resamples),
        clean=prediction.from_clean(table, shifts, complete, of_complete),
        together=prediction.together(table, shifts, complete, of_complete),
        lines=prediction.lines(table, shifts),
    )
    if not members:
        return result
    benchmarks = {_MEAN: table.mean(members)} | {name: table[name] for name in members}
    drops = {name: (table[CLEAN] - table[name])[complete] for name in members}
    natural = {shift: (table[CLEAN] - table[NATURAL + shift])[complete] for shift in shifts}
    result = result._replace(
        predictions=prediction.predict(table, benchmarks, shifts, complete, weights, of_complete),
        leaders=leaders(drops, natural, of_complete),
    )
    if not clusters:
        return result
    bins, effects = compare_benchmarks(drops, natural, clusters, of_complete, seed=seed)
    return result._replace(categories=tuple(map(tuple, clusters)), bins=bins, effects=effects)


def text(study: Study, published_units: bool = False) -> str:
    """Writes all tables of a study as Markdown; `published_units` adds the correlations with the published code's error."""
    parts = [*_facts(study), *_clean_parts(study)]
    if len(study.predictions):
        notes = [_UNITS_NOTE] if published_units else []
        parts += [
            "## The benchmark as predictor\n",
            f"Mean of {len(study.members)} corruptions: {', '.join(map(_short, study.members))}.\n",
            "\n\n".join([frames.markdown(benchmark_rows(study, published_units)), _NOTES, *notes]),
        ]
        measures = {"drop": "drop r", "partial": _PARTIAL, "residual": _RESIDUAL, "effective": "effective robustness"}
        for measure, title in measures.items():
            cells = _cells(study.predictions, "benchmark", "shift", measure)
            cells = cells.loc[list(study.members), list(study.shifts)]
            cells = cells.rename(index=_short, columns=TITLES).rename_axis("corruption").reset_index()
            parts += [f"\n## One corruption as predictor: {title}\n", frames.markdown(cells)]
        best, others = study.leaders.iloc[0], study.leaders.iloc[1:4].itertuples()
        parts.append(
            f"\nBest single predictor by drop r, averaged over the shifts: **{_short(best.corruption)}** {interval(best)}, first "
            f"in {percent(best['first'])} of the resamples; next "
            f"{', '.join(f'{_short(row.corruption)} {fixed(row.value, 2)}' for row in others) or 'none'}."
        )
    if len(study.bins):
        parts += ["\n## Benchmarks of n categories and k corruptions each\n", *_bin_parts(study)]
    return "\n".join(parts)


def _facts(study):
    yield (
        f"{study.source}: {study.models} models, {study.complete} with every accuracy that is compared. 95 % intervals from "
        f"{study.resamples} resamples of the models.\n"
    )
    if study.standard < 2:
        found = f"found {study.standard} (--types names them)"
        yield f"No effective robustness: it takes a line through standard models, {found}.\n"
    if not study.members:
        yield "No corruptions in this table: only clean accuracy is compared with natural shifts.\n"


def _clean_parts(study):
    cells = _cells(study.clean, "shift", "measure", places=3).loc[list(study.shifts), ["pearson", "spearman", "r2"]]
    cells.columns = ["Pearson", "Spearman", "r² of logits, same classes"]
    cells.insert(0, "models", study.complete)
    cells = cells.rename(index=TITLES).rename_axis("shift").reset_index()
    yield f"## Clean accuracy as predictor\n\n{frames.markdown(cells)}\n"
    pairs = [(f"{title(row.first)}, {title(row.second)}", interval(row)) for row in study.together.itertuples()]
    heading = (
        "## Are two shifts one? Correlation of the residuals, each after the line in clean accuracy of its classes"
    )
    yield f"{heading}\n\n{frames.markdown(pd.DataFrame(pairs, columns=['shifts', 'r']))}\n" if pairs else ""
    rows = []
    for row in study.lines.itertuples():
        name = title(row.shift) + (f", {row.part} the pivot" if row.part else "")
        rows.append((name, fixed(row.slope, 4), fixed(row.intercept, 4), fixed(row.r2, 3), row.models, row.dropped))
    header = ["shift", "slope", "intercept", "r²", "models", "left out (0 or 100 %)"]
    of_lines = (
        "## Lines of the standard models\n\nlogit(accuracy under the shift) = slope logit(clean) + intercept over "
        f"{study.standard} standard models; effective robustness is the distance of {study.shown} other models "
        f"from it.\n\n{frames.markdown(pd.DataFrame(rows, columns=header))}\n"
    )
    yield of_lines if study.standard >= 2 else ""


def benchmark_rows(study: Study, published_units: bool = False) -> pd.DataFrame:
    """Makes the table of the benchmark as predictor, text in every cell, a row for each shift."""
    rows = study.predictions[study.predictions.benchmark == _MEAN]
    cells = _cells(rows, "shift", "measure").loc[list(study.shifts)]
    models = rows.pivot(index="shift", columns="measure", values="models").loc[cells.index].astype(str)
    drops = rows[rows.measure == "drop"].set_index("shift").loc[cells.index]
    columns = {
        "shift": [title(shift) for shift in cells.index],
        "models": models["drop"],
        "drop r": cells["drop"],
        "p": [f"{p_value(row.value, row.models):.1g}" for row in drops.itertuples()],
        "drop r, same classes": cells["drop_matched"],
        "Spearman": cells["spearman"],
        _PARTIAL: cells["partial"],
        _RESIDUAL: cells["residual"],
        "effective robustness": cells["effective"],
        "shown": models["effective"],
    }
    return pd.DataFrame(columns | ({UNITS: cells["published_units"]} if published_units else {}))


def _bin_parts(study):
    listed = [(number, ", ".join(map(_short, names))) for number, names in enumerate(study.categories, 1)]
    yield frames.markdown(pd.DataFrame(listed, columns=["category", "corruptions"])).replace("---:", "---") + "\n"
    keys = ["categories", "per_category", "size", "spread", "benchmarks"]
    rows = []
    for (n, k, size, spread, number), part in study.bins.set_index("shift").groupby(keys, sort=False):
        of_shifts = [fixed(part.value[s], 3) for s in study.shifts]
        rows.append((n, k, size, f"{spread:.1f}", number, interval(part.loc[_MEAN]), *of_shifts))
    header = ["categories", "of each", "corruptions", "spread", "benchmarks", "mean r", *map(title, study.shifts)]
    yield frames.markdown(pd.DataFrame(rows, columns=header))
    best, slopes = _best_bin(study), [_slope(row) for row in study.effects.itertuples()]
    yield (
        f"\nBest: {best.categories} categories, {best['size']} corruptions, spread {best.spread:.1f}: mean r "
        f"{interval(best)}. Least-squares plane through these lines: {slopes[0]} for one more "
        f"category, {slopes[1]} for one more corruption, {slopes[2]} for a spread larger by 1."
    )


def _best_bin(study):
    means = study.bins[study.bins["shift"] == _MEAN]
    return means.loc[means.value.idxmax()]


def section(study: Study, figures: Sequence[str] = ()) -> dict[str, Any]:
    """Makes the section of a report, as `analysis.report` takes it from section.json: title, facts, header, rows, figures."""
    clean = study.clean[study.clean.measure == "r2"]
    facts = [
        f"{study.source}: {study.complete} of {study.models} models have every accuracy; 95 % intervals are over "
        f"{study.resamples} resamples of the models. Clean accuracy alone, r² of logits: "
        + ", ".join(f"{title(row.shift)} {fixed(row.value, 3)}" for row in clean.itertuples())
        + "."
    ]
    result = {"title": "Natural shifts", "facts": facts, "header": [], "rows": [], "figures": list(figures)}
    if not len(study.predictions):
        return result
    best = study.leaders.iloc[0]
    facts.append(
        f"Best single corruption, by the correlation of the losses to it and to the shifts: {best.corruption}, "
        f"{interval(best)}, first in {percent(best['first'])} of the resamples."
    )
    if len(study.bins):
        best, slopes = _best_bin(study), [interval(row, places=3) for row in study.effects.itertuples()]
        facts.append(
            f"Best benchmarks: {best.categories} categories, {best['size']} corruptions, spread {best.spread:.1f}, mean r "
            f"{interval(best)}. One more category is worth {slopes[0]}, one more corruption {slopes[1]}, a spread larger by 1 "
            f"{slopes[2]}."
        )
    columns = ["shift", "models", "drop r", "Spearman", _PARTIAL, _RESIDUAL, "effective robustness"]
    rows = benchmark_rows(study)[columns]
    return result | {"header": columns, "rows": rows.to_numpy().tolist()}


def write(
    folder: Path, study: Study, record: Mapping[str, Any], published_units: bool = False, figures: Sequence[str] = ()
) -> None:
    """Writes the files; `record` is the command with its inputs, `figures` are names of figures for the report, which shows
    the section as long as the inputs are the same.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "provenance.json", record)
    predictions = study.predictions
    if len(predictions) and not published_units:
        predictions = predictions[predictions.measure != "published_units"]
    tables = {name: getattr(study, name) for name in ("clean", "together", "lines", "leaders", "effects")}
    tables |= {"predictions": predictions, "benchmarks": study.bins.rename(columns={"value": "r"})}
    for name, frame in tables.items():
        files.remove(folder / f"{name}.csv")  # left by an earlier study with more tables
        if len(frame):
            frames.write(folder / f"{name}.csv", frame, f"{study.source}, {study.resamples} resamples of the models")
    printed = text(study, published_units)
    write_atomically(folder / "natural_shift.md", f"# Natural shifts\n\n{printed}\n\nCommand: `{record['command']}`\n")
    made_from = {os.path.relpath(path, folder.parent): digest for path, digest in record["inputs"].items()}
    write_json(folder / "section.json", section(study, figures) | {"made_from": made_from})


def interval(row: Any, places: int = 2) -> str:
    """Writes value, low and high of a row as `.65 (.54 to .74)`, a dash where undefined."""
    value = fixed(row.value, places)
    return f"{value} ({fixed(row.low, places)} to {fixed(row.high, places)})" if row.low == row.low else value


def title(shift: str) -> str:
    """Writes the usual name of a shift."""
    return TITLES.get(shift, shift)


def _slope(row):
    value, low, high = (fixed(number, 3, sign=True) for number in (row.value, row.low, row.high))
    return f"{value} ({low} to {high})"


def _cells(rows, index, columns, measure="", places=2):
    rows = rows[rows.measure == measure] if measure else rows
    rows = rows.assign(cell=rows.apply(interval, axis=1, places=places))
    return rows.pivot(index=index, columns=columns, values="cell")


def _short(name):
    return name.rpartition("/")[2].replace("_", " ")
