"""Calibrates severity ranges: over each, the robustness R of a trained model falls from .95 to .50.

    python train.py     --config=configs/default.py --workdir=runs/standard
    python -m tools.calibrate --workdir=runs/standard --config.calibrate.corruptions="('noc_candidates',)"

The workdir is one of train.py, or of overlap.py (its standard model is used). Of the config, `calibrate` and
`eval.batch_size` matter. Writes WORKDIR/ranges.json after each corruption; the same command continues. Training and
evaluation use it with --config.ranges=WORKDIR/ranges.json.
"""

from runtime import command  # isort: skip

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

import jax
from ml_collections import ConfigDict

import corruptions
from analysis import frames
from analysis.calibration import calibrate, ranges_frame
from corruptions.assets import FROM_FILES
from corruptions.noc import severities
from corruptions.scoring.conditions import CLEAN_IMAGES, RANDOM, Condition, expand
from data import Split
from evaluation import bound, correctness, trained_models
from evaluation.correctness import Model
from evaluation.shown import Shown
from runtime import meshes
from runtime.artifacts import provenance
from runtime.log import bar, log
from runtime.settings import check_equal
from training import augmentation, cli, ranges, study
from training.checkpoints import digest
from training.sections import TrainSettings


def run(config: ConfigDict, workdir: pathlib.Path) -> dict[str, Any]:
    """Calibrates corruptions on the standard model of `workdir`; returns the content of ranges.json."""
    trained_models.refuse_eval_only(config)
    asked, batch_size, path = config.calibrate, config.eval.batch_size, workdir / "ranges.json"
    names = expand(asked.corruptions)
    mesh = meshes.data_mesh(batch_size)
    with trained_models.open_workdir(workdir, config) as trained:
        trained.dataset.test_limit = asked.images
        trained.ranges = ""
        dataset, _, split = study.load_data(trained, mesh, placed=("test",))
        models = trained_models.read_models(workdir, dataset, mesh)
        seeds = [seed for name, seed in models if name == augmentation.STANDARD]
        if not seeds:
            found = ", ".join(sorted({name for name, _ in models}))
            raise ValueError(f"expected a standard model in {workdir} (calibration is defined by it), found {found}")
        seed, clean = min(seeds), None
        model = models[augmentation.STANDARD, seed]
        given = TrainSettings.of(trained.train).corruption_options
        made_from = {"model": digest(model[1]), "images": dataset.provenance["test"]["sha256"]}
        of_files = {}  # {corruption: the option with the digest of its files, such as photographs of frost}
        for setting, known in FROM_FILES.items():
            for name in known.corruptions:
                if known.option in given.get(name, {}):
                    of_files[name] = {known.option: given[name][known.option]}
                    made_from.setdefault(setting, given[name][known.option])
        settings = {
            **{"dataset": dataset.name, "image_shape": list(dataset.image_shape), "images": len(split)},
            "model": {"name": trained.model.name, "epochs": trained.train.epochs, "seed": seed},
            **{"targets": list(asked.targets), "seed": asked.seed},
        }

        def part(name, entry):
            """Gives the part of images with severities over a calibrated range."""
            options = {name: {**of_files.get(name, {}), "range": tuple(entry["range"])}}
            at, about = Condition(name, RANDOM), {"imports": config.get("imports", ())}
            return bound.of_shown(Shown(split, mesh, batch_size, asked.seed, options, at, about=about))

        content = _stored_ranges(path, made_from, settings)
        stored = {name: content["corruptions"][name] for name in names if name in content["corruptions"]}
        for name, entry in stored.items():
            before = {name: entry.get("origin", {})}
            current = bound.refreshed(before, part(name, entry), path)
            if current is None:
                del content["corruptions"][name]
            elif current != before:  # so that the probe is not made again
                entry["origin"] = current[name]
                ranges.write(path, content)
        for name in bar("corruption", [name for name in names if name not in content["corruptions"]]):
            options = {"seed": asked.seed, "batch_size": batch_size, "clean": clean, "options": of_files.get(name)}
            robustness = Robustness(mesh, model, split, name, **options)
            clean, least = robustness.clean, 1 / dataset.num_classes + 0.05
            if clean < least:
                raise ValueError(
                    f"expected a standard model better than chance (clean accuracy at least {least:.3f} with "
                    f"{dataset.num_classes} classes), found {clean:.3f}: its robustness means nothing"
                )
            entry = robustness.calibrated(tuple(asked.targets))
            content["corruptions"][name] = entry | {"origin": bound.stored_of(part(name, entry))[name]}
            ranges.write(path, content | {"provenance": provenance()})
    return content


