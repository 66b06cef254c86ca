"""Keys of seeds and indices of images: every bit of a 64-bit integer counts.

JAX keys are made of 32-bit words: `jax.random.key(2**40)` equals `jax.random.key(0)`, and an int64 index beyond 2^32
loses its upper half on the way to the device. Here the upper word is folded in where it is not zero, so that smaller
integers give the keys they always gave.
"""

import zlib
from collections.abc import Mapping, Set
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.core import dispatch, forks
from corruptions.core.errors import Refused, RefusedType

_WORD = 2**32
_NO_NEGATIVE = "an index without negative integers"


def seed_key(seed: int) -> jax.Array:
    """Makes the typed key of a seed: `jax.random.key(seed)` below 2^32, with the upper word folded in above.

    Raises TypeError for no integer, ValueError for one outside of 0 .. 2^64 - 1.
    """
    if isinstance(seed, bool | np.bool_) or not isinstance(seed, int | np.integer):
        raise RefusedType("seed", "an integer seed", " ".join(repr(seed).split()))
    if not 0 <= seed < _WORD**2:
        raise Refused("seed", "a seed from 0 to 2**64 - 1", seed)
    high, low = divmod(int(seed), _WORD)
    forks.refuse_forked()
    key = jax.random.key(np.uint32(low))
    return jax.random.fold_in(key, np.uint32(high)) if high else key


def prng() -> str:
    """Describes JAX's settings of random draws: other settings give other draws of the same key."""
    settings: Any = jax.config  # whose attributes are made at import, unknown to type checkers
    return f"{settings.jax_default_prng_impl}, partitionable: {settings.jax_threefry_partitionable}"


def named_key(seed: int, name: str) -> jax.Array:
    """Makes the key of a name, such as a corruption's qualified one: `fold_in(seed_key(seed), crc32(name))`."""
    return jax.random.fold_in(seed_key(seed), zlib.crc32(name.encode()))


def image_index(index: Any, number: int, validate: bool = True) -> jax.Array | np.ndarray:
    """Checks the identities of images and brings them into 32-bit words.

    Args:
      index: `number` integers, none negative: a list, a range, a NumPy or JAX array; or a result of this function.
      number: number of images.
      validate: whether the values of a JAX array are looked at (this waits for the device once).

    Returns:
      [N] where 31 bits are enough, else uint32 [N, 2]: lower and upper words. A JAX array of up to 32 bits stays as it
      is.

    Raises:
      TypeError: not integers.
      ValueError: another shape, negative numbers, or more than 64 bits.
    """
    index = integers(index)
    if index.dtype.kind not in "iu":
        raise RefusedType("index", "an index of integers", f"dtype {index.dtype}")
    if index.shape == (number, 2) and index.dtype == np.uint32:
        return index
    if index.shape != (number,):
        raise Refused("index", f"an index of shape ({number},)", tuple(index.shape))
    if isinstance(index, jax.Array):
        if validate:
            _refuse_negative(index)
        if index.dtype.itemsize <= 4:
            return index
        return jnp.stack([index & (_WORD - 1), index >> 32], axis=1).astype(jnp.uint32)
    if number and index.min() < 0:
        raise Refused("index", _NO_NEGATIVE, index.min())
    if number == 0 or index.max() < _WORD // 2:
        return index.astype(np.int32)  # one dtype, so one compile; no value turns negative
    index = index.astype(np.uint64)  # a word more than uint32 can say
    return np.stack([index % _WORD, index // _WORD], axis=1).astype(np.uint32)


def index_of(call: str, index: Any, key: jax.Array, images: Any, validate: bool = True) -> jax.Array | np.ndarray:
    """Checks the identities of a batch [N, ...] that `call` was given (`image_index`), or counts 0 .. N - 1 for None.

    Raises ValueError too for None inside `shard_map`, see `devices.refuse_counting`.
    """
    if index is not None:
        return image_index(index, images.shape[0], validate)
    dispatch.refuse_counting(call, key, images)
    return jnp.arange(images.shape[0])


def integers(index: Any) -> jax.Array | np.ndarray:
    """Makes an array of an index: itself, or uint64 of a list, a range or any other sequence of integers.

    Raises TypeError for no sequence, or other values, ValueError for negative numbers or more than 64 bits.
    """
    if isinstance(index, jax.Array | np.ndarray):
        return dispatch.unmasked(index)
    try:
        if isinstance(index, Set | Mapping):  # its order is not the one that was written
            raise TypeError
        values = list(index)
    except TypeError:
        raise RefusedType("index", "an index of integers, one for each image", repr(index)) from None
    if wrong := [v for v in values if isinstance(v, bool | np.bool_) or not isinstance(v, int | np.integer)]:
        raise RefusedType("index", "an index of integers", f"{wrong[0]!r} in it")
    if values and max(values) >= _WORD**2:
        raise Refused("index", "an index of at most 64 bits", max(values))
    if values and min(values) < 0:
        raise Refused("index", _NO_NEGATIVE, min(values))
    return np.array(values, np.uint64)


def _refuse_negative(index):
    """Refuses negative integers in a JAX array with known values: -1 would be the image 2^32 - 1."""
    known = index.dtype.kind == "i" and index.size and not dispatch.is_traced(index) and index.is_fully_addressable
    if known and (least := np.asarray(index).min()) < 0:
        raise Refused("index", _NO_NEGATIVE, least)
