"""Batches: the one place where corruptions are vmapped, jitted and given a key per image."""

import concurrent.futures
import functools
import math
import os
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from corruptions import channels, checks, forks, gradients, keys, placement, programs, registry, rows
from corruptions.record import Array, Corruption

# Values worked on at a time. On a CPU the working set should stay in the caches, and pieces are
# separate calls of one program: XLA runs what is inside a loop on one core, without splitting it
# over the others. Inside somebody else's jit, and on accelerators, a bound only keeps the
# temporaries of very large batches within memory.
_CPU_PIECE = 2**20
_CHUNK = 2**27

# Of a level: two units in the last place of 255. (Four would take gaussian_blur more than .1 % of
# its values from the original, none defocus_blur up to .5 % from itself in another program.)
_SLACK = 2.0**-15

# Programs that have been called, hence compiled, with the size of their piece.
COMPILED: set[tuple[Hashable, int]] = set()
programs.on_drop(COMPILED.clear)


def corrupt(
    key: jax.Array,
    images: Array,
    name: str | Corruption,
    severity: ArrayLike | None = None,
    *,
    index: Array | Sequence[int] | None = None,
    validate: bool = True,
    gradient: str | None = None,
    axis: Literal["time"] | None = None,
    fresh_noise: bool = False,
    **options: Any,
) -> jax.Array:
    """Corrupts a batch of images on the device, on each device its share of a batch that is split
    (the result is split alike).

    Image i is corrupted with the key `fold_in(key, index[i])`: the result depends on the image's
    own index, never on batch size, order, number of devices or the program around. What compilers
    round differently from program to program stays within bounds. float32 results agree within a
    thousandth of a level, 4e-6, except at isolated pixels, below 1 in 1,000, where rounding decides
    on a nearest pixel or a threshold. uint8 results are equal, except below 1 value in 10,000 that
    lies on the border between two levels and differs by one.

    Args:
      key: a typed PRNG key (`jax.random.key(seed)`). Put on a device, it brings the batch there.
      images: [N, H, W, C], H and W at least 16; uint8, or float32, float16, bfloat16 or float64 in
        [0, 1], worked on in float32. C is 3, or 1 (grey: the green channel of what three equal ones
        give), 2 or 4 (the last one is alpha and comes back as it is); more where the corruption
        treats each channel alone (`get(name).mixes` is empty). Those in the host's memory, put
        there or not, go to the default device.
      name: a name (see `corruptions.names`), or a `Corruption`.
      severity: `None` (each image draws its own from the benchmark's distribution), a scalar, or
        one value per image [N]. A level where the benchmark has levels, a fraction in [0, 1] where
        it has a range. May be traced.
      index: integers [N] of up to 64 bits, none negative, the identity of each image, by default
        0..N-1. Give positions in the dataset to make the corruption of an image independent of its
        batch.
      validate: whether the values of concrete float batches, and of an index on the device, are
        checked (this waits for the device once).
      gradient: what `jax.grad` finds of float images: by default the derivative of what is computed,
        zero where that rounds; `"straight_through"`, that of the same formula without rounding. The
        page on gradients lists which corruptions it concerns. By the image alone, not the severity.
      axis: "time" for clips [N, T, H, W, C]: the frames of clip i are each what `fold_in(key,
        index[i])` makes of an image, with one severity and one draw a clip. `severity` and `index` are
        of clips.
      fresh_noise: with `axis="time"`, what corruptions of the family `noise` draw besides the
        severity is drawn for each frame: frame t of clip i has the index `index[i] + 2^32 t`.
      **options: static options of the corruption (`get(name).options`).

    Returns:
      The corrupted images, same shape and dtype (of NumPy's float64 float32, as JAX has it). uint8
      batches are truncated (imagenet_c, cbar: as their originals) or rounded to nearest (noc).

    Raises:
      ValueError, TypeError: wrong shape, dtype, range, name, severity or option; the message names
        what was expected and what was found.
      RuntimeError: in a child that was forked after JAX had started, where this would hang.
    """
    forks.refuse()
    corruption = gradients.chosen(registry.get(name), gradient)
    clips = axis is not None or fresh_noise
    frames = rows.frames_of(images, axis) if clips else images
    checks.image_batch(frames, validate, any_kind=True)
    channels.check(corruption.qualified_name, corruption.mixes, images.shape[-1])
    checks.options(corruption.qualified_name, corruption.options, options)
    static = (corruption, checks.static_options(options))
    if clips:
        given = rows.of_frames(key, corruption, images.shape[:2], severity, index, fresh_noise, validate, options)
        return _run(key, frames, *given, *static).reshape(images.shape)
    given = rows.of_images(corruption, images.shape[0], severity, index, validate, options)
    return _run(key, images, *given, *static)


