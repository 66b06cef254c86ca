"""Separable linear filters, as matrices along both axes or as sums of shifted images.

A matrix product runs at the speed of the machine's BLAS or matrix unit, takes a traced filter width without a change
of shape, and costs the same for a narrow filter and for one wider than the image. Shifted images take a CPU a fifth
of its time for 13 taps, half for 49 (224x224).
"""

import math
from collections.abc import Iterable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.primitives import padded, staging

# Why not dm_pix.gaussian_blur: a depthwise convolution of fixed width with black borders, it takes a CPU 60 times as
# long (224x224, sigma 3).


def extended(image: jax.Array, reach: int, axes: Sequence[int], mode: str) -> jax.Array:
    """Extends `axes` of any array by `reach` samples at both ends, fewer than the axes have, as `numpy.pad` does.

    The mode is "edge", "reflect" or "symmetric".
    """

    # A GPU's compiler fuses look-ups into the kernel that reads them, but writes a pad to memory first.
    def look_up(image):
        for axis in axes:
            index = np.pad(np.arange(image.shape[axis]), reach, mode=mode)
            image = image.at[(*[slice(None)] * axis, index)].get(mode="promise_in_bounds")
        return image

    def pad(image):
        return jnp.pad(image, [(reach * (i in axes),) * 2 for i in range(image.ndim)], mode=mode)

    return staging.by_platform(image, cpu=pad, tpu=pad, default=look_up)


def gaussian_weights(sigma: jax.Array | float, max_radius: int, truncate: float = 4.0) -> jax.Array:
    """Computes the weights of a Gaussian filter cut at `truncate` standard deviations: float32 [2 max_radius + 1].

    w_t is proportional to exp(-t^2 / (2 sigma^2)) for |t| <= r = int(truncate * sigma + 0.5) and sums to one, as in
    `scipy.ndimage.gaussian_filter`; r = 0 is the identity, and r above `max_radius` is cut to it. `sigma` >= 0, in
    pixels, may be traced.
    """
    weights = _gaussian(sigma, max_radius, truncate)(jnp.arange(-max_radius, max_radius + 1, dtype=jnp.float32))
    weights = weights / weights.sum()
    # The middle takes the rounding of the others: surfaces of one colour stay as they are.
    return weights.at[max_radius].set(1 - 2 * weights[:max_radius].sum())


def _gaussian(sigma, max_radius, truncate):
    """Makes the weight as a function of the offset, not normalised."""
    radius = _radius(sigma, max_radius, truncate)
    decay = -0.5 / jnp.maximum(sigma, 1e-6) ** 2
    return lambda t: jnp.where(abs(t) <= radius, jnp.exp(decay * t**2), 0.0)


def _radius(sigma, max_radius, truncate=4.0):
    return jnp.minimum(jnp.floor(truncate * jnp.asarray(sigma, jnp.float32) + 0.5), max_radius)


def gaussian(image: jax.Array, sigma: jax.Array | float, weights: jax.Array) -> jax.Array:
    """Filters rows and columns of an image, float32 [H, W] or [H, W, C], with a Gaussian cut at 4 sigma.

    Borders are repeated. `weights` are the `gaussian_weights` of `sigma`, which is in pixels and may be traced; the
    cost is proportional to their number.
    """
    reach = weights.size // 2

    def filtered(needed, image, weights):
        for axis in (0, 1):
            image = sum_of_shifts(extended(image, reach, (axis,), "edge"), weights, axis, needed)
        return image

    def by_need(sigma, *arrays):
        return filtered(staging.largest(_radius(sigma, reach).astype(jnp.int32)), *arrays)

    def in_full(sigma, *arrays):
        del sigma
        return filtered(None, *arrays)

    # 20 times as fast as `in_full` at 224 pixels by the compiler's model of a TPU v5e.
    def by_products(sigma, image, weights):
        del sigma
        return separable(image, *(_edge_matrix(size, weights) for size in image.shape[:2]))

    arrays = jnp.asarray(sigma, jnp.float32), image, weights
    return staging.by_platform(*arrays, cpu=by_need, tpu=by_products, default=in_full)


