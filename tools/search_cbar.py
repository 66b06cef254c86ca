"""Searches a benchmark of corruptions far from ImageNet-C, from training to the ten: C-bar's search.

    python -m tools.search_cbar --config=configs/cbar_search.py:cifar10 --workdir=runs/cbar

Each run of the search has two networks without augmentation, M of a seed of config.study.seeds, for
the errors, and Phi of the seed at the same place of config.search.seeds, for the features. Trains
them, shows the test images to every M under all levels of the 30 candidates and of ImageNet-C, and
config.search.images training images to every Phi: under config.search.draws draws, each shown to
all images, or, where that is 0, each image under a draw of its own, as ImageNet's search has it.
Writes to the workdir

    scans/run0.csv, run0.npz ...     errors and features of each run
    cbar_benchmark.json, .png        the ten with their levels, and what each candidate contributes

The target error is config.search.target; 0 is the mean error of the Ms on ImageNet-C. Stopped
anywhere, the same command continues; with more seeds it adds runs. Source: E. Mintun, A. Kirillov,
S. Xie (2021), supplement D.
"""

from runtime import command  # isort: skip

import pathlib
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from analysis.cbar import benchmark, scans
from analysis.cbar.join import BENCHMARKS, join
from analysis.tables import STANDARD, Count
from data import Dataset
from evaluation.conditions import Condition, list_conditions
from evaluation.distances import joint
from evaluation.distances.centres import Measured
from evaluation.evaluate import evaluate_models
from evaluation.results import count_answers
from evaluation.shown import Shown
from runtime import meshes, workdirs
from runtime.log import log
from runtime.progress import bar
from runtime.provenance import provenance, summary
from training import cli, parts, study


def run(config: ConfigDict, workdir: pathlib.Path) -> dict[str, Any]:
    """Searches as `config` says in `workdir`; returns what cbar_benchmark.json holds."""
    study.refuse_unnamed(config)
    pairs = _pairs(config)
    conditions = list_conditions(BENCHMARKS.values(), "levels")[1:]  # without clean images
    with workdirs.open_workdir(workdir, config.to_dict(), free=study.STUDY_FREE) as path:
        counts = _train_and_count(config, pairs, conditions, path)
        # Again: what is mixed into the training images has no place among those of the features.
        dataset = study.load_dataset(config)
        paths, code = [], summary(provenance())
        for number, (errors, features) in enumerate(bar("run", pairs)):
            centres = _centres(config, dataset, path, number, features, conditions)
            scan = join([count for count in counts if count.seed == errors], centres, STANDARD)
            paths.append(path / "scans" / f"run{number}.csv")
            names = f"{config.dataset.name}, {config.model.name}, seeds {errors} and {features}"
            scans.write_scan(paths[-1], scan, f"{names}, {code}")
        target = config.search.target or float(np.mean([scans.read_scan(file).reference_errors for file in paths]))
        content, text = benchmark.select(paths, target, config.search.seed, path / "cbar_benchmark.json")
        print("\n" + text)
    return content


def _pairs(config: ConfigDict) -> list[tuple[int, int]]:
    """The seeds of M and Phi of each run, which are all different."""
    errors, features = tuple(config.study.seeds), tuple(config.search.seeds)
    if len(errors) != len(features) or set(errors) & set(features):
        raise ValueError(
            "expected as many config.search.seeds as config.study.seeds and none in both, found "
            f"{features} and {errors}"
        )
    return list(zip(errors, features, strict=True))


def _train_and_count(
    config: ConfigDict, pairs: list[tuple[int, int]], conditions: list[Condition], path: pathlib.Path
) -> list[Count]:
    """Trains what is missing of all networks and counts the right answers of each M."""
    mesh = meshes.study_mesh(config.train.batch_size, config.study.parallel)
    dataset, train_split, test_split = study.load_for_training(config, mesh, path)
    shown = Shown.of(config, test_split, mesh, dataset.provenance)
    of_errors, counts = {errors for errors, _ in pairs}, []
    seeds = [seed for pair in pairs for seed in pair]
    trainings = parts.Trainings(config, (STANDARD,), seeds, path, dataset, train_split, mesh)
    for models in trainings.train_in_parts(parts.AT_ONCE):
        asked = {key: model for key, model in models.items() if key[1] in of_errors}
        counts += count_answers(evaluate_models(asked, shown, conditions, path))
        del models, asked
    return counts


def _centres(
    config: ConfigDict, dataset: Dataset, path: pathlib.Path, number: int, seed: int, conditions: list[Condition]
) -> dict[tuple[str, int], np.ndarray]:
    """Mean features of every condition in the network of a seed, from the images of run `number`."""
    search = config.search
    given = {"model": STANDARD, "model_seed": seed, "seed": search.seed + number}
    given |= {"images": search.images, "draws": search.draws, "halves": 0}
    asked = ConfigDict(config.msd.to_dict() | given)
    measured = Measured.by(config, asked, path, f"features/run{number}", given, dataset)
    return {
        (condition.corruption, condition.label): measured.centre(condition)[0]
        if search.draws
        else joint.centre(measured, condition)
        for condition in bar("condition", conditions)
    }


def main(argv):
    config, workdir = cli.start(argv)
    run(config, workdir)
    log.info("Results are in %s.", workdir)


if __name__ == "__main__":
    cli.define_flags("configs/cbar_search.py")
    command.run(main, cli.parse)
