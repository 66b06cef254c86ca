"""Result files of a distance study, and the rank correlation of distance with error.

msd.csv            scheme,corruption,severity,msd,msd_spread,mmd,mmd_spread
correlations.csv   corruption,schemes,msd,msd_lower,msd_upper,mmd,mmd_lower,mmd_upper
toy.csv            fraction,corruption,msd,mmd
subsets.csv        kind,size,msd
features.npz       `corruption|severity` -> centre [D]; `clean|0` is that of the images as they are
"""

import glob
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from analysis import derived
from analysis.distances import msd_mmd
from analysis.tables import CLEAN, RANDOM, read_lines, write_rows
from runtime import bindings

HEADER = ("scheme", "corruption", "severity", "msd", "msd_spread", "mmd", "mmd_spread")
CORRELATIONS_HEADER = ("corruption", "schemes", "msd", "msd_lower", "msd_upper", "mmd", "mmd_lower", "mmd_upper")
MIN_SCHEMES = 3


class Distance(NamedTuple):
    """One line of msd.csv: distances of a scheme to a corruption at a severity (level, fraction or
    `random`), and their standard deviations over halves (NaN when there are none)."""

    scheme: str
    corruption: str
    severity: int | float | str
    msd: float
    msd_spread: float
    mmd: float
    mmd_spread: float


class Correlation(NamedTuple):
    """Spearman's rho across schemes between a corruption's distance and error, with 95 % intervals
    over schemes.
    """

    corruption: str
    schemes: int
    msd: float
    msd_lower: float
    msd_upper: float
    mmd: float
    mmd_lower: float
    mmd_upper: float


class MixtureDistance(NamedTuple):
    """One line of toy.csv: distances of a mixture, with `fraction` of its first corruption, to one
    of its two.
    """

    fraction: float
    corruption: str
    msd: float
    mmd: float


class SubsetDistance(NamedTuple):
    """One line of subsets.csv: mean MSD of a subset (closest, farthest or random) of `size`
    transforms.
    """

    kind: str
    size: int
    msd: float


def write_toy(path: str | pathlib.Path, rows: Iterable[MixtureDistance], comment: str | None = None) -> None:
    """Writes toy.csv atomically."""
    write_rows(path, MixtureDistance._fields, rows, comment)


def write_subsets(path: str | pathlib.Path, rows: Iterable[SubsetDistance], comment: str | None = None) -> None:
    """Writes subsets.csv atomically."""
    write_rows(path, SubsetDistance._fields, rows, comment)


def write_msd(path: str | pathlib.Path, rows: Iterable[Distance], comment: str | None = None) -> None:
    """Writes msd.csv atomically; `rows`: iterable of `Distance`."""
    write_rows(path, HEADER, rows, comment)


def read_msd(path: str | pathlib.Path) -> list[Distance]:
    """Reads msd.csv into a list of `Distance`.

    Raises:
      ValueError: a line of another kind, or a (scheme, corruption, severity) given twice.
    """
    rows, seen = [], set()
    for number, (scheme, corruption, severity, *values) in read_lines(path, HEADER):
        where = f"{path}, line {number}"
        try:
            row = Distance(scheme, corruption, _severity(severity), *map(float, values))
        except ValueError as error:
            raise ValueError(f"{where}: expected numbers, found {error}") from None
        if not (row.msd >= 0 and row.mmd >= 0):
            raise ValueError(f"{where}: expected distances of at least 0, found {row.msd} and {row.mmd}")
        if row[:3] in seen:
            raise ValueError(f"{where}: expected every measurement once, found {','.join(map(str, row[:3]))} again")
        seen.add(row[:3])
        rows.append(row)
    return rows


def write_centres(
    path: str | pathlib.Path,
    centres: Mapping[tuple[str, int | str], np.ndarray],
    made_from: Mapping[str, str] | None = None,
) -> None:
    """Writes features.npz atomically.

    Args:
      path: of the file.
      centres: {(corruption, severity): [D]}.
      made_from: digests of the network, the images and the settings.
    """
    arrays = {f"{name}|{severity}": value for (name, severity), value in centres.items()}
    bindings.write_arrays(path, arrays, made_from or {})


