"""Several models, of one workdir or more, and several benchmarks in one table: Markdown, CSV and LaTeX."""

import math
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis import answers, frames
from analysis.errors import reference as named
from analysis.errors.reference import LABEL, LISTED, NONE, ORIGINAL, REFUSE, Choice, Conditions, choose
from analysis.errors.scores import OTHERS, UNDEFINED, ImageErrors
from analysis.errors.summary import COLUMNS, GAP, LEVEL, MEASURES, TITLES, Summary, clearly_best, compare, score
from analysis.frames import CLEAN, with_error
from runtime.artifacts import read_record, short
from runtime.files import shown, write_atomically
from runtime.workdirs import read_config

MEASURED = (*MEASURES, GAP)
_WITHOUT_MODELS = ("seed", "eval", "adapt", "calibrate", "msd", "search", "imports")
"""Settings that do not tell apart how models were trained."""
Column = tuple[str, str, str]
"""(benchmark, severities, measure)."""
_TITLES = {
    "imagenet_c": "ImageNet-C",
    "imagenet_noc": "ImageNet-NOC",
    "imagenet_c_bar": "C-bar",
    "cifar10_c_bar": "C-bar",
}


class Evaluated(NamedTuple):
    """A workdir that was evaluated.

    Attributes:
      folder, name: of the workdir, and its label; the names of a table are distinct.
      errors, conditions: counts and answers, and the conditions of the errors.
      stored: whether the images are a corrupted dataset on disk.
      recipe: settings that the models were made with, but for seeds and folders; None where the workdir has none.
      source, notes: device and revision, and sentences on seeds under other conditions, for the caption.
    """

    folder: pathlib.Path
    name: str
    errors: ImageErrors
    conditions: Conditions
    stored: bool
    source: str
    recipe: Mapping | None = None
    notes: tuple[str, ...] = ()


class Joint(NamedTuple):
    """A table of models and benchmarks."""

    models: tuple[str, ...]  # labels of the rows
    columns: tuple[Column, ...]  # (benchmark, severities, measure) of each
    cells: Mapping[tuple[str, Column], Summary]  # {(model, column): its `Summary`}
    best: Mapping[Column, str]  # {column: the model that is clearly better than all others}
    caption: tuple[str, ...]  # sentences that say what the numbers are and where they come from


def read(folder: pathlib.Path, name: str) -> Evaluated:
    """Reads an evaluated workdir, or a folder of `corruptions.evaluate`.

    Raises SettingsError where its evaluation imported a module that this process has not imported, and
    FileNotFoundError or ValueError where nothing was evaluated, it does not say under which conditions, or its answers
    are damaged.
    """
    found = answers.read(folder)
    stored = folder / "evaluation.json"
    record = read_record(stored, by_hand=True) if stored.is_file() else {}
    made_by = record.get("provenance", {})
    revision = str(made_by.get("git_revision", "not recorded"))
    device = made_by.get("device", "device not recorded")
    source = found.source or f"{device}, revision {short(revision)}{found.credit(revision)}"
    return Evaluated(
        folder, name, ImageErrors.of(found), named.conditions_of(folder, found), found.stored, source, _recipe(folder)
    )


def _recipe(folder):
    """The settings of a workdir that its models depend on, without their seeds."""
    if not (folder / "config.json").is_file():
        return None
    recipe = {name: of for name, of in read_config(folder).items() if name not in _WITHOUT_MODELS}
    study, dataset = (recipe.get(name, {}) for name in ("study", "dataset"))
    recipe["study"] = {name: value for name, value in study.items() if name not in ("seeds", "parallel", "threshold")}
    recipe["dataset"] = {name: value for name, value in dataset.items() if name not in ("data_dir", "placement")}
    return recipe


def read_all(folders: Sequence[pathlib.Path]) -> list[Evaluated]:
    """Reads evaluated workdirs under names that tell them apart."""
    return [read(*pair) for pair in zip(folders, names(folders), strict=True)]


def over_seeds(evaluated: Sequence[Evaluated], name: str) -> Evaluated:
    """Puts workdirs with the same models, each of another seed, together as one, called `name`. Conditions that differ
    from the first's become its notes.
    """
    first, *rest = evaluated
    errors = ImageErrors.union(workdir.errors for workdir in evaluated)
    source = "; ".join(dict.fromkeys(workdir.source for workdir in evaluated))
    folder = first.folder.parent if rest else first.folder
    notes = tuple(check_same(evaluated, LABEL))
    return first._replace(folder=folder, name=name, errors=errors, source=source, notes=notes)


