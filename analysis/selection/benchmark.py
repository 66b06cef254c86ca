"""benchmark.json, the selection of Algorithm 1 from the overlaps of a study, and coverage.json, which candidates
another benchmark covers; both printed, too.

A corruption c is covered if it overlaps with a member m of the benchmark (Laugros et al., 2021: overlap 0 with all
members means not covered). The overlap is measured with noise and clipped at 0, so "above 0" needs a test. With the
unclipped overlap U, its standard error and a margin t (0: any overlap at all):

    z[m] = (U[c,m] - t) / se[c,m]
    covered        "U[c,m] <= t for every m" is rejected, because the largest z is too large
    not covered    "U[c,m] > t for some m" is rejected, because every z is too small

The largest of many z is large by chance. With resamples U*, its null distribution is the distribution of the largest
(U*[c,m] - U[c,m]) / se, the max statistic (Westfall and Young, 1993), which accounts for all that the members share.
Without resamples p is Bonferroni's, M times the smallest normal p of M members, valid under any dependence. "Not
covered" claims something of every member, so the largest p of the members is valid without a correction
(intersection-union test; Berger, 1982). Both p know only the noise in the standard errors or resamples; with one
training per corruption, this is the noise of the test images.
"""

import itertools
import pathlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from analysis.overlap.measured import MeasuredOverlap
from analysis.overlap.score import mean_overlap
from analysis.references import BENCHMARKS, qualified_members
from analysis.selection import algorithm, select
from analysis.selection.algorithm import Selection, Stability
from runtime.artifacts import SEAL, read_record, record_inputs, write_record
from runtime.files import read_json, without_nan

