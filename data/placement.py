"""Arrays of the host onto devices, also those of many processes."""

import jax
import numpy as np


def place(array: np.ndarray, sharding: jax.sharding.Sharding | None) -> jax.Array:
    """`jax.device_put` of an array that every process of a run holds as a whole.

    Over many processes device_put compares what all hold, at the cost of a copy of each everywhere; this does not.

    Args:
      array: on the host.
      sharding: where it lies; None is the default device.
    """
    if sharding is None or sharding.is_fully_addressable:
        return jax.device_put(array, sharding)
    return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])
