"""Selects ten corruptions far from a reference benchmark, as C-bar benchmarks are made.

    python -m tools.select_cbar --scan="scans/run*.csv" --target=26.9 [--seed=0] [--out=FILE]

Every scan is one run: errors of a network on all candidates (10 levels) and references (5 levels),
NAME.csv, and features of another, NAME.npz (see analysis/cbar/scans.py). --scan may be given
several times. The target is the mean error of a standard network on the reference benchmark, in
percent. Prints the ranking and the chosen benchmark with its levels, and writes them to FILE
(default: cbar_benchmark.json beside the first scan). About one second for each run.
"""

from runtime import command  # isort: skip

import glob
import pathlib

from absl import flags

from analysis.cbar import benchmark, selection
from runtime.files import write_json


def define_flags():
    flags.DEFINE_multi_string("scan", [], "Table of a scan, or a pattern of such; one per run (required).")
    flags.DEFINE_float("target", None, "Mean error of the benchmark to be made, in percent (required).")
    flags.DEFINE_integer("seed", 0, "Of the random half-sets and benchmarks.")
    flags.DEFINE_string("out", None, "Where to write; default cbar_benchmark.json beside the first scan.")


def main(argv):
    given = command.given(argv, {"scan": "FILE", "target": "PERCENT"})
    out = None if given.out is None else pathlib.Path(given.out)
    run(_paths(given.scan), given.target, given.seed, out)


def run(paths, target, seed=0, out=None):
    """Selects, prints and writes; returns the content of the file."""
    runs = benchmark.measure_runs(paths, target, seed)
    ranking = selection.rank(runs)
    print(benchmark.ranking_text(ranking, runs))
    most_distant = benchmark.choose_most_distant(runs, ranking, target)
    content = benchmark.content(most_distant, ranking, runs, paths, target, seed)
    more_distant = content["fraction_of_random_benchmarks_more_distant"]
    print(f"\n{benchmark.benchmark_text(most_distant, target, paths, more_distant)}")
    out = paths[0].with_name("cbar_benchmark.json") if out is None else out
    write_json(out, content)
    print(f"\nwritten to {out}")
    return content


def _paths(patterns):
    """Lists every file that a pattern names, sorted within a pattern, each once; a plain name
    stands for itself.
    """
    paths = []
    for pattern in patterns:
        matches = sorted(glob.glob(pattern)) if glob.has_magic(pattern) else [pattern]
        if not matches:
            raise FileNotFoundError(f"expected scans at {pattern}, found no file")
        paths += map(pathlib.Path, matches)
    return list(dict.fromkeys(paths))


if __name__ == "__main__":
    define_flags()
    command.run(main)