def _run(key: jax.Array, images: Array, levels: Array | None, index: Array, *static: Any) -> jax.Array:
    """Calls `_corrupt`, of arrays with values where they meet, and on a CPU in pieces."""
    if any(map(checks.is_traced, (key, images, levels, index))):
        return _corrupt(key, jnp.asarray(images), levels, index, *static)
    programs.bound()
    key, *arrays = placement.together(key, images, levels, index)
    program = static, images.shape[1:], str(images.dtype), levels is None
    return dispatched(lambda *rows: _corrupt(key, *rows, *static), key, arrays, program)


def dispatched(
    call: Callable[..., jax.Array], key: jax.Array | None, arrays: Sequence[Array | None], program: Hashable
) -> jax.Array:
    """Calls a compiled function of a batch as its images lie: split, whole, or in pieces on a CPU.

    Args:
      call: takes the arrays, or as many rows of each; gives an array [N, ...].
      key: the key that `call` holds, None where it draws nothing.
      arrays: [N, ...] each, the images first; a None is passed on as it is.
      program: identifies the compiled program (see `in_pieces`).

    Returns:
      An array [N, ...]; of images that are split over devices, split as they are.
    """
    images = arrays[0]
    assert images is not None
    if placement.is_split(images):
        return jax.device_put(call(*arrays), images.sharding)
    piece = cpu_piece(images.shape)
    if images.shape[0] <= piece or placement.platform(key, images) != "cpu":
        return call(*arrays)
    return in_pieces(call, arrays, piece, program)


def in_pieces(
    function: Callable[..., jax.Array], arrays: Sequence[Array | None], piece: int, program: Hashable
) -> jax.Array:
    """Calls `function` on pieces of the first axis, one thread a core; concatenates the results.

    Args:
      function: takes one piece of each array; gives an array [piece, ...].
      arrays: [N, ...] each, the first one not None; a None is passed on as it is.
      piece: rows in a piece, at most N.
      program: identifies the compiled program. Its first call goes alone: threads that start
        together would each compile it.

    Returns:
      An array [N, ...].
    """
    assert arrays[0] is not None
    number = arrays[0].shape[0]

    def run(start: int) -> jax.Array:
        # The last piece begins earlier, so that all have one shape, and gives only its tail.
        begin = min(start, number - piece)
        part = (None if x is None else _piece(x, begin, piece) for x in arrays)
        return jax.block_until_ready(function(*part)[start - begin :])

    starts = list(range(0, number, piece))
    first = [] if (program, piece) in COMPILED else [run(starts.pop(0))]
    COMPILED.add((program, piece))
    return jnp.concatenate(first + list(threads().map(run, starts)))


@functools.cache
def threads() -> concurrent.futures.ThreadPoolExecutor:
    """The pool of threads in which compiled programs run at the same time on a CPU."""
    # A thread for each core: a call of a compiled program keeps one core busy, seldom more.
    return concurrent.futures.ThreadPoolExecutor(cpu_count(), thread_name_prefix="corrupt")


