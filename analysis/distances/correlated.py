"""How distance goes with error across schemes: correlations.csv, and a figure for each distance."""

import pathlib
from collections.abc import Mapping, Sequence

from analysis import figures
from analysis.distances import by_scheme, files
from analysis.distances.figures import scatter_panels
from analysis.distances.text import correlations_text

_DISTANCES = (  # name, place in (msd, mmd), file, title
    ("MSD", 0, "correlations", "Minimal sample distance and error"),
    ("MMD", 1, "correlations_mmd", "Distance of the means and error"),
)


def write_correlated(
    folder: pathlib.Path,
    rows: Sequence[files.Distance],
    errors: Mapping[tuple[str, str], float],
    comment: str,
) -> str:
    """Writes correlations.csv, correlations.png (MSD) and correlations_mmd.png with their PDFs.

    Args:
      folder: of the files.
      rows: what msd.csv holds.
      errors: {(scheme, corruption): error in percent}, as of `by_scheme.mean_errors`.
      comment: the line at the head of the table and above the figures.

    Returns:
      The correlations as text.

    Raises:
      ValueError: fewer than three schemes have both.
    """
    means = by_scheme.mean_distances(rows)
    correlations = by_scheme.correlations(means, errors)
    files.write_correlations(folder / "correlations.csv", correlations, comment)
    for name, place, stem, title in _DISTANCES:
        distance = {key: pair[place] for key, pair in means.items()}
        rho = {row.corruption: (row.msd, row.mmd)[place] for row in correlations}
        panels = scatter_panels(distance, errors, rho, distance_name=name, title=title, provenance=comment)
        figures.save(panels, folder / stem)
    return correlations_text(correlations)
