"""The operations of the schemes, each as Pillow does it, on 8-bit images of one 32-bit word per pixel.

A pixel is R + 2^8 G + 2^16 B: one read brings all channels of a neighbour, at a third of a warp's price. Operations on
levels are bit for bit Pillow's `ImageOps`. Shear, translation and rotation are one affine resampling, Pillow's
`transform`. Color, contrast, brightness and sharpness are Pillow's `ImageEnhance`: poorer + factor (image - poorer),
clipped, truncated to whole levels, with a poorer version of the image.

An operation is a code and a strength, so that a transform is a few numbers and images of a batch may differ in it. The
operations fall into kinds that share a computation, and `chain` branches on the kind: with one transform for all images
of a `vmap`, or in a loop over images, only the drawn operation runs; with a transform per image XLA runs each kind once
and selects.

| operation | strength | Pillow |
| --- | --- | --- |
| autocontrast, equalize, invert | none | `ImageOps.autocontrast`, `equalize`, `invert` |
| posterize | bits kept, 1..8 | `ImageOps.posterize` |
| solarize | threshold, 0..256, may be fractional | `ImageOps.solarize` |
| shear_x, shear_y | slope d, source x = X + d Y (y = Y + d X) | `transform(AFFINE, BILINEAR)` |
| translate_x, translate_y | pixels d, source x = X + d | `transform(AFFINE, BILINEAR)` |
| rotate | degrees, counter-clockwise | `rotate(BILINEAR)` |
| color, contrast, brightness, sharpness | factor, 1 leaves the image | `ImageEnhance` |
"""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.primitives import color

_GEOMETRIC = ("shear_x", "shear_y", "translate_x", "translate_y", "rotate")
BASE = ("autocontrast", "equalize", "posterize", "solarize", *_GEOMETRIC)
"""The nine operations of AugMix, in the order of all tables here."""

OPERATIONS = (*BASE, "invert", "color", "contrast", "brightness", "sharpness")
IDENTITY = 0
CODES = {name: code for code, name in enumerate(OPERATIONS, start=1)}

_STAYS, _POINT, _TABLE, _AFFINE, _ENHANCE = range(5)
_KINDS = {"posterize": _POINT, "solarize": _POINT, "invert": _POINT, "autocontrast": _TABLE, "equalize": _TABLE}
_KINDS |= dict.fromkeys(_GEOMETRIC, _AFFINE)
_KINDS |= dict.fromkeys(("color", "contrast", "brightness", "sharpness"), _ENHANCE)
_KIND_OF = np.array([_STAYS] + [_KINDS[name] for name in OPERATIONS], np.int32)

SHEAR_X, SHEAR_Y, TRANSLATE_X, TRANSLATE_Y, ROTATE = KINDS = range(5)
CHANNELS = 3
_LEVELS = 256


def chain(words: jax.Array, codes: jax.Array, strengths: jax.Array, *, names: Sequence[str] = OPERATIONS) -> jax.Array:
    """Applies operations one after the other: uint32 [H, W] to the same, see `pack`.

    Args:
      codes: int32 [D], `CODES[name]` or `IDENTITY` each.
      strengths: float32 [D], in the units of the operations.
      names: static, the operations that may occur: kinds that none of them needs are not compiled.
    """
    kinds = sorted({_STAYS} | {_KINDS[name] for name in names})
    branches = [_BRANCHES[kind] for kind in kinds]
    positions = jnp.asarray(np.searchsorted(kinds, _KIND_OF), jnp.int32)[codes]
    # Once per operation: inside the code for pixels, XLA might compute a sine for every pixel.
    displacements = displacement_of(codes - CODES["shear_x"], strengths, words.shape)

    def step(words, operation):
        position, *rest = operation
        return jax.lax.switch(position, branches, words, *rest), None

    return jax.lax.scan(step, words, (positions, codes, strengths, displacements))[0]


def _point(words, code, strength, displacement):
    del displacement
    threshold = jnp.where(code == CODES["invert"], 0.0, strength)
    return jax.lax.cond(code == CODES["posterize"], posterize, solarize, words, threshold)


def _table(words, code, strength, displacement):
    del strength, displacement
    counts = histogram(words)
    tables = equalize_table(counts), autocontrast_table(counts)
    return look_up(words, jnp.where(code == CODES["equalize"], *tables))


