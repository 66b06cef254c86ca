"""ImageNet-C fog: a plasma fractal laid over the image."""

import functools
import math

import jax
import jax.numpy as jnp

from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.imagenet_c.tables import lookup, padding, register, table_for
from corruptions.primitives import color, random

# (strength, decay)
_LEVELS = {
    "cifar": ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    "tiny": ((0.4, 3), (0.7, 3), (1, 2.5), (1.5, 2), (2, 1.75)),
    "imagenet": ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
    "inception": ((1.5, 2), (2, 2), (2.5, 1.8), (2.5, 1.6), (3, 1.5)),
}
_MAP_SIDE = {"cifar": 32, "tiny": 64, "imagenet": 256, "inception": 512}


def _sample(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws the fractal thickness of the fog: `displacements`, U[-1, 1).

    One per point of a square fractal map but its corner; per octave centres, top and left points (see
    `diamond_square`). The map's side is 32, 64, 256 or 512 by table (`cifar`, `tiny`, `imagenet`,
    `inception`), or the next power of two for a larger image.
    """
    strength, decay = lookup(_LEVELS, shape, table, severity)
    side = max(_MAP_SIDE[table_for(shape, table)], 1 << (max(shape[:2]) - 1).bit_length())
    displacements = random.uniform(key, (draws_needed(side),), -1.0, 1.0)
    return {"strength": strength, "decay": decay, "displacements": displacements}


_UNITS = {
    "strength": "fog at its thickest, in units of the full range",
    "decay": "square root of the fall in amplitude per octave",
    "displacements": "U[-1, 1) per point of the fractal map, by octave",
}


@register(
    "weather",
    _sample,
    _UNITS,
    severity={"strength": "full range", "decay": "1"},
    mixes="scales by the largest value of all channels",
    padding=padding(quick=False),
)
def fog(image: Image, params: Params) -> Image:
    """Lays a plasma fractal over the image: clip((x + s P) M / (M + s), 0, 1).

    s is the strength, M the image's largest value and P the fog's thickness: the fractal map scaled to [0, 1] by its
    extremes and cropped to the image's size at the top left. A black image stays black. Source: ImageNet-C, fog.
    """
    height, width, _ = image.shape
    fractal = jax.lax.optimization_barrier(diamond_square(params["displacements"], params["decay"]))
    low, high = jnp.min(fractal), jnp.max(fractal)
    thickness = (fractal[:height, :width] - low) / (high - low)
    brightest, strength = jnp.max(image), params["strength"]
    scale = brightest / (brightest + strength)
    return color.clip((image + strength * thickness[..., None]) * scale)


def draws_needed(side: int) -> int:
    """Counts the uniforms of a plasma fractal of side 2^K: one for each point but the corner."""
    return side * side - 1


def diamond_square(uniforms: jax.Array, decay: jax.Array) -> jax.Array:
    """Builds a plasma fractal, a height map of side m = 2^K on a torus, from its random displacements.

    Octave k = 0, ..., K - 1 refines a grid C of n x n points, n = 2^k, with displacements of amplitude decay^(-2k).
    All shifts are circular, U are that octave's draws:

        centres  Q = (C[i,j] + C[i+1,j] + C[i,j+1] + C[i+1,j+1]) / 4 + amplitude U
        top      T = (Q + Q[i-1,j] + C + C[i,j+1]) / 4 + amplitude U
        left     L = (Q + Q[i,j-1] + C + C[i+1,j]) / 4 + amplitude U

    and interleaves them, C T over L Q. The amplitude of the whole is arbitrary. The original (ImageNet-C, fog) starts
    at 100^2; and as it multiplies the displacements by their own amplitude, they fall by decay^2 per octave.

    Args:
      uniforms: float32 [m^2 - 1] in [-1, 1]: per octave the centres, top and left points, each n x n by rows.
      decay: scalar, may be traced.

    Returns float32 [m, m], 0 at the corner; raises ValueError for a number of uniforms that fits no side.
    """
    side = math.isqrt(uniforms.shape[0] + 1)
    if uniforms.ndim != 1 or side & (side - 1) or draws_needed(side) != uniforms.shape[0]:
        raise ValueError(f"expected 4^K - 1 uniforms in one dimension, found shape {tuple(uniforms.shape)}")
    grid = jnp.zeros((1, 1), jnp.float32)
    amplitude, used = jnp.float32(1), 0
    for octave in range(side.bit_length() - 1):
        n = 2**octave
        displaced = uniforms[used : used + 3 * n * n].reshape(3, n, n) * amplitude
        grid = _refine(grid, *displaced)
        used += 3 * n * n
        amplitude = amplitude / decay**2
    return grid


def _refine(grid, centre, top, left):
    n, following, preceding = grid.shape[0], functools.partial(jnp.roll, shift=-1), functools.partial(jnp.roll, shift=1)
    right = following(grid, axis=1)
    centre = (grid + right + following(grid + right, axis=0)) / 4 + centre
    top = (centre + preceding(centre, axis=0) + grid + right) / 4 + top
    left = (centre + preceding(centre, axis=1) + grid + following(grid, axis=0)) / 4 + left
    rows = [jnp.stack(pair, axis=-1).reshape(n, 2 * n) for pair in ((grid, top), (left, centre))]
    return jnp.stack(rows, axis=1).reshape(2 * n, 2 * n)
