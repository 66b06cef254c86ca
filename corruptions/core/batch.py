"""Batches: the one place where corruptions are vmapped, jitted and given a key per image."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from corruptions.core import checks, clips, dispatch, forks, keys, one_image, program_cache, registry
from corruptions.core.corruption import Array, Corruption
from corruptions.core.errors import Refused
from corruptions.primitives import color, random

# Values processed at a time inside a program: bounds the temporaries of very large batches.
_CHUNK = 2**27
_ALONE = 640 * 640 * 3  # values of an image up to which compiling costs more than running


def corrupt(
    key: jax.Array,
    images: Array,
    name: str | Corruption,
    severity: ArrayLike | None = None,
    *,
    index: Array | Sequence[int] | None = None,
    validate: bool | Literal["checkify"] = True,
    gradient: str | None = None,
    axis: Literal["time", "camera"] | tuple[str, str] | None = None,
    fresh_noise: bool = False,
    value_range: tuple[float, float] | None = None,
    where: Array | None = None,
    **options: Any,
) -> jax.Array:
    """Corrupts a batch of images on the device. A sharded batch keeps its sharding.

    Image i is corrupted with the key `fold_in(key, index[i])`: the result depends on the image's own index, never on
    batch size, order, number of devices or the surrounding program. Compilers round programs differently, within
    bounds. float32 results agree within a thousandth of an 8-bit level, 4e-6, except at isolated pixels, below 1 in 1,000,
    where rounding decides on a nearest pixel or a threshold. uint8 results are equal, except below 1 value in 10,000
    that lies on the border between two levels and differs by one.

    Args:
      key: a typed PRNG key (`jax.random.key(seed)`). A key committed to a device decides where the batch runs.
        Keys of other generators are reduced to their first two words, as a threefry key.
      images: [N, H, W, C], H and W at least 16; uint8, or float32, float16, bfloat16 or float64 in [0, 1], computed in
        float32. C is 3; or 1, grey, which gives the green channel of three equal ones; or 2 or 4, whose last channel is
        alpha and comes back unchanged; or more if the corruption treats each channel separately (`get(name).mixes` is
        empty). Images in the host's memory, put there or not, go to the default device.
      name: a name (see `corruptions.names`), or a `Corruption`.
      severity: `None` (each image draws its own from the benchmark's distribution), a scalar, or one value per image
        [N]. A level where the benchmark has levels, a fraction in [0, 1] where it has a range. May be traced. Where a
        corruption has severity tables (option `table`), the images have the one that is nearest to their shorter side.
      index: integers [N] of up to 64 bits, none negative, the identity of each image, by default 0..N-1. Pass positions
        in the dataset to make the corruption of an image independent of its batch. Inside `shard_map` and `pmap` each
        device counts its own images, so that without an index all devices make the same draws: this is refused where
        JAX tells it (`shard_map` with its default `check_vma=True`), and not elsewhere.
      validate: whether the values of concrete float batches, and of an index on the device, are checked (this waits for
        the device once). Inside a jit nothing has a value: severities beyond the scale are clipped, and floats outside
        [0, 1] give values that may lie outside, too. There "checkify" makes errors of them, for a function in
        `jax.experimental.checkify.checkify`.
      gradient: the derivative by float images that `jax.grad` takes: None, the derivative of the computation, zero where
        it rounds; or `"straight_through"`, the derivative of the same formula without rounding, by the image alone, not
        by the severity. The page on gradients lists the corruptions that round.
      axis: "time" for clips [N, T, H, W, C]: each frame of clip i is corrupted as an image with the key `fold_in(key,
        index[i])`, so that a clip has one severity and one draw. `severity` and `index` have one value per clip.
        "camera" for samples of M cameras [N, M, H, W, C]: the cameras of sample i have one severity, and camera m its
        own draws, those of the key `fold_in(fold_in(key, m), index[i])`, whatever M. ("time", "camera") for [N, T, M,
        H, W, C].
      fresh_noise: with `axis="time"`, corruptions of the family `noise` make all draws but the severity for each frame:
        frame t of clip i has the index `index[i] + 2^32 t`.
      value_range: (low, high) of float images that are not in [0, 1]. They come back in it; values within .001 level of
        a level of 8 bits count as that level. `get(name, value_range=(-1, 1))` fixes it once.
      where: bool [N, H, W], or [N, T, H, W] and so on with `axis`: pixels that are corrupted. All others come back as
        they were. A corruption that moves content moves it only inside of the mask.
      **options: static options of the corruption (`get(name).options`).

    Returns:
      The corrupted images, same shape and dtype (float32 for NumPy's float64, as in JAX). uint8 batches are truncated
      (imagenet_c, cbar: as their originals) or rounded to nearest (noc).

    Raises:
      ValueError, TypeError: wrong shape, dtype, range, name, severity or option; the message names the expected and the
        found value. No index inside `shard_map`.
      RuntimeError: in a child that was forked after JAX had started, where this would hang.
    """
    forks.refuse_forked()
    checks.key(key)
    images = dispatch.unmasked(images)
    if validate not in (True, False, "checkify"):
        raise Refused("validate", "validate=True, False or 'checkify'", repr(validate))
    corruption = registry.get(name)
    if corruption.of_unit is not None:
        value_range, corruption = value_range or corruption.value_range, corruption.of_unit
    if gradient is not None:
        corruption = corruption.with_gradient(gradient)
    if where is not None or value_range is not None:
        same: dict[str, Any] = dict(index=index, validate=validate, axis=axis, fresh_noise=fresh_noise, **options)
        if where is not None:
            corrupted = corrupt(key, images, corruption, severity, value_range=value_range, **same)
            return clips.inside(where, images, corrupted)
        again = lambda unit: corrupt(key, unit, corruption, severity, **same)  # noqa: E731
        return clips.in_unit_range(again, images, value_range, validate)
    parts = [(key, images)]
    if axis is not None or fresh_noise:
        parts = clips.parts(key, images, axis, fresh_noise)
    for _, frames in parts:
        checks.image_batch(frames, validate, any_kind=True)
    if options or images.shape[-1] > 4:
        corruption.check_request(images.shape[-1], options)
    if corruption.fixed:
        options = corruption.options_for(images.shape[-3:], options)
    if index is None:
        dispatch.refuse_counting("corrupt", key, images)
    severities, index = severities_and_index(corruption, images.shape[0], severity, index, bool(validate), options)
    if validate == "checkify":
        checks.checked_in_program(images, severities, corruption.scale)
    static = checks.static_options(options)
    call = functools.partial(_corrupt, corruption=corruption, options=static, checkified=validate == "checkify")
    if axis is None and (alone := _program_alone(corruption, key, images, severities, index)):
        call = functools.partial(alone, corruption=corruption, options=static)
    run = functools.partial(dispatch.dispatched, call, (corruption, static))
    if axis is None:
        return run(key, images, severities, index)
    draw = functools.partial(_drawn_severities, corruption, options)
    return clips.joined(run, draw, corruption, key, parts, images.shape, axis, fresh_noise, severities, index)


@functools.partial(program_cache.jitted, static=("corruption", "options", "checkified"))
def _corrupt(
    key: jax.Array,
    images: jax.Array,
    severities: jax.Array | None,
    index: Array,
    corruption: Corruption,
    options: tuple[tuple[str, Any], ...],
    checkified: bool = False,
) -> jax.Array:
    # Inside another program the compiler would fold constants into this one and fuse its end with the code that
    # follows, which rounds differently.
    key, images, severities, index = jax.lax.optimization_barrier((key, images, severities, index))
    corrupt_image, rows = _of_image(images, severities, index, corruption, options)
    corrupted = dispatch.sharded(in_chunks(corrupt_image, images.shape, len(rows)), images, checkified)(key, *rows)
    return jax.lax.optimization_barrier(corrupted)


def _corrupt_alone(
    key: jax.Array,
    images: jax.Array,
    severities: jax.Array | None,
    index: Array,
    corruption: Corruption,
    options: tuple[tuple[str, Any], ...],
) -> jax.Array:
    """Computes `_corrupt` of one image, without the axis of a batch."""
    corrupt_image, rows = _of_image(images, severities, index, corruption, options)
    return corrupt_image(key, *(row[0] for row in rows))[None]


_alone: Any = functools.partial(program_cache.jitted, _corrupt_alone, ("corruption", "options"))
_traced_alone, _quick_alone = _alone(), _alone(compiler_options=program_cache.QUICK_TO_COMPILE)


def _of_image(images: Any, severities: Any, index: Any, corruption: Corruption, options: Any) -> tuple[Any, Any]:
    """Makes `(key, image, number, severity) -> corrupted image`, and the rows of a batch that it takes."""
    shape, drawn = one_image.seen_shape(images.shape[1:]), severities is None

    def corrupt_image(key: jax.Array, image: jax.Array, number: jax.Array, severity: jax.Array) -> jax.Array:
        params = one_image.sample(image_key(key, number), None if drawn else severity, corruption, shape, options)
        return from_float(one_image.apply(to_float(image), params, corruption), image.dtype, corruption.rounding)

    return corrupt_image, (images, index, jnp.zeros(images.shape[:1], jnp.float32) if drawn else severities)


def _program_alone(corruption: Corruption, *arrays: Any) -> Any:
    """Returns the program for a batch of one image, of arrays as of `_corrupt`; None where it has none of its own."""
    images = arrays[1]
    if not corruption.alone or images.shape[0] != 1 or images.dtype != jnp.uint8 or images.size > _ALONE:
        return None
    if dispatch.any_traced(arrays) or dispatch.is_split(images) or dispatch.platform(*arrays) != "cpu":
        return None
    quick = program_cache.QUICK_TO_COMPILE.items()
    return _quick_alone if corruption.alone == "quick" and program_cache.compiles_with("cpu", *quick) else _traced_alone


def in_chunks(function: Callable[..., jax.Array], shape: Sequence[int], rows: int) -> Callable[..., jax.Array]:
    """Makes `(key, *rows)`, which maps `function(key, *row)` of one image over the images [N, H, W, C] of a shape at once,
    but in chunks that bound the temporaries.
    """
    number, size = shape[0], max(1, _CHUNK // math.prod(shape[1:]))
    if jax.export.is_symbolic_dim(number) or number <= size:
        return jax.vmap(function, (None, *(0,) * rows))
    return lambda key, *rows: jax.lax.map(lambda row: function(key, *row), rows, batch_size=size)


def image_key(key: jax.Array, number: jax.Array) -> jax.Array:
    """Folds the number of one image, its entry in the index, into a key: `fold_in(key, number)`, then the upper word where
    it is not zero.

    It is an integer of at most 32 bits, or uint32 [2], see `keys.image_index`.
    """
    key = random.threefry(key)
    if number.ndim == 0:
        return jax.random.fold_in(key, number)
    low, high = number
    lower = jax.random.fold_in(key, low)
    return jax.lax.cond(high == 0, lambda: lower, lambda: jax.random.fold_in(lower, high))


def to_float(images: jax.Array) -> jax.Array:
    """Converts uint8 level k to the float32 nearest to k/255; leaves floats unchanged."""
    if images.dtype != jnp.uint8:
        return images
    # XLA divides by a constant through its rounded reciprocal, which is off by one unit in the last place for half of
    # the levels. In two parts the reciprocal is exact: k * high has no rounding, k * low is far below one.
    high, low = jnp.float32(257 / 65536), jnp.float32(1 / 255 - 257 / 65536)
    levels = images.astype(jnp.float32)
    return levels * high + levels * low


def from_float(images: jax.Array, dtype: Any, rounding: str) -> jax.Array:
    """Converts floats in [0, 1] to uint8, if `dtype` is uint8, by `rounding`: truncate (see `color.truncated`) or nearest."""
    if dtype != jnp.uint8:
        return images
    scaled = jnp.clip(images, 0.0, 1.0) * 255
    return color.truncated(scaled) if rounding == "truncate" else jnp.round(scaled).astype(jnp.uint8)


def severities_and_index(
    corruption: Corruption,
    number: int,
    severity: ArrayLike | None,
    index: Array | Sequence[int] | None,
    validate: bool,
    options: Mapping[str, Any],
) -> tuple[Array | None, Array]:
    """Checks the severity and the index of a batch of `number` images as `corrupt` takes them.

    Returns the severities, float32 [N], or None where they are to be drawn, and the index of `keys.image_index`.
    """
    if index is not None:
        index = keys.image_index(index, number, validate)
    else:  # a symbolic number has no array yet
        index = np.arange(number, dtype=np.int32) if isinstance(number, int) else jnp.arange(number)
    if severity is None:
        return None, index
    if isinstance(severity, list | tuple):
        severity = np.asarray(severity)
    # Checked here, while it is concrete; inside a program it is traced, so that one compile serves all.
    severities = corruption.check_severity(severity, options)
    if severities.shape not in ((), (number,)):
        raise Refused("severity", f"a scalar severity or one of shape ({number},)", severities.shape)
    concrete = isinstance(severities, np.ndarray) and isinstance(number, int)
    return np.broadcast_to(severities, (number,)) if concrete else jnp.broadcast_to(severities, (number,)), index


def _drawn_severities(corruption: Corruption, options: Mapping[str, Any], key: jax.Array, index: Array) -> jax.Array:
    """Draws the severities that images of an index have with `severity=None`, float32 [N]."""

    def drawn(number: Any) -> jax.Array:
        severity_key, _ = jax.random.split(image_key(key, number))  # as in `contract.sample`
        return corruption.scale.draw(severity_key, options)

    return jax.vmap(drawn)(jnp.asarray(index))