def nearest(image: jax.Array) -> jax.Array:
    """Rounds float32 [H, W, 3] in [0, 1] to the nearest 8-bit levels, halves up; int32."""
    return (color.to_levels(image) + 0.5).astype(jnp.int32)


def pack(image: jax.Array) -> jax.Array:
    """Packs float32 [H, W, 3] in [0, 1], rounded to the nearest level, to uint32 [H, W]."""
    whole = nearest(image)
    return join([whole[..., c] for c in range(CHANNELS)])


def join(channels: Sequence[jax.Array]) -> jax.Array:
    """Joins three arrays of whole levels 0..255, of any number type, to words."""
    words = [c.astype(jnp.uint32) << (8 * i) for i, c in enumerate(channels)]
    return words[0] | words[1] | words[2]


def split(words: jax.Array) -> list[jax.Array]:
    """Splits words into the levels of the three channels, int32 each."""
    return [((words >> (8 * c)) & 255).astype(jnp.int32) for c in range(CHANNELS)]


def levels(words: jax.Array) -> jax.Array:
    """Unpacks words [...] to float32 levels [..., 3]."""
    shifts = 8 * jnp.arange(CHANNELS, dtype=jnp.uint32).reshape((1,) * words.ndim + (CHANNELS,))
    return ((words[..., None] >> shifts) & 255).astype(jnp.float32)


def unpack(words: jax.Array) -> jax.Array:
    """Unpacks words [H, W] to float32 [H, W, 3] in [0, 1], each the float32 nearest to k/255."""
    return color.from_levels(levels(words))


def posterize(words: jax.Array, bits: jax.Array) -> jax.Array:
    """Keeps the `bits` highest of the 8 bits of every channel; bits a whole float32 in 1..8."""
    dropped = 8 - bits.astype(jnp.uint32)
    kept = (jnp.uint32(255) << dropped) & 255
    return words & (kept | kept << 8 | kept << 16)


def solarize(words: jax.Array, threshold: jax.Array) -> jax.Array:
    """Turns levels v from the threshold on into 255 - v; a threshold of 0 inverts the image."""
    # dm_pix.solarize gives the same levels, but takes three float32 channels, not packed words.
    flipped = [jnp.where(c.astype(jnp.float32) >= threshold, 255, 0) for c in split(words)]
    return words ^ join(flipped)


def histogram(words: jax.Array) -> jax.Array:
    """Counts the pixels at each level, int32 [3, 256]."""
    bins = jnp.concatenate([c.reshape(-1) + _LEVELS * i for i, c in enumerate(split(words))])
    counts = jnp.zeros(CHANNELS * _LEVELS, jnp.int32).at[bins].add(1, mode="promise_in_bounds")
    return counts.reshape(CHANNELS, _LEVELS)


def look_up(words: jax.Array, table: jax.Array) -> jax.Array:
    """Replaces level v of channel c by table[c, v], int32 [3, 256]."""
    flat = table.reshape(-1)
    return join([flat.at[c + _LEVELS * i].get(mode="promise_in_bounds") for i, c in enumerate(split(words))])


