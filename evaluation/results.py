"""The tables of an evaluation: counts.csv, scores.csv and errors.csv, derived from answers."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from analysis import accuracies, scores, tables
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
) -> list[Count]:
    """Adds answers to counts.csv, in place of earlier ones, and derives the other tables from it.

    Args:
      path: directory of the tables.
      answers: {condition: {(model, seed): bool [N]}}.
      settings: what was asked for, for evaluation.json.
      source: of the images, for the comment line of the tables.
      num_classes: of the dataset; errors.csv is written for 1000, ImageNet.

    Returns:
      What counts.csv holds then.
    """
    record = provenance()
    workdirs.write_json(path / "evaluation.json", {"eval": settings, "provenance": record})
    table = path / "counts.csv"
    counts = {row.key: row for row in tables.read_counts(table)} if table.exists() else {}
    for row in count_answers(answers):
        counts[row.key] = row
    comment = f"{source}, {record['device']}, revision {record['git_revision']}"
    tables.write_counts(table, counts.values(), comment)
    accuracies.write_scores(path / "scores.csv", counts.values(), comment)
    if num_classes == 1000:  # AlexNet's errors, the normaliser, belong to ImageNet
        accuracies.write_errors(path / "errors.csv", counts.values(), comment=comment)
    return list(counts.values())


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
