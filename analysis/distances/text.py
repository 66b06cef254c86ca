"""What the commands on distances print: small tables of text."""

from collections.abc import Iterable, Sequence

import numpy as np

from analysis.distances.by_scheme import mean_distances
from analysis.distances.files import Correlation, Distance, MixtureDistance, SubsetDistance


def distances_text(rows: Sequence[Distance]) -> str:
    """Tabulates the MSD and MMD of every scheme, means over the corruptions."""
    means = mean_distances(rows)
    schemes = list(dict.fromkeys(row.scheme for row in rows))
    width = max(map(len, schemes))
    lines = [f"{'scheme':{width}}    MSD    MMD   (means over the corruptions)"]
    for scheme in schemes:
        msd, mmd = np.mean([pair for (name, _), pair in means.items() if name == scheme], axis=0)
        lines.append(f"{scheme:{width}} {msd:6.3f} {mmd:6.3f}")
    return "\n".join(lines)


def correlations_text(rows: Sequence[Correlation]) -> str:
    """Tabulates Spearman's rho between distance and error, with its interval, for every
    corruption.
    """
    width = max(len(row.corruption) for row in rows)
    lines = [
        f"Spearman's rho with the error, across schemes\n{'corruption':{width}}  schemes  MSD (95 %)            MMD"
    ]
    lines += [
        f"{row.corruption:{width}}  {row.schemes:7d}  {row.msd:+.2f} ({row.msd_lower:+.2f}..{row.msd_upper:+.2f})  "
        f"{row.mmd:+.2f} ({row.mmd_lower:+.2f}..{row.mmd_upper:+.2f})"
        for row in rows
    ]
    return "\n".join(lines)


def mixtures_text(rows: Iterable[MixtureDistance]) -> str:
    """Tabulates the distances of every mixture to both of its corruptions."""
    lines = [f"{'fraction':>8s}  {'distance to':30s}   MSD    MMD"]
    lines += [f"{row.fraction:8.2f}  {row.corruption:30s} {row.msd:6.3f} {row.mmd:6.3f}" for row in rows]
    return "\n".join(lines)


def subsets_text(rows: Iterable[SubsetDistance], centres: int) -> str:
    """Tabulates the mean MSD of every subset to as many centres."""
    lines = [f"{'subset':20s}  MSD   (mean over {centres} corruptions and severities)"]
    lines += [f"{f'{row.kind} {row.size}':20s} {row.msd:6.3f}" for row in rows]
    return "\n".join(lines)
