"""Images that are no plain batch in [0, 1]: other ranges of values, regions, frames and cameras."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.core import checks, dispatch
from corruptions.core.errors import Refused, RefusedType

_NEAR = 1e-3  # in levels of 8 bits


def in_unit_range(
    corrupt: Callable[[jax.Array], jax.Array], images: Any, value_range: Any, validate: bool | str
) -> jax.Array:
    """Corrupts floats in (low, high) as the images (x - low) / (high - low) in [0, 1], and maps the result back.

    Values within .001 level of a level k / 255 become that level: float32 in (-1, 1) holds levels to 1e-5 only, which
    a corruption that cuts to 8 bits would take for the level below. Raises ValueError for no range, or images that
    leave it; TypeError for other than floats.
    """
    low, high = bounds(images, value_range, validate)
    if validate == "checkify":
        near = _rounding(images.dtype, low, high)
        checks.checked_in_program(images, None, low=low - near, high=high + near)
    images = jnp.asarray(dispatch.held(images))
    unit = (images.astype(jnp.float32) - low) / (high - low)
    unit = jnp.where(unit < 0, 0.0, jnp.where(unit > 1, 1.0, unit))  # jnp.clip halves derivatives at 0 and 1
    levels = jnp.round(255 * unit)
    snapped = jnp.where(jnp.abs(255 * unit - levels) < _NEAR, levels / 255, unit)
    corrupted = corrupt(unit + jax.lax.stop_gradient(snapped - unit))
    return (corrupted * (high - low) + low).astype(images.dtype)


def bounds(images: Any, value_range: Any, validate: bool | str) -> tuple[float, float]:
    """Reads (low, high), the range of the values of float images; raises as `in_unit_range`."""
    checks.refuse_torch(images)
    low, high = ends(value_range)
    if not hasattr(images, "dtype") or images.dtype not in checks.FLOATS:
        found = getattr(images, "dtype", type(images).__name__)
        expected = f"floats with value_range={value_range!r}"
        raise RefusedType("images", expected, found, "uint8 images go without it")
    if validate and not dispatch.is_traced(images) and images.size:
        least, most = checks.extremes(images)
        near = _rounding(images.dtype, low, high)
        if not (least >= low - near and most <= high + near):
            expected = f"values in value_range=({low:g}, {high:g})"
            raise Refused("images", expected, f"values from {least:g} to {most:g}")
    return low, high


def ends(value_range: Any) -> tuple[float, float]:
    """Reads (low, high); raises ValueError for anything else than two numbers with low < high."""
    try:
        low, high = (float(bound) for bound in value_range)
    except (TypeError, ValueError):
        low = high = 0.0
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise Refused("value_range", "value_range=(low, high) with low < high", repr(value_range))
    return low, high


def _rounding(dtype: Any, low: float, high: float) -> float:
    """Returns how far a value at a bound may lie outside of it: the bound's own rounding and that of (x - mean) / std."""
    return 2 * max(float(jnp.finfo(dtype).eps), float(np.finfo(np.float32).eps)) * max(abs(low), abs(high))


def inside(where: Any, images: Any, corrupted: jax.Array) -> jax.Array:
    """Takes corrupted pixels where a mask is True, the others as they were.

    Raises ValueError for a mask that is not bool, or has another shape than the images without channels.
    """
    shape, dtype = np.shape(where), getattr(where, "dtype", type(where).__name__)
    if dtype != np.dtype(bool) or shape != tuple(images.shape[:-1]):
        raise Refused("where", f"where: bool of shape {tuple(images.shape[:-1])}", f"{dtype} of shape {shape}")
    where, images = dispatch.held((where, images))
    return jnp.where(jnp.asarray(where)[..., None], corrupted, jnp.asarray(images, corrupted.dtype))