def read_centres(path: str | pathlib.Path) -> dict[tuple[str, int | str], np.ndarray]:
    """Reads features.npz: {(corruption, severity): [D]}.

    Raises:
      FileNotFoundError: no such file.
      ValueError: no archive of such features.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"expected features of corruptions at {path}, found no file")
    centres = {}
    for key, value in bindings.read_arrays(path)[0].items():
        name, bar, severity = key.rpartition("|")
        if not bar or value.ndim != 1 or value.dtype.kind != "f" or not _is_severity(severity):
            raise ValueError(
                f"{path}: expected vectors called corruption|severity, found {key!r} {value.dtype}{list(value.shape)}"
            )
        centres[name, _severity(severity)] = value
    return centres


def mean_distances(rows: Iterable[Distance]) -> dict[tuple[str, str], tuple[float, float]]:
    """Distances averaged over severities: {(scheme, corruption): (msd, mmd)}.

    Raises:
      ValueError: schemes that were measured at different severities of a corruption.
    """
    return _over_severities({row[:3]: (row.msd, row.mmd) for row in rows})


def mean_errors(counts):
    """Errors in percent averaged over severities (and seeds): {(model, corruption): error}, without
    clean images.

    counts: iterable of `analysis.tables.Count`; the model's name is the scheme's.
    """
    errors = {}
    for count in counts:
        if count.corruption != CLEAN:
            key = (count.model, count.corruption, count.severity)
            errors.setdefault(key, []).append(100 * (1 - count.correct / count.total))
    return {key: values[0] for key, values in _over_severities({k: (np.mean(v),) for k, v in errors.items()}).items()}


def read_errors(
    pattern: str, model: str, targets: Iterable[tuple[str, int | float | str]]
) -> dict[tuple[str, str], float]:
    """Reads the errors of schemes from counts.csv tables, see `mean_errors`.

    Args:
      pattern: of the tables' paths; the models in them are trained with the schemes, or all of them
        adapted.
      model: name of the model that was adapted to the schemes by tools.adapt; `MODEL+bn=SCHEME` is
        called SCHEME then.
      targets: (corruption, severity) pairs that count.

    Raises:
      FileNotFoundError: no table there.
    """
    paths = sorted(glob.glob(pattern))
    if not paths:
        raise FileNotFoundError(f"expected counts.csv files under config.msd.errors={pattern!r}, found none")
    counts = [count for path in paths for count in derived.read_counts(path)]
    adapted = f"{model}+bn="
    if all(count.model.startswith(adapted) for count in counts):
        counts = [count._replace(model=count.model.removeprefix(adapted)) for count in counts]
    targets = set(targets)
    return mean_errors(count for count in counts if (count.corruption, count.severity) in targets)


def correlations(
    distance: Mapping[tuple[str, str], Sequence[float]],
    errors: Mapping[tuple[str, str], float],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> list[Correlation]:
    """Correlates distance with error (Spearman) per corruption, across the schemes that have both.

    Args:
      distance: {(scheme, corruption): (msd, mmd)}.
      errors: {(scheme, corruption): error}.

    Returns:
      list of `Correlation`, in the order of `distance`.

    Raises:
      ValueError: fewer than 3 schemes in common for every corruption.
    """
    rows = []
    for corruption in dict.fromkeys(name for _, name in distance):
        schemes = [key for key in distance if key[1] == corruption and key in errors]
        if len(schemes) < MIN_SCHEMES:
            continue
        error = [errors[key] for key in schemes]
        values = []
        for k in range(2):
            x = [distance[key][k] for key in schemes]
            interval = msd_mmd.spearman_interval(x, error, resamples=resamples, seed=seed)
            values += [msd_mmd.spearman(x, error), *interval]
        rows.append(Correlation(corruption, len(schemes), *values))
    if not rows:
        raise ValueError(
            f"expected errors of at least {MIN_SCHEMES} of the schemes {sorted({s for s, _ in distance})} under one of the "
            f"corruptions, found errors of {sorted({s for s, _ in errors})} under {sorted({c for _, c in errors})}"
        )
    return rows


def write_correlations(path: str | pathlib.Path, rows: Iterable[Correlation], comment: str | None = None) -> None:
    """Writes correlations.csv atomically; `rows`: iterable of `Correlation`."""
    write_rows(path, CORRELATIONS_HEADER, rows, comment)


def read_correlations(path: str | pathlib.Path) -> list[Correlation]:
    """Reads correlations.csv into a list of `Correlation`; ValueError for a line of another
    kind.
    """
    rows = []
    for number, (corruption, schemes, *values) in read_lines(path, CORRELATIONS_HEADER):
        try:
            rows.append(Correlation(corruption, int(schemes), *map(float, values)))
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: expected numbers, found {error}") from None
    return rows


def _over_severities(values):
    """Means over the severities in keys (scheme, corruption, severity); all schemes must have the
    same ones.
    """
    grouped, severities = {}, {}
    for (scheme, corruption, severity), value in values.items():
        grouped.setdefault((scheme, corruption), {})[severity] = value
    for (scheme, corruption), by_severity in grouped.items():
        expected = severities.setdefault(corruption, (scheme, by_severity.keys()))
        if by_severity.keys() != expected[1]:
            raise ValueError(
                f"expected the same severities of {corruption} for every scheme, found {sorted(map(str, expected[1]))} "
                f"for {expected[0]} and {sorted(map(str, by_severity))} for {scheme}"
            )
    return {
        key: tuple(float(v) for v in np.mean(list(by_severity.values()), axis=0))
        for key, by_severity in grouped.items()
    }


def _is_severity(text):
    try:
        return _severity(text) == RANDOM or 0 <= _severity(text) < float("inf")
    except ValueError:
        return False


def _severity(text):
    if text == RANDOM:
        return text
    return int(text) if text.isdigit() else float(text)
