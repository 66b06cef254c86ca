"""benchmark.json: what Algorithm 1 selects from the matrix of a study, with all that was asked for beside it."""

import datetime
import hashlib
import itertools
import json
import pathlib
import platform

import numpy as np
import scipy

from analysis.overlap.files import pair_matrix, read_overlap, read_overlap_long, unclipped_matrix
from analysis.references import BENCHMARKS, qualified_members
from analysis.selection import algorithm, nk_benchmarks, select
from analysis.selection.categories import categories as find_categories
from analysis.selection.coverage import coverage as find_coverage
from analysis.selection.text import categories_text, coverage_text, selection_text, sweep_text
from runtime.files import write_atomically

ALTERNATIVES = 100


RULE = (
    "largest set with every pair's overlap {} the threshold; then smallest mean overlap, then smallest "
    "mean unclipped overlap, then names in alphabetical order"
)


def select_benchmark(
    path,
    threshold,
    strict=False,
    sweep=False,
    out=None,
    *,
    categories=False,
    coverage=None,
    nk=None,
    nk_unbalanced=False,
):
    """Selects, prints and writes; returns the content of benchmark.json. Arguments as the flags."""
    if nk_unbalanced and nk is None:
        raise ValueError("expected --nk=n,k,N with --nk_unbalanced, found none")
    names, matrix = read_overlap(path)
    inputs, unclipped, se = [path], None, None
    beside = path.with_name("overlap_long.csv")
    if beside.is_file():
        pairs = read_overlap_long(beside)
        unclipped, se = _details(beside, pairs, names, matrix)
        inputs.append(beside)
    benchmark = None if coverage is None else _benchmark(coverage, names)
    chosen = select(matrix, names, threshold, strict, unclipped)
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
        "inputs": {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in inputs},
        "versions": {
            "python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__,
        },
        "written": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }  # fmt: skip
    print(selection_text(chosen, names, matrix, close))
    if sweep:
        thresholds = np.round(np.arange(0, 1.0001, 0.05), 2)
        swept = algorithm.sweep(matrix, names, thresholds, strict, unclipped)
        result["sweep"] = [
            {"threshold": s.threshold, "members": list(s.members), "mean_overlap": s.mean_overlap} for s in swept
        ]
        print("\n" + sweep_text(swept))
    if benchmark is not None:
        found = find_coverage(matrix if unclipped is None else unclipped, names, benchmark, se=se)
        result["coverage"] = {"benchmark": list(benchmark), "corruptions": _without_nan(found)}
        print("\n" + coverage_text(found, benchmark, 0.0))
    out = path.with_name("benchmark.json") if out is None else out
    if categories or nk is not None:
        clusters = find_categories(matrix, names)
        result["categories"] = [list(cluster) for cluster in clusters.clusters]
        print("\n" + categories_text(clusters))
        if nk is not None:
            result["nk_file"] = _write_nk(out, clusters.clusters, nk, nk_unbalanced, result["inputs"])
    write_atomically(out, json.dumps(result, indent=2, allow_nan=False) + "\n")
    print(f"\nwritten to {out}")
    return result


def _benchmark(text, names):
    """Members that --coverage names; all must be candidates."""
    if text in BENCHMARKS:
        members = qualified_members(text)
    elif text.endswith(".json"):
        try:
            members = tuple(json.loads(pathlib.Path(text).read_text())["members"])
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"{text}: expected a benchmark with a list of members, found {error!r}") from None
    else:
        members = tuple(name.strip() for name in text.split(",") if name.strip())
    absent = [name for name in members if name not in names]
    if absent or not members:
        raise ValueError(f"expected --coverage to name candidates of the matrix ({', '.join(names)}), found {absent}")
    return members


def _write_nk(out, clusters, text, unbalanced, inputs):
    """Writes random benchmarks of n categories with k members each; returns the file's path."""
    try:
        n, k, number = (int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"expected --nk=n,k,N with three integers, found {text!r}") from None
    drawn = nk_benchmarks.balanced(clusters, n, k, number)
    content = {
        "n": n,
        "k": k,
        "possible": nk_benchmarks.count_balanced(clusters, n, k),
        "categories": clusters,
        "benchmarks": drawn,
        "inputs": inputs,
    }
    print(f"  ({n}, {k}) benchmarks: {number} of {content['possible']} that exist")
    if unbalanced:
        bins = nk_benchmarks.by_spread(nk_benchmarks.unbalanced(drawn, clusters), clusters)
        content["unbalanced"] = {f"{value:.1f}": found for value, found in bins.items()}
        print("  less balanced: " + (", ".join(f"{len(v)} of std {s:.1f}" for s, v in bins.items()) or "none"))
    path = out.with_name(f"benchmarks_{n}_{k}.json")
    write_atomically(path, json.dumps(content, indent=1) + "\n")
    print(f"  written to {path}")
    return str(path)


def _without_nan(found):
    """Rows of a table for JSON, which has no NaN."""
    return {
        name: {k: None if isinstance(v, float) and np.isnan(v) else v for k, v in row._asdict().items()}
        for name, row in found.items()
    }


def _details(path, pairs, names, matrix):
    """Unclipped overlap and standard errors of the same study; refuses those of another."""
    try:
        unclipped = unclipped_matrix(pairs, names)
        recorded = pair_matrix(pairs, names, lambda pair: pair.O)
        se = pair_matrix(pairs, names, lambda pair: pair.se)
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
