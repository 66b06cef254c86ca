"""Textures: caustics, plasmas, sparks, Voronoi cells and Perlin's turbulence."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.primitives import filters, staging
from corruptions.primitives.special import arctangent2, sine_cosine

_product = functools.partial(jnp.einsum, precision=jax.lax.Precision.HIGHEST)


_ROUNDS = 5
_OFFSET = 250.0
# The offset without whole turns: trigonometric functions keep float32's precision for small arguments.
_REDUCED_OFFSET = 80 * math.pi - _OFFSET


def caustic(shape: tuple[int, ...], time: jax.Array, scale: jax.Array) -> jax.Array:
    """Computes the brightness of a caustic, the light on the ground of a pool: float32 [H, W] in [0, 1], within 1e-4.

    With (a, b) = 2 pi frac((y, x) / z) - 250 and (i, j) = (a, b) at first, five rounds n = 0..4 with u = t (1 - 3.5 /
    (n + 1)) do, both at once,
        i <- a + cos(u - i) + sin(u + j),   j <- b + sin(u - j) + cos(u + i), c <- c + 1 / |(0.005 a / sin(i + u),
        0.005 b / cos(j + u))|, from c = 1.
    The brightness is clip(|1.17 - (c / 5)^1.4|^8, 0, 1). `time` t is in radians, `scale` z, the period, in pixels.
    """
    turns = [jnp.arange(n, dtype=jnp.float32) / scale for n in shape[:2]]
    row, column = (2 * jnp.pi * (t - jnp.floor(t)) for t in turns)
    row, column = row[:, None], column[None, :]
    i, j = row + _REDUCED_OFFSET, column + _REDUCED_OFFSET
    (sin_i, cos_i), (sin_j, cos_j) = sine_cosine(i), sine_cosine(j)
    total = jnp.float32(1)
    for n in range(_ROUNDS):
        u = time * (1 - 3.5 / (n + 1))
        sin_u, cos_u = jnp.sin(u), jnp.cos(u)
        # Sines of sums from sines computed before: four functions a round instead of six.
        even, odd = cos_u * cos_i, sin_u * sin_i
        other_even, other_odd = sin_u * cos_j, cos_u * sin_j
        i = row + _REDUCED_OFFSET + (even + odd) + (other_even + other_odd)
        j = column + _REDUCED_OFFSET + (other_even - other_odd) + (even - odd)
        (sin_i, cos_i), (sin_j, cos_j) = sine_cosine(i), sine_cosine(j)
        sine, cosine = sin_i * cos_u + cos_i * sin_u, cos_j * cos_u - sin_j * sin_u
        # The reciprocal length multiplied out: zero, not infinite, where the sine or cosine is zero.
        square = ((row - _OFFSET) * cosine) ** 2 + ((column - _OFFSET) * sine) ** 2
        total += jnp.abs(sine * cosine) / (0.005 * jnp.sqrt(jnp.maximum(square, 1e-30)))
    brightness = jnp.abs(1.17 - jnp.exp(1.4 * jnp.log(total / _ROUNDS)))
    return jnp.minimum(((brightness**2) ** 2) ** 2, 1.0)


_MOST_ROUNDS = 6
_CHANNELS = ((1.0, 0.0), (0.5, 0.5), (0.0, 1.0))  # weights of X and Y in red, green and blue


def plasma(shape: tuple[int, ...], time: jax.Array, rounds: jax.Array, decay: jax.Array, scale: jax.Array) -> jax.Array:
    """Computes the colours of a plasma: flow lines, sines of coordinates bent by sines of themselves.

    From (X, Y) = (x, y) / z and f = u = g = 1, `rounds` times: p = cos(Y f + t / u) / g and q = sin(X f + t / u) / g;
    (X, Y) += (p - 0.3 q, q + 0.3 p); f *= 1.93, u *= 1.15, g *= 2.25 - h. Red, green and blue are sin(X - t), sin((X
    + Y + sin t) / 2) and sin(Y + t).

    Args:
      time: t, scalar, radians.
      rounds: at most 6, int32 scalar.
      decay: h, scalar below 1.25.
      scale: z, scalar, pixels.

    Returns float32 [H, W, 3] in [-1, 1].
    """
    x = jnp.arange(shape[1], dtype=jnp.float32)[None, :] / scale
    y = jnp.arange(shape[0], dtype=jnp.float32)[:, None] / scale
    divisor = jnp.float32(1)
    for n in range(_MOST_ROUNDS):
        phase = time / 1.15**n
        gain = jnp.where(n < rounds, 1 / divisor, 0.0)
        p, q = gain * sine_cosine(y * 1.93**n + phase)[1], gain * sine_cosine(x * 1.93**n + phase)[0]
        x, y = x + p - 0.3 * q, y + q + 0.3 * p
        divisor *= 2.25 - decay
    # One complex plane: XLA would compute each of two planes from the start.
    staged = jax.lax.optimization_barrier(jax.lax.complex(x, y))
    x, y = staged.real, staged.imag
    weights = jnp.array(_CHANNELS)
    phases = jnp.stack([-time, jnp.sin(time) / 2, time])
    along_x, along_y, phases = (v[None, None, :] for v in (weights[:, 0], weights[:, 1], phases))
    return sine_cosine(x[..., None] * along_x + y[..., None] * along_y + phases)[0]


def spark(
    shape: tuple[int, ...], centre: jax.Array, lengths: jax.Array, number: jax.Array, exponent: jax.Array | None
) -> jax.Array:
    """Computes the brightness of a star with rays of random lengths.

    At distance r and angle a = atan2(dx, dy) the position among the n rays is d = (a + pi) n / (2 pi), i = floor(d),
    f = d - i. L is the length between rays i and i + 1, linear in f, and the brightness clip((1 - (f - 1/2)^2) (L^2 /
    (r^2 + 1e-4))^e, 0, 1).

    Args:
      centre: (row, column), float32 [2], pixels.
      lengths: float32 [M], pixels; the first n are used.
      number: n, int32 scalar, at most M.
      exponent: e, positive scalar, or None for 1.

    Returns float32 [H, W].
    """
    y = (jnp.arange(shape[0], dtype=jnp.float32) - centre[0])[:, None]
    x = (jnp.arange(shape[1], dtype=jnp.float32) - centre[1])[None, :]
    rays = jnp.asarray(number, jnp.float32)
    position = staging.stage((arctangent2(x, y) / (2 * jnp.pi) + 0.5) * rays)
    ray = jnp.minimum(jnp.floor(position), rays - 1)
    fraction = position - ray
    # Two look-ups in one stored array: XLA would compute pairs or differences again for each pixel.
    lengths = staging.stage(lengths)
    first = ray.astype(jnp.int32)
    second = jnp.where(first >= number - 1, 0, first + 1)  # at the seam the first ray follows the last
    start, end = (staging.look_up(lengths, index) for index in (first, second))
    length = start + fraction * (end - start)
    falloff = length**2 / (x**2 + y**2 + 1e-4)
    if exponent is not None:
        falloff = jnp.exp(exponent * jnp.log(falloff))
    return jnp.clip((1 - (fraction - 0.5) ** 2) * falloff, 0.0, 1.0)


def voronoi_distance(shape: tuple[int, ...], seed: jax.Array, scale: jax.Array, least_scale: float) -> jax.Array:
    """Computes the distance of every pixel to the nearest of points scattered one to a square cell, in cells, at most
    1.

    Pixel (x, y) lies at (x, y) / z + 1. Cell c = (cx, cy) holds one point, at c + frac(k sin(w) sqrt(w) / 400) with w
    = (13.85 cx + 47.77 cy, 99.41 cx + 88.48 cy). The nearest is sought in the 3 x 3 cells around.

    Returns float32 [H, W]. The seed k and the side z of a cell, `scale` in pixels, are scalars; z is never below
    `least_scale`, a Python number.
    """
    counts = [math.floor((n - 1) / least_scale + 1) + 3 for n in shape[:2]]
    # The host computes large sines in float64; float32 does only one product.
    cy, cx = np.mgrid[: counts[0], : counts[1]].astype(np.float64)
    hashes = np.stack([_hash(13.85 * cx + 47.77 * cy), _hash(99.41 * cx + 88.48 * cy)], axis=-1)
    points = seed * jnp.asarray(hashes.reshape(-1, 2), jnp.float32)
    points -= jnp.floor(points)
    y, x = (jnp.arange(n, dtype=jnp.float32) / scale + 1 for n in shape[:2])
    points = points.reshape(*counts, 2)
    nearest = functools.partial(_nearest, _taken), functools.partial(_nearest, _products)
    return jnp.sqrt(staging.by_platform(points, y, x, default=nearest[0], tpu=nearest[1]))


def _nearest(look_up, points, y, x):
    """Computes the least squared distance to the points of 3 x 3 cells around (y, x), at most 1."""
    row, column = jnp.floor(y), jnp.floor(x)
    point_of = look_up(points, row.astype(jnp.int32), column.astype(jnp.int32))
    away_y, away_x = (row - y)[:, None], (column - x)[None, :]
    nearest = jnp.float32(1.0)
    for i in (-1, 0, 1):
        for j in (-1, 0, 1):
            point = point_of(i, j)
            nearest = jnp.minimum(nearest, (away_x + j + point[..., 0]) ** 2 + (away_y + i + point[..., 1]) ** 2)
    return nearest


def _taken(points, row, column):
    """Makes (i, j) -> points[row + i, column + j], [H, W, 2]."""
    width = points.shape[1]
    cell = row[:, None] * width + column[None, :]
    return lambda i, j: jnp.take(points.reshape(-1, 2), cell + (i * width + j), axis=0, mode="clip")


def _products(points, row, column):
    """Computes `_taken` exactly, by products with ones and zeros: a TPU is slow to gather pixel by pixel."""
    columns = jnp.concatenate([jax.nn.one_hot(column + j, points.shape[1]) for j in (-1, 0, 1)])
    planes = [filters.separable(points, jax.nn.one_hot(row + i, points.shape[0]), columns) for i in (-1, 0, 1)]
    return lambda i, j: planes[i + 1][:, (j + 1) * column.size : (j + 2) * column.size]


def _hash(w):
    return np.sin(w) * np.sqrt(w) * 0.0025


_PERIOD = 256
OCTAVES = (1, 2, 4, 8, 16)


def turbulence(gradients: jax.Array, permutation: jax.Array, shape: tuple[int, ...], frequency: float) -> jax.Array:
    """Computes Perlin's turbulence: sums |n(f u, f v)| / f over f = 1, 2, 4, 8, 16 at (u, v) = frequency * (y, x).

    Static matrices multiply a lattice of gradients. n is 1.5 times the smoothstep blend, 3 t^2 - 2 t^3, of g . (p -
    corner) over the four corners of p's cell; corner (i, j) has the gradient G[P[P[i] + j]], all indices mod 256.

    Args:
      gradients: G, float32 [256, 2], along rows and columns.
      permutation: P, int32 [256].
      frequency: cells per pixel, a Python number.

    Returns float32 [H, W], about 0.5 in the mean, within 1e-5.
    """
    axes = [[_axis(n, frequency * octave) for n in shape[:2]] for octave in OCTAVES]
    # Columns by rows, the corners of all octaves in one axis: a TPU's compiler takes a second for each look-up and
    # ten seconds for a look-up in two axes.
    corners = [np.stack(np.meshgrid(rows[0], columns[0])).reshape(2, -1) for rows, columns in axes]
    i, j = np.concatenate(corners, axis=1) % _PERIOD
    hashed = (staging.look_up(permutation, jnp.asarray(i)) + j) % _PERIOD
    found = [staging.look_up(staging.look_up(part, permutation), hashed) for part in gradients.T]
    ends = np.cumsum([points.shape[1] for points in corners])[:-1]
    total = jnp.float32(0)
    for octave, (rows, columns), *parts in zip(OCTAVES, axes, *(jnp.split(part, ends) for part in found), strict=True):
        (points, blend_rows, slope_rows), (_, blend_columns, slope_columns) = rows, columns
        lattice = jnp.stack(parts).reshape(2, -1, points.size)
        halves = _product("kji,kyi->kjy", lattice, np.stack([slope_rows, blend_rows]))
        total += jnp.abs(_product("kjy,kxj->yx", halves, np.stack([blend_columns, slope_columns]))) * (1.5 / octave)
    return total


def _axis(size, frequency):
    """Lists the lattice points in use along an axis [I], weights [size, I], weights times distances [size, I]."""
    position = np.arange(size) * frequency
    cell = np.floor(position).astype(int)
    points, index = np.unique(np.stack([cell, cell + 1]), return_inverse=True)
    index = index.reshape(2, size)
    fraction = position - cell
    smooth = fraction**2 * (3 - 2 * fraction)
    blend, slope = np.zeros((2, size, points.size))
    for corner, weight in enumerate((1 - smooth, smooth)):
        blend[np.arange(size), index[corner]] = weight
        slope[np.arange(size), index[corner]] = weight * (fraction - corner)
    return points, blend.astype(np.float32), slope.astype(np.float32)
