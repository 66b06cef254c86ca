"""Severity scans, from which a benchmark of dissimilar corruptions is selected: errors and features of every level.

    NAME.npz   candidate_errors [n, 10], reference_errors [m, 5]            errors of network M in percent, on the whole test set
               candidate_features [n, 10, D], reference_features [m, 5, D]  mean penultimate features of network Phi
               candidates [n], references [m]                               names of the corruptions

M and Phi are trained with different seeds; each run of the search has its own two networks and its own images.

The inputs of the published rankings are not published. In the released code the features of two CIFAR candidates
(concentric_sine_waves, chromatic_aberration) come from misread parameters, so a ranking may differ for this reason.
"""

import dataclasses
import pathlib
from collections.abc import Iterable, Mapping

import numpy as np

import corruptions
from analysis.frames import Count
from runtime import artifacts, files

LEVELS = {"candidate": 10, "reference": 5}
BENCHMARKS = {"candidate": "cbar_candidates", "reference": "imagenet_c"}


@dataclasses.dataclass(frozen=True)
class Scan:
    """Errors and features of n candidates at 10 levels and of m references at 5.

    Attributes:
      candidates, references: names, each once.
      candidate_errors, reference_errors: percent in [0, 100], float64 [n, 10] and [m, 5].
      candidate_features, reference_features: float32 [n, 10, D] and [m, 5, D].
    """

    candidates: tuple[str, ...]
    candidate_errors: np.ndarray
    candidate_features: np.ndarray
    references: tuple[str, ...]
    reference_errors: np.ndarray
    reference_features: np.ndarray

    def __post_init__(self):
        widths = set()
        for role, levels in LEVELS.items():
            names, errors, features = (getattr(self, f"{role}{part}") for part in ("s", "_errors", "_features"))
            shape = (len(names), levels)
            if not names or len(set(names)) != len(names):
                raise ValueError(f"expected at least one {role}, each once, found {list(names)}")
            if errors.shape != shape or features.ndim != 3 or features.shape[:2] != shape:
                raise ValueError(
                    f"expected errors {shape} and features ({shape[0]}, {shape[1]}, D) of the {role}s, "
                    f"found shapes {errors.shape} and {features.shape}"
                )
            # Written so that NaN is refused too.
            if not np.all((errors >= 0) & (errors <= 100)):
                raise ValueError(f"expected errors of the {role}s in percent, 0..100, found others")
            if not np.isfinite(features).all():
                raise ValueError(f"expected finite features of the {role}s, found NaN or infinity")
            widths.add(features.shape[2])
        if len(widths) > 1:
            raise ValueError(f"expected features of one width, found {sorted(widths)}")


_FIELDS = tuple(field.name for field in dataclasses.fields(Scan))


def write_scan(path: str | pathlib.Path, scan: Scan, origin: str = "") -> None:
    """Writes a scan to NAME.npz atomically, with a sentence on where it comes from."""
    path = pathlib.Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"expected a scan, *.npz, found {path}")
    arrays = {name: np.asarray(getattr(scan, name)) for name in _FIELDS}
    artifacts.write(path, arrays, {"origin": origin})


def read_scan(path: str | pathlib.Path) -> Scan:
    """Reads a scan.

    Raises:
      FileNotFoundError: no such file.
      DamagedFileError: no archive of arrays.
      ValueError: other arrays, or arrays that do not fit each other.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"expected a scan at {path}, found no file")
    arrays, _ = artifacts.read(path)
    kinds = {"s": "U"} | dict.fromkeys(("_errors", "_features"), "fiu")
    expected = {f"{role}{part}": kind for role in LEVELS for part, kind in kinds.items()}
    if arrays.keys() != expected.keys() or any(arrays[name].dtype.kind not in kind for name, kind in expected.items()):
        found = ", ".join(f"{name} {array.dtype}" for name, array in arrays.items())
        raise files.DamagedFileError(f"{path}: expected the arrays {', '.join(_FIELDS)} of a scan, found {found}")
    names = {role: tuple(arrays.pop(role).tolist()) for role in ("candidates", "references")}
    try:
        return Scan(**arrays, **names)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def join(counts: Iterable[Count], centres: Mapping[tuple[str, int], np.ndarray], model: str) -> Scan:
    """Joins the errors of one network, seeds averaged, with the mean features of another.

    Args:
      counts: correct answers to every level of both benchmarks in `BENCHMARKS`.
      centres: (corruption, level) -> mean feature [D] (`analysis.distances.results.read_centres`).
      model: a model of `counts`, by the corruption or scheme that it was trained with.

    Raises:
      ValueError: no such model, or levels that one of the two lacks (some are named).
    """
    counts, errors = list(counts), {}
    for count in counts:
        if count.model == model:
            errors.setdefault((count.corruption, count.severity), []).append(100 * count.error)
    if not errors:
        raise ValueError(f"expected counts of the model {model!r}, found {sorted({count.model for count in counts})}")
    parts = []
    for role, benchmark in BENCHMARKS.items():
        names = corruptions.names(benchmark)
        shape = (len(names), LEVELS[role])
        conditions = [(name, level) for name in names for level in range(1, shape[1] + 1)]
        for what, known in (("errors", errors), ("features", centres)):
            missing = [f"{name} level {level}" for name, level in conditions if (name, level) not in known]
            if missing:
                raise ValueError(
                    f"expected {what} of every level of {benchmark}, missing {len(missing)}: {', '.join(missing[:5])} ..."
                )
        parts += [
            names,
            np.reshape([np.mean(errors[condition]) for condition in conditions], shape),
            np.reshape([centres[condition] for condition in conditions], (*shape, -1)),
        ]
    return Scan(*parts)
