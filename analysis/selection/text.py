"""What select_noc.py and overlap.py print: plain text tables of selections, their stability,
categories and coverage.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from analysis.overlap.balance import mean_overlap
from analysis.selection.algorithm import Selection, Stability
from analysis.selection.categories import Categories
from analysis.selection.coverage import Coverage


def selection_text(
    selection: Selection, names: Sequence[str], overlap: np.ndarray, near_threshold: Sequence[dict] | None
) -> str:
    """Lists the members of a selection with their mean and largest overlap, ties and pairs near the
    threshold.

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
    """Lists how often resampled test images select each corruption, most often first, and marks the
    members.
    """
    lines = [f"selected under {stability.resamples} resamples of the test images:"]
    for name in sorted(names, key=lambda name: -stability.members.get(name, 0)):
        percent = 100 * stability.members.get(name, 0)
        lines.append(f"  {percent:5.1f} %  {name}{'  (selected)' if name in members else ''}")
    return "\n".join(lines)


def categories_text(categories: Categories) -> str:
    """Lists clusters, one on a line, and the correlation within clusters at each number of clusters
    K.
    """
    tried = ", ".join(f"K = {k}: {value:.3f}" for k, value in categories.correlations)
    return "\n".join(
        [
            f"{len(categories.clusters)} categories, mean correlation within them {categories.correlation:.3f} ({tried})",
            *(f"  {i}: {', '.join(cluster)}" for i, cluster in enumerate(categories.clusters, 1)),
            f"dropped (no defined overlap): {', '.join(categories.dropped) or 'none'}",
        ]
    )


def coverage_text(rows: Mapping[str, Coverage], benchmark: Collection[str], above: float) -> str:
    """Lists how a benchmark covers each corruption outside it, best covered first; undefined ones
    last.
    """
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
