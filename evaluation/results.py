"""The tables of an evaluation: counts.csv, scores.csv and errors.csv, derived from answers."""

import numpy as np

from analysis import accuracies, scores, tables
from runtime import workdirs
from runtime.provenance import provenance


def write_results(path, answers, settings, source, num_classes):
    """Adds the answers to counts.csv, derives the other tables; returns all counts."""
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


def count_answers(answers):
    """Rows of counts.csv: a list of `analysis.tables.Count`.

    Args:
      answers: {condition: {(model, seed): bool [N]}}.
    """
    return [
        tables.check_count((model, seed, condition.corruption, condition.label, int(bits.sum()), int(bits.size)))
        for condition, by_model in answers.items()
        for (model, seed), bits in by_model.items()
    ]


def print_scores(counts):
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
