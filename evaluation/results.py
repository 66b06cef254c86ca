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
from analysis.errors.reference import Choice, Conditions, choose, versions
from analysis.errors.scores import ImageErrors
from analysis.errors.summary import errors_frame, score, summary_frame, summary_text
from analysis.frames import Counted
from corruptions.scoring.conditions import Condition
from corruptions.scoring.counts import Count, below_chance
from corruptions.scoring.folder import is_folder
from evaluation.shown import Shown, ShownStored
from runtime import workdirs
from runtime.artifacts import provenance
from runtime.log import log


@dataclasses.dataclass(frozen=True)
class Basis:
    """The conditions of the errors of an evaluation, and the reference that they are divided by."""

    conditions: Conditions  # conditions of the images
    choice: Choice  # the chosen references
    asked: str = ""  # config.eval.reference
    stored: bool = False  # whether the images are a corrupted dataset on disk

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
        """Chooses the reference of `config.eval` before anything is evaluated; arguments as of `conditions_of`, errors
        as of `of`.
        """
        asked, mismatch = config.eval.reference, config.eval.reference_mismatch
        return cls.of(conditions_of(shown, conditions, folder), asked, mismatch, stored=isinstance(shown, ShownStored))

    def record(self) -> dict[str, Any]:
        """Describes conditions and reference, for JSON."""
        choice = self.choice
        names = [reference.name for reference in choice.references]
        reference = {"asked": self.asked, "names": names, "different": choice.different, "unusable": choice.unusable}
        return {"conditions": dataclasses.asdict(self.conditions), "reference": reference}


def conditions_of(
    shown: Shown | ShownStored, conditions: Iterable[Condition], folder: str | os.PathLike | None = None
) -> Conditions:
    """Describes the conditions of the errors in a folder of answers once the test images were shown under these, too."""
    records: list[Record] = [shown.under(condition).record for condition in conditions]
    described = {record.corruption: record.about["described"] for record in records if "described" in record.about}
    return described_with(records[0].about, described, folder)


def described_with(
    about: Mapping[str, Any], described: Mapping[str, Any], folder: str | os.PathLike | None = None
) -> Conditions:
    """Describes the conditions of the errors in a folder of answers, with those that are shown now.

    `about` names the test images, and `described` {corruption: its description}, as in `Record`.
    """
    known = answers.read(folder).conditions["corruptions"] if folder and is_folder(folder) else {}
    unknown = {"dataset": "", "classes": 0, "image_shape": (), "preprocessing": ""}
    names = {key: about.get(key, empty) for key, empty in unknown.items()}
    return Conditions.read(names | {"corruptions": {**known, **described}})


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
) -> list[Counted]:
    """Writes the tables that follow from the answers of a folder; returns the rows of counts.csv.

    Args:
      path: directory of the answers and of the tables.
      settings: settings of the command, see `asked_for`.
      source: source of the images, for the provenance of the tables.
      basis: basis of the errors.
      first: conditions whose rows stand first, in this order.
      printed: print the errors of benchmarks, too.
    """
    path, record = pathlib.Path(path), provenance()
    place = {(c.corruption, c.label): number for number, c in enumerate(first)}
    found = answers.read(path)
    counts = sorted(found.counts, key=lambda row: place.get(row[1][:2], len(place)))
    if (classes := found.conditions["classes"]) > 1:
        for key, count in counts:
            if count.corruption == frames.CLEAN and (words := below_chance(count.correct, count.total, classes)):
                log.warning("%s, seed %d: %s", *key, words)
    comment = f"{source}, {record['device']}, revision {record['git_revision']}"
    comment += found.credit(record["git_revision"])
    comment += "".join(f", {sentence[0].lower()}{sentence[1:-1]}" for sentence in versions(basis.conditions))
    frames.write(path / "counts.csv", frames.of_counts(counts), comment)
    frames.write(path / "scores.csv", frames.scores(counts), comment)
    text = write_errors(path, counts, basis, settings, record, comment)
    if printed:
        print(text)
    return counts


def write_errors(
    path: pathlib.Path,
    counts: Sequence[Counted],
    basis: Basis,
    settings: Mapping[str, Any],
    record: Mapping[str, Any],
    comment: str,
    own: Mapping[str, Iterable[str]] | None = None,
) -> str:
    """Writes errors.csv, errors_summary.csv, and evaluation.json with their conditions; returns the errors as text.

    Args:
      path, basis, settings: as for `write_tables`.
      counts: rows of counts.csv.
      record, comment: the provenance, and the origin of the tables for provenance.json.
      own: {name: corruptions} of benchmarks that are not registered.
    """
    workdirs.write_json(path / "evaluation.json", {"eval": settings, "provenance": record} | basis.record())
    errors = ImageErrors.of(answers.read(path), counts)
    rows, summaries = score(errors, basis.choice, basis.conditions, own, stored=basis.stored)
    frames.write(path / "errors.csv", errors_frame(rows), comment)
    frames.write(path / "errors_summary.csv", summary_frame(summaries), comment)
    return "\n".join([summary_text(summaries, basis.choice), *versions(basis.conditions)])


def count_answers(by_condition: Mapping[Condition, Mapping[Key, np.ndarray]]) -> list[Counted]:
    """Counts the correct answers {condition: {(model, seed): bool [N]}}."""
    return [
        frames.check_count(key, Count.from_correct(condition, bits))
        for condition, by_model in by_condition.items()
        for key, bits in by_model.items()
    ]


def print_scores(counts: Sequence[Counted]) -> None:
    """Prints accuracy and R of every model, averaged over the severities that it was shown, as a table."""
    for (model, seed), of_model in frames.scores(counts).groupby(["model", "seed"]):
        print(f"\n{model}, seed {seed}")
        # All severities show the same images, so their errors do not average out.
        for row in of_model.groupby("corruption", sort=False)[["accuracy", "accuracy_se", "R"]].mean().itertuples():
            numbers = f"accuracy {100 * row.accuracy:6.2f} % +- {100 * row.accuracy_se:.2f}"
            print(f"  {row.Index:34s} {numbers}   R {row.R:.3f}")
