"""Calibrates severity ranges: over each, the robustness R of a trained model falls from .95 to .50.

    python train.py     --config=configs/default.py --workdir=runs/standard
    python -m tools.calibrate --workdir=runs/standard --config.calibrate.corruptions="('noc_candidates',)"

The workdir is one of train.py, or of overlap.py (its standard model is used); only the `calibrate` and `eval` settings
of the config matter. Writes WORKDIR/ranges.json after each corruption; the same command continues. Training and
evaluation use it with --config.ranges=WORKDIR/ranges.json.
"""

from runtime import command  # isort: skip

import pathlib
from collections.abc import Mapping
from typing import Any

from ml_collections import ConfigDict

from analysis.answers import Key
from analysis.calibration import ranges_text
from analysis.errors.reference import FROST
from corruptions.scoring.conditions import expand
from evaluation import trained_models
from evaluation.correctness import Model
from evaluation.robustness import Robustness
from runtime import meshes, settings
from runtime.artifacts import provenance
from runtime.log import bar, log
from training import augmentation, cli, ranges, study
from training.checkpoint import digest
from training.sections import TrainSettings


def run(config: ConfigDict, workdir: pathlib.Path) -> dict[str, Any]:
    """Calibrates corruptions on the standard model of `workdir`; returns the content of ranges.json."""
    asked, batch_size = config.calibrate, config.eval.batch_size
    names = expand(asked.corruptions)
    mesh = meshes.data_mesh(batch_size)
    with trained_models.open_workdir(workdir, config) as trained:
        trained.dataset.test_limit = asked.images
        trained.ranges = ""
        dataset, _, split = study.load_data(trained, mesh, placed=("test",))
        models = trained_models.read_models(workdir, dataset.num_classes, dataset.image_shape[0], mesh)
        seed = _standard_seed(models, workdir)
        model, clean = models[augmentation.STANDARD, seed], None
        images, frost = dataset.provenance["test"]["sha256"], _frost(trained)
        content = _stored_ranges(
            workdir / "ranges.json",
            {"model": digest(model[1]), "images": images} | frost,
            {
                "dataset": dataset.name,
                "image_shape": list(dataset.image_shape),
                "images": len(split),
                "model": {"name": trained.model.name, "epochs": trained.train.epochs, "seed": seed},
                "targets": list(asked.targets),
                "seed": asked.seed,
            },
        )
        for name in bar("corruption", [name for name in names if name not in content["corruptions"]]):
            options = {"photographs": frost["frost"]} if frost and name == FROST else None
            robustness = Robustness(
                mesh, model, split, name, seed=asked.seed, batch_size=batch_size, clean=clean, options=options
            )
            clean = robustness.clean
            _check_model(clean, dataset.num_classes)
            content["corruptions"][name] = robustness.calibrated(tuple(asked.targets))
            ranges.write(workdir / "ranges.json", content | {"provenance": provenance()})
    return content


def _frost(trained: ConfigDict) -> dict[str, str]:
    """The digest of the photographs of frost, where there are some."""
    options = TrainSettings.of(trained.train).corruption_options.get(FROST, {})
    return {"frost": options["photographs"]} if "photographs" in options else {}


def _standard_seed(models: Mapping[Key, Model], workdir: pathlib.Path) -> int:
    """The smallest seed of a standard model."""
    seeds = [seed for name, seed in models if name == augmentation.STANDARD]
    if not seeds:
        found = ", ".join(sorted({name for name, _ in models}))
        raise ValueError(f"expected a standard model in {workdir} (calibration is defined by it), found {found}")
    return min(seeds)


def _stored_ranges(path: pathlib.Path, made_from: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """The content of `path`, of the same settings; without corruptions where there is no file, or a stale one."""
    empty = {**asked, "made_from": made_from, "corruptions": {}}
    if not path.exists():
        return empty
    content = ranges.read_content(path)
    stored = {key: content[key] for key in asked if key in content}
    settings.check_equal(stored, asked, f"{path} was made with other settings; move it away or use the same")
    if content.get("made_from", made_from) != made_from:
        log.warning("%s was calibrated with another model or other images: it is calibrated again.", path)
        return empty
    return {key: value for key, value in content.items() if key != "copy_of"} | {"made_from": made_from}


def _check_model(clean: float, num_classes: int) -> None:
    least = 1 / num_classes + 0.05
    if clean < least:
        raise ValueError(
            f"expected a standard model better than chance (clean accuracy at least {least:.3f} with {num_classes} "
            f"classes), found {clean:.3f}: its robustness means nothing"
        )


def main(argv):
    config, workdir = cli.start(argv)
    print("\n" + ranges_text(run(config, workdir)))
    log.info("Ranges are in %s; use them with --config.ranges=%s.", workdir / "ranges.json", workdir / "ranges.json")


if __name__ == "__main__":
    cli.define_flags()
    command.run(main, cli.parse)
