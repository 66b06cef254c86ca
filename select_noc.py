"""Selects a benchmark of corruptions that do not overlap: Algorithm 1 on a measured matrix.

    python select_noc.py --overlap=DIR/overlap.csv --threshold=0.1 [--strict] [--sweep] [--out=FILE]

Prints the benchmark and writes it to FILE (default: benchmark.json beside the matrix). Where
overlap_long.csv lies beside the matrix, ties are broken by the unclipped overlap in it, and pairs of
members that are within two standard errors of the threshold are reported.
"""

import datetime
import hashlib
import itertools
import json
import pathlib
import platform
import sys

import numpy as np
import scipy
from absl import app, flags

from analysis import overlap_files, selection
from analysis.balance import mean_overlap
from analysis.files import write_atomically

_OVERLAP = flags.DEFINE_string("overlap", None, "overlap.csv of a study (required).")
_THRESHOLD = flags.DEFINE_float("threshold", 0.1, "Largest overlap allowed between two members.")
_STRICT = flags.DEFINE_bool("strict", False, "Demand an overlap below the threshold, not equal.")
_SWEEP = flags.DEFINE_bool("sweep", False, "Also print the selection at thresholds 0, .05, ... 1.")
_OUT = flags.DEFINE_string("out", None, "Where to write; default benchmark.json beside the matrix.")

ALTERNATIVES = 100
RULE = (
    "largest set with every pair's overlap {} the threshold; then smallest mean overlap, then smallest "
    "mean unclipped overlap, then names in alphabetical order"
)


def main(argv):
    if len(argv) > 1:
        raise app.UsageError(f"expected only flags, found {argv[1:]}")
    if _OVERLAP.value is None:
        raise app.UsageError("expected --overlap=FILE, found none")
    try:
        run(
            pathlib.Path(_OVERLAP.value), _THRESHOLD.value, _STRICT.value, _SWEEP.value,
            None if _OUT.value is None else pathlib.Path(_OUT.value),
        )  # fmt: skip
    except (ValueError, OSError) as error:
        print(f"select_noc.py: {error}", file=sys.stderr)
        sys.exit(1)


def run(path, threshold, strict=False, sweep=False, out=None):
    """Selects, prints and writes; returns the content of benchmark.json."""
    names, matrix = overlap_files.read_overlap(path)
    inputs, unclipped, se = [path], None, None
    beside = path.with_name("overlap_long.csv")
    if beside.is_file():
        pairs = overlap_files.read_overlap_long(beside)
        unclipped, se = _details(beside, pairs, names, matrix)
        inputs.append(beside)
    chosen = selection.select(matrix, names, threshold, strict, unclipped)
    close = _near_threshold(chosen, names, matrix, se)
    result = {
        "members": list(chosen.members),
        "threshold": chosen.threshold,
        "strict": chosen.strict,
        "rule": RULE.format("below" if strict else "at most"),
        "mean_overlap": chosen.mean_overlap,
        "mean_unclipped_overlap": chosen.mean_unclipped,
        "summary": chosen.describe(),
        "number_of_sets": len(chosen.sets),
        "number_of_sets_is_complete": chosen.complete,
        "winner_is_exact": chosen.exact,
        "number_of_ties": len(chosen.ties),
        "alternatives": [list(s) for s in chosen.sets[1 : 1 + ALTERNATIVES]],
        "pairs_near_threshold": close,
        "dropped": list(chosen.dropped),
        "inputs": {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in inputs},
        "versions": {
            "python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__,
        },
        "written": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }  # fmt: skip
    _show(chosen, names, matrix, close)
    if sweep:
        thresholds = np.round(np.arange(0, 1.0001, 0.05), 2)
        swept = selection.sweep(matrix, names, thresholds, strict, unclipped)
        result["sweep"] = [
            {"threshold": s.threshold, "members": list(s.members), "mean_overlap": s.mean_overlap} for s in swept
        ]
        _show_sweep(swept)
    out = path.with_name("benchmark.json") if out is None else out
    write_atomically(out, json.dumps(result, indent=2, allow_nan=False) + "\n")
    print(f"\nwritten to {out}")
    return result


def _details(path, pairs, names, matrix):
    """Unclipped overlap and standard errors of the same study; refuses those of another."""
    try:
        unclipped = overlap_files.unclipped_matrix(pairs, names)
        recorded = overlap_files.pair_matrix(pairs, names, lambda pair: pair.O)
        se = overlap_files.pair_matrix(pairs, names, lambda pair: pair.se)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    other = ~(np.isclose(recorded, matrix, rtol=0, atol=1e-9) | (np.isnan(recorded) & np.isnan(matrix)))
    np.fill_diagonal(other, False)
    if other.any():
        i, j = np.argwhere(other)[0]
        raise ValueError(
            f"{path}: expected the overlaps of the matrix beside it, found {recorded[i, j]} instead of "
            f"{matrix[i, j]} for ({names[i]}, {names[j]})"
        )
    return unclipped, se


def _near_threshold(chosen, names, matrix, se):
    if se is None:
        return None
    close = []
    for first, second in itertools.combinations(chosen.members, 2):
        i, j = names.index(first), names.index(second)
        if abs(matrix[i, j] - chosen.threshold) <= 2 * se[i, j]:
            close.append({"pair": [first, second], "overlap": float(matrix[i, j]), "se": float(se[i, j])})
    return close


def _show(chosen, names, matrix, close):
    index = [names.index(name) for name in chosen.members]
    inside = matrix[np.ix_(index, index)]
    means = mean_overlap(inside) if len(index) > 1 else [0.0]
    largest = np.where(np.eye(len(index), dtype=bool), 0, inside).max(axis=1)
    width = max(len(name) for name in ("member", *chosen.members))
    sign = "<" if chosen.strict else "<="
    print(f"benchmark of {chosen.size} from {len(names)} candidates, overlap {sign} {chosen.threshold:g}")
    print(f"{'member':{width}}  mean overlap  largest")
    for name, mean, most in zip(chosen.members, means, largest, strict=True):
        print(f"{name:{width}}  {mean:12.3f}  {most:7.3f}")
    print(f"{'all':{width}}  {chosen.mean_overlap:12.3f}  {max(largest):7.3f}")
    print(f"largest sets: {chosen.describe()}")
    for other in chosen.ties[:5]:
        print(f"  tie: {', '.join(other)}")
    print(f"dropped (no defined overlap): {', '.join(chosen.dropped) or 'none'}")
    for item in close or ():
        print(f"near the threshold: {' / '.join(item['pair'])} {item['overlap']:.3f} +- {item['se']:.3f}")


def _show_sweep(swept):
    print("\nthreshold  size  mean overlap  members")
    for one in swept:
        print(f"{one.threshold:9.2f}  {one.size:4d}  {one.mean_overlap:12.3f}  {', '.join(one.members)}")


if __name__ == "__main__":
    app.run(main)
