"""The overlap study: train what is missing, evaluate, measure which corruptions overlap, select a benchmark.

    python overlap.py --config=configs/overlap_shapes.py --workdir=runs/overlap_shapes

Trains a standard model and one on each of config.study.corruptions (half of each batch corrupted), shows all of them
the same corrupted test images, and writes counts.csv, scores.csv, overlap.csv (with overlap_long.csv for standard
errors and directed transfers), overlap.png and benchmark.json. Stopped anywhere, the same command continues.
"""

import json

from absl import app

from analysis import matrices, overlap_files, tables
from analysis.overlap import overlap_matrix
from training import augment, cli, evaluation, study
from training import mesh as meshes
from training import workdir as workdirs
from training.log import log

# What may differ between runs of one workdir: how much is asked for, not what a result is.
_FREE = (*study.FREE, "study", "train.corruption", "eval.corruptions", "eval.severity", "eval.batch_size", "seed")


def run(config, workdir):
    """Runs the study of `config` in `workdir`; returns its `analysis.overlap.Overlap`."""
    names = evaluation.expand(config.study.corruptions)
    if len(names) < 2:
        raise ValueError(f"expected at least two corruptions in config.study.corruptions, found {names}")
    mesh = meshes.data_mesh()
    with workdirs.open_workdir(workdir, config.to_dict(), free=_FREE) as path:
        dataset, train_split, test_split = study.load_data(config, mesh)
        trainings = (augment.STANDARD, *names)
        models = study.train_models(config, trainings, config.study.seeds, path, dataset, train_split, mesh)
        conditions = evaluation.conditions(names, evaluation.RANDOM)
        answers = study.evaluate_models(config, models, conditions, path, test_split, mesh)
        return write_results(config, path, names, answers, dataset.num_classes)


def write_results(config, path, names, answers, num_classes):
    """Derives every table and figure from the answers of the models."""
    record = workdirs.read_json(path / "provenance.json")
    comment = json.dumps({key: record[key] for key in ("git_revision", "device")} | {"dataset": config.dataset.name})
    counts = study.counts(answers)
    tables.write_counts(path / "counts.csv", counts, comment)
    counts = tables.read_counts(path / "counts.csv")
    matrices.write_scores(path / "scores.csv", counts, comment)
    accuracy, number, seeds = matrices.accuracies(counts, names)
    found = overlap_matrix(accuracy, names=names, number=number, num_classes=num_classes)
    overlap_files.write_overlap(path / "overlap.csv", names, found.overlap, comment)
    overlap_files.write_overlap_long(path / "overlap_long.csv", found, comment)
    for warning in found.warnings:
        log.warning("%s", warning)
    return found


def main(argv):
    with cli.errors():
        config, workdir = cli.read_flags(argv)
        study.enable_compilation_cache()
        run(config, workdir)
    log.info("Results are in %s.", workdir)


if __name__ == "__main__":
    cli.define_flags("configs/overlap_shapes.py")
    app.run(main)
