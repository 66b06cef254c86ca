"""One run of a severity scan, joined from the errors of one network and the features of another."""

from collections.abc import Iterable, Mapping

import numpy as np

import corruptions
from analysis.cbar import scans
from analysis.tables import Count

BENCHMARKS = {"candidate": "cbar_candidates", "reference": "imagenet_c"}


def join(counts: Iterable[Count], centres: Mapping[tuple[str, int], np.ndarray], model: str) -> scans.Scan:
    """Joins the errors of one model, seeds averaged, with the mean features of another.

    Args:
      counts: correct answers to every level of both benchmarks in `BENCHMARKS`.
      centres: (corruption, level) -> mean feature [D] (`analysis.distances.files.read_centres`).
      model: which model of `counts`: what it was trained with.

    Raises:
      ValueError: no such model, or levels that one of the two lacks (some are named).
    """
    counts, errors = list(counts), {}
    for count in counts:
        if count.model == model:
            errors.setdefault((count.corruption, count.severity), []).append(100 * count.error)
    if not errors:
        raise ValueError(f"expected counts of the model {model!r}, found {sorted({count.model for count in counts})}")
    parts = []
    for role, benchmark in BENCHMARKS.items():
        names = corruptions.names(benchmark)
        shape = (len(names), scans.LEVELS[role])
        conditions = [(name, level) for name in names for level in range(1, shape[1] + 1)]
        for what, known in (("errors", errors), ("features", centres)):
            missing = [f"{name} level {level}" for name, level in conditions if (name, level) not in known]
            if missing:
                raise ValueError(
                    f"expected {what} of every level of {benchmark}, missing {len(missing)}: {', '.join(missing[:5])} ..."
                )
        parts += [
            names,
            np.reshape([np.mean(errors[condition]) for condition in conditions], shape),
            np.reshape([centres[condition] for condition in conditions], (*shape, -1)),
        ]
    return scans.Scan(*parts)
