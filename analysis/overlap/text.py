"""What overlap.py prints of the overlap matrix: plain text tables."""

import numpy as np

from analysis.overlap.score import Overlap
from analysis.tables import STANDARD


def overlap_text(overlap: Overlap, se: np.ndarray) -> str:
    """Lists the accuracies behind an overlap matrix, then the matrix with its median standard
    error, then what to know before using it; se is [n, n].
    """
    names, width = overlap.names, max(map(len, overlap.names))
    models = [
        f"{name:{width}}  {overlap.clean_accuracy[k + 1]:10.3f}  {overlap.robustness[0, k]:7.3f} "
        f"{overlap.robustness[k + 1, k]:6.3f}  {overlap.gain[k]:6.3f}   {overlap.flags[k]}"
        for k, name in enumerate(names)
    ]
    rows = []
    for i, name in enumerate(names):
        cells = ("   -" if i == j else f"{value:4.2f}" for j, value in enumerate(overlap.overlap[i]))
        rows.append(f"{name:{width}} {' '.join(cells)}  {i}")
    pairs = se[~np.eye(len(names), dtype=bool)]
    median = f"{np.nanmedian(pairs):.3f}" if np.isfinite(pairs).any() else "undefined"
    return "\n".join(
        [
            f"{'':{width}}  clean acc.   R std.  R own    gain   flag",
            f"{STANDARD:{width}}  {overlap.clean_accuracy[0]:10.3f}",
            *models,
            "",
            f"overlap (median standard error {median}, from resampling test images):",
            f"{'':{width}} {' '.join(f'{k:4d}' for k in range(len(names)))}",
            *rows,
            *(f"warning: {sentence}" for sentence in overlap.warnings),
        ]
    )
