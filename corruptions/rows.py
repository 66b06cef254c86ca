"""What goes with each image of a batch, and with each frame of clips: a severity and an identity."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from corruptions import keys
from corruptions.record import Array, Corruption, split_key

_MADE_OF_OTHERS = ("choice", "composition")


def of_images(
    corruption: Corruption,
    number: int,
    severity: ArrayLike | None,
    index: Array | Sequence[int] | None,
    validate: bool,
    options: Mapping[str, Any],
) -> tuple[Array | None, Array]:
    """Checks the severity and the index of a batch of so many images, see `corrupt`.

    Returns:
      Severities, float32 [N], or None where they are to be drawn; identities as of
      `keys.image_index`.

    Raises:
      ValueError, TypeError: they are not as `corrupt` takes them.
    """
    index = jnp.arange(number) if index is None else keys.image_index(index, number, validate)
    if severity is None:
        return None, index
    # Validated here, while it is concrete; inside a program it is traced, so that one compile
    # serves all.
    levels = corruption.scale.check(severity, options)
    if levels.shape not in ((), (number,)):
        raise ValueError(f"expected a scalar severity or one of shape ({number},), found {levels.shape}")
    known = isinstance(levels, np.ndarray) and isinstance(number, int)
    return np.broadcast_to(levels, (number,)) if known else jnp.broadcast_to(levels, (number,)), index


def frames_of(clips: Array, axis: str | None) -> Array:
    """Makes images [N T, H, W, C] of clips [N, T, H, W, C].

    Raises:
      TypeError: no array.
      ValueError: another axis than "time", or an array that is not of clips.
    """
    if axis != "time":
        raise ValueError(
            "expected axis='time' with fresh_noise=True, found axis=None"
            if axis is None
            else f"expected axis=None or 'time', found {axis!r}"
        )
    if not hasattr(clips, "shape"):
        raise TypeError(f"expected an array of clips, found {type(clips).__name__}")
    if len(clips.shape) != 5:
        raise ValueError(
            f"expected clips of shape (number, time, height, width, channels), found shape {tuple(clips.shape)}; "
            "images alone go without axis"
        )
    number, time, *shape = clips.shape
    return clips.reshape(number * time, *shape)


def of_frames(
    key: jax.Array,
    corruption: Corruption,
    sides: Sequence[int],
    severity: ArrayLike | None,
    index: Array | Sequence[int] | None,
    fresh_noise: bool,
    validate: bool,
    options: Mapping[str, Any],
) -> tuple[Array | None, Array]:
    """Does what `of_images` does for clips, and repeats it for their frames, one after the other.

    Args:
      sides: (N, T), clips and frames in each.
      fresh_noise: whether noise is drawn for each frame: frame t of clip i then has the index
        i + 2^32 t, and the severity of its clip.

    Returns:
      Severities, float32 [N T] or None; identities of [N T] images.

    Raises:
      ValueError, TypeError: as `of_images`, of clips; fresh noise of what is made of others, or of
        clips whose index needs more than 31 bits.
    """
    number, time = sides
    levels, places = of_images(corruption, number, severity, index, validate, options)
    if fresh_noise and corruption.family in _MADE_OF_OTHERS:
        raise ValueError(f"expected fresh_noise=False for {corruption.qualified_name}, whose parts draw together")
    if fresh_noise and corruption.family == "noise":
        if places.ndim > 1:
            raise ValueError("expected an index below 2**31 with fresh_noise=True, found more bits")
        if levels is None:
            levels = jax.vmap(lambda place: _drawn(keys.image_key(key, place), corruption, options))(places)
        frame = jnp.broadcast_to(jnp.arange(time, dtype=jnp.uint32), (number, time)).reshape(number * time)
        places = jnp.stack([_repeated(places, time).astype(jnp.uint32), frame], axis=1)
    else:
        places = _repeated(places, time)
    return None if levels is None else _repeated(levels, time), places


def _drawn(key: jax.Array, corruption: Corruption, options: Mapping[str, Any]) -> jax.Array:
    """The severity that `Corruption.sample` draws of a key."""
    return corruption.scale.draw(split_key(key)[0], options)


def _repeated(row: ArrayLike, time: int) -> jax.Array:
    """Gives each of T frames what its clip has: [N, ...] to [N T, ...]."""
    row = jnp.asarray(row)
    each = jnp.broadcast_to(row[:, None], (row.shape[0], time, *row.shape[1:]))
    return each.reshape(row.shape[0] * time, *row.shape[1:])
