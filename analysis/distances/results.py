"""Results of a distance study: distances of schemes to corruptions, and their correlation with error.

WORKDIR/msd/schemes/*.npz    state: MSD and MMD of a scheme to each (corruption, severity), with those of halves
WORKDIR/msd/features.npz     state: `corruption|severity` -> centre [D]; `clean|0` is the centre of clean images
msd.csv                      scheme,corruption,severity,msd,msd_spread,mmd,mmd_spread
correlations.csv             corruption,schemes,msd,msd_lower,msd_upper,mmd,mmd_lower,mmd_upper
within_schemes.csv           scheme,corruptions and the same columns: correlations across the corruptions of one scheme
"""

import contextlib
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis import figures, frames
from analysis.distances import msd_mmd
from analysis.distances.figures import scatter_panels
from analysis.frames import CLEAN, Counted
from corruptions.scoring.conditions import Condition
from runtime import artifacts

MIN_SCHEMES = 3
"""Fewest schemes, or corruptions, that a correlation across them takes."""
_PANELS = 10  # largest number of schemes with separate panels
_AGAIN = "give the command of tools.msd again"
_FIGURES = (  # name, position in (msd, mmd), file, title
    ("MSD", 0, "correlations", "Minimal sample distance and error"),
    ("MMD", 1, "correlations_mmd", "Distance of the means and error"),
)


class Distance(NamedTuple):
    """A row of msd.csv: distances of a scheme to a corruption at a severity (level, fraction or `random`), and their
    standard deviations over halves (NaN when there are none).
    """

    scheme: str
    corruption: str
    severity: int | float | str
    msd: float
    msd_spread: float
    mmd: float
    mmd_spread: float

    @classmethod
    def of(cls, scheme: str, target: tuple[str, int | float | str], measured: np.ndarray) -> "Distance":
        """Makes the row of MSD and MMD [2, 1 + halves], all images first."""
        values = (value for of_measure in measured for value in (of_measure[0], msd_mmd.spread(of_measure)))
        return cls(scheme, *target, *map(float, values))


class Correlation(NamedTuple):
    """A row of correlations.csv: Spearman's rho, across schemes, of distance and error, with 95 % intervals."""

    corruption: str
    schemes: int
    msd: float
    msd_lower: float
    msd_upper: float
    mmd: float
    mmd_lower: float
    mmd_upper: float


class Agreement(NamedTuple):
    """Rank correlations of the distances in two networks, severities averaged.

    Attributes:
      schemes, corruptions: those that both have.
      spearman, interval: over all points (scheme, corruption), with the percentile interval over resampled corruptions.
      ordering, ordering_interval: mean over corruptions of the correlation across schemes, which a correlation with
        error depends on; NaN with fewer than 3 schemes.
      by_corruption: {corruption: correlation across schemes}; NaN where a network does not tell the schemes apart.
    """

    schemes: tuple[str, ...]
    corruptions: tuple[str, ...]
    spearman: float
    interval: tuple[float, float]
    ordering: float
    ordering_interval: tuple[float, float]
    by_corruption: dict[str, float]


def read_distances(folder: pathlib.Path) -> list[Distance]:
    """Reads the distances of every scheme that was measured in a folder of tools.msd.

    Raises FileNotFoundError where no scheme was measured, DamagedFileError for a damaged file, and ValueError for files
    from different networks or images, or a file that does not name its scheme.
    """
    paths = sorted((folder / "schemes").glob("*.npz"))
    if not paths:
        raise FileNotFoundError(f"expected distances of tools.msd in {folder / 'schemes'}, found none")
    rows, origins, centres = [], set(), set()
    for path in paths:
        arrays, record = artifacts.read(path)
        scheme = record.pop(msd_mmd.SCHEME, None)
        centres |= record.pop(msd_mmd.CENTRES, {}).items()  # earlier versions recorded none
        record.pop(artifacts.ORIGINS, None)  # of each scheme its own
        origins.add(tuple(sorted(record.items())))
        if not scheme or any(value.ndim != 2 or len(value) != 2 for value in arrays.values()):
            raise ValueError(
                f"{path}: expected distances [2, halves] of a scheme with its name, found others; {_AGAIN}"
            )
        rows += [Distance.of(scheme, _target(path, key), value) for key, value in arrays.items()]
    if len(origins) > 1 or len(dict(centres)) != len(centres):
        raise ValueError(f"{folder}: expected distances in one network on the same images, found others; {_AGAIN}")
    return rows


def measured_in(folder: pathlib.Path) -> set[str | None]:
    """Lists the digests of the networks that schemes in a folder of tools.msd were measured in, None for an unknown one."""
    return {artifacts.read(path).made_from.get("model") for path in (folder / "schemes").glob("*.npz")}


def write_centres(
    path: pathlib.Path, centres: Mapping[tuple[str, int | str], np.ndarray], made_from: Mapping[str, str] | None = None
) -> None:
    """Writes {(corruption, severity): [D]} to features.npz, with digests of the network, the images and the settings."""
    artifacts.write(path, {f"{name}|{severity}": v for (name, severity), v in centres.items()}, made_from or {})


