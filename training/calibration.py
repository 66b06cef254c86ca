"""R of a trained model as a function of a corruption's severity, and the file of calibrated ranges."""

import pathlib

import numpy as np

import corruptions
from corruptions.noc import severity as noc_severity
from training import evaluation
from training.workdir import read_json


class Robustness:
    """v -> R(v) = A(v) / A(clean) of one model and corruption, every image at severity v.

    All else that is random is drawn from fixed keys, the same for every v. NOC candidates: v is the parameter, within
    `corruptions.noc.severity.domain`; corruptions with levels: v is a real level (parameters interpolated linearly
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
            self.domain = noc_severity.domain(corruption.name, split.images.shape[1:])
            self.integer = noc_severity.is_whole(corruption.name)
            self.unit = noc_severity.UNITS[corruption.name]
        self.clean = self._accuracy(evaluation.Condition(evaluation.CLEAN, "0")) if clean is None else clean
        if self.clean == 0:
            raise ValueError("expected a model that answers some clean image correctly, found none: R is not defined")

    def __call__(self, v):
        severity, options = self._fixed(v)
        return self._accuracy(evaluation.Condition(self._name, repr(float(severity))), options) / self.clean

    def over(self, bounds):
        """R with the severity of each image drawn uniformly from the range `bounds`."""
        condition = evaluation.Condition(self._name, evaluation.RANDOM)
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
        found = evaluation.answers(self._mesh, models, self._split, condition, self._seed, options, self._batch_size)
        return float(found[""].mean())


def check_image_shape(path, shape):
    """Raises ValueError when the ranges file `path` ("" or None: no ranges) was made for images of another shape."""
    if path and (made := read_json(path)["image_shape"]) != list(shape):
        raise ValueError(f"{path}: expected severity ranges for images of shape {list(shape)}, found ranges for {made}")


def read_ranges(path):
    """The options {corruption: {"range": (mild, severe)}} of a file written by calibrate.py.

    Raises:
      FileNotFoundError: no such file.
      ValueError: not such a file, or an entry that no corruption takes (both are named).
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"expected a file of calibrated ranges (calibrate.py writes ranges.json), found no {path}"
        )
    content = read_json(path)
    if not isinstance(content, dict) or "corruptions" not in content or "image_shape" not in content:
        raise ValueError(
            f"{path}: expected a ranges.json of calibrate.py (image_shape, corruptions), found other content"
        )
    options = {}
    for name, entry in content["corruptions"].items():
        bounds = tuple(entry["range"])
        try:
            corruption = corruptions.get(name)
            if isinstance(corruption.scale, corruptions.Levels):
                corruptions.checks.level_range(bounds, corruption.scale.count)
            else:
                noc_severity.resolve(corruption.name, tuple(content["image_shape"]), bounds)
        except ValueError as error:
            raise ValueError(f"{path}: {name}: {error}") from None
        options[corruption.qualified_name] = {"range": bounds}
    return options
