"""Selects a benchmark of corruptions that do not overlap: Algorithm 1 on a measured matrix.

    python select_noc.py --overlap=DIR/overlap.csv --threshold=0.1 [--strict] [--sweep] [--out=FILE]
    python select_noc.py --overlap=DIR/overlap.csv --coverage=imagenet_c
    python select_noc.py --overlap=DIR/overlap.csv --categories --nk=6,2,1000 [--nk_unbalanced]

Prints the benchmark and writes it to FILE (default: benchmark.json beside the matrix). Where
overlap_long.csv lies beside the matrix, ties are broken by the unclipped overlap in it, pairs of
members that are within two standard errors of the threshold are reported, and coverage is tested.
Coverage is written to coverage.json; benchmark.json then stays as it is, unless --out says so.
"""

from runtime import command  # isort: skip

from absl import flags

from analysis.references import BENCHMARKS
from analysis.selection.benchmark import select_benchmark


def define_flags():
    flags.DEFINE_string("overlap", None, "overlap.csv of a study (required).")
    flags.DEFINE_float("threshold", 0.1, "Largest overlap allowed between two members.")
    flags.DEFINE_bool("strict", False, "Demand an overlap below the threshold, not equal.")
    flags.DEFINE_bool("sweep", False, "Also print the selection at thresholds 0, .05, ... 1.")
    flags.DEFINE_bool("categories", False, "Also cluster the candidates into categories.")
    flags.DEFINE_string(
        "coverage",
        None,
        "Also test which candidates a benchmark covers: a benchmark.json, names with commas between them, "
        f"or one of {', '.join(BENCHMARKS)}.",
    )
    flags.DEFINE_string(
        "nk", None, "n,k,N: also write N random benchmarks of n categories with k members each, beside FILE."
    )
    flags.DEFINE_bool(
        "nk_unbalanced",
        False,
        "With --nk: add less balanced ones of the same size, by standard deviation of the counts.",
    )
    flags.DEFINE_string("out", None, "Where to write; default benchmark.json beside the matrix.")


def main(argv):
    given = command.given(argv, {"overlap": "FILE"})
    select_benchmark(
        given.overlap,
        given.threshold,
        given.strict,
        given.sweep,
        given.out,
        categories=given.categories,
        coverage=given.coverage,
        nk=given.nk,
        nk_unbalanced=given.nk_unbalanced,
    )


if __name__ == "__main__":
    define_flags()
    command.run(main)
