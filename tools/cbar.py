"""Searches a benchmark of corruptions far from ImageNet-C, as C-bar benchmarks are made.

    python -m tools.cbar --config=configs/cbar_search.py:cifar10 --workdir=runs/cbar

does the whole search, from training to the ten. Each run of it has two networks without augmentation: M, of a seed of
config.study.seeds, gives errors; Phi, of the seed at the same place of config.search.seeds, gives features. Shows every M
the test images under all levels of the 30 candidates and of ImageNet-C, and every Phi config.search.images training images:
under config.search.draws draws, each shown to all images, or, where that is 0, each image under a draw of its own, as
ImageNet's search has it. Writes to the workdir

    scans/run0.npz ...               errors and features of each run
    cbar_benchmark.json, .png        the ten with their levels, and the contribution of each candidate

The target error is config.search.target; 0 is the mean error of the Ms on ImageNet-C. Stopped anywhere, the same command
continues; with more seeds it adds runs. Source: E. Mintun, A. Kirillov, S. Xie (2021), supplement D.

    python eval.py --workdir=runs/m --config.eval.severity=levels \\
        --config.eval.corruptions="('cbar_candidates','imagenet_c')"
    python -m tools.msd --config=configs/msd.py --workdir=runs/phi --config.msd.schemes="('standard',)" \\
        --config.msd.corruptions="('cbar_candidates','imagenet_c')"
    python -m tools.cbar --step=join --errors=runs/m --features=runs/phi/msd/features.npz --out=runs/scan0.npz

joins errors of one network M and features of another, Phi, into a scan, one run of the search: the 30 candidates at ten
levels, ImageNet-C's 15 at five. Prints the mean error of M over these 15, the usual --target.

    python -m tools.cbar --step=select --scan="runs/scan*.npz" --target=26.9 [--seed=0] [--out=FILE]

selects ten candidates from scans, in about one second for each run. The target is the mean error of a standard network on
ImageNet-C, in percent. Prints the ranking and the benchmark with its levels; writes both to FILE (default:
cbar_benchmark.json beside the first scan), and the ranking as a figure beside it.
"""

from runtime import command  # isort: skip

import glob
import pathlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from absl import app, flags
from ml_collections import ConfigDict, config_flags

from analysis import answers
from analysis.cbar import scans, selection
from analysis.distances.results import read_centres
from analysis.frames import STANDARD, Counted
from corruptions.scoring.conditions import Condition, list_conditions
from data import Dataset
from evaluation import trained_models
from evaluation.distances import sampling
from evaluation.distances.centres import Measured
from evaluation.evaluate import evaluate_models
from evaluation.results import count_answers
from evaluation.shown import Shown
from runtime import meshes, workdirs
from runtime.artifacts import provenance, summary
from runtime.log import bar, log
from training import cli, study


def search(config: ConfigDict, workdir: pathlib.Path) -> dict[str, Any]:
    """Searches as `config` says in `workdir`; returns the content of cbar_benchmark.json."""
    study.refuse_unnamed(config)
    trained_models.refuse_eval_only(config)
    pairs = _pairs(config)
    conditions = list_conditions(scans.BENCHMARKS.values(), "levels")[1:]  # without clean images
    with workdirs.open_workdir(workdir, config.to_dict(), free=study.STUDY_FREE) as path:
        counts = _train_and_count(config, pairs, conditions, path)
        # Loaded again, because images that were mixed into the training images must give no features.
        dataset = study.load_dataset(config)
        paths, code, errors_on_references = [], summary(provenance()), []
        for number, (errors, features) in enumerate(bar("run", pairs)):
            centres = _centres(config, dataset, path, number, features, conditions)
            scan = scans.join([(key, count) for key, count in counts if key[1] == errors], centres, STANDARD)
            errors_on_references.append(scan.reference_errors)
            paths.append(path / "scans" / f"run{number}.npz")
            names = f"{config.dataset.name}, {config.model.name}, seeds {errors} and {features}"
            scans.write_scan(paths[-1], scan, f"{names}, {code}")
        target = config.search.target or float(np.mean(errors_on_references))
        content, text = selection.select(paths, target, config.search.seed, path / "cbar_benchmark.json")
        print("\n" + text)
    return content


def _pairs(config: ConfigDict) -> list[tuple[int, int]]:
    """Lists the seeds of M and Phi of each run, all different."""
    errors, features = tuple(config.study.seeds), tuple(config.search.seeds)
    if len(errors) != len(features) or set(errors) & set(features):
        raise ValueError(
            "expected as many config.search.seeds as config.study.seeds and none in both, found "
            f"{features} and {errors}"
        )
    return list(zip(errors, features, strict=True))


