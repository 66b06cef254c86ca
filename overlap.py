"""The overlap study: train what is missing, evaluate, measure which corruptions overlap, select a benchmark.

    python overlap.py --config=configs/overlap_shapes.py --workdir=runs/overlap_shapes

Trains a standard model and one on each of config.study.corruptions (half of each batch corrupted), shows all of them
the same corrupted test images, and writes counts.csv, scores.csv, overlap.csv (with overlap_long.csv for standard
errors and directed transfers), overlap.png and benchmark.json. Stopped anywhere, the same command continues.
"""

import dataclasses

import numpy as np
from absl import app

import select_noc
from analysis import (
    bootstrap,
    coverage,
    figures,
    matrices,
    mixtures,
    overlap_files,
    selection,
    selection_text,
    tables,
)
from analysis.overlap import overlap_matrix
from training import augment, cli, compiles, data_record, distributed, evaluation, imported, study
from training import mesh as meshes
from training import step as steps
from training import workdir as workdirs
from training.log import log
from training.provenance import summary

# What may differ between runs of one workdir: how much is asked for, not what a result is.
_FREE = (
    *study.FREE, "study", "train.corruption", "eval.corruptions", "eval.severity", "eval.batch_size", "eval.adapt",
    "eval.pseudo_count", "seed", "calibrate", "msd", "adapt", *(f"model.{key}" for key in imported.OPTIONS),
)  # fmt: skip


_RESAMPLES = 1000


def run(config, workdir):
    """Runs the study of `config` in `workdir`; returns its `analysis.overlap.Overlap` (process 0; None in others)."""
    names = evaluation.expand(config.study.corruptions)
    if len(names) < 2:
        raise ValueError(f"expected at least two corruptions in config.study.corruptions, found {names}")
    mesh = meshes.study_mesh(config.train.batch_size, config.study.parallel)
    with workdirs.open_workdir(workdir, config.to_dict(), free=_FREE) as path, compiles.counting() as compiled:
        dataset, train_split, test_split = study.load_data(config, mesh, mixed=True)
        if config.train.mix_in.name:
            data_record.record(path, dataset)
        mixed = tuple(config.study.mixtures)
        benchmarks = tuple(map(augment.benchmark, mixed))
        shown_to_mixtures = evaluation.conditions(benchmarks, evaluation.RANDOM)
        evaluation.warn_of_tables(benchmarks, dataset.image_shape)
        if config.ranges and not (path / "ranges.json").exists():  # for the report; one of calibrate.py stays
            workdirs.write_json(path / "ranges.json", workdirs.read_json(config.ranges))
        trainings = (augment.STANDARD, *names, *mixed)
        models = study.train_models(config, trainings, config.study.seeds, path, dataset, train_split, mesh)
        distributed.on_main(lambda: _write_timing(config, path, models))
        conditions = evaluation.conditions(names, evaluation.RANDOM)
        answers = study.evaluate_models(config, models, conditions, path, test_split, mesh)
        found = distributed.on_main(lambda: write_results(config, path, names, answers, dataset.num_classes))
        if mixed:
            few = {key: model for key, model in models.items() if key[0] in (augment.STANDARD, *mixed)}
            shown = study.evaluate_models(config, few, shown_to_mixtures, path, test_split, mesh)
            distributed.on_main(lambda: write_mixtures(config, path, mixed, shown))
        else:
            distributed.on_main(lambda: (path / "mixtures.csv").unlink(missing_ok=True))  # of an earlier run
        # How often this run compiled the programs all models share: once, where nothing changes their shapes.
        workdirs.write_json(path / "compiles.json", {name: compiled[name] for name in steps.PROGRAMS})
        return found


def _write_timing(config, path, models):
    seconds = study.training_seconds(config, path, list(models))
    workdirs.write_json(path / "timing.json", {"training_seconds": seconds})


