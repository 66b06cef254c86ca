"""The tables of an evaluation, derived from answers: counts.csv, scores.csv and errors of every
kind.
"""

import dataclasses
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from analysis import accuracies, derived, scores, tables
from analysis.answers import Key, count_correct
from analysis.errors import files as error_files
from analysis.errors.choice import Choice, choose
from analysis.errors.conditions import Conditions
from analysis.errors.images import ImageErrors
from analysis.errors.text import summary_text
from analysis.tables import Count
from data import Dataset
from evaluation import measured
from evaluation.conditions import Condition
from evaluation.shown import Shown
from runtime import workdirs
from runtime.provenance import provenance


@dataclasses.dataclass(frozen=True)
class Frame:
    """What the errors of an evaluation are measured under, and what they are divided by.

    Attributes:
      conditions: of the images.
      choice: of the reference.
      asked: `config.eval.reference`.
      stored: whether the images are a corrupted dataset on disk.
    """

    conditions: Conditions
    choice: Choice
    asked: str = ""
    stored: bool = False

    @classmethod
    def of(cls, conditions: Conditions, asked: str, mismatch: str, *, stored: bool = False) -> "Frame":
        """Chooses the reference.

        Raises:
          SettingsError: it holds for other conditions, and `mismatch` is `refuse`.
          FileNotFoundError, ValueError: it cannot be read.
        """
        return cls(conditions, choose(asked, mismatch, conditions), asked, stored)

    @classmethod
    def of_dataset(
        cls,
        config: ConfigDict,
        dataset: Dataset,
        shown: Shown,
        conditions: Iterable[Condition],
        folder: pathlib.Path | None = None,
    ) -> "Frame":
        """Chooses the reference of `config.eval` for a dataset's test images, corrupted here.

        Args:
          config: of the command.
          dataset: whose test images are shown.
          shown: its test images.
          conditions, folder: see `measured.of_images`.

        Raises:
          SettingsError, FileNotFoundError, ValueError: as `of`.
        """
        measured_under = measured.of_dataset(dataset, shown.options, conditions, folder)
        return cls.of(measured_under, config.eval.reference, config.eval.reference_mismatch)

    def record(self) -> dict[str, Any]:
        """Tells all of it, for JSON."""
        names = [reference.name for reference in self.choice.references]
        choice = {
            "asked": self.asked,
            "names": names,
            "different": self.choice.different,
            "unusable": self.choice.unusable,
        }
        return {"conditions": dataclasses.asdict(self.conditions), "reference": choice}


def asked_for(*configs: ConfigDict) -> dict[str, Any]:
    """Gives what a command was asked for, for evaluation.json: the `eval` settings of the first
    config, and the modules that all of them import.
    """
    imports = dict.fromkeys(name for config in configs for name in config.get("imports", ()))
    return configs[0].eval.to_dict() | {"imports": tuple(imports)}


def write_tables(
    path: pathlib.Path,
    current: Iterable[Count],
    settings: Mapping[str, Any],
    source: str,
    frame: Frame,
    models: Mapping[Key, str] | None = None,
    *,
    printed: bool = True,
) -> list[Count]:
    """Derives the tables from what was evaluated just now and the other answers that the folder
    keeps.

    Args:
      path: directory of the tables.
      current: counts of what was evaluated just now.
      settings: what was asked for, see `asked_for`.
      source: of the images, for the comment line of the tables.
      frame: of the errors.
      models: {(model, seed): digest} of the models as they are; rows of earlier ones are left out.
      printed: print the errors of benchmarks, too.

    Returns:
      What counts.csv holds then.

    Raises:
      DamagedFileError: answers that cannot be read.
      ValueError: an edited counts.csv with rows whose answers are gone.
    """
    record = provenance()
    counts = derived.recount(path, current, models or {})
    comment = f"{source}, {record['device']}, revision {record['git_revision']}"
    tables.write_counts(path / "counts.csv", counts, comment)
    accuracies.write_scores(path / "scores.csv", counts, comment)
    text = write_errors(path, counts, frame, settings, record, comment)
    if printed:
        print(text)
    return counts


def write_errors(
    path: pathlib.Path,
    counts: Sequence[Count],
    frame: Frame,
    settings: Mapping[str, Any],
    record: Mapping[str, Any],
    comment: str,
    own: Mapping[str, Iterable[str]] | None = None,
) -> str:
    """Writes errors.csv and errors_summary.csv, and evaluation.json with their conditions; gives
    them as text.

    Args:
      path: directory of the tables, with `answers`.
      counts: what counts.csv holds.
      frame: of the errors.
      settings: what was asked for, see `asked_for`.
      record: the provenance.
      comment: first line of the tables.
      own: {name: corruptions} of benchmarks that are not registered.
    """
    workdirs.write_json(path / "evaluation.json", {"eval": settings, "provenance": record} | frame.record())
    errors = ImageErrors.read(path / "answers", counts)
    rows, summaries = error_files.score(errors, frame.choice, frame.conditions, own, stored=frame.stored)
    error_files.write(path, rows, summaries, comment)
    return summary_text(summaries, frame.choice)


def count_answers(answers: Mapping[Condition, Mapping[Key, np.ndarray]]) -> list[Count]:
    """Counts the correct answers {condition: {(model, seed): bool [N]}}: rows of counts.csv."""
    return count_correct({(condition.corruption, condition.label): by_model for condition, by_model in answers.items()})


def print_scores(counts: Sequence[Count]) -> None:
    """Prints accuracy and R of every model, averaged over severities, as a table."""
    models = sorted({(count.model, count.seed) for count in counts})
    names = list(dict.fromkeys(count.corruption for count in counts))
    for model, seed in models:
        print(f"\n{model}, seed {seed}")
        of = {name: [c for c in counts if (c.model, c.seed, c.corruption) == (model, seed, name)] for name in names}
        clean = of[tables.CLEAN][0].correct / of[tables.CLEAN][0].total
        for name, rows in of.items():
            accuracy = np.mean([row.correct / row.total for row in rows])
            # All severities show the same images: their errors are taken to go together.
            error = np.mean([scores.standard_error(row.correct, row.total) for row in rows])
            print(f"  {name:34s} accuracy {100 * accuracy:6.2f} % +- {100 * error:.2f}   R {accuracy / clean:.3f}")