def _edge_matrix(size, weights):
    """Builds the matrix [n, n] that filters an axis of `size` n with 2 r + 1 weights, its end samples repeated."""
    reach = weights.size // 2
    tap = np.arange(size + 2 * reach) - np.arange(size)[:, None]
    band = jnp.where((tap >= 0) & (tap <= 2 * reach), jnp.take(weights, tap, mode="clip"), 0.0)
    before, inside, after = jnp.split(band, (reach, reach + size), axis=1)
    return inside.at[:, 0].add(before.sum(1)).at[:, -1].add(after.sum(1))


def sum_of_shifts(image: jax.Array, weights: jax.Array, axis: int, needed: jax.Array | None = None) -> jax.Array:
    """Correlates rows (axis 0) or columns (1) of [H, W] or [H, W, C] with weights that are the same on both sides.

    The 2 r + 1 weights must all lie inside the image: the axis gets 2 r samples shorter. Weights further than `needed`,
    int32, from the middle are zero, and most of them are skipped. The outer, smaller terms are added first, and the two
    sides before they are weighted, so that a surface of one colour stays what it is but for the last place or two.
    """
    step = 1 if axis == 0 else math.prod(image.shape[2:])
    # Columns and channels in one axis: a CPU's vector units need a long last axis.
    flat = staging.stage_on_cpu(image.reshape(image.shape[0], -1))
    length = flat.shape[axis] - (weights.size - 1) * step
    middle = weights.size // 2

    def shifted(k):
        return jax.lax.slice_in_dim(flat, k * step, k * step + length, axis=axis)

    def ring(outer, inner):
        pairs = ((middle - t, middle + t) for t in range(outer, inner, -1))
        return sum(weights[left] * (shifted(left) + shifted(right)) for left, right in pairs)

    outer, total = middle, jnp.zeros_like(shifted(middle))
    while needed is not None and outer > 4:
        inner = max(4, outer // 2)
        total = jax.lax.cond(
            needed > inner, lambda total, ends=(outer, inner): total + ring(*ends), lambda total: total, total
        )
        outer = inner
    total = total + ring(outer, 0) + weights[middle] * shifted(middle)
    shape = (size - (weights.size - 1) * (i == axis) for i, size in enumerate(image.shape))
    return staging.stage_on_cpu(total).reshape(tuple(shape))


def separable(image: jax.Array, rows: jax.Array, columns: jax.Array) -> jax.Array:
    """Computes rows @ X @ columns^T of every channel X of an image, [H, W] or [H, W, C].

    `rows` are [H', H], `columns` [W', W].
    """
    highest = jax.lax.Precision.HIGHEST
    image = jnp.einsum("ih,hw...->iw...", rows, image, precision=highest)
    return jnp.einsum("jw,iw...->ij...", columns, image, precision=highest)


def positions(rows: jax.Array, columns: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Computes where `separable` looks an image up: the weighted mean position of each sample, [H', 1] and [1, W'].

    The rows of both matrices sum to one.
    """
    down, across = (
        jnp.matmul(matrix, jnp.arange(matrix.shape[1], dtype=jnp.float32), precision=jax.lax.Precision.HIGHEST)
        for matrix in (rows, columns)
    )
    return down[:, None], across[None, :]


def mirrored_gaussian(
    fields: Iterable[jax.Array], shape: Sequence[int], sigma: jax.Array, max_radius: int, narrow: int, truncate: float
) -> list[jax.Array]:
    """Filters fields, float32 [H, W], with a Gaussian, mirrored about the half-sample border (SciPy's `reflect`).

    No gradient flows through `sigma`: the fields are random, and `sequential_vmap` defines none.

    Args:
      shape: (H, W, ...), a `padded.Shape` for padded fields.
      sigma, max_radius, truncate: as of `gaussian_weights`.
      narrow: radius up to which a CPU sums shifted fields, image by image.
    """
    is_padded = isinstance(shape, padded.Shape)
    sigma = jax.lax.stop_gradient(jnp.asarray(sigma, jnp.float32))

    def by_products(sigma, *fields):
        sides = zip(shape[:2], padded.own(shape)[:2])
        rows, columns = (
            mirrored_matrix(side, sigma, max_radius, truncate, own if is_padded else None) for side, own in sides
        )
        if is_padded:
            return [separable(field, rows, columns) for field in fields]
        return [_by_halves(columns, _by_halves(rows, field).T).T for field in fields]

    def by_shifts(sigma, *fields):
        weights = gaussian_weights(sigma, narrow, truncate)
        mirrored = (jnp.pad(field, narrow, mode="symmetric") for field in fields)
        return [sum_of_shifts(sum_of_shifts(field, weights, 0), weights, 1) for field in mirrored]

    @jax.custom_batching.sequential_vmap
    def either(sigma, *fields):
        return jax.lax.cond(truncate * sigma + 0.5 < narrow + 1, by_shifts, by_products, sigma, *fields)

    cpu = by_products if is_padded else either
    return staging.by_platform(sigma, *fields, cpu=cpu, default=by_products)


def mirrored_matrix(
    size: int, sigma: jax.Array | float, max_radius: int, truncate: float, own: jax.Array | None = None
) -> jax.Array:
    """Builds the matrix G [n, n] of a Gaussian filter along an axis of `size` n: (G x)_i = sum_t w_t x_ext(i + t).

    `gaussian_weights` gives the weights and takes the same arguments. The axis is mirrored about its half-sample ends,
    again and again where the radius exceeds its length; a padded axis at its `own` traced length. Rows sum to one.
    """
    weight = _gaussian(sigma, max_radius, truncate)
    taps = jnp.arange(-max_radius, max_radius + 1, dtype=jnp.float32)[None, :]
    # The extension has period 2n and shows sample j at j and at 2n - 1 - j.
    period = 2 * (size if own is None else own)
    repeats = max_radius // period + 2
    offset = jnp.arange(-size, 2 * size, dtype=jnp.float32)

    def add(k, total):
        return total + weight(offset + jnp.asarray(period * k, jnp.float32))

    if own is None:
        table = sum(add(k, 0.0) for k in range(1 - repeats, repeats))
    else:
        table = jax.lax.fori_loop(1 - repeats, repeats, add, jnp.zeros_like(offset))
    row = jnp.arange(size, dtype=jnp.float32)[:, None]
    # A look-up costs less than a dozen exponentials.
    after, before = ((offset + size).astype(jnp.int32) for offset in (row.T - row, row.T + row + 1))
    matrix = table[after] + table[before]
    if own is not None:
        matrix = jnp.where(jnp.arange(size)[None, :] < own, matrix, 0.0)
    return matrix / weight(taps).sum()


def _by_halves(matrix, image):
    """Computes matrix @ image with half the multiplications, for a matrix that a turn by 180 degrees
    does not change.

    Filters the sum and the difference of the halves, each by itself.
    """
    half = -(-matrix.shape[0] // 2)
    near, far = matrix[:half, :half], matrix[:half, ::-1][:, :half]
    upper, lower = image[:half], image[half:][::-1]
    lower = jnp.pad(lower, ((0, half - lower.shape[0]), (0, 0)))  # the middle belongs to the upper half
    even, odd = (
        jnp.matmul(0.5 * kernel, part, precision=jax.lax.Precision.HIGHEST)
        for kernel, part in ((near + far, upper + lower), (near - far, upper - lower))
    )
    return jnp.concatenate([even + odd, (even - odd)[: matrix.shape[0] - half][::-1]])
