"""Round lenses: pinch_and_twirl, fish_eye and water_drop."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.cbar import severities
from corruptions.cbar.severities import register, side
from corruptions.core.corruption import Image, Key, Params, Positions, Severity, Shape
from corruptions.primitives import color, random, staging, warps
from corruptions.primitives.special import sine_cosine

_CELLS = {"cifar": 3, "imagenet": 5}
_LENSES = 501


def _sample_pinch(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws the sign of the turn of each cell of a grid: k square cells along the shorter side N, in all
    (H k // N) x (W k // N).

    The original has k = 5 at 224 pixels and 3 at any other size; here the table decides, `cifar` (k = 3) or
    `imagenet` (k = 5), so that sizes near 224 are like 224.
    """
    strength = severities.scanned("pinch_and_twirl", severity, shape, table)
    cells = _CELLS[severities.table_for(shape, table)]
    grid = tuple(size * cells // side(shape) for size in shape[:2])
    return {
        "angle": jnp.pi / 20 * strength,
        "exponent": 0.1 + 0.04 * strength,
        "signs": jnp.where(random.bernoulli(key, 0.5, grid), -1.0, 1.0),
    }


def _map_pinch(shape: Shape, params: Params) -> Positions:
    height, width = shape[:2]
    signs = params["signs"]
    cell = side(shape) // min(signs.shape)
    offset = np.arange(cell) - cell / 2
    distance = np.round(np.hypot(offset[:, None], offset), 3)
    within = (distance <= cell / 2) & (distance > 0)
    part = np.where(within, distance / (cell / 2), 1.0)  # 1 does not move a pixel
    turn = params["angle"] * ((1 - part) ** 2).astype(np.float32)
    stretch = jnp.exp(params["exponent"] * -np.log(np.sin(np.pi / 2 * part)).astype(np.float32))
    along, across = stretch * jnp.cos(turn) - 1, stretch * jnp.sin(turn)
    # Axes: row of the cell, row in the cell, column of the cell, column in the cell.
    signs = signs[:, None, :, None]
    v_y, v_x = (offset.astype(np.float32).reshape(shape) for shape in ((1, -1, 1, 1), (1, 1, 1, -1)))
    along, across = along[None, :, None, :], signs * across[None, :, None, :]

    def everywhere(moves):
        moves = moves.reshape(signs.shape[0] * cell, signs.shape[2] * cell)
        return jnp.pad(moves, ((0, height - moves.shape[0]), (0, width - moves.shape[1])))

    y, x = jnp.arange(height, dtype=jnp.float32)[:, None], jnp.arange(width, dtype=jnp.float32)[None, :]
    return y + everywhere(along * v_y - across * v_x), x + everywhere(across * v_y + along * v_x)


@register(
    "geometry",
    _sample_pinch,
    {"angle": "radians", "exponent": "1", "signs": "+-1, of each cell"},
    aliases=("pinch_and_twirl_v2",),
    moves="pinches and turns cells of the image",
    mapper=_map_pinch,
)
def pinch_and_twirl(image: Image, params: Params) -> Image:
    """Pinches and twirls each cell of c = N // k pixels a side: the pixel at the offset v from its middle, |v| <= R =
    c / 2, takes the colour at sin(pi d / 2)^-e v turned by +-a (1 - d)^2, d = |v| / R: bilinear, zero outside the
    image (C-bar, pinch_and_twirl).

    Rows and columns left over by the cells at the end do not change.
    """
    return color.clip(warps.zero_padded(image, *_map_pinch(image.shape, params)))


def _sample_fish_eye(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws the centres (row, column) ~ U[0, H) x U[0, W) of 501 lenses, whatever the size of the image."""
    return {
        "index": 1 + 0.2 * severities.scanned("fish_eye", severity, shape, table),
        "centres": random.uniform(key, (_LENSES, 2)) * jnp.array([shape[:2]], jnp.float32),
    }


def _map_fish_eye(shape: Shape, params: Params) -> Positions:
    margin = _margin(shape)
    planes = jnp.mgrid[-margin : shape[0] + margin, -margin : shape[1] + margin].astype(np.float32)
    planes = jnp.moveaxis(planes, 0, -1) + staging.varying_zeros((), like=params["index"])
    seen = _through_lenses(planes, params, shape)
    return seen[..., 0], seen[..., 1]


@register(
    "geometry",
    _sample_fish_eye,
    {"index": "1, of refraction", "centres": "pixels, row and column, of each lens"},
    aliases=("fish_eye_v2",),
    moves="looks through lenses",
    mapper=_map_fish_eye,
)
def fish_eye(image: Image, params: Params) -> Image:
    """Looks through the lenses one after the other, each on the result of the one before: the pixel at the offset
    (v_y, v_x) from the centre, within R = max(0.05 N, 3) pixels, N = min(H, W), takes the colour at p - (s(v_y),
    s(v_x)), bilinear, zero outside the image (C-bar, fish_eye).

    A ball of height h = sqrt(R^2 - v_y^2 - v_x^2) and index n shifts by s(v) = h tan(a - asin(sin(a) / n)) with
    tan a = v / h.
    """
    margin = _margin(image.shape)
    padded = jnp.pad(image, ((margin, margin), (margin, margin), (0, 0)))
    return color.clip(_through_lenses(padded, params, image.shape))


def _radius(shape):
    return max(0.05 * side(shape), 3.0)


def _margin(shape):
    """Returns the pixels around an image: a look-up reads one row and column beyond the box of its lens."""
    return math.ceil(_radius(shape)) + 2


def _through_lenses(padded, params, shape):
    """Looks through the lenses at an image of `shape` with `_margin` more pixels around it: [H, W, C]."""
    (height, width), radius, margin = shape[:2], _radius(shape), _margin(shape)
    box = math.ceil(2 * radius)  # whole numbers nearer to any centre than `radius`
    stride = padded.shape[1]

    def look_through(padded, centre):
        first = jnp.floor(centre - radius).astype(jnp.int32) + 1
        y, x = first[0] + jnp.arange(box)[:, None], first[1] + jnp.arange(box)[None, :]
        v_y, v_x = y.astype(jnp.float32) - centre[0], x.astype(jnp.float32) - centre[1]
        square = radius**2 - v_y**2 - v_x**2
        # The margin does not change.
        inside = (square > 0) & (y >= 0) & (y < height) & (x >= 0) & (x < width)
        square = jnp.where(inside, square, 0.0)
        shift_y, shift_x = _shift(v_y, square, params["index"]), _shift(v_x, square, params["index"])
        up, left = jnp.floor(-shift_y), jnp.floor(-shift_x)
        upper_left = (y + up.astype(jnp.int32) + margin) * stride + x + left.astype(jnp.int32) + margin
        seen = warps.look_up(padded.reshape(-1, padded.shape[2]), stride, upper_left, -shift_y - up, -shift_x - left)
        return jax.lax.dynamic_update_slice(padded, seen, (*(first + margin), 0)), None

    padded, _ = jax.lax.scan(look_through, padded, params["centres"])
    return padded[margin : margin + height, margin : margin + width]


def _shift(v, square, index):
    """Computes h tan(a - asin(sin(a) / n)) with tan a = v / h, h^2 = `square`; 0 where `square` is 0.

    With q^2 = n^2 (h^2 + v^2) - v^2 it is h v (q - h) / (h q + v^2), and q - h = (n^2 - 1)(h^2 + v^2) / (q + h).
    """
    v_square = v**2
    gain = index**2 - 1
    h, q = jnp.sqrt(square), jnp.sqrt(index**2 * square + gain * v_square)
    divisor = (q + h) * (h * q + v_square)
    return h * v * gain * (square + v_square) / jnp.maximum(divisor, 1e-20)


def _sample_water_drop(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws rings: their centre (row, column) ~ U[0.25, 0.75)^2 (H, W), wavelength ~ U[0.05, 0.2) N, N = min(H, W),
    and phase ~ U[0, 2 pi).
    """
    keys = jax.random.split(key, 3)
    return {
        "amplitude": 0.025 * severities.scanned("water_drop", severity, shape, table),
        "centre": random.uniform(keys[0], (2,), 0.25, 0.75) * jnp.array(shape[:2], jnp.float32),
        "wavelength": random.uniform(keys[1], (), 0.05, 0.2) * side(shape),
        "phase": random.uniform(keys[2], (), 0.0, 2 * jnp.pi),
    }


def _map_water_drop(shape: Shape, params: Params) -> Positions:
    y, x = jnp.arange(shape[0], dtype=jnp.float32)[:, None], jnp.arange(shape[1], dtype=jnp.float32)[None, :]
    v_y, v_x = y - params["centre"][0], x - params["centre"][1]
    square = v_y**2 + v_x**2
    wavelength = params["wavelength"]
    inverse = jax.lax.rsqrt(jnp.maximum(square, 1e-12))  # the centre itself stays: v is 0
    wave, _ = sine_cosine(2 * jnp.pi / wavelength * square * inverse - params["phase"])
    factor = params["amplitude"] * wavelength * wave * inverse
    factor = jnp.where(square <= (side(shape) // 2) ** 2, factor, 0.0)
    return y + factor * v_y, x + factor * v_x


@register(
    "geometry",
    _sample_water_drop,
    {
        "amplitude": "1, of the wavelength",
        "centre": "pixels, row and column",
        "wavelength": "pixels",
        "phase": "radians",
    },
    moves="moves pixels to and from a centre",
    mapper=_map_water_drop,
)
def water_drop(image: Image, params: Params) -> Image:
    """Moves pixels along the radius: the one at the offset v from the centre, |v| <= N // 2, takes the colour at (1 +
    A sin(2 pi |v| / w - phase) w / |v|) v, up to A w away, bilinear, zero outside the image (C-bar, water_drop).
    """
    return color.clip(warps.zero_padded(image, *_map_water_drop(image.shape, params)))
