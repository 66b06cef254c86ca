"""The tables and figures of an overlap study, derived from which test images each model answers
correctly.
"""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np

from analysis import accuracies, answers, figures, heatmaps, tables
from analysis.comparison import mixtures
from analysis.overlap import Overlap, overlap_matrix
from analysis.overlap.errors import standard_errors
from analysis.overlap.files import write_overlap, write_overlap_long
from analysis.overlap.text import overlap_text
from analysis.selection import algorithm
from analysis.selection.benchmark import select_benchmark
from analysis.selection.coverage import coverage
from analysis.selection.text import coverage_text, stability_text
from analysis.tables import CLEAN, RANDOM, STANDARD
from runtime import workdirs
from runtime.log import log

Correctness = Mapping[str, Mapping[tuple[str, int], np.ndarray]]  # {corruption: {(model, seed): bool [N]}}
_LISTED_SETS = 20  # most frequent sets that stability.json holds


def write_results(
    path: pathlib.Path,
    correctness: Correctness,
    names: Sequence[str],
    *,
    dataset: str,
    num_classes: int,
    threshold: float,
    comment: str,
) -> Overlap:
    """Writes every table and figure of a study, and prints them.

    Writes counts.csv, scores.csv, overlap.csv, overlap_long.csv, overlap.png and .pdf; and, where
    an overlap is defined, benchmark.json and stability.json.

    Args:
      path: workdir.
      correctness: {corruption: {(model, seed): bool [N]}} of clean images and of each of `names` at
        random severities, of models trained with `standard` and with each of `names`.
      names: qualified names of the corruptions.
      dataset: its name, for titles.
      num_classes: of the dataset.
      threshold: largest overlap between two members of the selected benchmark.
      comment: the line at the head of every table.

    Raises:
      ValueError: a model or corruption is missing.
    """
    shown = {(name, 0 if name == CLEAN else RANDOM): by_model for name, by_model in correctness.items()}
    counts = answers.count_correct(shown)
    tables.write_counts(path / "counts.csv", counts, comment)
    accuracies.write_scores(path / "scores.csv", counts, comment)
    accuracy, number, seeds = accuracies.accuracies(counts, names)
    overlap = overlap_matrix(accuracy, names=names, number=number, num_classes=num_classes)
    errors = standard_errors(accuracy, number, _bits(correctness, names, seeds))
    write_overlap(path / "overlap.csv", names, overlap.overlap, comment)
    write_overlap_long(path / "overlap_long.csv", dataclasses.replace(overlap, se=errors.overlap), comment)
    heatmap = heatmaps.heatmap(
        overlap.overlap,
        names,
        flags=overlap.flags,
        se=errors.overlap,
        title=f"Overlap of {len(names)} corruptions on {dataset}",
        provenance=comment,
        cluster=True,
    )
    figures.save(heatmap, path / "overlap")
    print(f"\n{overlap_text(overlap, errors.overlap)}\n")

    _write_selection(path, names, overlap, errors.unclipped_samples, threshold)
    return overlap


def write_mixtures(
    path: pathlib.Path, correctness: Correctness, members: Mapping[str, Sequence[str]], comment: str
) -> None:
    """Writes mixtures.csv, what training on a whole benchmark brings on each corruption, and prints
    it.

    Args:
      path: workdir.
      correctness: as `write_results` takes it, of `standard` and of the mixtures.
      members: {mixture: names of its corruptions}.
      comment: the line at the head of the table.
    """
    by_model = {model: _mean_over_seeds(correctness, model) for model in (STANDARD, *members)}
    gains = mixtures.write_mixtures(path / "mixtures.csv", by_model.pop(STANDARD), by_model, members, comment)
    for mixture, comparison in gains.items():
        print(f"\n{mixtures.mixture_text(mixture, comparison, members[mixture])}")


def _write_selection(path, names, overlap, samples, threshold):
    """Writes benchmark.json and stability.json and prints them; where no candidate can be selected,
    says so instead.
    """
    if algorithm.undefined(overlap.overlap).all():
        for name in ("benchmark.json", "stability.json"):  # of an earlier run
            (path / name).unlink(missing_ok=True)
        log.warning(
            "No benchmark is selected: no overlap is defined, for no model gains on the corruption it was trained with "
            "(see the flags). Train longer, or on more images."
        )
        return
    members = select_benchmark(path / "overlap.csv", threshold, sweep=True)["members"]
    stability = algorithm.stability(np.maximum(samples, 0), names, threshold, unclipped=samples)
    content = dataclasses.asdict(stability) | {"sets": stability.sets[:_LISTED_SETS]}
    workdirs.write_json(path / "stability.json", content)
    print(f"\n{stability_text(stability, names, members)}")
    if 0 < len(members) < len(names):
        covered = coverage(overlap.unclipped, names, members, samples=samples)
        print(f"\n{coverage_text(covered, members, 0.0)}")


def _bits(correctness, names, seeds):
    """Correctness [seeds, models, conditions, images], standard and clean first."""
    models, conditions = (STANDARD, *names), (CLEAN, *names)
    return np.array([[[correctness[c][m, seed] for c in conditions] for m in models] for seed in seeds])


def _mean_over_seeds(correctness, model):
    """{corruption: fraction of the seeds of `model` that answer each image correctly [N]}."""
    return {
        corruption: np.mean([bits for (name, _), bits in by_model.items() if name == model], axis=0)
        for corruption, by_model in correctness.items()
    }