def write_results(config, path, names, answers, num_classes):
    """Derives every table and figure from the answers of the models; returns the `Overlap`."""
    comment = _comment(config, path)
    tables.write_counts(path / "counts.csv", study.counts(answers), comment)
    counts = tables.read_counts(path / "counts.csv")
    matrices.write_scores(path / "scores.csv", counts, comment)
    accuracy, number, seeds = matrices.accuracies(counts, names)
    found = overlap_matrix(accuracy, names=names, number=number, num_classes=num_classes)
    overlap_files.write_overlap(path / "overlap.csv", names, found.overlap, comment)
    resampled = bootstrap.bootstrap(_bits(answers, names, seeds), resamples=_RESAMPLES)
    # All models saw the same images: resampling them has smaller errors than answers taken as independent.
    between = overlap_matrix(accuracy, names=names).se if len(seeds) > 1 else 0.0  # the jackknife over seeds alone
    se = np.hypot(resampled.se, between)
    overlap_files.write_overlap_long(path / "overlap_long.csv", dataclasses.replace(found, se=se), comment)
    title = f"Overlap of {len(names)} corruptions on {config.dataset.name}"
    heatmap = figures.heatmap(
        found.overlap, names, flags=found.flags, se=se, title=title, provenance=comment, cluster=True
    )
    figures.save(heatmap, path / "overlap")
    _show(found, se)
    chosen = select_noc.run(path / "overlap.csv", config.study.threshold, sweep=True)
    stable = selection.stability(resampled.samples, names, config.study.threshold, unclipped=resampled.unclipped)
    workdirs.write_json(
        path / "stability.json",
        {"resamples": stable.resamples, "members": stable.members, "sets": stable.sets[:20], "sizes": stable.sizes},
    )
    print(f"\nselected under {stable.resamples} resamples of the test images:")
    for name in sorted(names, key=lambda name: -stable.members.get(name, 0)):
        print(
            f"  {100 * stable.members.get(name, 0):5.1f} %  {name}{'  (selected)' if name in chosen['members'] else ''}"
        )
    if 0 < len(chosen["members"]) < len(names):
        covered = coverage.coverage(found.unclipped, names, chosen["members"], samples=resampled.unclipped)
        print("\n" + selection_text.coverage_text(covered, chosen["members"], 0.0))
    return found


def _comment(config, path):
    """The line at the head of every table."""
    record = workdirs.read_json(path / "provenance.json")
    return f"{config.dataset.name}, {config.model.name}, {config.train.epochs} epochs, {summary(record)}"


def write_mixtures(config, path, names, answers):
    """What training on a whole benchmark brings on each corruption: prints it and writes mixtures.csv."""

    def correctness(model):
        return {
            condition.corruption: np.mean([by_model[model, seed] for seed in config.study.seeds], axis=0)
            for condition, by_model in answers.items()
        }

    found = mixtures.write_mixtures(
        path / "mixtures.csv",
        correctness(augment.STANDARD),
        {name: correctness(name) for name in names},
        {name: augment.members(name) for name in names},
        _comment(config, path),
    )
    for mixture, one in found.items():
        print(f"\n{mixture}: relative CE, gain over the standard model (which has 100)")
        for name, gain in one.relative.items():
            inside = "in the mixture" if name in augment.members(mixture) else ""
            print(f"  {name:34s} {gain.model:6.1f}  {gain.gain:6.1f} +- {gain.se:.1f}   {inside}")
        print(
            f"  {'mean':34s} {one.relative_mce.model:6.1f}  {one.relative_mce.gain:6.1f} +- {one.relative_mce.se:.1f}"
        )


def _bits(answers, names, seeds):
    """Correctness [seeds, models, conditions, images], standard and clean first."""
    by_name = {condition.corruption: by_model for condition, by_model in answers.items()}
    models, conditions = (augment.STANDARD, *names), (evaluation.CLEAN, *names)
    return np.array([[[by_name[c][m, seed] for c in conditions] for m in models] for seed in seeds])


def _show(found, se):
    """Prints the matrix, with standard errors of resampling, and the scores behind it."""
    width = max(len(name) for name in found.names)
    print(f"\n{'':{width}}  clean acc.   R std.  R own    gain   flag")
    print(f"{augment.STANDARD:{width}}  {found.clean_accuracy[0]:10.3f}")
    for k, name in enumerate(found.names):
        print(
            f"{name:{width}}  {found.clean_accuracy[k + 1]:10.3f}  {found.robustness[0, k]:7.3f} "
            f"{found.robustness[k + 1, k]:6.3f}  {found.gain[k]:6.3f}   {found.flags[k]}"
        )
    middle = np.nanmedian(se[~np.eye(len(se), dtype=bool)])
    print(f"\noverlap (median standard error {middle:.3f}, from resampling test images):")
    print(f"{'':{width}} " + " ".join(f"{k:4d}" for k in range(len(found.names))))
    for k, name in enumerate(found.names):
        print(
            f"{name:{width}} "
            + " ".join("   -" if k == j else f"{o:4.2f}" for j, o in enumerate(found.overlap[k]))
            + f"  {k}"
        )
    print()


def main(argv):
    with cli.errors():
        config, workdir = cli.read_flags(argv)
        study.enable_compilation_cache()
        run(config, workdir)
    log.info("Results are in %s; the picture is %s.", workdir, workdir / "overlap.png")


if __name__ == "__main__":
    cli.define_flags("configs/overlap_shapes.py", hosts=True)
    app.run(main)