def parts(key: jax.Array, images: Any, axis: Any, fresh_noise: bool) -> list[tuple[jax.Array, Any]]:
    """Splits samples [N, (T,) (M,) H, W, C] by the argument `axis` of `corrupt` into batches [N (T), H, W, C] of images
    and their keys: one batch, or one for each of M cameras.

    Raises ValueError for another axis, `fresh_noise` without time, or images of another rank or without cameras, and
    TypeError for no array.
    """
    time, cameras = _axes(axis, fresh_noise)
    if cameras:
        expected = f"(number, {'time, ' if time else ''}cameras, height, width, channels)"
        if _rank(images, "samples of cameras") != 5 + time or images.shape[-4] == 0:
            expected = f"samples of shape {expected} with at least one camera"
            raise Refused("images", expected, tuple(images.shape))
        rigs = [(jax.random.fold_in(key, m), images[..., m, :, :, :]) for m in range(images.shape[-4])]
        return [(rig_key, rig.reshape(-1, *rig.shape[-3:]) if time else rig) for rig_key, rig in rigs]
    if _rank(images, "clips") != 5:
        expected = "clips of shape (number, time, height, width, channels)"
        raise Refused("images", expected, tuple(images.shape), "images alone go without axis")
    return [(key, images.reshape(-1, *images.shape[-3:]))]


def joined(
    run: Callable[..., jax.Array],
    draw: Callable[..., jax.Array],
    corruption: Any,
    key: jax.Array,
    parts: Sequence[tuple[jax.Array, Any]],
    shape: Sequence[int],
    axis: Any,
    fresh_noise: bool,
    levels: Any,
    index: Any,
) -> jax.Array:
    """Corrupts the batches of `parts` and joins the results in the `shape` of the samples.

    Args:
      run: `(key, images, levels, index)` to the corrupted images.
      draw: `(key, index)` to the severities that images draw.
      key, axis, fresh_noise: as of `corrupt`; ValueError for fresh noise of a corruption made of others, or for an
        index of more than 31 bits.
      levels, index: of the samples; levels is None where they are drawn.
    """
    time, cameras = _axes(axis, fresh_noise)
    if fresh_noise and corruption.members:
        expected = f"fresh_noise=False for {corruption.qualified_name}, whose parts draw together"
        raise Refused("fresh_noise", expected, True)
    fresh = fresh_noise and corruption.family == "noise"
    if fresh and index.ndim > 1:
        raise Refused("index", "an index below 2**31 with fresh_noise=True", "more bits")
    if cameras and levels is None:
        levels = draw(key, index)

    def rows(own_key: jax.Array) -> tuple[Any, Any]:
        if not time:
            return levels, index
        number, frames = shape[:2]
        own_levels = draw(own_key, index) if fresh and levels is None else levels
        own_index = jnp.repeat(jnp.asarray(index), frames, axis=0)
        own_levels = None if own_levels is None else jnp.repeat(jnp.asarray(own_levels), frames, axis=0)
        if fresh:  # frame t of clip i has the index i + 2^32 t
            frame = jnp.tile(jnp.arange(frames, dtype=jnp.uint32), number)
            own_index = jnp.stack([own_index.astype(jnp.uint32), frame], axis=1)
        return own_levels, own_index

    corrupted = [run(own_key, images, *rows(own_key)) for own_key, images in parts]
    if cameras:
        return jnp.stack([rig.reshape(*shape[:-4], *shape[-3:]) for rig in corrupted], axis=-4)
    return corrupted[0].reshape(shape)


def _axes(axis: Any, fresh_noise: bool) -> tuple[bool, bool]:
    """Reads the argument `axis` of `corrupt`: whether there is an axis of time, and one of cameras."""
    known = {None: (False, False), "time": (True, False), "camera": (False, True), ("time", "camera"): (True, True)}
    axis = tuple(axis) if isinstance(axis, list) else axis
    if not isinstance(axis, str | tuple | None) or axis not in known:
        raise Refused("axis", "axis=None, 'time', 'camera' or ('time', 'camera')", repr(axis))
    if fresh_noise and not known[axis][0]:
        raise Refused("axis", "axis='time' with fresh_noise=True", f"axis={axis!r}")
    return known[axis]


def _rank(images: Any, what: str) -> int:
    if not hasattr(images, "shape"):
        raise RefusedType("images", f"an array of {what}", type(images).__name__)
    return len(images.shape)
