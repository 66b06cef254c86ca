"""The search for a benchmark of given mean error whose corruptions lie far from a reference benchmark.

Each run (its own networks and images; `analysis.cbar.scans`) gives half-sets of five candidates, each with a group
of severities, and 100,000 benchmarks of two disjoint half-sets. A corruption's contribution is by how much benchmarks
with it are more distant. The ten of largest contribution, averaged over runs, are chosen; among the ways to cut them
into two half-sets the one whose error is closest to the target gives the severities.

Source: E. Mintun, A. Kirillov, S. Xie, "On Interaction Between Augmentations and Corruptions in Natural Corruption
Robustness" (2021), supplement D.2 and the released code. As in the code, the 1 % around the target error T is relative
and holds for each half-set. Averages over runs go by name. cbar_benchmark.json holds the chosen benchmark and the ranking.
"""

import pathlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from analysis import figures
from analysis.cbar import scans
from analysis.cbar.scans import HALF, PRECISION, GroupTable, HalfSets, group_table, half_sets
from runtime.artifacts import record_inputs
from runtime.files import without_nan, write_json
from runtime.log import bar

CANDIDATES = 100_000
_BLOCK = 1 << 17
_ATTEMPTS = 1000  # draws per benchmark after which disjoint half-sets are taken not to exist


class Run(NamedTuple):
    """The result of one run."""

    table: GroupTable  # its `analysis.cbar.scans.GroupTable`
    halves: HalfSets  # its `HalfSets`
    # Name -> contribution in standard deviations; NaN when no benchmark holds the candidate.
    contribution: dict[str, float]
    distances: np.ndarray  # distances of its random benchmarks, [100,000]


class Choice(NamedTuple):
    """A benchmark of ten."""

    members: tuple[str, ...]  # names, largest contribution first
    levels: dict[str, tuple[int, ...]]  # name -> its five levels
    run: int  # position of the run whose half-sets it is made of
    # error, distance: averages of the two half-sets.
    error: float
    distance: float
    pairs: int  # how many pairs of half-sets of all runs it was chosen from


def random_benchmarks(halves: HalfSets, rng: np.random.Generator, number: int = CANDIDATES) -> np.ndarray:
    """Draws pairs of half-sets without a common member, uniformly with replacement: positions int [number, 2].

    Raises ValueError for no half-sets, or no disjoint ones after very many draws.
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

    `holds`, bool [b, n], says which benchmark holds which candidate; distances are [b]. Returns float64 [n]; NaN for a
    candidate in no benchmark.
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
    standard error is NaN for fewer than two runs. Raises ValueError for runs of different candidates.
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

    Only severities are left to choose. Ties go to the earlier run, then to the half-sets that come first. The target is
    in percent. Raises ValueError unless `members` are ten names of the runs, and some run has such a pair.
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


TITLE = "Contribution to the distance (* chosen)"


def select(paths: Sequence[pathlib.Path], target: float, seed: int, out: pathlib.Path) -> tuple[dict[str, Any], str]:
    """Selects a benchmark from scans, writes `out` and beside it the ranking as a figure of its name.

    Takes the arguments of `measure_runs`, and raises as that does, or ValueError if no run has a benchmark of the ten.
    Returns (what `out`, cbar_benchmark.json, holds; what to print).
    """
    runs = measure_runs(paths, target, seed)
    ranking = rank(runs)
    most_distant = choose(runs, [name for name, *_ in ranking[: 2 * HALF]], target)
    more_distant = float(np.mean([np.mean(run.distances > most_distant.distance) for run in runs]))
    found = without_nan(
        {
            "members": {name: list(levels) for name, levels in most_distant.levels.items()},
            "error": most_distant.error,
            "target": target,
            "distance": most_distant.distance,
            "fraction_of_random_benchmarks_more_distant": more_distant,
            "severities_from": str(paths[most_distant.run]),
            "pairs_to_choose_from": most_distant.pairs,
            "ranking": [{"name": name, "contribution": mean, "standard_error": se} for name, mean, se in ranking],
            "runs": [
                {
                    "scan": str(path),
                    "references": list(run.table.references),
                    "severity_spread": run.table.spread,
                    "half_sets": len(run.halves.error),
                    "random_benchmarks": len(run.distances),
                    "distance_mean": float(run.distances.mean()),
                    "distance_std": float(run.distances.std()),
                }
                for path, run in zip(paths, runs, strict=True)
            ],
            "precision": PRECISION,
            "seed": seed,
            **record_inputs({str(path): path for path in paths}),
        }
    )
    write_json(out, found)
    names = [name + (" *" if name in most_distant.members else "") for name, *_ in ranking]
    values, errors = np.array([row[1:] for row in ranking]).T
    unit = "standard deviations"
    panel = figures.Panel(unit, values, se=errors if len(runs) > 1 else None)
    figure, _ = figures.bars(names, [panel], title=TITLE, members=[name for name in names if name.endswith(" *")])
    figures.save(figure, out.with_suffix(""))
    texts = (_ranking_text(ranking, runs), _benchmark_text(most_distant, target, paths, more_distant))
    return found, "\n\n".join((*texts, f"written to {out}"))


def measure_runs(paths: Iterable[pathlib.Path], target: float, seed: int) -> list[Run]:
    """Reads every scan, one per run, and measures the contribution of each candidate to the distance in it.

    The benchmark to be made has the mean error `target`, in percent; `seed` is of the random half-sets and benchmarks.
    Raises FileNotFoundError or ValueError for a missing or broken scan, or one without benchmarks that meet the target.
    """
    runs = []
    for number, path in enumerate(bar("run", paths)):
        table = group_table(scans.read_scan(path))
        try:
            runs.append(measure(table, target, (seed, number)))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    return runs


def _ranking_text(ranking, runs):
    width = max(len(name) for name, *_ in ranking)
    lines = [
        f"{len(ranking)} candidates, {len(runs)} run(s); contribution to the distance, in standard deviations",
        f"{'rank':>4}  {'candidate':{width}}  contribution",
    ]
    for rank, (name, mean, se) in enumerate(ranking, 1):
        error = f" +- {se:.3f}" if np.isfinite(se) else ""
        lines.append(f"{rank:4d}  {name:{width}}  {mean:+.3f}{error}")
    return "\n".join(lines)


def _benchmark_text(benchmark, target, paths, more_distant):
    width = max(len(name) for name in benchmark.members)
    return "\n".join(
        [
            f"benchmark of {len(benchmark.members)}, mean error {benchmark.error:.3f} % (target {target:g} %)",
            *(f"{name:{width}}  levels {', '.join(map(str, benchmark.levels[name]))}" for name in benchmark.members),
            f"severities from {paths[benchmark.run]}, one of {benchmark.pairs} pairs of half-sets",
            f"mean distance {benchmark.distance:.4g}; {100 * more_distant:.2f} % of the random benchmarks are more distant",
        ]
    )
