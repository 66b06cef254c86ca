"""Results of a scheme study: errors after training with each augmentation scheme, in percent.

    schemes.csv              scheme,seeds, then for each column NAME,NAME_se,NAME_std: a row for each scheme
    scheme_corruptions.csv   scheme,corruption,severities,seeds,error,error_std: mean over severities, then over seeds
    transforms.csv           kind,transforms,seeds,column,error,error_se,error_std: schemes of few stored transforms

Columns are `clean`, benchmarks by their names (`_random` after those at random severities), and `gap_` before C-bar's.
`_se` is the standard error over test images, `_std` the standard deviation over seeds (n - 1), NaN of one seed.
scheme_corruptions.csv is Table 3, transforms.csv Figure 1 of the supplement of Mintun, Kirillov, Xie (2021).
"""

import pathlib
import re
from collections.abc import Collection, Iterable, Sequence

import pandas as pd

from analysis import figures, frames, trained
from analysis.distances import results
from analysis.distances.experiments import KINDS
from analysis.distances.figures import scheme_panels, transform_panels
from analysis.errors.summary import GAP, Summary
from analysis.frames import CLEAN, RANDOM, Counted, is_corruption, with_error

MEAN = "mean_error"
_FIRST, _LAST = 20, 5  # rows printed of a long table
_DRAWN = 60  # most schemes that a figure names
_STORED = re.compile(rf"stored=({'|'.join(KINDS)})_(\d+)@[0-9a-f]+")  # as tools.msd names its files


def write_results(
    folder: pathlib.Path,
    summaries: Iterable[Summary],
    counts: Sequence[Counted],
    schemes: Sequence[str],
    measured: pathlib.Path,
    origin: str,
) -> str:
    """Writes schemes.csv into a workdir, its figure where schemes are few, and scheme_corruptions.csv; transforms.csv and
    transforms.png where there are stored schemes; correlations with distance and their figures where distances were
    measured.

    Counts and summaries of the errors on benchmarks are of the models of the `schemes`, canonical names in their order.
    The folder of tools.msd, `measured`, may be missing. `origin` says where the numbers come from, for provenance.json
    and above the figures. Returns the text to print.
    """
    found = errors(summaries, schemes)
    frames.write(folder / "schemes.csv", wide(found), origin)
    frames.write(folder / "scheme_corruptions.csv", by_corruption(counts, schemes), origin)
    results.remove_correlations(folder)
    figures.remove(folder, ("scheme_errors", "transforms"), ("csv", *figures.FORMATS))
    if 1 < found.scheme.nunique() <= _DRAWN:
        figures.save(scheme_panels(found, title="Errors of schemes", provenance=origin), folder / "scheme_errors")
    stored = transforms(found)
    if len(stored):
        frames.write(folder / "transforms.csv", stored, origin)
        drawn = transform_panels(stored, found, title="Error and number of transforms", provenance=origin)
        figures.save(drawn, folder / "transforms")
    return f"{text(found)}\n\n{_correlated(folder, counts, schemes, measured, origin)}"


def _correlated(folder, counts, schemes, measured, origin):
    """Correlates error with the measured distances; prints the reason if too few schemes have both."""
    if not (measured / "schemes").is_dir():
        return f"(no distances yet: tools.msd with this workdir writes {measured}, and this command again correlates)"
    if not results.measured_in(measured) <= trained.trained_digests(folder, (key for key, _ in counts)):
        return (
            f"(no correlation of error with distance: {measured} was measured in an earlier model, which was trained again "
            "since; run tools.msd with this workdir again)"
        )
    found = results.read_distances(measured)
    targets = {(row.corruption, row.severity) for row in found}
    of_schemes = [(key, count) for key, count in counts if key[0] in schemes and count[:2] in targets]
    shown = {count[:2] for _, count in of_schemes}
    found = [row for row in found if (row.corruption, row.severity) in shown]
    names = {row.scheme for row in found} & {model for (model, _), _ in of_schemes}
    if len(names) < results.MIN_SCHEMES:
        return (
            f"(no correlation of error with distance: expected at least {results.MIN_SCHEMES} schemes with both under the "
            f"same severities, found {len(names)} in {measured})"
        )
    return results.write_correlations(folder, found, results.mean_errors(of_schemes), origin)


