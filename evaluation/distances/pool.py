"""A pool of transforms drawn from one scheme, by number: their distances to centres, and what they
are (`analysis.distances.experiments`).
"""

import functools
from collections.abc import Sequence

import numpy as np

from evaluation.distances.centres import Measured
from evaluation.distances.transforms import Transform
from runtime.progress import bar

PART = 4096
"""Transforms whose distances are saved together."""


def distances(measured: Measured, scheme: Transform, pool: int, centres: np.ndarray) -> np.ndarray:
    """Measures the distances [pool, m] of transforms of a scheme to the centres [m, D]."""
    key = measured.scheme_key(scheme)

    def measure(first):
        number = min(PART, pool - first)
        chunks = measured.extractor.stream(scheme, key, number, first=first, description=scheme.name)
        return np.concatenate([np.linalg.norm(chunk[:, :1].astype(np.float64) - centres, axis=-1) for chunk in chunks])

    parts = bar("part", range(0, pool, PART), desc=scheme.name)
    return np.concatenate(
        [measured.once(f"pool/{first}.npz", "distances", functools.partial(measure, first)) for first in parts]
    )


def params(measured: Measured, scheme: Transform, numbers: Sequence[int]) -> dict[str, np.ndarray]:
    """Draws the parameters of the transforms with these numbers, the first axis."""
    return {name: np.asarray(value) for name, value in measured.params(scheme, numbers).items()}
