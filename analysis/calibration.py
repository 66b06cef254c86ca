"""Severity calibration: the range of a corruption over which a standard model's robustness R falls from .95 to .50.

Source: Laugros, Caplier, Ospici, "Increasing the Coverage and Balance of Robustness Benchmarks by Using
Non-Overlapping Corruptions", appendix A. R(v) = A(v) / A(clean) with every image at severity v.
"""

import itertools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from analysis.frames import with_error
from runtime.files import NULL, Either, mismatch

TARGETS = (0.95, 0.50)
TOLERANCE = 0.005
_GRID = 9
_BISECTIONS = 20
_NUMBER, _PAIR = Either(float, NULL), (float, float)
CALIBRATED = {  # shape of a corruption's entry in ranges.json
    "range": _PAIR,
    "unit": str,
    "robustness": _PAIR,
    "robustness_se": (_NUMBER, _NUMBER),
    "mean_robustness": float,
    "mean_robustness_se": _NUMBER,
    "monotone": bool,
    "capped": (bool, bool),
}


class Calibration(NamedTuple):
    """The range found for one corruption."""

    range: tuple[float, float]  # (mild, severe)
    robustness: tuple[float, float]  # R at both ends
    # For both ends, whether no value of the domain reaches the target: R of the mildest value is below it, or R
    # of the most severe value above it.
    capped: tuple[bool, bool]
    monotone: bool  # whether R fell along the coarse grid, up to `noise`. If not, each end is the mildest crossing.
    evaluations: tuple[tuple[float, float], ...]  # (v, R) of every evaluation, from mild to severe


def calibrate(
    robustness: Callable[[float], float],
    domain: tuple[float, float],
    *,
    integer: bool = False,
    targets: tuple[float, float] = TARGETS,
    noise: float = 0.0,
) -> Calibration:
    """Finds the values at which R reaches two targets: a coarse grid, then bisection (whole values: the nearest).

    `robustness` is v -> R(v), deterministic (common random numbers), evaluated once for each v; `targets` are R at
    the mild and at the severe end, descending within (0, 1). `domain` is a (mildest, most severe) value, which
    differ; severity may run downwards (quantization: 255 to 1). With `integer` v is whole; then the two ends are at
    least 1 apart where the domain allows. The bisection of a real parameter ends at |R - target| <= `TOLERANCE`;
    rises of R up to `noise` between neighbours of the grid do not count as non-monotone.
    """
    mildest, severest = domain
    if not 1 > targets[0] > targets[1] > 0:
        raise ValueError(f"expected two targets with 1 > mild > severe > 0, found {targets}")
    if mildest == severest:
        raise ValueError(f"expected a domain of more than one value, found {domain}")
    search = _Search(robustness, domain, integer)
    steps = abs(severest - mildest)
    count = int(min(_GRID, steps + 1)) if integer else _GRID
    grid = [search.at(k / (count - 1)) for k in range(count)]
    falls = [search.value(v) for v in grid]
    monotone = all(after <= before + noise for before, after in itertools.pairwise(falls))
    ends, capped = zip(*(search.crossing(grid, target) for target in targets))
    if integer and ends[0] == ends[1]:
        ends = search.apart(ends[0])
    values = tuple(search.value(v) for v in ends)
    sign = 1 if severest > mildest else -1
    evaluations = tuple(sorted(search.known.items(), key=lambda item: sign * item[0]))
    return Calibration(ends, values, capped, monotone, evaluations)


def ranges_frame(content: Mapping[str, Any]) -> pd.DataFrame:
    """Tabulates the content of ranges.json as text: the ranges, the robustness at their ends, and warnings.

    A range that was given and not calibrated has no robustness.
    """
    rows = []
    for name, entry in content["corruptions"].items():
        bounds, ends = [f"{value:.4g}" for value in entry["range"]], ["\N{EN DASH}"] * 3
        notes = "given, not calibrated"
        if not mismatch(entry, CALIBRATED):
            ends = [with_error(r, se) for r, se in zip(entry["robustness"], entry["robustness_se"])]
            ends.append(with_error(entry["mean_robustness"], entry["mean_robustness_se"]))
            notes = "; ".join(_notes(entry, content.get("targets", TARGETS)))
        rows.append((name, *bounds, entry.get("unit", ""), *ends, notes))
    return pd.DataFrame(rows, columns=["corruption", "mild", "severe", "unit", "R mild", "R severe", "R mean", "notes"])


def _notes(entry, targets):
    """Lists warnings about the ends of a range at which R misses its target."""
    notes = []
    ends = zip(("mild", "severe"), entry["robustness"], entry["robustness_se"], targets, entry["capped"])
    for end, r, se, target, capped in ends:
        if capped:
            notes.append(f"{end} target out of reach")
        elif abs(r - target) > 2 * (se or 0):
            notes.append(f"{end} target not met: the parameter goes by steps")
    return notes + ([] if entry["monotone"] else ["R does not fall monotonically: mildest crossing"])


class _Search:
    """R by severity position u in [0, 1] (mildest to most severe), remembered."""

    def __init__(self, robustness, domain, integer):
        self._robustness, self._domain, self._integer = robustness, domain, integer
        self.known = {}

    def at(self, u):
        """The value at a position."""
        v = self._domain[0] + u * (self._domain[1] - self._domain[0])
        return round(v) if self._integer else v

    def value(self, v):
        if v not in self.known:
            self.known[v] = float(self._robustness(v))
        return self.known[v]

    def crossing(self, grid, target):
        """(v, capped): the mildest v at which R falls to the target."""
        below = next((k for k, v in enumerate(grid) if self.value(v) <= target), None)
        if below is None:
            return grid[-1], True
        if below == 0:
            return grid[0], self.value(grid[0]) < target - TOLERANCE
        mild, severe = grid[below - 1], grid[below]
        for _ in range(_BISECTIONS):
            if self._integer and abs(severe - mild) <= 1:
                break
            middle = (mild + severe) // 2 if self._integer else (mild + severe) / 2
            reached = self.value(middle)
            if not self._integer and abs(reached - target) < TOLERANCE:
                return middle, False
            mild, severe = (mild, middle) if reached <= target else (middle, severe)
        return min((mild, severe), key=lambda v: abs(self.value(v) - target)), False

    def apart(self, v):
        """Two neighbouring whole values, `v` and a more severe one, or a milder one where `v` is the most severe."""
        step = 1 if self._domain[1] > self._domain[0] else -1
        return (v - step, v) if v == self._domain[1] else (v, v + step)
