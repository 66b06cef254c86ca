"""`sample` and `apply` of one image, for checked arguments, and the channels that a corruption sees."""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp

from corruptions.core.errors import Refused
from corruptions.core.severity import DRAWING, Levels
from corruptions.primitives import random


def sample(key: Any, severity: Any, corruption: Any, shape: tuple[int, ...], options: Iterable[tuple[str, Any]]) -> Any:
    """Draws as `Corruption.sample`, for checked arguments: a `seen_shape`, and pairs from `Corruption.options_for`.

    Numbers have 32 bits also where `jax_enable_x64` is set, as in `apply`: with 64 bits JAX draws other ones.
    """
    used, levels = dict(options), isinstance(corruption.scale, Levels)
    before = DRAWING.set(corruption if levels else None)
    try:
        with jax.enable_x64(False):
            severity_key, key = jax.random.split(random.threefry(key))
            if severity is None:
                severity = corruption.scale.draw(severity_key, used)
            elif not levels:  # a traced one may leave the range; a derivative at its ends stays
                severity = jnp.where(severity < 0, 0, jnp.where(severity > 1, 1, severity))
            if levels:
                used = {name: value for name, value in used.items() if name not in ("interpolate", "range", "levels")}
            return corruption.sampler(key, shape, severity, **used)
    finally:
        DRAWING.reset(before)


def apply(image: Any, params: Any, corruption: Any) -> jax.Array:
    """Applies as `Corruption.apply`, whose arguments are checked."""
    image = jnp.asarray(image)
    pixels = seen(image).astype(jnp.float32)
    with jax.enable_x64(False):
        corrupted = corruption.applier(pixels, params)
    if corrupted.shape != pixels.shape:
        expected = f"{corruption.qualified_name} to keep the shape {pixels.shape} of an image"
        raise Refused("applier", expected, corrupted.shape)
    return restored(corrupted.astype(image.dtype), image)


def seen_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape (H, W, C) of `seen(image)`: C is 3 for grey and for images with alpha."""
    return shape if shape[-1] == 3 or shape[-1] > 4 else (*shape[:-1], 3)


def seen(image: Any) -> Any:
    """Converts an image [..., C] of NumPy or JAX to the channels that a corruption sees: without alpha, grey as three
    equal channels; five and more do not change.
    """
    number, shape = image.shape[-1], seen_shape(image.shape)
    if shape == image.shape:
        return image
    return image[..., :3] if number == 4 else image.__array_namespace__().broadcast_to(image[..., :1], shape)


def restored(corrupted: Any, image: Any) -> Any:
    """Converts a corrupted `seen(image)` back to the channels of the image: grey takes the green channel, alpha is copied
    from the image.

    Noise that is drawn per channel keeps its strength in one channel, not in a mean; of a tint, green is nearest to the
    luminance.
    """
    number = image.shape[-1]
    if seen_shape(image.shape) == image.shape:
        return corrupted
    kept = corrupted if number == 4 else corrupted[..., 1:2]
    return kept if number == 1 else kept.__array_namespace__().concatenate([kept, image[..., -1:]], -1)
