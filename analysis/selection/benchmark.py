"""benchmark.json, the selection of Algorithm 1 from the overlaps of a study, and coverage.json, which candidates
another benchmark covers; both printed, too.
"""

import itertools
import pathlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from analysis.overlap.balance import mean_overlap
from analysis.overlap.measured import MeasuredOverlap
from analysis.references import BENCHMARKS, qualified_members
from analysis.selection import algorithm, select
from analysis.selection.algorithm import Selection, Stability
from runtime.artifacts import record_inputs
from runtime.files import read_json, without_nan, write_json

ALTERNATIVES = 100  # sets as large as the winner that are listed
RULE = (
    "largest set with every pair's overlap {} the threshold; then smallest mean overlap, then smallest "
    "mean unclipped overlap, then names in alphabetical order"
)
_SWEEP = np.round(np.arange(0, 1.0001, 0.05), 2)


def select_benchmark(
    measured: MeasuredOverlap,
    out: pathlib.Path,
    threshold: float,
    strict: bool = False,
    sweep: bool = False,
    *,
    kept: bool = False,
    categories: bool = False,
    coverage: str | None = None,
    nk: str | None = None,
    nk_unbalanced: bool = False,
) -> dict[str, Any]:
    """Selects a benchmark, prints it and writes it; with `coverage`, also coverage.json beside it.

    Where the unclipped overlap and its standard errors are known, ties are broken by the unclipped overlap, members
    within two standard errors of the threshold are listed, and coverage is tested.

    Args:
      measured: the overlaps.
      out: file of the selection, benchmark.json.
      threshold: largest overlap allowed between two members, in [0, 1].
      strict: whether overlaps must be below the threshold, not equal.
      sweep: whether to select at thresholds 0, .05, ... 1 too.
      kept: whether `out` stays as it is: a question about another benchmark changes no selection.
      categories: whether to cluster the candidates into categories.
      coverage: a benchmark whose coverage of the other candidates is tested: a benchmark.json, names with commas
        between them, or a name of `analysis.references.BENCHMARKS`, written to coverage.json beside `out`; None tests
        none.
      nk: "n,k,N" draws N random benchmarks of n categories with k members each, written beside `out`; None draws none.
      nk_unbalanced: whether to add less balanced ones of the same size.

    Returns:
      The content of benchmark.json.

    Raises:
      FileNotFoundError, ValueError: a missing or broken file, or an argument that does not fit the candidates.
    """
    if nk_unbalanced and nk is None:
        raise ValueError("expected --nk=n,k,N with --nk_unbalanced, found none")
    names, overlap, unclipped, se, files = measured
    covering = None if coverage is None else _covering_benchmark(coverage, names)
    made_from = record_inputs({path.name: path for path in files})

    selection = select(overlap, names, threshold, strict, unclipped)
    near_threshold = None if se is None else _near_threshold(selection, names, overlap, se)
    content = _selection_content(selection, near_threshold) | made_from
    print(selection_text(selection, names, overlap, near_threshold))
    if sweep:
        swept = algorithm.sweep(overlap, names, _SWEEP, strict, unclipped)
        content["sweep"] = [
            {"threshold": s.threshold, "members": list(s.members), "mean_overlap": s.mean_overlap} for s in swept
        ]
        print(f"\n{sweep_text(swept)}")
    if covering is not None:
        from analysis.selection import coverage as covering_of

        covered = covering_of.coverage(overlap if unclipped is None else unclipped, names, covering, se=se)
        print(f"\n{covering_of.text(covered, covering)}")
        beside = out.with_name("coverage.json")
        write_json(beside, {"benchmark": list(covering), "corruptions": without_nan(covered)} | made_from)
        print(f"written to {beside}")
    if categories or nk is not None:
        from analysis.selection import categories as clusters

        clustered = clusters.categories(overlap, names)
        content["categories"] = [list(cluster) for cluster in clustered.clusters]
        print(f"\n{clusters.text(clustered)}")
        if nk is not None:
            content["nk_file"] = _write_nk(out, clustered.clusters, nk, nk_unbalanced, content["inputs"])
    if kept:
        print(f"\nthe selection is not written, {out} stays as it is; --out=FILE writes it")
        return content
    write_json(out, content)
    print(f"\nwritten to {out}")
    return content


def _selection_content(selection, near_threshold):
    """The part of benchmark.json on the selection itself."""
    return {
        "members": list(selection.members),
        "threshold": selection.threshold,
        "strict": selection.strict,
        "rule": RULE.format("below" if selection.strict else "at most"),
        "mean_overlap": selection.mean_overlap,
        "mean_unclipped_overlap": selection.mean_unclipped,
        "summary": selection.describe(),
        "number_of_sets": len(selection.sets),
        "number_of_sets_is_complete": selection.complete,
        "winner_is_exact": selection.exact,
        "number_of_ties": len(selection.ties),
        "alternatives": [list(members) for members in selection.sets[1 : 1 + ALTERNATIVES]],
        "pairs_near_threshold": near_threshold,
        "dropped": list(selection.dropped),
    }


