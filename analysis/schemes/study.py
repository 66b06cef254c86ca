"""The tables and figures of a scheme study, derived from its counts."""

import pathlib
from collections.abc import Iterable, Sequence

from analysis import figures
from analysis.distances import by_scheme
from analysis.distances.correlated import write_correlated
from analysis.distances.files import read_msd
from analysis.errors import summary
from analysis.schemes import corruptions, table, transforms
from analysis.tables import Count

_NO_DISTANCES = "no distances yet: tools.msd with this workdir writes {path}, and the same command again correlates"


def write_results(
    folder: pathlib.Path, counts: Sequence[Count], schemes: Sequence[str], measured: pathlib.Path, comment: str
) -> str:
    """Writes schemes.csv and scheme_corruptions.csv; transforms.csv and transforms.png where there
    are stored schemes; correlations with distance and their figures where these were measured.

    Args:
      folder: workdir, with errors_summary.csv.
      counts: what counts.csv holds.
      schemes: canonical names of the schemes that were asked for.
      measured: msd.csv, which may be missing.
      comment: the line at the head of every table.

    Returns:
      What to print.
    """
    found = table.rows(summary.read(folder / summary.NAME), schemes)
    table.write(folder / "schemes.csv", found, comment)
    corruptions.write(folder / "scheme_corruptions.csv", corruptions.rows(counts, schemes), comment)
    said = [table.text(found)]
    for stem in ("transforms", "correlations", "correlations_mmd"):  # of an earlier run
        for ending in ("csv", "png", "pdf"):
            (folder / f"{stem}.{ending}").unlink(missing_ok=True)
    if points := transforms.points(found):
        transforms.write(folder / "transforms.csv", points, comment)
        panels = transforms.panels(points, found, title="Error and number of transforms", provenance=comment)
        figures.save(panels, folder / "transforms")
    if measured.exists():
        said.append(_correlated(folder, counts, schemes, measured, comment))
    else:
        said.append(f"({_NO_DISTANCES.format(path=measured)})")
    return "\n\n".join(said)


def _correlated(folder, counts: Iterable[Count], schemes, measured, comment):
    """Correlates error with the distances measured; says why not where too few have both."""
    rows = read_msd(measured)
    targets = {(row.corruption, row.severity) for row in rows}
    held = [one for one in counts if one.model in schemes and (one.corruption, one.severity) in targets]
    names = {row.scheme for row in rows} & {one.model for one in held}
    if len(names) < by_scheme.MIN_SCHEMES:
        return (
            f"(no correlation of error with distance: expected at least {by_scheme.MIN_SCHEMES} schemes with both under "
            f"the same severities, found {len(names)} in {measured})"
        )
    return write_correlated(folder, rows, by_scheme.mean_errors(held), comment)
