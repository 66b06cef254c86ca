"""R of a trained model as a function of a corruption's severity, for the calibration of ranges."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

import corruptions
from analysis.calibration import calibrate
from corruptions.noc import severities
from corruptions.scoring.conditions import CLEAN_IMAGES, RANDOM, Condition
from data import Split
from evaluation import correctness
from evaluation.correctness import Model
from evaluation.shown import Shown


class Robustness:
    """v -> R(v) = A(v) / A(clean) of one model and corruption, every image at severity v.

    Other random draws come from fixed keys, the same for every v. NOC candidates: v is the parameter, within
    `corruptions.noc.severities.domain`; corruptions with levels: v is a real level (parameters interpolated linearly
    between two published levels).

    Args:
      mesh: device mesh.
      model: (graphdef, state).
      split: data.Split, the images R is measured on.
      name: qualified name of the corruption.
      seed: seed of the draws.
      batch_size: images that the network takes at once.
      clean: A(clean) if it was measured before; None measures it.
      options: of the corruption without its range, such as `photographs` of frost.

    Attributes:
      clean: A(clean).
      domain: (mildest, most severe) v.
      integer: whether v is whole.
      unit: of v.
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
        else:
            self.domain = severities.domain(corruption.name, split.images.shape[1:])
            self.integer = severities.is_whole(corruption.name)
            self.unit = severities.UNITS[corruption.name]
        self.clean = self._accuracy(CLEAN_IMAGES) if clean is None else clean
        if self.clean == 0:
            raise ValueError("expected a model that answers some clean image correctly, found none: R is not defined")

    def __call__(self, v: float) -> float:
        """Measures R with every image at severity v."""
        severity, options = self._fixed(v)
        return self._accuracy(Condition(self._name, repr(float(severity))), options) / self.clean

    def over(self, bounds: tuple[float, float]) -> float:
        """Measures R with the severity of each image drawn uniformly from the range `bounds`."""
        condition = Condition(self._name, RANDOM)
        return self._accuracy(condition, {"range": tuple(bounds)}) / self.clean

    def error(self, value: float) -> float:
        """Computes the binomial standard error of R = `value`, both accuracies taken as independent."""
        corrupted = min(max(value * self.clean, 1e-9), 1.0)
        relative = (1 - self.clean) / self.clean + (1 - corrupted) / corrupted
        return value * float(np.sqrt(relative / len(self._shown)))

    def calibrated(self, targets: tuple[float, float]) -> dict[str, Any]:
        """Finds the range over which R falls from one target to the other, for ranges.json."""
        noise = 2 * self.error(1.0)  # two standard errors of a difference hardly differ from this
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
        if self._name == "noc/translation":  # its severity is a quantile of a sum, not a place in the range
            return 0.5, {"range": (v, v)}
        # A fraction of the widest range: one compiled program serves the whole search.
        steps, position = abs(self.domain[1] - self.domain[0]), abs(v - self.domain[0])
        return ((position + 0.5) / (steps + 1) if self.integer else position / steps), {"range": self.domain}

    def _accuracy(self, condition: Condition, options: Mapping[str, Any] | None = None) -> float:
        shown = dataclasses.replace(
            self._shown, options={self._name: {**self._options, **(options or {})}}, condition=condition
        )
        return float(correctness.of_models({"": self._model}, shown)[""].mean())