def errors(summaries: Iterable[Summary], schemes: Sequence[str]) -> pd.DataFrame:
    """Collects the mean errors and the gaps of schemes, in their order: scheme, seeds, column, error, error_se, error_std.

    Columns stand in the order clean, benchmarks with C-bar last, gaps.
    """
    rows = []
    for summary in summaries:
        if summary.model in schemes and summary.measure in (MEAN, GAP):
            column = summary.benchmark + (f"_{RANDOM}" if summary.severities == RANDOM else "")
            column = f"gap_{column}" if summary.measure == GAP else column
            rows.append((summary.model, summary.seeds, column, summary.mean, summary.se, summary.std))
    names = list(dict.fromkeys(row[2] for row in rows))
    names.sort(key=lambda name: (name != CLEAN, name.startswith("gap_"), "c_bar" in name))
    rows.sort(key=lambda row: (names.index(row[2]), schemes.index(row[0])))
    return pd.DataFrame(rows, columns=["scheme", "seeds", "column", "error", "error_se", "error_std"])


def wide(found: pd.DataFrame) -> pd.DataFrame:
    """Makes the frame of schemes.csv from `errors`."""
    cells = found.pivot(index="scheme", columns="column", values=["error", "error_se", "error_std"])
    table = found.drop_duplicates("scheme")[["scheme", "seeds"]].reset_index(drop=True)
    for name in found.column.unique():
        for part in ("", "_se", "_std"):
            table[f"{name}{part}"] = cells[f"error{part}", name].loc[table.scheme].to_numpy()
    return table


def by_corruption(counts: Iterable[Counted], schemes: Collection[str]) -> pd.DataFrame:
    """Averages errors over severities, then over seeds: the frame of scheme_corruptions.csv.

    A corruption counts by its levels, or by random severities if it was shown at no levels.
    """
    shown = [(key, c) for key, c in counts if key[0] in schemes and is_corruption(c.corruption)]
    at_levels = {c.corruption for _, c in shown if c.severity != RANDOM}
    frame = frames.of_counts((key, c) for key, c in shown if c.severity != RANDOM or c.corruption not in at_levels)
    frame = frame.rename(columns={"model": "scheme"}).assign(error=100 * (1 - frame.correct / frame.total))
    cells = frame.groupby(["scheme", "corruption", "seed"], sort=False).error.agg(["mean", "size"])
    found = cells.groupby(["scheme", "corruption"], sort=False)
    columns = {"severities": ("size", "max"), "seeds": ("size", "size"), "error": ("mean", "mean")}
    return found.agg(**columns, error_std=("mean", "std")).reset_index()


def text(found: pd.DataFrame) -> str:
    """Tabulates the schemes; of many, those with the smallest and largest errors in the first benchmark."""
    table, note = wide(found), ""
    names, number = list(found.column.unique()), len(table)
    if number > _FIRST + _LAST:
        key = next((name for name in names if name != CLEAN), CLEAN)
        ordered = table.sort_values(key, kind="stable", na_position="last")
        table = pd.concat([ordered[:_FIRST], ordered[-_LAST:]])
        note = f"\n({_FIRST} of least and {_LAST} of largest error in {key}, of {number})"
    kinds = {
        "standard deviation over seeds": table.seeds > 1,
        "of one seed standard error over test images": table.seeds == 1,
    }
    over = ", ".join(kind for kind, rows in kinds.items() if rows.any())
    cells = table[["scheme", "seeds"]].copy()
    for name in names:  # an error between seeds where there are several, else over test images
        spread = table[f"{name}_std"].fillna(table[f"{name}_se"])
        cells[name] = ["" if pd.isna(v) else with_error(v, se) for v, se in zip(table[name], spread, strict=True)]
    return f"{frames.text(cells)}\n(errors in percent, ± {over}){note}"


def transforms(found: pd.DataFrame) -> pd.DataFrame:
    """Makes the frame of transforms.csv: the errors of the stored schemes, by kind and number of transforms."""
    stored = found.scheme.str.extract(_STORED.pattern + "$").dropna()
    table = found.loc[stored.index].assign(kind=stored[0], transforms=stored[1].astype(int))
    table = table[~table.column.str.startswith("gap_")]
    table = table.sort_values(
        ["kind", "transforms"], key=lambda v: v.map(KINDS.index) if v.name == "kind" else v, kind="stable"
    )
    return table[["kind", "transforms", "seeds", "column", "error", "error_se", "error_std"]].reset_index(drop=True)