def joint(
    evaluated: Sequence[Evaluated],
    *,
    reference: str = "",
    mismatch: str = REFUSE,
    measures: Sequence[str] = MEASURED,
    benchmarks: Sequence[str] = (),
    models: Sequence[str] = (),
) -> Joint:
    """Puts models and benchmarks together.

    `evaluated` are workdirs; those with other conditions than the first are refused, or labelled. `reference` and
    `mismatch` are as in `reference.choose`, `measures` some of `MEASURED`. `benchmarks` and `models` keep only these,
    () all; clean images always stay. Raises ValueError where conditions differ, or nothing is left for the table.
    """
    notes = [note for workdir in evaluated for note in workdir.notes] + check_same(evaluated, mismatch)
    cells: dict[tuple[str, Column], Summary] = {}
    alone: dict[str, None] = {}
    undefined = False
    choices = [choose(reference, mismatch, workdir.conditions) for workdir in evaluated]
    for workdir, choice in zip(evaluated, choices, strict=True):
        of_corruptions, summaries = score(workdir.errors, choice, workdir.conditions, stored=workdir.stored)
        alone |= dict.fromkeys(row.corruption for row in of_corruptions if row.benchmark == OTHERS)
        for summary in summaries:
            asked_for = summary.benchmark == CLEAN or summary.benchmark in benchmarks or not benchmarks
            column = (summary.benchmark, summary.severities, summary.measure)
            if (models and summary.model not in models) or not asked_for:
                continue
            if math.isnan(summary.mean):
                undefined |= (
                    summary.reference != NONE and summary.measure == "relative_mCE" and summary.measure in measures
                )
                continue
            if summary.benchmark == CLEAN or summary.measure in measures:
                label = summary.model if len(evaluated) == 1 else f"{workdir.name}:{summary.model}"
                cells[label, column] = summary
    if not cells:
        asked = [", ".join(names) or "of any name" for names in (models, benchmarks)]
        raise ValueError(
            f"expected models {asked[0]} and benchmarks {asked[1]} in {', '.join(str(workdir.folder) for workdir in evaluated)}, found none"
        )
    rows = tuple(dict.fromkeys(model for model, _ in cells))
    columns = tuple(sorted(dict.fromkeys(column for _, column in cells), key=_order))
    # Equal digests mean that two workdirs showed the same images under a condition.
    shown = {workdir.name: {cell[2:]: digest for cell, digest in workdir.errors.shown.items()} for workdir in evaluated}
    best, untested, tests = _best(rows, columns, cells, shown)
    if alone and not benchmarks:
        notes.append(
            f"Without a column, because none of their benchmarks was evaluated completely: {', '.join(alone)}; a table by corruption "
            "(--by=corruption) has them."
        )
    notes += [UNDEFINED] if undefined else []
    caption = (*_caption(evaluated, cells, choices), *notes, *_tested(best, untested, tests, rows))
    return Joint(rows, columns, cells, best, caption)


def names(folders: Iterable[pathlib.Path]) -> list[str]:
    """Names workdirs by their last parts, as few as tell them apart."""
    paths = [folder.resolve() for folder in folders]
    for parts in range(1, max((len(path.parts) for path in paths), default=0) + 1):
        labels = [frames.as_name("/".join(path.parts[-parts:])) for path in paths]
        if len(set(labels)) == len(labels):
            return labels
    raise ValueError(f"expected every workdir once, found {', '.join(map(str, paths))}")


def check_same(evaluated: Sequence[Evaluated], mismatch: str) -> list[str]:
    """Names the workdirs that were measured under other conditions than the first.

    Raises ValueError if there are some and `mismatch` is not `label`, or they show other test images, by a list.
    """
    notes, first = [], evaluated[0].conditions
    for workdir in evaluated[1:]:
        if different := named.unlike(first, workdir.conditions):
            listed = "; ".join(different.values())
            notes.append(f"{workdir.name} was measured under other conditions than {evaluated[0].name}: {listed}")
    lists = {LISTED in workdir.conditions.dataset and workdir.conditions.dataset for workdir in evaluated}
    if notes and (mismatch != LABEL or len(lists) > 1):
        raise ValueError("\n  ".join(["expected workdirs measured under the same conditions, found others:", *notes]))
    return notes


def _order(column):
    benchmark, severities, measure = column
    order = (CLEAN, "imagenet_c", "imagenet_noc", "imagenet_c_bar", "cifar10_c_bar")
    rank = order.index(benchmark) if benchmark in order else len(order)
    return rank, benchmark, severities, MEASURED.index(measure)


def _best(rows, columns, cells, shown):
    """({column: clearly best model}, columns that could not be tested, the tests that were used)."""
    best, untested, tests = {}, [], {}
    for column in columns:
        values_of = {model: cells[model, column].by_seed for model in rows if (model, column) in cells}
        if len(values_of) < 2:
            continue
        compared = compare(values_of) if _same_images(values_of, shown) else None
        if compared is None:
            untested.append(column)
            continue
        tests |= dict.fromkeys(difference.test for difference in compared.values())
        if name := clearly_best(values_of, compared):
            best[column] = name
    return best, untested, tuple(tests)


