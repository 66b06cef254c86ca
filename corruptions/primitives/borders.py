"""What an image shows beyond its border."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np


def extended(image: jax.Array, reach: int, axes: Sequence[int], mode: str) -> jax.Array:
    """Extends axes by `reach` samples at both ends, as `jnp.pad` does.

    On a GPU the samples are looked up: its compiler does that within the kernel that reads them,
    and writes a pad to memory first.

    Args:
      image: any array.
      reach: samples at each end, below the sizes of the axes.
      axes: those that are extended.
      mode: "edge", "reflect" or "symmetric", see `numpy.pad`.
    """

    def look_up(image):
        for axis in axes:
            index = np.pad(np.arange(image.shape[axis]), reach, mode=mode)
            image = image.at[(*[slice(None)] * axis, index)].get(mode="promise_in_bounds")
        return image

    def pad(image):
        return jnp.pad(image, [(reach * (i in axes),) * 2 for i in range(image.ndim)], mode=mode)

    return jax.lax.platform_dependent(image, cuda=look_up, default=pad)
