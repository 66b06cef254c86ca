"""Compares two studies of the same corruptions: fine-tuned and trained from scratch, one architecture and another.

    python -m tools.compare --first=runs/noc_cpu --second=runs/noc_finetuned [--threshold=0.1] [--out=FILE]

Reads overlap.csv and overlap_long.csv (and timing.json) of both workdirs. Prints how well the matrices agree over pairs
of corruptions and which benchmarks Algorithm 1 selects from each; writes SECOND/comparison.json.

    python -m tools.compare --first=runs/wrn/msd --second=runs/vgg/msd

compares two feature extractors by the folders of results of tools.msd: ranks of their distances, and how well either's
correlate with error where correlations.csv has them.
"""

import hashlib
import json
import pathlib

import numpy as np
from absl import app, flags

from analysis.comparison import extractors, studies
from analysis.distances.files import read_correlations, read_msd
from analysis.overlap.files import pair_matrix, read_overlap, read_overlap_long, unclipped_matrix
from runtime import command
from runtime.files import write_atomically


def run(first, second, threshold, out=None):
    """Compares two workdirs, prints and writes; returns the content of comparison.json."""
    (names, *one), (_, *other) = _read(first, None), _read(second, first)
    found = studies.agreement(one[1], other[1], names, first_se=one[2], second_se=other[2])
    thresholds = sorted({*np.round(np.arange(0, 1.0001, 0.05), 2).tolist(), threshold})
    benchmarks = studies.benchmark_agreement_sweep(
        one[0], other[0], names, thresholds, first_unclipped=one[1], second_unclipped=other[1]
    )
    seconds = _training_seconds(first, second)
    result = {
        "first": first.name,
        "second": second.name,
        "inputs": _inputs((first, second), "overlap.csv"),
        "matrices": {key: _without_nan(value) for key, value in found._asdict().items()},
        "threshold": threshold,
        "benchmarks": [b._asdict() for b in benchmarks],
        "training_seconds": seconds,
    }
    chosen = next(b for b in benchmarks if b.threshold == threshold)
    _show(found, chosen, benchmarks, seconds)
    _save(out or second / "comparison.json", result)
    return result


def run_extractors(first, second, out=None):
    """Compares two folders of tools.msd, prints and writes; returns the content of comparison.json."""
    rows = [read_msd(folder / "msd.csv") for folder in (first, second)]
    tables = [folder / "correlations.csv" for folder in (first, second)]
    result = {"first": str(first), "second": str(second), "inputs": _inputs((first, second), "msd.csv")}
    for measure in ("msd", "mmd"):
        found = extractors.agreement(*rows, measure)
        result[measure] = {key: _without_nan(value) for key, value in found._asdict().items()}
        print(
            f"{measure}: Spearman {found.spearman:.3f} ({found.interval[0]:.3f} to {found.interval[1]:.3f}) over "
            f"{len(found.schemes)} schemes x {len(found.corruptions)} corruptions; across schemes, mean over corruptions "
            f"{found.ordering:.3f} ({found.ordering_interval[0]:.3f} to {found.ordering_interval[1]:.3f})"
        )
    if all(table.is_file() for table in tables):
        rho = [{row.corruption: row.msd for row in read_correlations(table)} for table in tables]
        shared = [name for name in rho[0] if name in rho[1]]
        result["correlation_with_error"] = {name: [_without_nan(one[name]) for one in rho] for name in shared}
        print("\nSpearman of MSD with error across schemes:  first  second")
        for name in shared:
            print(f"  {name:40s}  {rho[0][name]:+.2f}   {rho[1][name]:+.2f}")
    _save(out or second / "comparison.json", result)
    return result


def _inputs(folders, name):
    return {f"{folder.name}/{name}": hashlib.sha256((folder / name).read_bytes()).hexdigest() for folder in folders}


def _save(path, result):
    write_atomically(path, json.dumps(result, indent=2, allow_nan=False) + "\n")
    print(f"\nwritten to {path}")


def _without_nan(value):
    """JSON has no NaN."""
    if isinstance(value, tuple):
        return [_without_nan(one) for one in value]
    if isinstance(value, dict):
        return {key: _without_nan(one) for key, one in value.items()}
    return None if isinstance(value, float) and np.isnan(value) else value


def _read(workdir, other):
    """(names, overlap, unclipped, se) of a study, in the order of names of `other` when given."""
    names, matrix = read_overlap(workdir / "overlap.csv")
    if other is not None:
        wanted, _ = read_overlap(other / "overlap.csv")
        if set(wanted) != set(names):
            raise ValueError(
                f"expected studies of the same corruptions, found only in one: {', '.join(sorted({*wanted} ^ {*names}))}"
            )
        order = [names.index(name) for name in wanted]
        names, matrix = wanted, matrix[np.ix_(order, order)]
    pairs = read_overlap_long(workdir / "overlap_long.csv")
    se = pair_matrix(pairs, names, lambda pair: pair.se)
    return names, matrix, unclipped_matrix(pairs, names), se


def _training_seconds(first, second):
    """Seconds of training of the models that both studies have but the standard one, which both need; None when not
    recorded."""
    paths = [workdir / "timing.json" for workdir in (first, second)]
    if not all(path.is_file() for path in paths):
        return None
    seconds = [json.loads(path.read_text())["training_seconds"] for path in paths]
    shared = [model for model in seconds[0] if model in seconds[1] and not model.startswith("standard|")]
    return [sum(one[model] for model in shared) for one in seconds] if shared else None


def _show(found, chosen, benchmarks, seconds):
    low, high = found.spearman_interval
    print(f"{found.pairs} pairs of corruptions; undefined in one of the two: {', '.join(found.dropped) or 'none'}")
    print(f"Spearman {found.spearman:.3f} (95 % interval {low:.3f} to {high:.3f}), Pearson {found.pearson:.3f}")
    print(
        f"mean absolute difference {found.mean_difference:.3f}; root mean square difference {found.standardised:.1f} of its "
        "standard errors (about 1: no difference but noise)"
    )
    print(f"\nbenchmarks at threshold {chosen.threshold}: {len(chosen.shared)} shared, Jaccard {chosen.jaccard:.2f}")
    print(f"  first:  {', '.join(chosen.first)}   ({chosen.first_in_second} in the second matrix)")
    print(f"  second: {', '.join(chosen.second)}   ({chosen.second_in_first} in the first matrix)")
    print("Jaccard by threshold: " + ", ".join(f"{b.threshold:.2f}: {b.jaccard:.2f}" for b in benchmarks))
    if seconds:
        print(f"training time {seconds[0]:.0f} s and {seconds[1]:.0f} s: {seconds[0] / seconds[1]:.1f} times")


def define_flags():
    """The flags of the script; other scripts that import it have their own."""
    flags.DEFINE_string("first", None, "Workdir of a study, or a folder of tools.msd (required).")
    flags.DEFINE_string("second", None, "Another one of the same corruptions (required).")
    flags.DEFINE_float("threshold", 0.1, "Largest overlap allowed between two members of a benchmark.")
    flags.DEFINE_string("out", None, "Where to write; default comparison.json in the second workdir.")


def main(argv):
    given = command.given(argv, {"first": "WORKDIR", "second": "WORKDIR"})
    out = None if given.out is None else pathlib.Path(given.out)
    with command.errors():
        first, second = pathlib.Path(given.first), pathlib.Path(given.second)
        if (first / "msd.csv").is_file():
            run_extractors(first, second, out)
        else:
            run(first, second, given.threshold, out)


if __name__ == "__main__":
    define_flags()
    app.run(main)
