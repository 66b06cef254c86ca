"""Severity scans, from which a benchmark of dissimilar corruptions is selected: errors and features of every level.

    NAME.npz   candidate_errors [n, 10], reference_errors [m, 5]            errors of network M in percent, on the whole test set
               candidate_features [n, 10, D], reference_features [m, 5, D]  mean penultimate features of network Phi
               candidates [n], references [m]                               names of the corruptions

M and Phi are trained with different seeds; each run of the search has its own two networks and its own images.

Groups of five severities and half-sets of five candidates are the first half of the search. Source: E. Mintun, A. Kirillov,
S. Xie, "On Interaction Between Augmentations and Corruptions in Natural Corruption Robustness" (2021), supplements D.1 and D.2
and the released code; where text and code differ (seven groups in the text, six in the code) this is the code.

The inputs of the published rankings are not published. In the released code the features of two CIFAR candidates
(concentric_sine_waves, chromatic_aberration) come from misread parameters, so a ranking may differ for this reason.
"""

import dataclasses
import itertools
import pathlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

import corruptions
from analysis.frames import Counted
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
    """Reads a scan; raises FileNotFoundError, DamagedFileError, or ValueError for arrays that do not fit each other."""
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


def join(counts: Iterable[Counted], centres: Mapping[tuple[str, int], np.ndarray], model: str) -> Scan:
    """Joins the errors of one network, seeds averaged, with the mean features of another.

    `counts` are correct answers to every level of both benchmarks in `BENCHMARKS`; `centres` maps (corruption, level)
    to a mean feature [D] (`analysis.distances.results.read_centres`); `model` is one of `counts`, by the corruption
    or scheme that it was trained with. Raises ValueError for no such model, or levels that one of the two lacks (some
    are named).
    """
    counts, errors = list(counts), {}
    for (name, _), count in counts:
        if name == model:
            errors.setdefault(count[:2], []).append(100 * count.error)
    if not errors:
        raise ValueError(f"expected counts of the model {model!r}, found {sorted({name for (name, _), _ in counts})}")
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


CENTRES = (3, 4, 5, 6, 7, 8)
LEFT_OUT = ("saturate", "spatter", "gaussian_blur", "speckle_noise")  # the extra corruptions of ImageNet-C
HALF = 5
PRECISION = 0.01
_MAX_CANDIDATES = 63  # bits of a mask


class GroupTable(NamedTuple):
    """Six groups of each of n candidates, one for each centre 3..8."""

    names: tuple[str, ...]  # the candidates
    levels: np.ndarray  # the five levels, 1..10, of each group, int [n, 6, 5], increasing; the third is the centre
    error: np.ndarray  # mean error of a group in percent, [n, 6]
    # Mean over a group's levels of the distance to the nearest reference (corruption, level), [n, 6].
    distance: np.ndarray
    spread: float  # mean relative spread of the references' errors over their severities
    references: tuple[str, ...]  # the references that were used


def severity_spread(errors: ArrayLike) -> float:
    """Averages (|e_1 / e_3 - 1| + |e_5 / e_3 - 1|) / 2 over references; errors [m, 5] at severities 1..5."""
    errors = np.asarray(errors, float)
    if errors.ndim != 2 or errors.shape[1] != 5 or not len(errors) or not np.all(errors[:, 2] > 0):
        raise ValueError(f"expected errors [m, 5], above 0 at severity 3, found {errors.tolist()}")
    ratio = errors / errors[:, 2:3] - 1
    return float(np.mean((np.abs(ratio[:, 0]) + np.abs(ratio[:, 4])) / 2))


def severity_groups(errors: ArrayLike, spread: float) -> np.ndarray:
    """Finds the five levels around each centre whose relative errors come nearest to -s, -s/2, 0, s/2, s (s = spread).

    With rho(j) = e_j / e_i - 1 and centre i: the first level is the j <= i - 2 with rho(j) nearest to -s, the fifth
    the j >= i + 2 nearest to s; then the second, between the first and i, is nearest to -s/2, and the fourth, between
    i and the fifth, nearest to s/2. Of equally near levels the larger is taken.

    The errors [10] of levels 1..10 are above 0 at the centres. Returns the levels, int [6, 5], counted from 1.
    """
    errors = np.asarray(errors, float)
    if errors.shape != (10,) or not np.all(errors[CENTRES[0] - 1 : CENTRES[-1]] > 0):
        raise ValueError(f"expected 10 errors, above 0 at levels 3..8, found {errors.tolist()}")
    groups = []
    for centre in CENTRES:
        ratio = errors / errors[centre - 1] - 1
        first = _nearest(ratio, -spread, 1, centre - 2)
        second = _nearest(ratio, -spread / 2, first + 1, centre - 1)
        fifth = _nearest(ratio, spread, centre + 2, len(errors))
        fourth = _nearest(ratio, spread / 2, centre + 1, fifth - 1)
        groups.append((first, second, centre, fourth, fifth))
    return np.array(groups)


def _nearest(ratio, goal, first, last):
    """The level in first..last whose ratio is nearest to the goal; of equals the largest."""
    return last - int(np.argmin(np.abs(goal - ratio[first - 1 : last])[::-1]))


