"""What an overlap study shows: every table and figure, derived from which test images each model answers correctly."""

import dataclasses

import numpy as np

from analysis import accuracies, figures, tables
from analysis.comparison import mixtures
from analysis.overlap import bootstrap, overlap_matrix
from analysis.overlap.files import write_overlap, write_overlap_long
from analysis.selection import algorithm, coverage
from analysis.selection.benchmark import select_benchmark
from analysis.selection.text import coverage_text
from analysis.tables import CLEAN, RANDOM, STANDARD
from runtime import workdirs

RESAMPLES = 1000


def write_results(path, correctness, names, *, dataset, num_classes, threshold, comment):
    """Writes every table and figure of a study, and prints them.

    Args:
      path: workdir, a `pathlib.Path`.
      correctness: {corruption: {(model, seed): bool [N]}} of clean images and of each of `names` at random severities,
        of models trained with `standard` and with each of `names`.
      names: qualified names of the corruptions.
      dataset: its name, for titles.
      num_classes: of the dataset.
      threshold: largest overlap within the selected benchmark.
      comment: the line at the head of every table.

    Returns:
      `analysis.overlap.Overlap`.
    """
    tables.write_counts(path / "counts.csv", _count_rows(correctness), comment)
    counts = tables.read_counts(path / "counts.csv")
    accuracies.write_scores(path / "scores.csv", counts, comment)
    accuracy, number, seeds = accuracies.accuracies(counts, names)
    overlap = overlap_matrix(accuracy, names=names, number=number, num_classes=num_classes)
    write_overlap(path / "overlap.csv", names, overlap.overlap, comment)
    resampled = bootstrap.bootstrap(_bits(correctness, names, seeds), resamples=RESAMPLES)
    # All models saw the same images: resampling them has smaller errors than answers taken as independent.
    between = overlap_matrix(accuracy, names=names).se if len(seeds) > 1 else 0.0  # the jackknife over seeds alone
    se = np.hypot(resampled.se, between)
    write_overlap_long(path / "overlap_long.csv", dataclasses.replace(overlap, se=se), comment)
    title = f"Overlap of {len(names)} corruptions on {dataset}"
    heatmap = figures.heatmap(
        overlap.overlap, names, flags=overlap.flags, se=se, title=title, provenance=comment, cluster=True
    )
    figures.save(heatmap, path / "overlap")
    _print_matrix(overlap, se)
    benchmark = select_benchmark(path / "overlap.csv", threshold, sweep=True)
    _write_stability(path, names, benchmark["members"], resampled, threshold)
    if 0 < len(benchmark["members"]) < len(names):
        covered = coverage.coverage(overlap.unclipped, names, benchmark["members"], samples=resampled.unclipped)
        print("\n" + coverage_text(covered, benchmark["members"], 0.0))
    return overlap


def write_mixtures(path, correctness, members, comment):
    """Writes mixtures.csv, what training on a whole benchmark brings on each corruption, and prints it.

    Args:
      path: workdir.
      correctness: as `write_results` takes it, of `standard` and of the mixtures.
      members: {mixture: names of its corruptions}.
      comment: the line at the head of the table.
    """

    def mean_over_seeds(model):
        return {
            corruption: np.mean([bits for (name, _), bits in by_model.items() if name == model], axis=0)
            for corruption, by_model in correctness.items()
        }

    gains_of = mixtures.write_mixtures(
        path / "mixtures.csv",
        mean_over_seeds(STANDARD),
        {mixture: mean_over_seeds(mixture) for mixture in members},
        members,
        comment,
    )
    for mixture, gains in gains_of.items():
        print(f"\n{mixture}: relative CE, gain over the standard model (which has 100)")
        for name, gain in gains.relative.items():
            inside = "in the mixture" if name in members[mixture] else ""
            print(f"  {name:34s} {gain.model:6.1f}  {gain.gain:6.1f} +- {gain.se:.1f}   {inside}")
        mean = gains.relative_mce
        print(f"  {'mean':34s} {mean.model:6.1f}  {mean.gain:6.1f} +- {mean.se:.1f}")


def _count_rows(correctness):
    """Rows of counts.csv."""
    return [
        (model, seed, corruption, 0 if corruption == CLEAN else RANDOM, int(bits.sum()), int(bits.size))
        for corruption, by_model in correctness.items()
        for (model, seed), bits in by_model.items()
    ]


def _bits(correctness, names, seeds):
    """Correctness [seeds, models, conditions, images], standard and clean first."""
    models, conditions = (STANDARD, *names), (CLEAN, *names)
    return np.array([[[correctness[c][m, seed] for c in conditions] for m in models] for seed in seeds])


def _write_stability(path, names, members, resampled, threshold):
    """How often each corruption is selected when test images are resampled: stability.json, and printed."""
    stability = algorithm.stability(resampled.samples, names, threshold, unclipped=resampled.unclipped)
    workdirs.write_json(
        path / "stability.json",
        {
            "resamples": stability.resamples,
            "members": stability.members,
            "sets": stability.sets[:20],
            "sizes": stability.sizes,
        },
    )
    print(f"\nselected under {stability.resamples} resamples of the test images:")
    for name in sorted(names, key=lambda name: -stability.members.get(name, 0)):
        percent = 100 * stability.members.get(name, 0)
        print(f"  {percent:5.1f} %  {name}{'  (selected)' if name in members else ''}")


def _print_matrix(overlap, se):
    """Prints the matrix, with standard errors of resampling, and the scores behind it."""
    names = overlap.names
    width = max(len(name) for name in names)
    print(f"\n{'':{width}}  clean acc.   R std.  R own    gain   flag")
    print(f"{STANDARD:{width}}  {overlap.clean_accuracy[0]:10.3f}")
    for k, name in enumerate(names):
        print(
            f"{name:{width}}  {overlap.clean_accuracy[k + 1]:10.3f}  {overlap.robustness[0, k]:7.3f} "
            f"{overlap.robustness[k + 1, k]:6.3f}  {overlap.gain[k]:6.3f}   {overlap.flags[k]}"
        )
    middle = np.nanmedian(se[~np.eye(len(se), dtype=bool)])
    print(f"\noverlap (median standard error {middle:.3f}, from resampling test images):")
    print(f"{'':{width}} " + " ".join(f"{k:4d}" for k in range(len(names))))
    for k, name in enumerate(names):
        cells = ("   -" if k == j else f"{value:4.2f}" for j, value in enumerate(overlap.overlap[k]))
        print(f"{name:{width}} " + " ".join(cells) + f"  {k}")
    print()
