"""Selects a benchmark of corruptions that do not overlap: Algorithm 1 on measured overlaps.

    python select_noc.py --workdir=DIR --threshold=0.1 [--strict] [--sweep] [--out=FILE]
    python select_noc.py --workdir=DIR --coverage=imagenet_c
    python select_noc.py --overlap=MATRIX.csv --categories --nk=6,2,1000 [--nk_unbalanced]

Takes the overlaps of a workdir of overlap.py, computed from its answers, or a matrix of your own as CSV (the header
`corruption` and the names, a row for each name). Prints the benchmark and writes it to FILE (default: benchmark.json
in the workdir, or beside the matrix). Of a workdir, and where overlap_long.csv lies beside a matrix, ties are broken
by the unclipped overlap, pairs of members that are within two standard errors of the threshold are reported, coverage
is tested, and corruptions with a weak gain are marked. Another threshold than the study's writes benchmark_THRESHOLD.json
beside its benchmark.json. Coverage is written to coverage.json; benchmark.json then does not change, unless --out names it.
"""

from runtime import command  # isort: skip

import pathlib

from absl import app, flags

from analysis.overlap.measured import read_overlap
from analysis.references import BENCHMARKS
from analysis.selection.benchmark import select_benchmark
from runtime.artifacts import read_record
from runtime.workdirs import read_config

THRESHOLD = 0.1


def main(argv):
    given = command.given(argv)
    if bool(given.workdir) == bool(given.overlap):
        raise app.UsageError("expected --workdir=DIR or --overlap=FILE")
    if given.workdir:
        from analysis.overlap.study import read_study  # imports JAX, which takes seconds

        folder, measured = pathlib.Path(given.workdir), read_study(pathlib.Path(given.workdir)).measured
        choice = read_config(folder).get("study", {})
    else:
        folder, measured = pathlib.Path(given.overlap).parent, read_overlap(given.overlap)
        known = folder / "benchmark.json"
        choice = read_record(known, by_hand=True) if known.is_file() else {}
    threshold = choice.get("threshold", THRESHOLD) if given.threshold is None else given.threshold
    asked = threshold, given.strict
    known = (choice.get("threshold", threshold), choice.get("strict", False)) if choice else asked
    name = "benchmark.json" if asked == known else f"benchmark_{threshold:g}{'_strict' * given.strict}.json"
    others = "strict", "sweep", "categories", "coverage", "nk", "nk_unbalanced"
    asked = {other: getattr(given, other) for other in others} | {"threshold": threshold}
    out = pathlib.Path(given.out) if given.out else folder / name
    select_benchmark(measured, out, **asked, kept=given.coverage is not None and given.out is None)


if __name__ == "__main__":
    flags.DEFINE_string("workdir", None, "Workdir of overlap.py.")
    flags.DEFINE_string("overlap", None, "CSV file of overlaps, instead of a workdir.")
    flags.DEFINE_float(
        "threshold", None, f"Largest overlap allowed between two members; default the study's, or {THRESHOLD}."
    )
    flags.DEFINE_bool("strict", False, "Demand an overlap below the threshold, not equal.")
    flags.DEFINE_bool("sweep", False, "Also print the selection at thresholds 0, .05, ... 1.")
    flags.DEFINE_bool("categories", False, "Also cluster the candidates into categories.")
    flags.DEFINE_string(
        "coverage",
        None,
        "Also test which candidates a benchmark covers: a benchmark.json, names with commas between them, "
        f"or one of {', '.join(BENCHMARKS)}.",
    )
    flags.DEFINE_string("nk", None, "n,k,N: also write N random benchmarks of n categories of k, beside FILE.")
    flags.DEFINE_bool("nk_unbalanced", False, "With --nk: add less balanced ones of the same size.")
    flags.DEFINE_string("out", None, "Where to write; default benchmark.json in the workdir or beside the matrix.")
    command.run(main)