def _same_images(models, shown):
    """Tells whether all rows have the same images under the conditions that they share."""
    of = [shown[name] for name in shown if any(model.startswith(f"{name}:") for model in models)]
    for other in of[1:]:
        shared = of[0].keys() & other.keys()
        if not shared or any(not of[0][key] or of[0][key] != other[key] for key in shared):
            return False
    return True


def _caption(evaluated, cells, choices: Sequence[Choice]):
    conditions = evaluated[0].conditions
    totals = sorted({count.total for workdir in evaluated for count in workdir.errors.counts.values()})
    side = "x".join(map(str, conditions.image_shape[:2]))
    yield (
        f"Top-1 errors in percent on {conditions.dataset or 'a dataset that is not named'}, {side} pixels, "
        f"{' to '.join(f'{n:,}' for n in dict.fromkeys((totals[0], totals[-1])))} images, mean ± standard error over "
        "test images (std between seeds)."
    )
    references = sorted({cell.reference for cell in cells.values()} - {NONE})
    if references:
        yield f"CE relative to {' and '.join(references)}; the reference's own sampling error is not counted."
    frost = sorted({cell.frost.replace("_", " ") for cell in cells.values()} - {NONE, ORIGINAL})
    if frost:
        yield f"Frost: {', '.join(frost)}, not ImageNet-C's photographs."
    if any(column[2] == GAP for _, column in cells):
        yield "Gap: mean error on C-bar minus that on ImageNet-C."
    yield from dict.fromkeys(
        f"{sentence[0].upper()}{sentence[1:]}." for choice in choices for sentence in choice.sentences()
    )
    yield from named.versions(*(workdir.conditions for workdir in evaluated))
    yield "From " + "; ".join(f"{shown(str(workdir.folder))} ({workdir.source})" for workdir in evaluated) + "."


def _tested(best, untested, tests, rows):
    if len(rows) < 2:
        return
    by = f" by {', or '.join(tests)}" if tests else ""
    yield (
        "Bold: smaller than each other model's, paired on the same test images, Holm-corrected over all pairs of a "
        f"column, p < {LEVEL:g}{by}{'' if best else '; in no column'}."
    )
    if untested:
        listed = ", ".join(f"{benchmark} {measure}" for benchmark, _, measure in untested)
        yield f"Not tested, because answers to the same images are missing: {listed}."


def markdown(table: Joint) -> str:
    """Writes the table and its caption; numbers that hold for other conditions than their reference have a †."""
    sentences = map(frames.markdown_escaped, _sentences(table))
    lines = [frames.markdown(*_texts(table)), "", *(f"{line}  " for line in sentences)]
    return "\n".join(lines).rstrip() + "\n"


def latex(table: Joint) -> str:
    """Writes a table of LaTeX with booktabs, caption included."""
    texts, bold = _texts(table)
    return frames.latex(texts, " ".join(_sentences(table)), bold)


def frame(table: Joint) -> pd.DataFrame:
    """Makes the frame of table.csv: a row for each cell."""
    rows = (
        (model, *table.cells[model, column][1:-1], int(table.best.get(column) == model))
        for column in table.columns
        for model in table.models
        if (model, column) in table.cells
    )
    return frames.of_rows(rows, (*COLUMNS, "best"))


def write(folder: pathlib.Path, table: Joint) -> list[pathlib.Path]:
    """Writes table.md, table.csv and table.tex into a folder; returns their paths."""
    paths = [folder / f"table.{kind}" for kind in ("md", "csv", "tex")]
    write_atomically(paths[0], markdown(table))
    frames.write(paths[1], frame(table), " ".join(table.caption))
    write_atomically(paths[2], latex(table))
    return paths


def _texts(table):
    """(The cells as text, a row for each model; which of them are bold)."""
    titles = ["model", *(_title(column, table) for column in table.columns)]
    rows = [[model, *(_cell(table, model, column) for column in table.columns)] for model in table.models]
    bold = [[False, *(table.best.get(column) == model for column in table.columns)] for model in table.models]
    return pd.DataFrame(rows, columns=titles), np.array(bold)


def _title(column: Column, table: Joint) -> str:
    benchmark, severities, measure = column
    if benchmark == CLEAN:
        return "clean error"
    kinds = {other for name, other, _ in table.columns if name == benchmark}
    kind = f" ({severities})" if len(kinds) > 1 else ""
    name = _TITLES.get(benchmark, benchmark)
    return f"{name}{kind} minus ImageNet-C" if measure == "gap" else f"{name}{kind} {TITLES[measure]}"


def _cell(table, model, column):
    if (model, column) not in table.cells:
        return "\N{EN DASH}"
    cell = table.cells[model, column]
    text = with_error(cell.mean, cell.se).replace("\N{NO-BREAK SPACE}", " ")
    text += f" ({cell.std:.2g})" if cell.std == cell.std else ""
    return text + ("†" if cell.mismatch != NONE else "")


def _sentences(table):
    marked = sorted({cell.mismatch for cell in table.cells.values()} - {NONE})
    return [*table.caption, *(["† Measured under other conditions than the reference."] if marked else [])]