ALTERNATIVES = 100  # number of sets as large as the winner that are listed
RULE = (
    "largest set with every pair's overlap {} the threshold; then smallest mean overlap, then smallest "
    "mean unclipped overlap, then names in alphabetical order"
)
COVERED = "covered"
NOT_SHOWN = "not shown to be covered"
NOT_COVERED = "not covered"
UNTESTED = "untested"
UNDEFINED = "undefined"
_WEAK = " (weak)"
_OF_WEAK = "(weak): its own training gains too little, so its overlaps say nothing; train longer, or leave it out"
_INVALID = 0.05
_LEAST_SE = 1e-12  # replaces 0 if all resamples agree


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
      out: file of the selection, benchmark.json; `kept`: do not change it, for a question about another benchmark.
      threshold, strict: as of `algorithm.select`.
      sweep: whether to select at thresholds 0, .05, ... 1 too.
      categories: whether to cluster the candidates into categories.
      coverage: a benchmark whose coverage of the other candidates is tested: a benchmark.json, names with commas
        between them, or a name of `analysis.references.BENCHMARKS`, written to coverage.json beside `out`.
      nk: "n,k,N" draws N random benchmarks of n categories with k members each, written beside `out`.
      nk_unbalanced: whether to add less balanced ones of the same size.

    Returns the content of benchmark.json; raises FileNotFoundError or ValueError for a missing or broken file, or an
    argument that does not fit the candidates.
    """
    if nk_unbalanced and nk is None:
        raise ValueError("expected --nk=n,k,N with --nk_unbalanced, found none")
    names, overlap, unclipped, se, files, weak = measured
    covering = None if coverage is None else _covering_benchmark(coverage, names)
    made_from = record_inputs({path.name: path for path in files})

    selection = select(overlap, names, threshold, strict, unclipped)
    measured_overlap = overlap if unclipped is None else unclipped
    near_threshold = None
    if se is not None:
        pairs = near(selection.members, names, measured_overlap, se, selection.threshold)
        near_threshold = [{"pair": [i, j], "overlap": value, "se": error} for i, j, value, error in pairs]
    content = {
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
        "weak": [name for name in selection.members if name in weak],
        **made_from,
    }
    print(selection_text(selection, names, overlap, near_threshold, weak))
    if sweep:
        swept = algorithm.sweep(overlap, names, algorithm.THRESHOLDS, strict, unclipped)
        content["sweep"] = [
            {"threshold": s.threshold, "members": list(s.members), "mean_overlap": s.mean_overlap} for s in swept
        ]
        print(f"\n{sweep_text(swept, weak)}")
    if covering is not None:
        covered = measure_coverage(measured_overlap, names, covering, se=se, weak=weak)
        print(f"\n{coverage_text(covered, covering, weak)}")
        beside = out.with_name("coverage.json")
        of_weak = {"weak": [name for name in names if name in weak]}
        write_record(beside, {"benchmark": list(covering), "corruptions": without_nan(covered)} | of_weak | made_from)
        print(f"written to {beside}")
    if categories or nk is not None:
        from analysis.selection import nk_benchmarks

        clustered = nk_benchmarks.categories(overlap, names)
        content["categories"] = [list(cluster) for cluster in clustered.clusters]
        print(f"\n{nk_benchmarks.text(clustered)}")
        if nk is not None:
            content["nk_file"] = nk_benchmarks.write(out, clustered.clusters, nk, nk_unbalanced, content["inputs"])
    if kept:
        print(f"\nthe selection is not written, {out} stays as it is; --out=FILE writes it")
        return content
    write_record(out, content)
    print(f"\nwritten to {out}")
    return content


def _covering_benchmark(text: str, names: Sequence[str]) -> tuple[str, ...]:
    """Reads the members that --coverage names; all must be candidates."""
    if text in BENCHMARKS:
        members = qualified_members(text)
    elif text.endswith(".json"):
        content = read_json(text, kind=None)
        if isinstance(content, dict) and SEAL in content:
            content = read_record(text)  # refuses an edited one
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


def near(
    members: Iterable[str], names: Sequence[str], overlap: np.ndarray, se: np.ndarray, threshold: float
) -> list[tuple[str, str, float, float]]:
    """Lists (first, second, overlap, standard error) of the pairs of members within two standard errors of a threshold.

    `overlap`, unclipped where it is known, and `se` are [n, n] of `names`.
    """
    pairs = [(*pair, *map(list(names).index, pair)) for pair in itertools.combinations(members, 2)]
    return [
        (first, second, float(overlap[i, j]), float(se[i, j]))
        for first, second, i, j in pairs
        if abs(overlap[i, j] - threshold) <= 2 * se[i, j]
    ]


def selection_text(
    selection: Selection,
    names: Sequence[str],
    overlap: np.ndarray,
    near_threshold: Sequence[dict] | None,
    weak: Collection[str] = (),
) -> str:
    """Lists the members of a selection with their mean and largest overlap [n, n] of `names`, ties, and pairs near the
    threshold as benchmark.json holds them ({"pair", "overlap", "se"}); the `weak` are marked.
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
                f"{name:{width}}  {mean:12.3f}  {most:7.3f}{_WEAK if name in weak else ''}"
                for name, mean, most in zip(selection.members, means, largest, strict=True)
            ),
            f"{'all':{width}}  {selection.mean_overlap:12.3f}  {max(largest):7.3f}",
            f"largest sets: {selection.describe()}",
            *(f"  tie: {_marked(other, weak)}" for other in selection.ties[:5]),
            f"dropped (no defined overlap): {', '.join(selection.dropped) or 'none'}",
            *(
                f"near the threshold: {' / '.join(row['pair'])} {_overlap_text(row['overlap'], row['se'])}"
                for row in near_threshold or ()
            ),
            *([_OF_WEAK] if {*selection.members} & {*weak} else []),
        ]
    )


def _overlap_text(overlap, se):
    """Writes an overlap; `weak` for an error above the whole scale, which comes from a gain near zero."""
    return f"{overlap:.3f} +- {se:.3f}" if se <= 1 else "weak"


def _marked(names, weak):
    return ", ".join(name + (_WEAK if name in weak else "") for name in names)