def read_centres(path: str | pathlib.Path) -> dict[tuple[str, int | float | str], np.ndarray]:
    """Reads features.npz: {(corruption, severity): [D]}; FileNotFoundError, or ValueError for another archive."""
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"expected features of corruptions at {path}, found no file")
    arrays, _ = artifacts.read(path)
    for key, value in arrays.items():
        if value.ndim != 1 or value.dtype.kind != "f":
            raise ValueError(f"{path}: expected vectors of features, found {key!r} {value.dtype}{list(value.shape)}")
    return {_target(path, key): value for key, value in arrays.items()}


def _target(path, key):
    name, bar, severity = key.rpartition("|")
    with contextlib.suppress(ValueError):
        if bar:
            return name, Condition(name, severity).label
    raise ValueError(f"{path}: expected arrays called corruption|severity, found {key!r}")


def mean_distances(rows: Iterable[Distance]) -> dict[tuple[str, str], tuple[float, float]]:
    """Averages distances over severities: {(scheme, corruption): (msd, mmd)}.

    Raises ValueError for schemes that were measured at different severities of a corruption.
    """
    frame = pd.DataFrame(list(rows), columns=Distance._fields)
    return _over_severities(frame, ["msd", "mmd"]).apply(tuple, axis=1).to_dict()


def mean_errors(counts: Iterable[Counted]) -> dict[tuple[str, str], float]:
    """Averages errors in percent over severities (and seeds): {(model, corruption): error}, without clean images; the
    model's name is the scheme's.
    """
    frame = frames.of_counts((key, count) for key, count in counts if count.corruption != CLEAN)
    frame = frame.rename(columns={"model": "scheme"}).assign(error=100 * (1 - frame.correct / frame.total))
    frame = frame.groupby(["scheme", "corruption", "severity"], sort=False).error.mean().reset_index()
    return _over_severities(frame, ["error"]).error.to_dict()


def _over_severities(frame, columns):
    """Means over severities, which all schemes must have alike, by (scheme, corruption)."""
    cells = frame.groupby(["scheme", "corruption"], sort=False)
    severities = cells.severity.agg(lambda values: tuple(sorted(map(str, values))))
    for corruption, of_schemes in severities.groupby("corruption", sort=False):
        if len(other := of_schemes[of_schemes != of_schemes.iloc[0]]):
            (first, _), (scheme, _) = of_schemes.index[0], other.index[0]
            raise ValueError(
                f"expected the same severities of {corruption} for every scheme, found {list(of_schemes.iloc[0])} for "
                f"{first} and {list(other.iloc[0])} for {scheme}"
            )
    return cells[columns].mean()


