"""Failures of whole cameras: RoboBEV's `camera_crash` and `frame_lost`, of samples of several cameras each."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from corruptions import contract, devices, keys, views
from corruptions.batch import image_key
from corruptions.record import Array


def camera_crash(
    key: jax.Array,
    images: Array,
    severity: int,
    *,
    replace: bool = True,
    value_range: tuple[float, float] | None = None,
) -> jax.Array:
    """Blackens the same cameras in every sample: `severity` draws of a camera.

    The draws depend only on the key, so that a run has one set of crashed cameras whatever its batches. RoboBEV's easy,
    mid and hard are severities 2, 4 and 5. Source: RoboBEV, CameraCrash.

    Args:
      key: a typed PRNG key.
      images: [N, M, H, W, C], M cameras each, uint8 or floats.
      severity: number of draws, 1 to 5.
      replace: whether a camera may be drawn twice, as in the original; False draws different ones.
      value_range: (low, high) of float images that are not in [0, 1], whose black is low.

    Returns:
      The images, crashed cameras black: 0, or low, in all values.

    Raises:
      ValueError: images of another rank or without cameras, another severity, more different cameras than there are, or
        values outside of `value_range`.
    """
    black = _black(key, images, severity, value_range)
    cameras = images.shape[1]
    if not replace and severity > cameras:
        raise ValueError(
            f"expected at most {cameras} different cameras, found severity {severity}; replace=True repeats them"
        )
    crashed = jax.random.choice(key, cameras, (severity,), replace=replace)
    lost = (jnp.arange(cameras)[:, None] == crashed[None]).any(1)
    return jnp.where(lost[None, :, None, None, None], black, images)


def frame_lost(
    key: jax.Array,
    images: Array,
    severity: ArrayLike,
    *,
    index: Array | None = None,
    value_range: tuple[float, float] | None = None,
) -> jax.Array:
    """Blackens each camera of each sample with probability severity / 6, independently.

    RoboBEV's easy, mid and hard are severities 2, 4 and 5. Frames of clips count as samples: reshape [N, T, M, H, W,
    C] to [N T, M, H, W, C]. Source: RoboBEV, FrameLost.

    Args:
      key: a typed PRNG key.
      images: [N, M, H, W, C], M cameras each, uint8 or floats.
      severity: 1 to 5; may be traced.
      index: integers [N], the identity of each sample, by default 0..N-1; its draws depend on nothing else.
      value_range: (low, high) of float images that are not in [0, 1], whose black is low.

    Returns:
      The images, lost ones black: 0, or low, in all values.

    Raises:
      ValueError: images of another rank or without cameras, another severity, or values outside of `value_range`.
    """
    black = _black(key, images, severity, value_range)
    number, cameras = images.shape[:2]
    index = jnp.arange(number) if index is None else keys.image_index(index, number, True)

    def draw(position):
        own = image_key(key, position)  # a key for each camera, so that further cameras change no draw
        return jax.vmap(lambda camera: jax.random.uniform(jax.random.fold_in(own, camera)))(jnp.arange(cameras))

    lost = jax.vmap(draw)(index) < jnp.asarray(severity, jnp.float32) / 6
    return jnp.where(lost[..., None, None, None], black, images)


def _black(key, images, severity, value_range):
    """Checks a request; returns the value of black."""
    contract.key(key)
    shape = np.shape(images)
    if len(shape) != 5 or shape[1] == 0:
        raise ValueError(
            f"expected images of shape (number, cameras, height, width, channels) with at least one camera, found shape {shape}"
        )
    if not devices.is_traced(severity) and severity not in range(1, 6):
        raise ValueError(f"expected a severity level 1..5, found {severity!r}")
    low = 0 if value_range is None else views.bounds(images, value_range, True)[0]
    return jnp.asarray(low, images.dtype)
