"""C-bar candidates compiled for tests, with their draws laid open."""

import functools

import jax
import numpy as np

from corruptions import cbar
from corruptions.batch import from_float, to_float


@functools.cache
def compiled(name, shape, **options):
    """(key, uint8 image, level) -> (params, corrupted uint8 image), one compile for all levels."""
    corruption = getattr(cbar, name)

    @jax.jit
    def run(key, image, level):
        params = corruption.sample(key, shape, level, **options)
        return params, from_float(corruption.apply(to_float(image), params), np.uint8, "truncate")

    return run