def equalize_table(counts: jax.Array) -> jax.Array:
    """Makes the table of `ImageOps.equalize`: [3, 256] counts to levels.

    Level i becomes min(255, (q // 2 + n_i) // q), n_i the number of pixels below i and q = m // 255 with m the number
    of pixels below the highest level present. q = 0 does not change the channel.
    """
    highest = _highest(counts)
    below = jnp.cumsum(counts, axis=1) - counts
    step = jnp.take_along_axis(below, highest[:, None], axis=1) // 255
    table = jax.lax.div(step // 2 + below, jnp.broadcast_to(jnp.maximum(step, 1), below.shape))
    return jnp.where(step == 0, jnp.arange(_LEVELS), jnp.minimum(table, 255))


def autocontrast_table(counts: jax.Array) -> jax.Array:
    """Makes the table of `ImageOps.autocontrast`: [3, 256] counts to levels.

    The levels present, lo..hi, spread to 0..255: i becomes floor((i - lo) 255 / (hi - lo)), one less where Pillow's
    float64 arithmetic falls just short of a whole number. A channel of one level does not change.
    """
    low, high = jnp.argmax(counts > 0, axis=1), _highest(counts)
    level = jnp.arange(_LEVELS)[None, :]
    above = jnp.clip(level - low[:, None], 0, 255)
    span = jnp.broadcast_to(jnp.maximum(high - low, 1)[:, None], above.shape)
    table = jnp.minimum(jax.lax.div(255 * above, span), 255)
    index, bits = (jnp.asarray(a) for a in _shortfalls())
    words = jnp.repeat(bits[index[low * _LEVELS + high]], 32, axis=1)
    table -= ((words >> (level % 32).astype(jnp.uint32)) & 1).astype(jnp.int32)
    return jnp.where((high > low)[:, None], table, level)


def _highest(counts):
    return _LEVELS - 1 - jnp.argmax(counts[:, ::-1] > 0, axis=1)


@functools.cache
def _shortfalls():
    """Finds where int(i * scale + offset) is one too small: scale 255 / (hi - lo), offset -lo * scale.

    In float64 it is for 12 094 of the triples (lo, hi, i), at one i or more of every fifth (lo, hi), mostly at hi
    itself. Returns (uint16 [65536], index of a row for 256 lo + hi; uint32 [rows, 8], 256 bits each, one for every
    i).
    """
    levels = np.arange(_LEVELS)
    index = np.zeros((_LEVELS, _LEVELS), np.uint16)
    rows = [np.zeros(_LEVELS, bool)]
    for low in range(_LEVELS - 1):
        high = np.arange(low + 1, _LEVELS)[:, None]
        scale = 255.0 / (high - low)
        computed = np.trunc(levels * scale + -low * scale)
        short = (computed < (levels - low) * 255 // (high - low)) & (levels >= low) & (levels <= high)
        rounded_down = np.flatnonzero(short.any(axis=1))
        index[low, high[rounded_down, 0]] = len(rows) + np.arange(len(rounded_down))
        rows.extend(short[rounded_down])
    bits = np.packbits(np.stack(rows), axis=1, bitorder="little").view("<u4")
    return index.reshape(-1), bits.astype(np.uint32)


class Displacement(NamedTuple):
    """Displacement (x_x U + x_y V + x_0, y_x U + y_y V + y_0) of a pixel at (U, V) from a centre.

    All float32 scalars. The pixel in the corner lies at (1/2, 1/2), the centre at (centre_x, centre_y).
    """

    x_x: jax.Array
    x_y: jax.Array
    x_0: jax.Array
    y_x: jax.Array
    y_y: jax.Array
    y_0: jax.Array
    centre_x: jax.Array
    centre_y: jax.Array


def displacement_of(kind: jax.Array, strength: jax.Array, shape: tuple[int, ...]) -> Displacement:
    """Computes how far away in the image each pixel of the result is read.

    With strength d: shear_x dx = d V, shear_y dy = d U, both from the corner of the image; translate_x dx = d,
    translate_y dy = d; rotate by d degrees, counter-clockwise, about the centre of the image, with b = -d degrees dx =
    (cos b - 1) U + sin b V, dy = -sin b U + (cos b - 1) V.

    `kind`, int32 of `KINDS`, and `strength`, a slope, pixels or degrees, have one shape, as the result has; `shape` is
    (H, W) of the image.
    """
    rotates = kind == ROTATE
    angle = jnp.where(rotates, -strength * (math.pi / 180), 0.0)
    sine = jnp.sin(angle)
    shrink = -2 * jnp.sin(angle / 2) ** 2  # cos - 1 without cancellation

    def only(which, value):
        return jnp.where(kind == which, value, 0.0)

    return Displacement(
        x_x=shrink,
        x_y=sine + only(SHEAR_X, strength),
        x_0=only(TRANSLATE_X, strength),
        y_x=only(SHEAR_Y, strength) - sine,
        y_y=shrink,
        y_0=only(TRANSLATE_Y, strength),
        centre_x=only(ROTATE, jnp.float32(shape[1] / 2)),
        centre_y=only(ROTATE, jnp.float32(shape[0] / 2)),
    )


def resample(words: jax.Array, by: Displacement) -> jax.Array:
    """Resamples an image: out(x, y) = in(x + dx, y + dy), bilinear, truncated to whole levels; black where that lies
    outside.

    Outside are positions beyond the image's edge, half a pixel from the outermost centres; within that half pixel the
    outermost pixel is repeated. Pillow interpolates in float64: in float32 a value that should lie within some 1e-4 of
    a whole level may come out on its other side, one level off.

    `by` none at all leaves the words, uint32 [H, W], exactly.
    """
    # dm_pix.affine_transform takes 6 to 8 times as long and has another rule for the border, black or not by up to 255
    # levels.
    height, width = words.shape
    u = jnp.arange(width, dtype=jnp.float32)[None, :] + 0.5 - by.centre_x
    v = jnp.arange(height, dtype=jnp.float32)[:, None] + 0.5 - by.centre_y
    dx = by.x_x * u + by.x_y * v + by.x_0
    dy = by.y_x * u + by.y_y * v + by.y_0
    left, right, x_fraction, x_inside = _taps(dx, jnp.arange(width)[None, :], width)
    top, bottom, y_fraction, y_inside = _taps(dy, jnp.arange(height)[:, None], height)
    flat = words.reshape(-1)

    def read(row, column):
        return split(flat.at[row * width + column].get(mode="promise_in_bounds"))

    def between(a, b, fraction):  # exactly a if a equals b
        return a + (b - a) * fraction

    corners = zip(read(top, left), read(top, right), read(bottom, left), read(bottom, right), strict=True)
    channels = []
    for corner in corners:
        a, b, c, d = (v.astype(jnp.float32) for v in corner)
        value = between(between(a, b, x_fraction), between(c, d, x_fraction), y_fraction)
        channels.append(value.astype(jnp.int32))
    return jnp.where(x_inside & y_inside, join(channels), jnp.uint32(0))


def _taps(shift, position, size):
    """Finds the two neighbours of position + shift, its distance from the first, and whether it lies inside."""
    whole = jnp.floor(shift)
    fraction = shift - whole  # taken before adding the position, so that no bits are lost
    first = position + whole.astype(jnp.int32)
    inside = ((first >= 0) | ((first == -1) & (fraction >= 0.5))) & (
        (first < size - 1) | ((first == size - 1) & (fraction < 0.5))
    )
    return jnp.clip(first, 0, size - 1), jnp.clip(first + 1, 0, size - 1), fraction, inside


def enhance(words: jax.Array, kind: jax.Array, factor: jax.Array) -> jax.Array:
    """Blends an image, uint32 [H, W], with its poorer version.

    `kind` is an int32 scalar: 0 color, 1 contrast, 2 brightness, 3 sharpness. A `factor` of 1 changes nothing, 0 gives
    the poorer version.
    """
    kinds = [lambda words: join([_luma(words)] * 3), _mean, jnp.zeros_like, _smooth]
    poorer = split(jax.lax.switch(kind, kinds, words))
    return join([_blend(a, b, factor) for a, b in zip(poorer, split(words), strict=True)])


def _blend(poorer, image, factor):
    # Pillow rounds the product and the sum to float32 each. The clip, which never acts, keeps compilers from fusing
    # them into one rounding.
    product = jnp.clip(factor * (image - poorer).astype(jnp.float32), -1e6, 1e6)
    return jnp.clip(poorer.astype(jnp.float32) + product, 0, 255).astype(jnp.int32)


def _luma(words):
    return color.luma_levels(*split(words))


def _mean(words):
    """The mean luma to the nearest level, halves up, on all pixels and channels."""
    total, number = jnp.sum(_luma(words)), words.size
    mean = total // number
    mean += (2 * (total - mean * number) >= number).astype(jnp.int32)
    return jnp.broadcast_to(join([mean] * 3), words.shape)


def _smooth(words):
    """Rounded mean of a pixel, weight 5, and its eight neighbours; the outermost pixels stay."""
    smoothed = []
    for c in split(words):
        rows = c[:-2] + c[1:-1] + c[2:]
        total = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:] + 4 * c[1:-1, 1:-1]
        smoothed.append(c.at[1:-1, 1:-1].set((2 * total + 13) // 26))
    return join(smoothed)


_BRANCHES = {
    _STAYS: lambda words, *_: words,
    _POINT: _point,
    _TABLE: _table,
    _AFFINE: lambda words, code, strength, displacement: resample(words, displacement),
    _ENHANCE: lambda words, code, strength, displacement: enhance(words, code - CODES["color"], strength),
}
