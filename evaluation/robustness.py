"""R of a trained model as a function of a corruption's severity, and the file of calibrated ranges."""

import numpy as np

import corruptions
from corruptions.noc import severities
from evaluation import correctness
from evaluation.conditions import CLEAN, RANDOM, Condition


class Robustness:
    """v -> R(v) = A(v) / A(clean) of one model and corruption, every image at severity v.

    All else that is random is drawn from fixed keys, the same for every v. NOC candidates: v is the parameter, within
    `corruptions.noc.severities.domain`; corruptions with levels: v is a real level (parameters interpolated linearly
    between two published levels).

    Args:
      mesh: device mesh.
      model: (graphdef, state).
      split: data.Split, the images R is measured on.
      name: qualified name of the corruption.
      seed: of the draws.
      batch_size: of inference.
      clean: A(clean) when it is known, so that it is measured once for all corruptions.

    Attributes:
      clean: A(clean).
      domain: (mildest, most severe) v.
      integer: whether v is whole.
      unit: of v.
    """

    def __init__(self, mesh, model, split, name, *, seed=0, batch_size=500, clean=None):
        self._mesh, self._model, self._split, self._name = mesh, model, split, name
        self._seed, self._batch_size = seed, batch_size
        corruption = corruptions.get(name)
        self._leveled = isinstance(corruption.scale, corruptions.Levels)
        if self._leveled:
            self.domain, self.integer, self.unit = (1.0, float(corruption.scale.count)), False, "level"
        else:
            self.domain = severities.domain(corruption.name, split.images.shape[1:])
            self.integer = severities.is_whole(corruption.name)
            self.unit = severities.UNITS[corruption.name]
        self.clean = self._accuracy(Condition(CLEAN, "0")) if clean is None else clean
        if self.clean == 0:
            raise ValueError("expected a model that answers some clean image correctly, found none: R is not defined")

    def __call__(self, v):
        severity, options = self._fixed(v)
        return self._accuracy(Condition(self._name, repr(float(severity))), options) / self.clean

    def over(self, bounds):
        """R with the severity of each image drawn uniformly from the range `bounds`."""
        condition = Condition(self._name, RANDOM)
        return self._accuracy(condition, {"range": tuple(bounds)}) / self.clean

    def error(self, value):
        """Binomial standard error of R = `value`, clean and corrupted accuracies taken as independent."""
        corrupted = min(max(value * self.clean, 1e-9), 1.0)
        relative = (1 - self.clean) / self.clean + (1 - corrupted) / corrupted
        return value * float(np.sqrt(relative / len(self._split)))

    def _fixed(self, v):
        """(severity, options) that give every image the value v."""
        if self._leveled:
            return v, {"interpolate": True}
        if self._name == "noc/translation":  # its severity is a quantile of a sum, not a place in the range
            return 0.5, {"range": (v, v)}
        # A fraction of the widest range: one compiled program serves the whole search.
        steps, position = abs(self.domain[1] - self.domain[0]), abs(v - self.domain[0])
        return ((position + 0.5) / (steps + 1) if self.integer else position / steps), {"range": self.domain}

    def _accuracy(self, condition, options=None):
        models = {"": self._model}
        found = correctness.answers(self._mesh, models, self._split, condition, self._seed, options, self._batch_size)
        return float(found[""].mean())
