"""The tables of an evaluation, from the answers of a workdir: counts.csv, scores.csv and errors."""

import dataclasses
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from analysis import answers, frames
from analysis.answers import Key, Record
from analysis.errors.reference import Choice, Conditions, choose
from analysis.errors.scores import ImageErrors
from analysis.errors.summary import errors_frame, score, summary_frame, summary_text
from analysis.frames import Count
from corruptions.scoring.conditions import Condition
from evaluation.shown import Shown, ShownStored
from runtime import workdirs
from runtime.artifacts import provenance


@dataclasses.dataclass(frozen=True)
class Basis:
    """The conditions of the errors of an evaluation, and the reference that they are divided by.

    Attributes:
      conditions: conditions of the images.
      choice: the chosen references.
      asked: `config.eval.reference`.
      stored: whether the images are a corrupted dataset on disk.
    """

    conditions: Conditions
    choice: Choice
    asked: str = ""
    stored: bool = False

    @classmethod
    def of(cls, conditions: Conditions, asked: str, mismatch: str, *, stored: bool = False) -> "Basis":
        """Chooses the reference.

        Raises:
          SettingsError: it holds for other conditions, and `mismatch` is `refuse`.
          FileNotFoundError, ValueError: it cannot be read.
        """
        return cls(conditions, choose(asked, mismatch, conditions), asked, stored)

    @classmethod
    def before(
        cls,
        config: ConfigDict,
        shown: Shown | ShownStored,
        conditions: Iterable[Condition],
        folder: str | os.PathLike | None = None,
    ) -> "Basis":
        """Chooses the reference of `config.eval` before anything is evaluated.

        Args:
          config: config of the command.
          shown: the test images.
          conditions: under which they will be shown.
          folder: workdir, whose answers belong to the tables too.

        Raises:
          SettingsError, FileNotFoundError, ValueError: as `of`.
        """
        eval_settings = config.eval
        return cls.of(
            conditions_of(shown, conditions, folder),
            eval_settings.reference,
            eval_settings.reference_mismatch,
            stored=isinstance(shown, ShownStored),
        )

    def record(self) -> dict[str, Any]:
        """Describes conditions and reference, for JSON."""
        names = [reference.name for reference in self.choice.references]
        choice = {
            "asked": self.asked,
            "names": names,
            "different": self.choice.different,
            "unusable": self.choice.unusable,
        }
        return {"conditions": dataclasses.asdict(self.conditions), "reference": choice}


def conditions_of(
    shown: Shown | ShownStored, conditions: Iterable[Condition], folder: str | os.PathLike | None = None
) -> Conditions:
    """Describes the conditions of the errors in a folder once these conditions are evaluated."""
    kept = pathlib.Path(folder) / answers.FOLDER if folder else None
    content = answers.read(folder).conditions if kept and any(kept.glob("*.npz")) else {"corruptions": {}}
    described = content["corruptions"]
    records: list[Record] = [shown.under(condition).record for condition in conditions]
    for record in records:
        if "described" in record.about:
            described[record.corruption] = record.about["described"]
    names = {key: records[0].about.get(key, empty) for key, empty in _EMPTY.items()}
    return Conditions.read(names | {"corruptions": described})


_EMPTY = {"dataset": "", "classes": 0, "image_shape": (), "preprocessing": ""}


def asked_for(*configs: ConfigDict) -> dict[str, Any]:
    """Lists the settings of a command, for evaluation.json: the `eval` settings of the first config, and the modules
    that all of them import.
    """
    imports = dict.fromkeys(name for config in configs for name in config.get("imports", ()))
    return configs[0].eval.to_dict() | {"imports": tuple(imports)}


def write_tables(
    path: str | os.PathLike,
    settings: Mapping[str, Any],
    source: str,
    basis: Basis,
    *,
    first: Iterable[Condition] = (),
    printed: bool = True,
) -> list[Count]:
    """Writes the tables that follow from the answers of a folder.

    Args:
      path: directory of the answers and of the tables.
      settings: settings of the command, see `asked_for`.
      source: source of the images, for the provenance of the tables.
      basis: basis of the errors.
      first: conditions whose rows stand first, in this order.
      printed: print the errors of benchmarks, too.

    Returns:
      The rows of counts.csv.

    Raises:
      DamagedFileError: answers that cannot be read.
    """
    path, record = pathlib.Path(path), provenance()
    place = {(c.corruption, c.label): number for number, c in enumerate(first)}
    counts = sorted(answers.read(path).counts, key=lambda c: place.get((c.corruption, c.severity), len(place)))
    comment = f"{source}, {record['device']}, revision {record['git_revision']}"
    frames.write(path / "counts.csv", frames.of_counts(counts), comment)
    frames.write(path / "scores.csv", frames.scores(counts), comment)
    text = write_errors(path, counts, basis, settings, record, comment)
    if printed:
        print(text)
    return counts


def write_errors(
    path: pathlib.Path,
    counts: Sequence[Count],
    basis: Basis,
    settings: Mapping[str, Any],
    record: Mapping[str, Any],
    comment: str,
    own: Mapping[str, Iterable[str]] | None = None,
) -> str:
    """Writes errors.csv, errors_summary.csv, and evaluation.json with their conditions; returns the errors as text.

    Args:
      path: directory of the tables, with `answers`.
      counts: rows of counts.csv.
      basis: basis of the errors.
      settings: settings of the command, see `asked_for`.
      record: the provenance.
      comment: where the tables come from, for provenance.json.
      own: {name: corruptions} of benchmarks that are not registered.
    """
    workdirs.write_json(path / "evaluation.json", {"eval": settings, "provenance": record} | basis.record())
    errors = ImageErrors.of(answers.read(path), counts)
    rows, summaries = score(errors, basis.choice, basis.conditions, own, stored=basis.stored)
    frames.write(path / "errors.csv", errors_frame(rows), comment)
    frames.write(path / "errors_summary.csv", summary_frame(summaries), comment)
    return summary_text(summaries, basis.choice)


def count_answers(by_condition: Mapping[Condition, Mapping[Key, np.ndarray]]) -> list[Count]:
    """Counts the correct answers {condition: {(model, seed): bool [N]}}."""
    return [
        frames.check_count(Count(*key, condition.corruption, condition.label, int(bits.sum()), bits.size))
        for condition, by_model in by_condition.items()
        for key, bits in by_model.items()
    ]


def print_scores(counts: Sequence[Count]) -> None:
    """Prints accuracy and R of every model, averaged over the severities that it was shown, as a table."""
    for (model, seed), of_model in frames.scores(counts).groupby(["model", "seed"]):
        print(f"\n{model}, seed {seed}")
        # All severities show the same images, so their errors do not average out.
        for row in of_model.groupby("corruption", sort=False)[["accuracy", "accuracy_se", "R"]].mean().itertuples():
            numbers = f"accuracy {100 * row.accuracy:6.2f} % +- {100 * row.accuracy_se:.2f}"
            print(f"  {row.Index:34s} {numbers}   R {row.R:.3f}")
