"""Distances and errors of schemes, severities averaged, and how the two go together across schemes."""

import glob
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from analysis import derived
from analysis.distances import msd_mmd
from analysis.distances.files import Correlation, Distance
from analysis.tables import CLEAN, Count

MIN_SCHEMES = 3
"""Schemes that a correlation across them takes."""


def mean_distances(rows: Iterable[Distance]) -> dict[tuple[str, str], tuple[float, float]]:
    """Averages distances over severities: {(scheme, corruption): (msd, mmd)}.

    Raises:
      ValueError: schemes that were measured at different severities of a corruption.
    """
    return _over_severities({row[:3]: (row.msd, row.mmd) for row in rows})


def mean_errors(counts: Iterable[Count]) -> dict[tuple[str, str], float]:
    """Averages errors in percent over severities (and seeds): {(model, corruption): error}, without
    clean images; the model's name is the scheme's.
    """
    errors = {}
    for count in counts:
        if count.corruption != CLEAN:
            key = (count.model, count.corruption, count.severity)
            errors.setdefault(key, []).append(100 * count.error)
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