def cpu_count() -> int:
    """Counts the cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_batch(shape: Sequence[int]) -> int:
    """Counts the images of a batch [N, H, W, 3] that fit the caches of all cores together."""
    return cpu_count() * max(1, _CPU_PIECE // math.prod(shape[1:]))


def cpu_piece(shape: Sequence[int]) -> int:
    """Counts the images of a batch [N, H, W, 3] in one call on a CPU, equally many a core."""
    rounds = -(-shape[0] // cpu_batch(shape))
    return max(1, -(-shape[0] // (rounds * cpu_count()))) if rounds else 1


def _piece(array: Array, begin: int, size: int) -> jax.Array:
    if isinstance(array, np.ndarray):
        return jnp.asarray(array[begin : begin + size])
    return jax.lax.dynamic_slice_in_dim(array, begin, size)


@functools.partial(jax.jit, static_argnames=("corruption", "options"))
def _corrupt(
    key: jax.Array,
    images: jax.Array,
    severity: jax.Array | None,
    index: Array,
    corruption: Corruption,
    options: tuple[tuple[str, Any], ...],
) -> jax.Array:
    # Inside somebody's program constants would be folded into this one and its end fused with what
    # follows: other roundings than on its own.
    key, images, severity, index = jax.lax.optimization_barrier((key, images, severity, index))
    given = sample_options(corruption, severity, options)
    drawn = severity is None

    def corrupt_image(key: jax.Array, image: jax.Array, position: jax.Array, level: jax.Array) -> jax.Array:
        params = corruption.sample(keys.image_key(key, position), image.shape, None if drawn else level, **given)
        return from_float(corruption.apply(to_float(image), params), image.dtype, corruption.rounding)

    def corrupt_share(key: jax.Array, *rows: jax.Array) -> jax.Array:
        return in_chunks(functools.partial(corrupt_image, key), rows, rows[0].shape[1:])

    levels = jnp.zeros(images.shape[:1], jnp.float32) if drawn else severity
    return jax.lax.optimization_barrier(placement.over_shards(corrupt_share, key, images, index, levels))


def in_chunks(function: Callable[..., jax.Array], rows: Sequence[Any], shape: Sequence[int]) -> jax.Array:
    """Maps a function of one image over rows, many images of a shape at once, to bound the temporaries."""
    number, size = rows[0].shape[0], max(1, _CHUNK // math.prod(shape))
    if jax.export.is_symbolic_dim(number) or number <= size:
        return jax.vmap(function)(*rows)
    return jax.lax.map(lambda args: function(*args), tuple(rows), batch_size=size)


def sample_options(
    corruption: Corruption, severity: jax.Array | None, options: tuple[tuple[str, Any], ...]
) -> dict[str, Any]:
    """Makes the options of `Corruption.sample` for a traced severity that was checked before."""
    given = dict(options)
    if severity is not None and "interpolate" in corruption.options:
        given["interpolate"] = True  # severity was validated as given; traced it is a float
    return given


programs.on_drop(_corrupt.clear_cache)  # type: ignore[attr-defined]  # the stubs of jit lack it


def to_float(images: jax.Array) -> jax.Array:
    """Converts uint8 level k to the float32 nearest to k/255; leaves floats unchanged."""
    if images.dtype != jnp.uint8:
        return images
    # XLA divides by a constant through its rounded reciprocal, which is off by one unit in the last
    # place for half of the levels. In two parts the reciprocal is exact: k * high has no rounding,
    # k * low is far below one.
    high, low = jnp.float32(257 / 65536), jnp.float32(1 / 255 - 257 / 65536)
    levels = images.astype(jnp.float32)
    return levels * high + levels * low


def from_float(images: jax.Array, dtype: Any, rounding: str) -> jax.Array:
    """Converts floats in [0, 1] to uint8, where that is `dtype`, by `rounding`: truncate or nearest.

    What is truncated counts as a level from `_SLACK` below it on: filtered surfaces of one colour
    are whole levels up to rounding, and would come out as either of two levels, as compilers
    happen to fuse multiplications and additions.
    """
    if dtype != jnp.uint8:
        return images
    scaled = jnp.clip(images, 0.0, 1.0) * 255
    return (scaled + _SLACK if rounding == "truncate" else jnp.round(scaled)).astype(jnp.uint8)