def sweep_text(selections: Sequence[Selection], weak: Collection[str] = ()) -> str:
    """Lists a selection at each threshold, one on a line."""
    rows = (f"{s.threshold:9.2f}  {s.size:4d}  {s.mean_overlap:12.3f}  {_marked(s.members, weak)}" for s in selections)
    return "\n".join(["threshold  size  mean overlap  members", *rows])


def stability_text(
    stability: Stability, names: Sequence[str], members: Collection[str], weak: Collection[str] = ()
) -> str:
    """Lists how often resamples of the study select each corruption, most often first, and marks the members."""
    bound = f" ({stability.bound})" if stability.bound else ""
    lines = [f"selected under {stability.resamples} resamples{bound}:"]
    for name in sorted(names, key=lambda name: -stability.members.get(name, 0)):
        percent = 100 * stability.members.get(name, 0)
        lines.append(f"  {percent:5.1f} %  {_marked([name], weak)}{'  (selected)' if name in members else ''}")
    return "\n".join(lines)


class Coverage(NamedTuple):
    """How a benchmark covers one corruption."""

    # overlap, member: largest overlap with a member, clipped at 0, and that member; NaN and "" if undefined.
    overlap: float
    member: str
    se: float  # standard error of this overlap before clipping, or NaN
    # P value of "no overlap above the margin with any member", corrected for their number; small means covered.
    # It rests on the largest z, which another member may have where the largest overlap is poorly measured.
    p: float
    p_uncovered: float  # p value of "an overlap above the margin with some member"; small means not covered
    # COVERED, NOT_COVERED, or NOT_SHOWN where neither is shown; UNTESTED without standard errors; UNDEFINED
    # where the corruption or all members have no overlap.
    verdict: str
    members: int  # number of members that were compared


def measure_coverage(
    unclipped: ArrayLike,
    names: Sequence[str],
    benchmark: Sequence[str],
    *,
    se: ArrayLike | None = None,
    samples: ArrayLike | None = None,
    above: float = 0.0,
    level: float = 0.05,
    weak: Collection[str] = (),
) -> dict[str, Coverage]:
    """Tests how a benchmark covers the corruptions outside it.

    Args:
      unclipped: overlap before the maximum with 0, [n, n], of a study that holds the benchmark and more (the clipped
        one serves too where nothing is tested).
      names: its n names.
      benchmark: names of the benchmark's members, all in `names`.
      se: standard errors of `unclipped`, [n, n]; p is then Bonferroni's. Where one is NaN, that corruption is not
        tested.
      samples: instead, resampled unclipped overlap [B, n, n] with B + 1 >= 1 / level (`analysis.overlap.uncertainty`);
        p is then the max statistic's, at least 1 / (B + 1). Members that are undefined in more than 1 in 20 resamples
        are left out; where one is undefined in a resample, that resample counts against either verdict.
      above: margin t; a corruption is covered if its overlap with a member is above it.
      level: significance level of both verdicts, in (0, .5).
      weak: corruptions with a weak gain, whose overlaps say nothing and count as undefined.

    Returns {name: `Coverage`} for the names outside the benchmark, in their order. Raises ValueError for a member that
    is not in `names`, an empty benchmark, shapes that do not fit, too few resamples, a level out of range, or both `se`
    and `samples`.
    """
    matrix, names, benchmark = np.asarray(unclipped, float), tuple(names), tuple(dict.fromkeys(benchmark))
    n = len(names)
    if matrix.shape != (n, n):
        raise ValueError(f"expected an overlap matrix of {n} names, found shape {matrix.shape}")
    unknown = [name for name in benchmark if name not in names]
    if unknown or not benchmark:
        raise ValueError(f"expected members among the {n} names of the matrix, found {unknown or benchmark}")
    if not 0 < level < 0.5:
        raise ValueError(f"expected a level in (0, .5), found {level}")
    if se is not None and samples is not None:
        raise ValueError("expected standard errors or resamples, found both")
    se, samples = (None if values is None else np.asarray(values, float) for values in (se, samples))
    if se is not None and se.shape != (n, n):
        raise ValueError(f"expected standard errors of shape {(n, n)}, found {se.shape}")
    if samples is not None and (samples.shape[1:] != (n, n) or len(samples) + 1 < 1 / level):
        least = int(np.ceil(1 / level)) - 1
        raise ValueError(f"expected at least {least} resamples of shape {(n, n)}, found {samples.shape}")
    members, found = [names.index(name) for name in benchmark], {}
    matrix = np.where([[{a, b} & {*weak} for a in names] for b in names], np.nan, matrix) if weak else matrix
    for i, name in enumerate(names):
        if name not in benchmark:
            of = (None if values is None else values[..., i, :][..., members] for values in (se, samples))
            found[name] = _cover(matrix[i, members], benchmark, *of, above, level)
    return found


