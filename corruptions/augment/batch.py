"""Batches: where schemes are vmapped or looped, jitted and given a key per image."""

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.typing import DTypeLike

from corruptions.augment import schemes
from corruptions.augment.schemes import Scheme
from corruptions.core import checks, dispatch, forks, keys, program_cache
from corruptions.core.batch import from_float, image_key, to_float
from corruptions.core.errors import RefusedType
from corruptions.primitives import staging

_CHUNK = 2**25  # values processed at a time on an accelerator, to bound the temporaries of very large batches


def augment(
    key: jax.Array,
    images: jax.Array | np.ndarray,
    name: str | Scheme,
    *,
    index: jax.Array | np.ndarray | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    validate: bool = True,
    **options: Any,
) -> jax.Array:
    """Augments a batch of images on the device, each by its own transform.

    Image i is augmented with the key `fold_in(key, index[i])`: the result depends on the image's own index, never on
    batch size, order or number of devices. All subsets of AugMix share one compile.

    Args:
      key: a typed PRNG key (`jax.random.key(seed)`).
      images: [N, H, W, 3], H and W at least 16; float32 in [0, 1], or uint8.
      name: a scheme, see `schemes`.
      index: integers [N] of up to 64 bits, none negative, the identity of each image, by default 0..N-1.
      dtype: dtype of the result: float32, uint8, or None for the dtype of `images`. AugMix and Patch Gaussian make values
        between 8-bit levels, and the papers train on AugMix's: float32 keeps them. uint8 rounds AugMix to the nearest
        level and truncates Patch Gaussian; AutoAugment and operations alone are whole levels either way.
      validate: whether the values of concrete float batches, and of an index on the device, are checked (this waits for
        the device once).
      **options: static options of the scheme (`get(name).options`).

    Returns:
      The augmented images, [N, H, W, 3] of `dtype`.

    Raises:
      ValueError, TypeError: wrong shape, dtype, range, name or option; the message names the expected and the found
        value.
      RuntimeError: in a child that was forked after JAX had started, where this would hang.
    """
    forks.refuse_forked()
    checks.key(key)
    images, scheme = dispatch.unmasked(images), schemes.get(name)
    checks.image_batch(images, validate)
    checks.options(scheme.name, scheme.options, options)
    dtype = np.dtype(images.dtype if dtype is None else dtype)
    if dtype not in (np.uint8, np.float32):
        raise RefusedType("dtype", "dtype uint8, float32 or None", dtype)
    index = keys.index_of("augment", index, key, images, validate)
    all_options = tuple(sorted((dict(scheme.defaults) | options).items()))
    static = (scheme.sampler, scheme.applier, all_options, dtype, scheme.rounding)
    call = lambda key, *rows: _augment(key, *rows, scheme.choices, *static)  # noqa: E731
    return dispatch.dispatched(call, static, key, images, index)


@functools.partial(program_cache.jitted, static=("sampler", "applier", "options", "dtype", "rounding"))
def _augment(key, images, index, choices, sampler, applier, options, dtype, rounding):
    shape, at_once = images.shape[1:], max(1, _CHUNK // math.prod(images.shape[1:]))

    def augment_share(argument, images, index):
        key, choices = argument
        own_keys = jax.vmap(image_key, (None, 0))(key, index)
        params = jax.vmap(lambda k: sampler(k, shape, choices, **dict(options)))(own_keys)
        return staging.by_platform(images, params, cpu=one_by_one, default=all_at_once)

    # A loop over images carries out only the drawn operations, which is fastest on a CPU. All images at once: every kind of
    # operation is carried out on every image and one result selected, which keeps an accelerator busy.
    def one_by_one(images, params):
        return jax.lax.map(augment_image, (images, params))

    def all_at_once(images, params):
        if 1 < images.shape[0] <= at_once:
            return jax.vmap(lambda *args: augment_image(args))(images, params)
        return jax.lax.map(augment_image, (images, params), batch_size=at_once if at_once > 1 else None)

    def augment_image(args):
        image, params = args
        return from_float(applier(to_float(image), params), dtype, rounding)

    return dispatch.sharded(augment_share, images)((key, choices), images, index)