def _covering_benchmark(text: str, names: Sequence[str]) -> tuple[str, ...]:
    """Reads the members that --coverage names; all must be candidates."""
    if text in BENCHMARKS:
        members = qualified_members(text)
    elif text.endswith(".json"):
        content = read_json(text, kind=None)
        members = content.get("members") if isinstance(content, dict) else None
        if not isinstance(members, list | dict):
            raise ValueError(f"{text}: expected a benchmark with a list of members, found {type(members).__name__}")
        members = tuple(members)
    else:
        members = tuple(name.strip() for name in text.split(",") if name.strip())
    absent = [name for name in members if name not in names]
    if absent or not members:
        raise ValueError(f"expected --coverage to name candidates of the matrix ({', '.join(names)}), found {absent}")
    return members


def _write_nk(
    out: pathlib.Path, clusters: Sequence[Sequence[str]], nk: str, unbalanced: bool, inputs: Mapping[str, str]
) -> str:
    """Draws and writes random benchmarks of n categories with k members each; returns the file's path."""
    try:
        n, k, number = (int(part) for part in nk.split(","))
    except ValueError:
        raise ValueError(f"expected --nk=n,k,N with three integers, found {nk!r}") from None
    from analysis.selection import nk_benchmarks

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
        content["unbalanced"] = {f"{std:.1f}": benchmarks for std, benchmarks in bins.items()}
        print("  less balanced: " + (", ".join(f"{len(v)} of std {std:.1f}" for std, v in bins.items()) or "none"))
    path = out.with_name(f"benchmarks_{n}_{k}.json")
    write_json(path, content)
    print(f"  written to {path}")
    return str(path)


def _near_threshold(selection, names, overlap, se):
    """Pairs of members whose overlap is within two standard errors of the threshold."""
    pairs = []
    for first, second in itertools.combinations(selection.members, 2):
        i, j = names.index(first), names.index(second)
        if abs(overlap[i, j] - selection.threshold) <= 2 * se[i, j]:
            pairs.append({"pair": [first, second], "overlap": float(overlap[i, j]), "se": float(se[i, j])})
    return pairs


def selection_text(
    selection: Selection, names: Sequence[str], overlap: np.ndarray, near_threshold: Sequence[dict] | None
) -> str:
    """Lists the members of a selection with their mean and largest overlap, ties and pairs near the threshold.

    Args:
      selection: of `analysis.selection.select`.
      names: of the matrix.
      overlap: [n, n].
      near_threshold: pairs as benchmark.json holds them ({"pair", "overlap", "se"}), or None.
    """
    index = [names.index(name) for name in selection.members]
    inside = overlap[np.ix_(index, index)]
    means = mean_overlap(inside) if len(index) > 1 else [0.0]
    largest = np.where(np.eye(len(index), dtype=bool), 0, inside).max(axis=1)
    width = max(len(name) for name in ("member", *selection.members))
    sign = "<" if selection.strict else "<="
    return "\n".join(
        [
            f"benchmark of {selection.size} from {len(names)} candidates, overlap {sign} {selection.threshold:g}",
            f"{'member':{width}}  mean overlap  largest",
            *(
                f"{name:{width}}  {mean:12.3f}  {most:7.3f}"
                for name, mean, most in zip(selection.members, means, largest, strict=True)
            ),
            f"{'all':{width}}  {selection.mean_overlap:12.3f}  {max(largest):7.3f}",
            f"largest sets: {selection.describe()}",
            *(f"  tie: {', '.join(other)}" for other in selection.ties[:5]),
            f"dropped (no defined overlap): {', '.join(selection.dropped) or 'none'}",
            *(
                f"near the threshold: {' / '.join(row['pair'])} {_overlap_text(row['overlap'], row['se'])}"
                for row in near_threshold or ()
            ),
        ]
    )


def _overlap_text(overlap, se):
    """An error above the whole scale of the score comes from a gain near zero and tells nothing."""
    return f"{overlap:.3f} +- {se:.3f}" if se <= 1 else "weak"


def sweep_text(selections: Sequence[Selection]) -> str:
    """Lists a selection at each threshold, one on a line."""
    rows = (f"{s.threshold:9.2f}  {s.size:4d}  {s.mean_overlap:12.3f}  {', '.join(s.members)}" for s in selections)
    return "\n".join(["threshold  size  mean overlap  members", *rows])


def stability_text(stability: Stability, names: Sequence[str], members: Collection[str]) -> str:
    """Lists how often resamples of the study select each corruption, most often first, and marks the members."""
    lines = [f"selected under {stability.resamples} resamples:"]
    for name in sorted(names, key=lambda name: -stability.members.get(name, 0)):
        percent = 100 * stability.members.get(name, 0)
        lines.append(f"  {percent:5.1f} %  {name}{'  (selected)' if name in members else ''}")
    return "\n".join(lines)
