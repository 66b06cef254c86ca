"""What select_noc.py prints: plain text tables of selections, categories and coverage."""

import numpy as np

from analysis.overlap.balance import mean_overlap


def selection_text(chosen, names, matrix, close):
    """A `Selection` with the mean and largest overlap of each member, ties and pairs near the threshold."""
    index = [names.index(name) for name in chosen.members]
    inside = matrix[np.ix_(index, index)]
    means = mean_overlap(inside) if len(index) > 1 else [0.0]
    largest = np.where(np.eye(len(index), dtype=bool), 0, inside).max(axis=1)
    width = max(len(name) for name in ("member", *chosen.members))
    sign = "<" if chosen.strict else "<="
    return "\n".join([
        f"benchmark of {chosen.size} from {len(names)} candidates, overlap {sign} {chosen.threshold:g}",
        f"{'member':{width}}  mean overlap  largest",
        *(f"{n:{width}}  {mean:12.3f}  {most:7.3f}" for n, mean, most in zip(chosen.members, means, largest, strict=True)),
        f"{'all':{width}}  {chosen.mean_overlap:12.3f}  {max(largest):7.3f}",
        f"largest sets: {chosen.describe()}",
        *(f"  tie: {', '.join(other)}" for other in chosen.ties[:5]),
        f"dropped (no defined overlap): {', '.join(chosen.dropped) or 'none'}",
        *(f"near the threshold: {' / '.join(c['pair'])} {c['overlap']:.3f} +- {c['se']:.3f}" for c in close or ()),
    ])  # fmt: skip


def sweep_text(swept):
    """One line for each `Selection` of a sweep."""
    rows = (f"{one.threshold:9.2f}  {one.size:4d}  {one.mean_overlap:12.3f}  {', '.join(one.members)}" for one in swept)
    return "\n".join(["threshold  size  mean overlap  members", *rows])


def categories_text(found):
    """Clusters of `analysis.selection.categories.Categories`, one on a line, and the correlation at each K."""
    tried = ", ".join(f"K = {k}: {value:.3f}" for k, value in found.correlations)
    return "\n".join([
        f"{len(found.clusters)} categories, mean correlation within them {found.correlation:.3f} ({tried})",
        *(f"  {i}: {', '.join(cluster)}" for i, cluster in enumerate(found.clusters, 1)),
        f"dropped (no defined overlap): {', '.join(found.dropped) or 'none'}",
    ])  # fmt: skip


def coverage_text(found, benchmark, above):
    """A line for each corruption of `analysis.selection.coverage.coverage`, best covered first; undefined ones last."""
    order = sorted(found, key=lambda name: (np.isnan(found[name].overlap), -np.nan_to_num(found[name].overlap), name))
    width = max(len(name) for name in ("corruption", *found))
    beside = max(len(name) for name in ("with member", *(one.member for one in found.values())))
    head = (
        f"coverage by a benchmark of {len(benchmark)} (overlap above {above:g}; p corrected for the number of members)"
    )
    return "\n".join([
        head,
        f"{'corruption':{width}}  overlap     se  {'with member':{beside}}        p  verdict",
        *(
            f"{n:{width}}  {found[n].overlap:7.3f}  {found[n].se:5.3f}  {found[n].member or '-':{beside}}  "
            f"{found[n].p:7.4f}  {found[n].verdict}"
            for n in order
        ),
    ])  # fmt: skip