def _stored_ranges(path: pathlib.Path, made_from: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Reads the ranges of an earlier run with the same settings, model and images; else lists no corruption."""
    content = {**asked, "corruptions": {}}
    if path.exists():
        before = ranges.read_content(path)
        stored = {key: before[key] for key in asked if key in before}
        check_equal(stored, asked, f"{path} was made with other settings; move it away or use the same")
        if before.get("made_from", made_from) == made_from:
            content = {key: value for key, value in before.items() if key != "copy_of"}
        else:
            log.warning("%s was calibrated with another model or other images: it is calibrated again.", path)
    return content | {"made_from": made_from}


class Robustness:
    """v -> R(v) = A(v) / A(clean) of one model and corruption, every image at severity v.

    All other draws come from fixed keys, the same for every v. For NOC candidates v is the parameter, within
    `corruptions.noc.severities.domain`. For corruptions with levels v is a real level: parameters are interpolated
    linearly between two published levels.

    Args:
      mesh, batch_size: devices, and images that the network takes at once.
      model: (graphdef, state).
      split: images that R is measured on.
      name: qualified name of the corruption; `options`: its options without the range, such as `photographs` of frost.
      seed: seed of the draws.
      clean: A(clean) if it was measured before; None measures it.

    Attributes:
      clean: A(clean).
      domain, integer, unit: (mildest, most severe) v, whether v is whole, its unit.
    """

    def __init__(
        self,
        mesh: jax.sharding.Mesh,
        model: Model,
        split: Split,
        name: str,
        *,
        seed: int = 0,
        batch_size: int = 500,
        clean: float | None = None,
        options: Mapping[str, Any] | None = None,
    ):
        self._model, self._name, self._options = model, name, options or {}
        self._shown = Shown(split, mesh, batch_size, seed)
        corruption = corruptions.get(name)
        self._leveled = isinstance(corruption.scale, corruptions.Levels)
        if self._leveled:
            self.domain, self.integer, self.unit = (1.0, float(corruption.scale.count)), False, "level"
        elif corruption.qualified_name != f"noc/{corruption.name}":
            raise ValueError(f"{name}: expected a corruption with levels or one of noc's to calibrate, found fractions")
        else:
            self.domain = severities.domain(corruption.name, split.images.shape[1:])
            self.integer = severities.is_whole(corruption.name)
            self.unit = severities.UNITS[corruption.name]
        self.clean = self._accuracy(CLEAN_IMAGES) if clean is None else clean

    def __call__(self, v: float) -> float:
        """Measures R with every image at severity v."""
        severity, options = self._fixed(v)
        return self._accuracy(Condition(self._name, repr(float(severity))), options) / self.clean

    def over(self, bounds: tuple[float, float]) -> float:
        """Measures R with the severity of each image drawn uniformly from the range `bounds`."""
        return self._accuracy(Condition(self._name, RANDOM), {"range": tuple(bounds)}) / self.clean

    def error(self, value: float) -> float:
        """Computes the binomial standard error of R = `value`, both accuracies taken as independent."""
        return float(frames.robustness_standard_error(min(value * self.clean, 1.0), self.clean, len(self._shown)))

    def calibrated(self, targets: tuple[float, float]) -> dict[str, Any]:
        """Finds the range over which R falls from one target to the other, for ranges.json."""
        noise = 2 * self.error(1.0)  # about two standard errors of a difference
        calibration = calibrate(self, self.domain, integer=self.integer, targets=targets, noise=noise)
        mean = self.over(calibration.range)
        return {
            "range": list(calibration.range),
            "unit": self.unit,
            "robustness": list(calibration.robustness),
            "robustness_se": [self.error(value) for value in calibration.robustness],
            "capped": list(calibration.capped),
            "monotone": calibration.monotone,
            "mean_robustness": mean,
            "mean_robustness_se": self.error(mean),
            "evaluations": [list(pair) for pair in calibration.evaluations],
        }

    def _fixed(self, v: float) -> tuple[float, dict[str, Any]]:
        """(severity, options) that give every image the value v."""
        if self._leveled:
            return v, {"interpolate": True}
        if self._name == "noc/translation":  # its severity is the quantile of a sum, not a position in the range
            return 0.5, {"range": (v, v)}
        # A fraction of the widest range: one compiled program serves the whole search.
        steps, position = abs(self.domain[1] - self.domain[0]), abs(v - self.domain[0])
        return ((position + 0.5) / (steps + 1) if self.integer else position / steps), {"range": self.domain}

    def _accuracy(self, condition: Condition, options: Mapping[str, Any] | None = None) -> float:
        options = {self._name: {**self._options, **(options or {})}}
        shown = dataclasses.replace(self._shown, options=options, condition=condition)
        return float(correctness.of_models({"": self._model}, shown)[""].mean())


if __name__ == "__main__":
    cli.define_flags()
    done = "Ranges are in {workdir}/ranges.json; use them with --config.ranges={workdir}/ranges.json."
    command.run(cli.main(lambda *given: frames.text(ranges_frame(run(*given))), done), cli.parse)
