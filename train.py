"""Trains one model: standard, with a corruption, or with a mixture of a benchmark.

    python train.py --config=configs/aug_fog.py --workdir=runs/aug_fog [--config.seed=3 --config.train.epochs=10]

Writes checkpoints, metrics.jsonl and the accuracy on clean test images, of each class too
(classes.csv) and of parts of the test images, where the dataset has some (parts.csv). A run that
was stopped continues when the same command is given again.
"""

from runtime import command  # isort: skip

import numpy as np

from analysis import frames
from evaluation import correctness, trained_models
from evaluation.evaluate import warn_of_tables
from evaluation.shown import Shown
from runtime import artifacts, distributed, meshes, workdirs
from runtime.artifacts import provenance
from runtime.log import log
from training import augmentation, cli, loop, study


def train_and_evaluate(config, workdir):
    """Trains the model of `config` in `workdir`; returns its accuracy on clean test images."""
    study.refuse_checkpoint(config)
    mesh = meshes.data_mesh(config.train.batch_size)
    settings = study.model_config(config, config.train.corruption, config.seed, mesh.shape["data"])
    corruption, initial = config.train.corruption, config.train.init_from
    finished = workdirs.finished(workdir)
    if not finished and (start := trained_models.start_of(config)):
        settings.start = start
    elif finished and initial:  # the model that it started from may be gone
        settings.start = workdirs.read_config(workdir).get("start", {})
    with workdirs.open_workdir(workdir, settings.to_dict(), free=workdirs.PLACES) as workdir:
        dataset, train_split, test_split = study.load_for_training(config, mesh, workdir)
        warn_of_tables([augmentation.benchmark(corruption)], dataset.image_shape)
        begins = initial and not finished
        start = trained_models.read_start(initial, settings, dataset, mesh) if begins else None
        name = augmentation.canonical(corruption)
        model = loop.train(
            settings, train_split, dataset.num_classes, workdir, mesh=mesh, description=name, initial=start
        )
        clean_images = Shown(test_split, mesh, config.eval.batch_size)
        correct = correctness.of_models({name: model}, clean_images, config.train.enhance)[name]
        accuracy = float(correct.mean())
        error = (accuracy * (1 - accuracy) / correct.size) ** 0.5
        digest = workdirs.read_final(workdir)["digest"]
        clean = {"accuracy": accuracy, "standard_error": error, "images": correct.size, "model": digest}
        workdir.on_main(artifacts.write_record, workdir / "clean.json", clean)
        workdir.record("clean.json")
        log.info("Clean test accuracy %.2f %% +- %.2f (%d images).", 100 * accuracy, 100 * error, correct.size)
        labels = distributed.fetch(test_split.labels)
        workdir.on_main(_tabulate, workdir, correct, labels, dataset, study.comment(config, provenance()))
    return accuracy


def _tabulate(workdir, correct, labels, dataset, comment):
    frames.write(workdir / "classes.csv", frames.classes(correct, labels, dataset.class_names), comment)
    if dataset.parts is None:
        return
    correct = np.pad(correct, (0, len(dataset.parts.labels) - len(correct)))  # images that could not be read are wrong
    parts = frames.classes(correct, *dataset.parts)
    frames.write(workdir / "parts.csv", parts, comment)
    for name, images, *shares in parts.itertuples(index=False):
        percent = (100 * share for share in shares)
        log.info("On the %s part %.2f %%, 95 %% interval %.2f to %.2f (%d images).", name, *percent, images)


if __name__ == "__main__":
    cli.define_flags(hosts=True)
    done = "Results are in {workdir}; evaluate under corruptions with: python eval.py --workdir={workdir}{imports}"
    command.run(cli.main(train_and_evaluate, done), cli.parse)
