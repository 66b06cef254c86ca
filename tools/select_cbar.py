"""Selects ten corruptions far from a reference benchmark, as C-bar benchmarks are made.

    python -m tools.select_cbar --scan="scans/run*.csv" --target=26.9 [--seed=0] [--out=FILE]

Every scan is one run: errors of a network on all candidates (10 levels) and references (5 levels),
NAME.csv, and features of another, NAME.npz (see analysis/cbar/scans.py). --scan may be given
several times. The target is the mean error of a standard network on the reference benchmark, in
percent. Prints the ranking and the chosen benchmark with its levels, and writes them to FILE
(default: cbar_benchmark.json beside the first scan), the ranking also as a figure beside it. About
one second for each run. tools.search_cbar does all of it, from the training of the networks on.
"""

from runtime import command  # isort: skip

import glob
import pathlib

from absl import flags

from analysis.cbar import benchmark


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
    content, text = benchmark.select(paths, target, seed, out or paths[0].with_name("cbar_benchmark.json"))
    print(text)
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
