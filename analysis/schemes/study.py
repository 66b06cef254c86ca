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
    """Writes schemes.csv, its figure where schemes are few, and scheme_corruptions.csv;
    transforms.csv and transforms.png where there are stored schemes; correlations with distance and
    their figures where these were measured.

    Args:
      folder: workdir, with errors_summary.csv.
      counts: what counts.csv holds.
      schemes: canonical names of the schemes that were asked for.
      measured: msd.csv, which may be missing.
      comment: the line at the head of every table.

    Returns:
      What to print.
    """
    rows = table.rows(summary.read(folder / summary.NAME), schemes)
    table.write(folder / "schemes.csv", rows, comment)
    corruptions.write(folder / "scheme_corruptions.csv", corruptions.rows(counts, schemes), comment)
    paragraphs = [table.text(rows)]
    for stem in ("scheme_errors", "transforms", "correlations", "correlations_mmd"):  # of an earlier run
        for ending in ("csv", "png", "pdf"):
            (folder / f"{stem}.{ending}").unlink(missing_ok=True)
    if table.drawable(rows):
        figures.save(table.panels(rows, title="Errors of schemes", provenance=comment), folder / "scheme_errors")
    if points := transforms.points(rows):
        transforms.write(folder / "transforms.csv", points, comment)
        panels = transforms.panels(points, rows, title="Error and number of transforms", provenance=comment)
        figures.save(panels, folder / "transforms")
    if measured.exists():
        paragraphs.append(_correlated(folder, counts, schemes, measured, comment))
    else:
        paragraphs.append(f"({_NO_DISTANCES.format(path=measured)})")
    return "\n\n".join(paragraphs)


def _correlated(folder, counts: Iterable[Count], schemes, measured, comment):
    """Correlates error with the distances measured; says why not where too few have both."""
    rows = read_msd(measured)
    targets = {(row.corruption, row.severity) for row in rows}
    of_schemes = [count for count in counts if count.model in schemes and (count.corruption, count.severity) in targets]
    names = {row.scheme for row in rows} & {count.model for count in of_schemes}
    if len(names) < by_scheme.MIN_SCHEMES:
        return (
            f"(no correlation of error with distance: expected at least {by_scheme.MIN_SCHEMES} schemes with both "
            f"under the same severities, found {len(names)} in {measured})"
        )
    return write_correlated(folder, rows, by_scheme.mean_errors(of_schemes), comment)
