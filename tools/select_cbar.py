"""Selects ten corruptions of given mean error that lie far from a reference benchmark (how C-bar benchmarks are made).

    python -m tools.select_cbar --scan="scans/run*.csv" --target=26.9 [--seed=0] [--out=FILE]

Every scan is one run: errors of a network on all candidates (10 levels) and references (5 levels), NAME.csv, and
features of another, NAME.npz (see analysis/cbar/scans.py). --scan may be given several times. The target is the mean
error of a standard network on the reference benchmark, in percent. Prints the ranking and the chosen benchmark with its
levels, and writes them to FILE (default: cbar_benchmark.json beside the first scan). About one second for each run.
"""

import glob
import pathlib

import numpy as np
from absl import app, flags
from tqdm import tqdm

from analysis.cbar import groups, half_sets, scans, selection
from runtime import command, files
from runtime.provenance import record_inputs


def define_flags():
    """The flags of the script; other scripts that import it have their own."""
    flags.DEFINE_multi_string("scan", [], "Table of a scan, or a pattern of such; one per run (required).")
    flags.DEFINE_float("target", None, "Mean error of the benchmark to be made, in percent (required).")
    flags.DEFINE_integer("seed", 0, "Of the random half-sets and benchmarks.")
    flags.DEFINE_string("out", None, "Where to write; default cbar_benchmark.json beside the first scan.")


def main(argv):
    given = command.given(argv, {"scan": "FILE", "target": "PERCENT"})
    with command.errors():
        out = None if given.out is None else pathlib.Path(given.out)
        run(_paths(given.scan), given.target, given.seed, out)


def run(paths, target, seed=0, out=None):
    """Selects, prints and writes; returns the content of the file."""
    runs = []
    for number, path in enumerate(tqdm(paths, desc="runs", unit="run", dynamic_ncols=True)):
        table = groups.group_table(scans.read_scan(path))
        try:
            runs.append(selection.measure(table, target, (seed, number)))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    ranking = selection.rank(runs)
    _show_ranking(ranking, runs)
    chosen = selection.choose(runs, [name for name, *_ in ranking[: 2 * half_sets.HALF]], target)
    more_distant = float(np.mean([np.mean(one.distances > chosen.distance) for one in runs]))
    _show(chosen, target, paths, more_distant)
    result = {
        "members": {name: list(levels) for name, levels in chosen.levels.items()},
        "error": chosen.error,
        "target": target,
        "distance": chosen.distance,
        "fraction_of_random_benchmarks_more_distant": more_distant,
        "severities_from": str(paths[chosen.run]),
        "pairs_to_choose_from": chosen.pairs,
        "ranking": [{"name": name, "contribution": mean, "standard_error": se} for name, mean, se in ranking],
        "runs": [
            {
                "scan": str(path),
                "references": list(one.table.references),
                "severity_spread": one.table.spread,
                "half_sets": len(one.halves.error),
                "random_benchmarks": len(one.distances),
                "distance_mean": float(one.distances.mean()),
                "distance_std": float(one.distances.std()),
            }
            for path, one in zip(paths, runs, strict=True)
        ],
        "precision": half_sets.PRECISION,
        "seed": seed,
        **record_inputs({str(p): p for path in paths for p in (path, scans.features_path(path))}),
    }
    out = paths[0].with_name("cbar_benchmark.json") if out is None else out
    result = files.without_nan(result)
    files.write_json(out, result)
    print(f"\nwritten to {out}")
    return result


def _paths(patterns):
    """Every file that a pattern names, sorted within a pattern, each once; a plain name stands for itself."""
    found = []
    for pattern in patterns:
        matches = sorted(glob.glob(pattern)) if glob.has_magic(pattern) else [pattern]
        if not matches:
            raise FileNotFoundError(f"expected scans at {pattern}, found no file")
        found += map(pathlib.Path, matches)
    return list(dict.fromkeys(found))


def _show_ranking(ranking, runs):
    width = max(len(name) for name, *_ in ranking)
    print(f"{len(ranking)} candidates, {len(runs)} run(s); contribution to the distance, in standard deviations")
    print(f"{'rank':>4}  {'candidate':{width}}  contribution")
    for place, (name, mean, se) in enumerate(ranking, 1):
        error = f" +- {se:.3f}" if np.isfinite(se) else ""
        print(f"{place:4d}  {name:{width}}  {mean:+.3f}{error}")


def _show(chosen, target, paths, more_distant):
    width = max(len(name) for name in chosen.members)
    print(f"\nbenchmark of {len(chosen.members)}, mean error {chosen.error:.3f} % (target {target:g} %)")
    for name in chosen.members:
        print(f"{name:{width}}  levels {', '.join(map(str, chosen.levels[name]))}")
    print(f"severities from {paths[chosen.run]}, one of {chosen.pairs} pairs of half-sets")
    print(f"mean distance {chosen.distance:.4g}; {100 * more_distant:.2f} % of the random benchmarks are more distant")


if __name__ == "__main__":
    define_flags()
    app.run(main)
