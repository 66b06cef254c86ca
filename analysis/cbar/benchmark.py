"""cbar_benchmark.json: the benchmark that the search over severity scans chose, and the ranking it was chosen by."""

import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

from analysis import figures
from analysis.cbar import half_sets, scans, selection
from runtime.artifacts import record_inputs
from runtime.files import without_nan, write_json

TITLE = "Contribution to the distance (* chosen)"


def select(paths: Sequence[pathlib.Path], target: float, seed: int, out: pathlib.Path) -> tuple[dict[str, Any], str]:
    """Selects a benchmark from scans, writes `out` and beside it the ranking as a figure of its name.

    Args:
      paths, target, seed: as of `measure_runs`.
      out: cbar_benchmark.json.

    Returns:
      (what `out` holds, what to print).

    Raises:
      FileNotFoundError, ValueError: as of `measure_runs`, or no run has a benchmark of the ten.
    """
    runs = measure_runs(paths, target, seed)
    ranking = selection.rank(runs)
    most_distant = selection.choose(runs, [name for name, *_ in ranking[: 2 * half_sets.HALF]], target)
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
            "precision": half_sets.PRECISION,
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


def measure_runs(paths: Iterable[pathlib.Path], target: float, seed: int) -> list[selection.Run]:
    """Reads every scan and measures the contribution of each candidate to the distance in it.

    Args:
      paths: scans, one per run.
      target: mean error of the benchmark to be made, in percent.
      seed: of the random half-sets and benchmarks.

    Raises:
      FileNotFoundError, ValueError: a missing or broken scan, or one without benchmarks that meet the target.
    """
    runs = []
    for number, path in enumerate(tqdm(paths, desc="runs", unit="run", dynamic_ncols=True, disable=None)):
        table = half_sets.group_table(scans.read_scan(path))
        try:
            runs.append(selection.measure(table, target, (seed, number)))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    return runs


def _ranking_text(ranking, runs):
    """Lists all candidates with their contribution, largest first."""
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
    """Lists the members of a benchmark with their levels, its error and its distance."""
    width = max(len(name) for name in benchmark.members)
    return "\n".join(
        [
            f"benchmark of {len(benchmark.members)}, mean error {benchmark.error:.3f} % (target {target:g} %)",
            *(f"{name:{width}}  levels {', '.join(map(str, benchmark.levels[name]))}" for name in benchmark.members),
            f"severities from {paths[benchmark.run]}, one of {benchmark.pairs} pairs of half-sets",
            f"mean distance {benchmark.distance:.4g}; {100 * more_distant:.2f} % of the random benchmarks are more distant",
        ]
    )
