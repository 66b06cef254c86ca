"""Images that are no plain batch in [0, 1]: of other values, of regions, of frames and cameras."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from corruptions import checks

_NEAR = 1e-3  # of a level of 8 bits


def in_unit_range(
    corrupt: Callable[[jax.Array], jax.Array], images: Any, value_range: Sequence[float], validate: bool
) -> jax.Array:
    """Corrupts floats in (low, high) as the images (x - low) / (high - low) in [0, 1], and maps the result back.

    Values within .001 level of a level k / 255 become that level: float32 in (-1, 1) holds levels to 1e-5 only, which a
    corruption that cuts to 8 bits would take for the level below.

    Raises:
      ValueError: no range, or images that leave it.
      TypeError: no floats.
    """
    try:
        low, high = (float(bound) for bound in value_range)
    except (TypeError, ValueError):
        low = high = 0.0
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise ValueError(f"expected value_range=(low, high) with low < high, found {value_range!r}")
    if not hasattr(images, "dtype") or not jnp.issubdtype(images.dtype, jnp.floating):
        found = getattr(images, "dtype", type(images).__name__)
        raise TypeError(f"expected floats with value_range={value_range!r}, found {found}; uint8 images go without it")
    if validate and not checks.is_traced(images) and images.size:
        least, most = float(images.min()), float(images.max())  # a NaN anywhere makes both NaN
        if not (least >= low and most <= high):
            raise ValueError(
                f"expected values in value_range=({low:g}, {high:g}), found values from {least:g} to {most:g}"
            )
    images = jnp.asarray(images)
    unit = jnp.clip((images.astype(jnp.float32) - low) / (high - low), 0.0, 1.0)
    levels = jnp.round(255 * unit)
    snapped = jnp.where(jnp.abs(255 * unit - levels) < _NEAR, levels / 255, unit)
    corrupted = corrupt(unit + jax.lax.stop_gradient(snapped - unit))
    return (corrupted * (high - low) + low).astype(images.dtype)


def inside(where: Any, images: Any, corrupted: jax.Array) -> jax.Array:
    """Takes corrupted pixels where a mask is True, the others as they were.

    Raises:
      ValueError: a mask that is not bool, or has another shape than the images without channels.
    """
    shape, dtype = np.shape(where), getattr(where, "dtype", type(where).__name__)
    if dtype != np.dtype(bool) or shape != tuple(images.shape[:-1]):
        raise ValueError(f"expected where: bool of shape {tuple(images.shape[:-1])}, found {dtype} of shape {shape}")
    return jnp.where(jnp.asarray(where)[..., None], corrupted, jnp.asarray(images, corrupted.dtype))


def axes(axis: Any, fresh_noise: bool) -> tuple[bool, bool]:
    """Reads the argument `axis` of `corrupt`: whether there is an axis of time, and one of cameras.

    Raises:
      ValueError: another axis, or `fresh_noise` without time.
    """
    known = {None: (False, False), "time": (True, False), "camera": (False, True), ("time", "camera"): (True, True)}
    axis = tuple(axis) if isinstance(axis, list) else axis
    if not isinstance(axis, str | tuple | None) or axis not in known:
        raise ValueError(f"expected axis=None, 'time', 'camera' or ('time', 'camera'), found {axis!r}")
    if fresh_noise and not known[axis][0]:
        raise ValueError(f"expected axis='time' with fresh_noise=True, found axis={axis!r}")
    return known[axis]


def cameras(key: jax.Array, images: Any, time: bool) -> list[tuple[jax.Array, Any]]:
    """Splits samples [N, (T,) M, H, W, C] into M pairs of a camera's key and its images [N, (T,) H, W, C].

    Raises:
      ValueError: images of another rank, or without cameras.
      TypeError: no array.
    """
    expected = f"(number, {'time, ' if time else ''}cameras, height, width, channels)"
    rank = _rank(images, "samples of cameras")
    if rank != 5 + time or images.shape[-4] == 0:
        raise ValueError(
            f"expected samples of shape {expected} with at least one camera, found shape {tuple(images.shape)}"
        )
    return [(jax.random.fold_in(key, m), images[..., m, :, :, :]) for m in range(images.shape[-4])]


def frames(clips: Any) -> Any:
    """Reshapes clips [N, T, H, W, C] to images [N T, H, W, C].

    Raises:
      ValueError: an array of another rank.
      TypeError: no array.
    """
    if _rank(clips, "clips") != 5:
        raise ValueError(
            f"expected clips of shape (number, time, height, width, channels), found shape {tuple(clips.shape)}; "
            "images alone go without axis"
        )
    number, time, *shape = clips.shape
    return clips.reshape(number * time, *shape)


def _rank(images, what):
    if not hasattr(images, "shape"):
        raise TypeError(f"expected an array of {what}, found {type(images).__name__}")
    return len(images.shape)