def coverage_text(rows: Mapping[str, Coverage], benchmark: Collection[str], weak: Collection[str] = ()) -> str:
    """Lists how a benchmark covers each corruption outside it, best covered first; undefined ones last."""
    order = sorted(rows, key=lambda name: (np.isnan(rows[name].overlap), -np.nan_to_num(rows[name].overlap), name))
    width = max(len(name) for name in ("corruption", *rows))
    beside = max(len(name) for name in ("with member", *(row.member for row in rows.values())))
    title = (
        f"coverage by a benchmark of {len(benchmark)} (overlap above 0; p corrected for members, not for corruptions)"
    )
    header = f"{'corruption':{width}}  overlap     se  {'with member':{beside}}        p  verdict"
    lines = [
        f"{name:{width}}  {row.overlap:7.3f}  {row.se:5.3f}  {row.member or '-':{beside}}  {row.p:7.4f}  {row.verdict}{_WEAK * (name in weak)}"
        for name, row in ((name, rows[name]) for name in order)
    ]
    of_benchmark = (
        [f"weak members, which cover nothing: {', '.join(inside)}"]
        if (inside := [n for n in benchmark if n in weak])
        else []
    )
    return "\n".join([title, header, *lines, *of_benchmark])


def _cover(row, benchmark, se, samples, above, level):
    usable = np.isfinite(row)
    if samples is not None:
        usable &= np.isnan(samples).mean(axis=0) <= _INVALID
        if usable.any():
            se = np.where(usable, np.nanstd(np.where(usable, samples, 0.0), axis=0), np.nan)
    if not usable.any():
        return Coverage(np.nan, "", np.nan, np.nan, np.nan, UNDEFINED, 0)
    best = int(np.argmax(np.where(usable, row, -np.inf)))
    largest_overlap = max(0.0, float(row[best])), benchmark[best]
    if se is None or np.isnan(se[usable]).any():
        return Coverage(*largest_overlap, np.nan, np.nan, np.nan, UNTESTED, int(usable.sum()))
    spread = np.maximum(se[usable], _LEAST_SE)
    z = (row[usable] - above) / spread
    if samples is None:
        p, p_uncovered = min(1.0, len(z) * float(ndtr(-z.max()))), float(ndtr(z.max()))
    else:
        null = (samples[:, usable] - row[usable]) / spread
        largest = np.where(np.isnan(null), np.inf, null).max(axis=1)
        p = _fraction(largest >= z.max())
        p_uncovered = float(_fraction(np.isnan(null) | (null <= z)).max())
    verdict = COVERED if p <= level else NOT_COVERED if p_uncovered <= level else NOT_SHOWN
    return Coverage(*largest_overlap, float(se[best]), float(p), p_uncovered, verdict, len(z))


def _fraction(exceeds):
    """p value (1 + number) / (1 + B) over resamples, the first axis: never 0."""
    return (1 + exceeds.sum(axis=0)) / (1 + len(exceeds))
