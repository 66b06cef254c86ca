"""Does a benchmark cover a corruption outside it?

A corruption c is covered if it overlaps with a member m of the benchmark (Laugros et al., 2021: overlap 0 with all
members means not covered). The overlap is measured with noise and clipped at 0, so "above 0" needs a test. With the
unclipped overlap U, its standard error and a margin t (0: any overlap at all):

    z[m] = (U[c,m] - t) / se[c,m]
    covered        "U[c,m] <= t for every m" is rejected, because the largest z is too large
    not covered    "U[c,m] > t for some m" is rejected, because every z is too small

The largest of many z is large by chance. With resamples U*, its null distribution is the distribution of the largest
(U*[c,m] - U[c,m]) / se, the max statistic (Westfall and Young, 1993). It accounts for the models, images and gain that
all members share with c, and so loses little power over many members. Without resamples this dependence is unknown: p
is Bonferroni's then, M times the smallest normal p of M members, which is valid under any dependence. "Not covered"
needs no correction. It claims something of every member, so the largest p of the members is valid (intersection-union
test; Berger, 1982). Both p know only the noise in the standard errors or resamples; with one training per corruption,
this is the noise of the test images.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

COVERED = "covered"
NOT_SHOWN = "not shown to be covered"
NOT_COVERED = "not covered"
UNTESTED = "untested"
UNDEFINED = "undefined"
_INVALID = 0.05
_LEAST_SE = 1e-12  # in place of 0: resamples that all agree


class Coverage(NamedTuple):
    """How a benchmark covers one corruption.

    Attributes:
      overlap: largest overlap with a member, clipped at 0; NaN if undefined.
      member: the member with this overlap, or "".
      se: standard error of this overlap before clipping, or NaN.
      p: p value of "no overlap above the margin with any member", corrected for their number; small means covered. It
        rests on the largest z, which another member may have where the largest overlap is poorly measured.
      p_uncovered: p value of "an overlap above the margin with some member"; small means not covered.
      verdict: COVERED, NOT_COVERED, or NOT_SHOWN where neither is shown; UNTESTED without standard errors; UNDEFINED
        where the corruption or all members have no overlap.
      members: number of members that were compared.
    """

    overlap: float
    member: str
    se: float
    p: float
    p_uncovered: float
    verdict: str
    members: int


def coverage(
    unclipped: ArrayLike,
    names: Sequence[str],
    benchmark: Sequence[str],
    *,
    se: ArrayLike | None = None,
    samples: ArrayLike | None = None,
    above: float = 0.0,
    level: float = 0.05,
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

    Returns:
      {name: `Coverage`} for the names outside the benchmark, in their order.

    Raises:
      ValueError: a member that is not in `names`, an empty benchmark, shapes that do not fit, too few resamples, a
        level out of range, or both `se` and `samples`.
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
    if se is not None:
        se = np.asarray(se, float)
        if se.shape != (n, n):
            raise ValueError(f"expected standard errors of shape {(n, n)}, found {se.shape}")
    if samples is not None:
        samples = np.asarray(samples, float)
        if samples.shape[1:] != (n, n) or len(samples) + 1 < 1 / level:
            raise ValueError(
                f"expected at least {int(np.ceil(1 / level)) - 1} resamples of shape {(n, n)}, found {samples.shape}"
            )
    members = np.array([names.index(name) for name in benchmark])
    return {
        name: _cover(
            matrix[i, members],
            benchmark,
            None if se is None else se[i, members],
            None if samples is None else samples[:, i, members],
            above,
            level,
        )
        for i, name in enumerate(names)
        if name not in benchmark
    }


def text(rows: Mapping[str, Coverage], benchmark: Collection[str], above: float = 0.0) -> str:
    """Lists how a benchmark covers each corruption outside it, best covered first; undefined ones last."""
    order = sorted(rows, key=lambda name: (np.isnan(rows[name].overlap), -np.nan_to_num(rows[name].overlap), name))
    width = max(len(name) for name in ("corruption", *rows))
    beside = max(len(name) for name in ("with member", *(row.member for row in rows.values())))
    title = (
        f"coverage by a benchmark of {len(benchmark)} (overlap above {above:g}; p corrected for the number of members)"
    )
    header = f"{'corruption':{width}}  overlap     se  {'with member':{beside}}        p  verdict"
    lines = [
        f"{name:{width}}  {row.overlap:7.3f}  {row.se:5.3f}  {row.member or '-':{beside}}  {row.p:7.4f}  {row.verdict}"
        for name, row in ((name, rows[name]) for name in order)
    ]
    return "\n".join([title, header, *lines])


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