def _train_and_count(
    config: ConfigDict, pairs: list[tuple[int, int]], conditions: list[Condition], path: workdirs.Workdir
) -> list[Counted]:
    mesh = meshes.study_mesh(config.train.batch_size, config.study.parallel)
    dataset, train_split, test_split = study.load_for_training(config, mesh, path)
    shown, counts = Shown.of(config, test_split, mesh, dataset), []
    seeds = [seed for pair in pairs for seed in pair]
    trainings = study.Trainings(config, (STANDARD,), seeds, path, dataset, train_split, mesh)
    for models in trainings.train_in_parts(study.AT_ONCE):
        evaluated = {key: model for key, model in models.items() if key[1] in config.study.seeds}
        counts += count_answers(evaluate_models(evaluated, shown, conditions, path))
        del models, evaluated
    return counts


def _centres(
    config: ConfigDict, dataset: Dataset, path: pathlib.Path, number: int, seed: int, conditions: list[Condition]
) -> dict[tuple[str, int], np.ndarray]:
    asked = config.search
    given = {"model": STANDARD, "model_seed": seed, "seed": asked.seed + number}
    given |= {"images": asked.images, "draws": asked.draws, "halves": 0}
    of_run = ConfigDict(config.msd.to_dict() | given)
    measured = Measured.by(config, of_run, path, f"features/run{number}", given, dataset)
    centres = {}
    for at in bar("condition", conditions):
        centres[at.corruption, at.label] = measured.centre(at)[0] if asked.draws else sampling.centre(measured, at)
    return centres


def join(errors: str, features: str, model: str, out: str) -> scans.Scan:
    """Writes one run of the search: errors of an evaluated workdir, features of tools.msd."""
    scan = scans.join(answers.read(errors).counts, read_centres(features), model)
    scans.write_scan(out, scan, f"errors of {errors}, features of {features}")
    print(f"mean error over the references {scan.reference_errors.mean():.3f} %; written to {out}")
    return scan


def select(paths: list[pathlib.Path], target: float, seed: int = 0, out: pathlib.Path | None = None) -> dict[str, Any]:
    """Selects ten candidates, prints and writes them; returns the content of the file."""
    content, text = selection.select(paths, target, seed, out or paths[0].with_name("cbar_benchmark.json"))
    print(text)
    return content


def listed(patterns: Iterable[str]) -> list[pathlib.Path]:
    """Lists every file that a pattern names, sorted within a pattern, each once; a plain name stands for itself."""
    paths: list[str] = []
    for pattern in patterns:
        matches = sorted(glob.glob(pattern)) if glob.has_magic(pattern) else [pattern]
        if not matches:
            raise FileNotFoundError(f"expected scans at {pattern}, found no file")
        paths += matches
    return [pathlib.Path(path) for path in dict.fromkeys(paths)]


_REQUIRED = {
    "search": {},
    "join": {"errors": "WORKDIR", "features": "FILE", "out": "FILE"},
    "select": {"scan": "FILE", "target": "PERCENT"},
}
_USED = {
    "search": {"workdir"},
    "join": {"errors", "features", "model", "out"},
    "select": {"scan", "target", "seed", "out"},
}


def main(argv):
    step = flags.FLAGS.step
    command.refuse_unused("step", _USED)
    given = command.given(argv, _REQUIRED[step])
    if step != "search" and (changed := config_flags.get_override_values(flags.FLAGS["config"])):
        raise app.UsageError(f"expected no --config.{next(iter(changed))} with --step={step}, which reads no config")
    if step == "join":
        join(given.errors, given.features, given.model, given.out)
    elif step == "select":
        select(listed(given.scan), given.target, given.seed, pathlib.Path(given.out) if given.out else None)
    else:
        config, workdir = cli.start(argv)
        search(config, workdir)
        log.info("Results are in %s.", workdir)


if __name__ == "__main__":
    cli.define_flags("configs/cbar_search.py")
    flags.DEFINE_enum("step", "search", list(_REQUIRED), "The whole search, or one of its last two steps.")
    flags.DEFINE_string("errors", None, "join: evaluated workdir of one network M (required).")
    flags.DEFINE_string("features", None, "join: features.npz of another, Phi (required).")
    flags.DEFINE_string("model", STANDARD, "join: a model of the workdir, by its training.")
    flags.DEFINE_multi_string("scan", [], "select: a scan, *.npz, or a pattern of scans; one per run (required).")
    flags.DEFINE_float("target", None, "select: mean error of the benchmark to be made, in percent (required).")
    flags.DEFINE_integer("seed", 0, "select: seed of the random half-sets and benchmarks.")
    flags.DEFINE_string("out", None, "join: the scan to write (required). select: default cbar_benchmark.json.")
    command.run(main, cli.parse)
