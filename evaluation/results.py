"""The tables of an evaluation: counts.csv, scores.csv and errors.csv, derived from answers."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from analysis import accuracies, derived, scores, tables
from analysis.answers import Key
from analysis.tables import Count
from evaluation.conditions import Condition
from runtime import workdirs
from runtime.provenance import provenance


def write_results(
    path: pathlib.Path,
    answers: Mapping[Condition, Mapping[Key, np.ndarray]],
    settings: Mapping[str, Any],
    source: str,
    num_classes: int,
    models: Mapping[Key, str] | None = None,
) -> list[Count]:
    """Derives the tables from the answers just made and the others that the folder keeps.

    Args:
      path: directory of the tables.
      answers: {condition: {(model, seed): bool [N]}}.
      settings: what was asked for, for evaluation.json.
      source: of the images, for the comment line of the tables.
      num_classes: of the dataset; errors.csv is written for 1000, ImageNet.
      models: {(model, seed): digest} of the models as they are; rows of earlier ones are left out.

    Returns:
      What counts.csv holds then.

    Raises:
      DamagedFileError: answers that cannot be read.
      ValueError: an edited counts.csv with rows whose answers are gone.
    """
    record = provenance()
    workdirs.write_json(path / "evaluation.json", {"eval": settings, "provenance": record})
    counts = derived.recount(path, count_answers(answers), models or {})
    comment = f"{source}, {record['device']}, revision {record['git_revision']}"
    tables.write_counts(path / "counts.csv", counts, comment)
    accuracies.write_scores(path / "scores.csv", counts, comment)
    if num_classes == 1000:  # AlexNet's errors, the normaliser, belong to ImageNet
        accuracies.write_errors(path / "errors.csv", counts, comment=comment)
    return counts


def count_answers(answers: Mapping[Condition, Mapping[Key, np.ndarray]]) -> list[Count]:
    """Counts the correct answers {condition: {(model, seed): bool [N]}}: rows of counts.csv."""
    return [
        tables.check_count((model, seed, condition.corruption, condition.label, int(bits.sum()), int(bits.size)))
        for condition, by_model in answers.items()
        for (model, seed), bits in by_model.items()
    ]


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
