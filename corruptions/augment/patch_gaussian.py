"""Patch Gaussian: Gaussian noise on a square patch.

R. G. Lopes et al., "Improving Robustness Without Sacrificing Accuracy with Patch Gaussian Augmentation" (2019), with
the settings of Mintun et al. (2021).
"""

import math

import jax
import jax.numpy as jnp

from corruptions.core.checks import one_of
from corruptions.core.corruption import Params
from corruptions.core.errors import Refused
from corruptions.primitives import color, random

_SIDES = {"cifar": 32, "imagenet": 224}
_WIDTHS = {"cifar": 25.0, "imagenet": 250.0}


def sample(
    key: jax.Array,
    shape: tuple[int, ...],
    choices: None,
    *,
    table: str = "cifar",
    width: float | None = None,
    sigma: float = 1.0,
) -> dict[str, jax.Array]:
    """Draws a patch: its centre, uniform over the pixels; sigma ~ U[0, sigma); for ImageNet its width ~ U[0, width).

    Options: `table`, `cifar` (fixed width) or `imagenet` (drawn width); `width` in pixels, by default 25 of 32 or 250
    of 224, in proportion to min(H, W); `sigma`, the bound of the noise's standard deviation, images being in [0, 1].

    Returns {"row": int32, "column": int32, "width": float32, in pixels; "sigma": float32; "seed": uint32 [2]}. The
    noise belongs to the transform and is made from the seed at every application.
    """
    del choices
    one_of("table", "a table", table, _SIDES)
    if width is None:
        width = _WIDTHS[table] * min(shape[:2]) / _SIDES[table]
    for name, value in (("width", width), ("sigma", sigma)):
        if not 0 < value < math.inf:
            raise Refused(name, f"a finite, positive {name}", repr(value))
    draw_key, noise_key = jax.random.split(key)
    u = random.uniform(draw_key, (4,))
    return {
        "row": jnp.floor(u[0] * shape[0]).astype(jnp.int32),
        "column": jnp.floor(u[1] * shape[1]).astype(jnp.int32),
        # Twice the longer side covers the image from any pixel; much more would not fit into int32.
        "width": jnp.minimum(jnp.float32(width) * (u[2] if table == "imagenet" else 1), 2 * max(shape[:2])),
        "sigma": sigma * u[3],
        "seed": jax.random.bits(noise_key, (2,), jnp.uint32),
    }


def apply(image: jax.Array, params: Params) -> jax.Array:
    """Adds noise to the patch: clip(x + sigma n) on rows and columns c - floor(w / 2), ..., c + ceil(w / 2) - 1 that
    the image has, n ~ N(0, 1) per pixel and channel; the rest is unchanged, and nothing is rounded (Patch Gaussian).

    The noise depends only on the seed and the image's shape: one transform shows the same field to every image.
    """
    before = jnp.floor(params["width"] / 2).astype(jnp.int32)
    after = jnp.ceil(params["width"] / 2).astype(jnp.int32)

    def inside(size, centre):
        position = jnp.arange(size)
        return (position >= centre - before) & (position < centre + after)

    height, width, _ = image.shape
    patch = inside(height, params["row"])[:, None] & inside(width, params["column"])[None, :]
    key = jax.random.wrap_key_data(params["seed"], impl="threefry2x32")
    noisy = color.clip(image + params["sigma"] * random.normal(key, image.shape))
    return jnp.where(patch[..., None], noisy, image)