def correlations(
    distance: Mapping[tuple[str, str], Sequence[float]],
    errors: Mapping[tuple[str, str], float],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> list[Correlation]:
    """Correlates distance with error (Spearman) per corruption, across the schemes that have both.

    Distances are {(scheme, corruption): (msd, mmd)}, errors {(scheme, corruption): error}. The intervals come from
    `resamples` of the schemes, drawn from `seed`. Raises ValueError for fewer than 3 schemes in common under every
    corruption.
    """
    rows = []
    for corruption in dict.fromkeys(name for _, name in distance):
        schemes = [key for key in distance if key[1] == corruption and key in errors]
        if len(schemes) < MIN_SCHEMES:
            continue
        error, values = [errors[key] for key in schemes], []
        for x in np.array([distance[key] for key in schemes]).T:
            interval = msd_mmd.spearman_interval(x, error, resamples=resamples, seed=seed)
            values += [msd_mmd.spearman(x, error), *interval]
        rows.append(Correlation(corruption, len(schemes), *values))
    if not rows:
        raise ValueError(
            f"expected errors of at least {MIN_SCHEMES} of the schemes {sorted({s for s, _ in distance})} under one of the "
            f"corruptions, found errors of {sorted({s for s, _ in errors})} under {sorted({c for _, c in errors})}"
        )
    return rows


def remove_correlations(folder: pathlib.Path) -> None:
    """Deletes what `write_correlations` wrote in an earlier run."""
    figures.remove(folder, ("correlations", "correlations_mmd", "within_schemes"), ("csv", *figures.FORMATS))


def write_correlations(
    folder: pathlib.Path, rows: Sequence[Distance], errors: Mapping[tuple[str, str], float], origin: str
) -> str:
    """Writes the correlations of distance with error.

    Across schemes, a panel for each corruption: correlations.csv, correlations.png (MSD) and correlations_mmd.png.
    Within a scheme, across its corruptions, where there are three: within_schemes.csv, and within_schemes.png (MMD)
    with a panel for each scheme that is no subset of another's operations, of ten at most. Source: Mintun, Kirillov,
    Xie (2021), Figures 2 and 3, and Figure 3 of the supplement.

    The errors are {(scheme, corruption): error in percent}, see `mean_errors`; `origin` says where the numbers come
    from, for provenance.json and above the figures. Returns the correlations as text. Raises ValueError where fewer
    than three schemes have both.
    """
    means = mean_distances(rows)
    found = correlations(means, errors)
    frames.write(folder / "correlations.csv", frames.of_rows(found, Correlation._fields), origin)
    for name, position, stem, title in _FIGURES:
        distance = {key: pair[position] for key, pair in means.items()}
        rho = {row.corruption: (row.msd, row.mmd)[position] for row in found}
        panels = scatter_panels(distance, errors, rho, distance_name=name, title=title, provenance=origin)
        figures.save(panels, folder / stem)
    text = correlations_text(found)
    means, errors = ({key[::-1]: value for key, value in of.items()} for of in (means, errors))
    if max(len([key for key in means if key[1] == s and key in errors]) for _, s in means) < MIN_SCHEMES:
        return text
    within = correlations(means, errors)
    columns = ("scheme", "corruptions", *Correlation._fields[2:])
    frames.write(folder / "within_schemes.csv", frames.of_rows(within, columns), origin)
    whole = [row for row in within if "=" not in row.corruption] or within
    rho = {row.corruption: row.mmd for row in whole[:_PANELS]}
    distance, title = {key: mmd for key, (_, mmd) in means.items()}, "Distance of the means and error within a scheme"
    panels = scatter_panels(distance, errors, rho, distance_name="MMD", title=title, provenance=origin)
    figures.save(panels, folder / "within_schemes")
    return f"{text}\n\n{correlations_text(whole[:_PANELS], 'scheme', 'corruptions')}"


def agreement(
    first: Sequence[Distance],
    second: Sequence[Distance],
    measure: str = "msd",
    *,
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Agreement:
    """Compares the distances of the same schemes and corruptions in two networks.

    Distances of two networks are on different scales, so ranks are compared. Points that share a corruption are not
    independent: intervals resample corruptions, each with all its schemes. E. Mintun, A. Kirillov, S. Xie (2021),
    supplement C.1, compare WRN-40-2 and VGG-19-BN by the correlation of either's MSD with error.

    Args:
      first, second: rows of the two networks.
      measure: `msd` or `mmd`.
      resamples, seed, level: of the intervals.

    Raises:
      ValueError: another measure, fewer than 2 schemes or 3 corruptions in common, or, among these, distances that one
        has and the other lacks, or other severities.
    """
    if measure not in ("msd", "mmd"):
        raise ValueError(f"expected the measure msd or mmd, found {measure!r}")
    both = [pd.DataFrame(rows, columns=Distance._fields) for rows in (first, second)]
    schemes, corruptions = (
        tuple(name for name in both[0][column].unique() if name in set(both[1][column]))
        for column in ("scheme", "corruption")
    )
    if len(schemes) < 2 or len(corruptions) < 3:
        raise ValueError(
            f"expected at least 2 schemes and 3 corruptions in both, found {len(schemes)} and {len(corruptions)}"
        )
    both = [frame[frame.scheme.isin(schemes) & frame.corruption.isin(corruptions)] for frame in both]
    keys = [set(frame[["scheme", "corruption", "severity"]].itertuples(index=False, name=None)) for frame in both]
    if keys[0] != keys[1]:
        only = min(keys[0] ^ keys[1], key=str)
        raise ValueError(f"expected the same measurements in both, found only in one: {only}")
    x, y = (
        _over_severities(frame, [measure])[measure].unstack("scheme").loc[list(corruptions), list(schemes)].to_numpy()
        for frame in both
    )
    ordering = np.full(len(corruptions), np.nan)
    if len(schemes) >= MIN_SCHEMES:
        ordering = np.array([msd_mmd.spearman(*pair) for pair in zip(x, y)])
    drawn = np.random.default_rng(seed).integers(0, len(corruptions), (resamples, len(corruptions)))
    whole = [msd_mmd.spearman(x[resample].ravel(), y[resample].ravel()) for resample in drawn]
    return Agreement(
        schemes,
        corruptions,
        msd_mmd.spearman(x.ravel(), y.ravel()),
        frames.percentile_interval(whole, level),
        _mean(ordering),
        frames.percentile_interval([_mean(ordering[resample]) for resample in drawn], level),
        dict(zip(corruptions, ordering.tolist())),
    )


def _mean(values):
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def distances_text(rows: Sequence[Distance]) -> str:
    """Tabulates the MSD and MMD of every scheme, means over the corruptions."""
    means = _over_severities(pd.DataFrame(rows, columns=Distance._fields), ["msd", "mmd"])
    table = means.groupby("scheme", sort=False).mean().map("{:.3f}".format).reset_index()
    return frames.text(table.rename(columns={"msd": "MSD", "mmd": "MMD"})) + "\n(means over the corruptions)"


def correlations_text(rows: Sequence[Correlation], of: str = "corruption", across: str = "schemes") -> str:
    """Tabulates Spearman's rho between distance and error, with its interval, of every corruption across schemes."""
    lines = [
        (row[0], str(row[1]), *(f"{rho:+.2f} ({low:+.2f}..{high:+.2f})" for rho, low, high in (row[2:5], row[5:])))
        for row in rows
    ]
    table = pd.DataFrame(lines, columns=[of, across, "MSD (95 %)", "MMD (95 %)"])
    return f"Spearman's rho with the error, across {across}\n{frames.text(table)}"
