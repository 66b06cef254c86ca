"""The search for a benchmark of given mean error whose corruptions lie far from a reference benchmark.

Each run (its own networks and images; `analysis.cbar.half_sets`) gives half-sets of five candidates, each with a group
of severities, and 100,000 benchmarks of two disjoint half-sets. A corruption's contribution is by how much benchmarks
with it are more distant. The ten of largest contribution, averaged over runs, are chosen; among the ways to cut them
into two half-sets the one whose error is closest to the target gives the severities.

Source: E. Mintun, A. Kirillov, S. Xie, "On Interaction Between Augmentations and Corruptions in Natural Corruption
Robustness" (2021), supplement D.2 and the released code. As in the code, the 1 % around the target error T is relative
and holds for each half-set. Averages over runs go by name.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from analysis.cbar.half_sets import HALF, PRECISION, GroupTable, HalfSets, half_sets

CANDIDATES = 100_000
_BLOCK = 1 << 17
_ATTEMPTS = 1000  # draws per benchmark after which disjoint half-sets are taken not to exist


class Run(NamedTuple):
    """The result of one run.

    Attributes:
      table: its `analysis.cbar.half_sets.GroupTable`.
      halves: its `HalfSets`.
      contribution: name -> contribution in standard deviations; NaN when no benchmark holds the candidate.
      distances: distances of its random benchmarks, [100,000].
    """

    table: GroupTable
    halves: HalfSets
    contribution: dict[str, float]
    distances: np.ndarray


class Choice(NamedTuple):
    """A benchmark of ten.

    Attributes:
      members: names, largest contribution first.
      levels: name -> its five levels.
      run: position of the run whose half-sets it is made of.
      error, distance: averages of the two half-sets.
      pairs: how many pairs of half-sets of all runs it was chosen from.
    """

    members: tuple[str, ...]
    levels: dict[str, tuple[int, ...]]
    run: int
    error: float
    distance: float
    pairs: int


def random_benchmarks(halves: HalfSets, rng: np.random.Generator, number: int = CANDIDATES) -> np.ndarray:
    """Draws pairs of half-sets without a common member, uniformly with replacement: positions int [number, 2].

    Raises:
      ValueError: no half-sets, or no disjoint ones after very many draws.
    """
    masks, pairs, drawn = halves.masks, [], 0
    missing = number
    while missing and len(masks) and drawn < _ATTEMPTS * number:
        pair = rng.integers(0, len(masks), (_BLOCK, 2))
        disjoint = (masks[pair[:, 0]] & masks[pair[:, 1]]) == 0
        pairs.append(pair[disjoint][:missing])
        missing -= len(pairs[-1])
        drawn += _BLOCK
    if missing:
        raise ValueError(
            f"expected {number} benchmarks of two disjoint half-sets that meet the target error, found "
            f"{number - missing} in {drawn} draws from {len(masks)} half-sets"
        )
    return np.concatenate(pairs)


def contributions(holds: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Computes (mean distance of benchmarks with the candidate - mean of all) / population standard deviation of all.

    Args:
      holds: which benchmark holds which candidate, bool [b, n].
      distance: of the benchmarks, [b].

    Returns:
      float64 [n]; NaN for a candidate in no benchmark.
    """
    deviation = np.std(distance)
    if not deviation > 0:
        raise ValueError("expected benchmarks of different distances, found all equal")
    count = holds.sum(axis=0)
    with np.errstate(invalid="ignore"):
        return (holds.T @ (distance - distance.mean()) / count) / deviation


def measure(
    table: GroupTable, target: float, seed: int | Sequence[int], number: int = CANDIDATES, precision: float = PRECISION
) -> Run:
    """Makes one run of the search: half-sets, random benchmarks and contributions. `seed`: int or a sequence of them."""
    rng = np.random.default_rng(seed)
    halves = half_sets(table.error, table.distance, target, rng, precision)
    pairs = random_benchmarks(halves, rng, number)
    distance = halves.distance[pairs].mean(axis=1)
    masks = np.bitwise_or.reduce(halves.masks[pairs], axis=1)
    holds = (masks[:, None] >> np.arange(len(table.names)) & 1).astype(bool)
    values = contributions(holds, distance)
    return Run(table, halves, dict(zip(table.names, values.tolist(), strict=True)), distance)


def rank(runs: Sequence[Run]) -> list[tuple[str, float, float]]:
    """Ranks candidates by contribution averaged over runs, largest first: (name, mean, standard error over runs).

    A candidate counts in the runs whose benchmarks hold it; with none it comes last, with NaN. Ties go by name. The
    standard error is NaN for fewer than two runs.

    Raises:
      ValueError: runs of different candidates.
    """
    names = set(runs[0].contribution)
    for run in runs:
        if set(run.contribution) != names:
            different = sorted(names ^ set(run.contribution))
            raise ValueError(f"expected the same candidates in every run, found {different} in some only")
    ranking = []
    for name in names:
        values = np.array([run.contribution[name] for run in runs])
        values = values[~np.isnan(values)]
        mean = float(values.mean()) if len(values) else float("nan")
        error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
        ranking.append((name, mean, error))
    return sorted(ranking, key=lambda item: (np.isnan(item[1]), -item[1], item[0]))


def choose(runs: Sequence[Run], members: Sequence[str], target: float) -> Choice:
    """Chooses, of all pairs of disjoint half-sets of a run within `members`, the one whose error is closest to the
    target.

    Only severities are left to choose. Ties go to the earlier run, then to the half-sets that come first.

    Args:
      runs, target: results of `measure`, and T in percent.
      members: ten names.

    Raises:
      ValueError: not ten names of the runs, or no run has such a pair.
    """
    members = tuple(members)
    if len(set(members)) != 2 * HALF or set(members) - set(runs[0].contribution):
        raise ValueError(f"expected {2 * HALF} different candidates of the runs, found {list(members)}")
    best, pairs = None, 0
    for number, (table, halves, *_) in enumerate(runs):
        allowed = sum(1 << table.names.index(name) for name in members)
        masks = halves.masks
        inside = np.flatnonzero(masks & ~allowed == 0)
        first, second = np.nonzero(np.triu((masks[inside, None] & masks[inside]) == 0, 1))
        if not len(first):
            continue
        pairs += len(first)
        error = (halves.error[inside[first]] + halves.error[inside[second]]) / 2
        k = int(np.argmin(np.abs(error - target)))
        if best is None or abs(error[k] - target) < abs(best[2] - target):
            best = number, (inside[first[k]], inside[second[k]]), float(error[k])
    if best is None:
        raise ValueError(f"expected two half-sets of some run that together are {', '.join(members)}, found none")
    number, both, error = best
    table, halves = runs[number].table, runs[number].halves
    levels = {
        table.names[c]: tuple(table.levels[c, g].tolist())
        for h in both
        for c, g in zip(halves.members[h], halves.groups[h], strict=True)
    }
    distance = float(halves.distance[list(both)].mean())
    return Choice(members, {name: levels[name] for name in members}, number, error, distance, pairs)