def group_table(scan: Scan) -> GroupTable:
    """Groups the levels of one scan; references in `LEFT_OUT` do not count.

    Raises ValueError where no reference is left, or an error that another is divided by is 0 (it names the candidate).
    """
    kept = [i for i, name in enumerate(scan.references) if name.rpartition("/")[2] not in LEFT_OUT]
    if not kept:
        raise ValueError(f"expected references besides {', '.join(LEFT_OUT)}, found none")
    spread = severity_spread(scan.reference_errors[kept])
    levels = []
    for name, errors in zip(scan.candidates, scan.candidate_errors, strict=True):
        try:
            levels.append(severity_groups(errors, spread))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    levels = np.array(levels)
    nearest = nearest_distance(scan.candidate_features, scan.reference_features[kept])
    rows = np.arange(len(levels))[:, None, None]
    return GroupTable(
        scan.candidates,
        levels,
        scan.candidate_errors[rows, levels - 1].mean(axis=-1),
        nearest[rows, levels - 1].mean(axis=-1),
        spread,
        tuple(scan.references[i] for i in kept),
    )


def nearest_distance(features: ArrayLike, references: ArrayLike) -> np.ndarray:
    """Measures the L2 distance of every feature [..., D] to the nearest of the references [..., D]: float64 [...]."""
    features, references = np.asarray(features, np.float64), np.asarray(references, np.float64)
    width = features.shape[-1]
    distance = cdist(features.reshape(-1, width), references.reshape(-1, width))
    return distance.min(axis=1).reshape(features.shape[:-1])


class HalfSets(NamedTuple):
    """K half-sets, in lexicographic order of their members."""

    members: np.ndarray  # positions of the five candidates, increasing, int8 [K, 5]
    groups: np.ndarray  # which of the six groups each has, int8 [K, 5]
    error: np.ndarray  # mean error in percent, [K]
    distance: np.ndarray  # mean distance to the reference, [K]

    @property
    def masks(self):
        """Members as bits, int64 [K]."""
        return np.bitwise_or.reduce(np.int64(1) << self.members.astype(np.int64), axis=1)


def half_sets(
    error: ArrayLike, distance: ArrayLike, target: float, rng: np.random.Generator, precision: float = PRECISION
) -> HalfSets:
    """Draws for every five candidates one of the choices of groups that meet the target, uniformly, if any does.

    A choice meets it when |5 T - sum of the five group errors| / (5 T) < precision, `target` T in percent, above 0. For
    the first three candidates the 216 sums are sorted; for the last two each of the 36 sums then leaves an interval of
    them. Errors and distances of the groups are [n, 6]; there is at most one half-set for each of the C(n, 5) sets.
    """
    error, distance = np.asarray(error, float), np.asarray(distance, float)
    number, groups = error.shape
    if not HALF <= number <= _MAX_CANDIDATES or distance.shape != error.shape:
        raise ValueError(
            f"expected errors and distances of {HALF}..{_MAX_CANDIDATES} candidates, found shapes {error.shape} "
            f"and {distance.shape}"
        )
    if not target > 0 or not 0 < precision < 1:
        raise ValueError(f"expected a target above 0 and a precision in (0, 1), found {target} and {precision}")
    low, high = HALF * target * (1 - precision), HALF * target * (1 + precision)
    pairs = np.array(list(itertools.combinations(range(number), 2)))
    pair_sums = (error[pairs[:, 0], :, None] + error[pairs[:, 1], None, :]).reshape(len(pairs), -1)
    members, group_choices = [np.zeros((0, HALF), int)], [np.zeros((0, HALF), int)]
    for triple in itertools.combinations(range(number - 2), 3):
        a, b, c = triple
        sums = (error[a][:, None, None] + error[b][:, None] + error[c]).ravel()
        order = np.argsort(sums, kind="stable")
        sums = sums[order]
        start = np.searchsorted(pairs[:, 0], c, side="right")  # pairs of larger candidates are the last ones
        begin = np.searchsorted(sums, low - pair_sums[start:], side="right")
        count = np.maximum(np.searchsorted(sums, high - pair_sums[start:], side="left") - begin, 0)
        total = count.sum(axis=1)
        possible = np.flatnonzero(total)
        if not len(possible):
            continue
        rank = rng.integers(0, total[possible])
        ends = np.cumsum(count[possible], axis=1)
        last = (ends <= rank[:, None]).sum(axis=1)
        inside = rank - (ends[np.arange(len(possible)), last] - count[possible, last])
        first = order[begin[possible, last] + inside]
        members.append(np.column_stack([np.tile(triple, (len(possible), 1)), pairs[start + possible]]))
        digits = np.unravel_index(first, (groups,) * 3) + np.unravel_index(last, (groups,) * 2)
        group_choices.append(np.column_stack(digits))
    members, group_choices = np.concatenate(members), np.concatenate(group_choices)
    means = [values[members, group_choices].mean(axis=1) for values in (error, distance)]
    return HalfSets(members.astype(np.int8), group_choices.astype(np.int8), *means)
