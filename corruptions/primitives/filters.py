"""Separable linear filters as a pair of small matrices, one along each axis, with the boundary
folded in; a Gaussian of few taps as sums of shifted images.

A matrix product runs at the speed of the machine's BLAS or matrix unit, takes a traced filter width
without a change of shape, and costs the same for a narrow filter and for one wider than the image.
Shifted images take a CPU a fifth of its time for 13 taps, half for 49 (224x224).
"""

import math

import jax
import jax.numpy as jnp

from corruptions.primitives import borders, staging


# dm_pix.gaussian_blur, a depthwise convolution of fixed width with black borders, takes a CPU 60
# times as long (224x224, sigma 3).
def gaussian_matrix(
    size: int,
    sigma: jax.Array | float,
    max_radius: int,
    mode: str = "edge",
    truncate: float = 4.0,
    own: jax.Array | None = None,
) -> jax.Array:
    """Builds the matrix G of a Gaussian filter along one axis: (G x)_i = sum_t w_t x_ext(i + t).

    w_t is proportional to exp(-t^2 / (2 sigma^2)) for |t| <= r = int(truncate * sigma + 0.5) and
    sums to one, as in `scipy.ndimage.gaussian_filter`; r = 0 is the identity.

    Args:
      size: length n of the axis.
      sigma: standard deviation in pixels, may be traced (>= 0).
      max_radius: static upper bound of r; a larger r is cut to it.
      mode: extension beyond the ends: "edge" repeats the end value (SciPy: nearest), "symmetric"
        mirrors about the half-sample ends, again and again where r exceeds the size (SciPy:
        reflect).
      truncate: filter radius in units of sigma.
      own: traced length of a padded axis of length n, which "symmetric" mirrors there.

    Returns:
      float32 [n, n], rows summing to one.

    Raises:
      ValueError: another mode.
    """
    if mode not in ("edge", "symmetric"):
        raise ValueError(f"expected mode 'edge' or 'symmetric', found {mode!r}")
    weight = _gaussian(sigma, max_radius, truncate)
    taps = jnp.arange(-max_radius, max_radius + 1, dtype=jnp.float32)[None, :]
    weights = weight(taps) / weight(taps).sum()
    row = jnp.arange(size, dtype=jnp.float32)[:, None]
    column = row.T
    if mode == "edge":
        matrix = weight(column - row) / weight(taps).sum()
        # What falls beyond an end belongs to the end's own column (which `matrix` holds only the
        # inner weight of).
        before = jnp.sum(jnp.where(row + taps < 0, weights, 0.0), axis=1)[:, None]
        after = jnp.sum(jnp.where(row + taps > size - 1, weights, 0.0), axis=1)[:, None]
        return matrix + jnp.where(column == 0, before, 0.0) + jnp.where(column == size - 1, after, 0.0)
    # The extension has period 2n and shows sample j at j and at 2n - 1 - j.
    period = 2 * (size if own is None else own)
    repeats = max_radius // period + 2

    def folded(offset):
        """The weights of all that the extension shows at an offset and at whole periods from there."""

        def add(k, total):
            return total + weight(offset + jnp.asarray(period * k, jnp.float32))

        if own is None:
            return sum(add(k, 0.0) for k in range(1 - repeats, repeats))
        return jax.lax.fori_loop(1 - repeats, repeats, add, jnp.zeros_like(offset))

    def by_table():
        # A look-up costs a CPU less than a dozen exponentials.
        table = folded(jnp.arange(-size, 2 * size, dtype=jnp.float32))
        after, before = ((offset + size).astype(jnp.int32) for offset in (column - row, column + row + 1))
        return table[after] + table[before]

    matrix = jax.lax.platform_dependent(cpu=by_table, default=lambda: folded(column - row) + folded(column + row + 1))
    if own is not None:
        matrix = jnp.where(jnp.arange(size)[None, :] < own, matrix, 0.0)
    return matrix / weight(taps).sum()


def _gaussian(sigma, max_radius, truncate=4.0):
    """The weight as a function of the offset, not normalised."""
    radius = _radius(sigma, max_radius, truncate)
    decay = -0.5 / jnp.maximum(sigma, 1e-6) ** 2
    return lambda t: jnp.where(abs(t) <= radius, jnp.exp(decay * t**2), 0.0)


def _radius(sigma, max_radius, truncate=4.0):
    return jnp.minimum(jnp.floor(truncate * jnp.asarray(sigma, jnp.float32) + 0.5), max_radius)


def gaussian_weights(sigma: jax.Array | float, max_radius: int, truncate: float = 4.0) -> jax.Array:
    """Computes the weights w_t, |t| <= max_radius, of `gaussian_matrix`: float32 [2 max_radius + 1]."""
    weights = _gaussian(sigma, max_radius, truncate)(jnp.arange(-max_radius, max_radius + 1, dtype=jnp.float32))
    return weights / weights.sum()


def gaussian(image: jax.Array, sigma: jax.Array | float, weights: jax.Array) -> jax.Array:
    """Filters rows and columns with a Gaussian cut at 4 sigma, borders repeated.

    Args:
      image: float32 [H, W] or [H, W, C].
      sigma: standard deviation in pixels, may be traced.
      weights: those of `gaussian_weights` for this sigma, as many as the cost is in proportion to;
        a TPU makes matrices instead.

    Returns:
      float32 of the image's shape.
    """
    sigma = jnp.asarray(sigma, jnp.float32)
    return jax.lax.platform_dependent(
        image, sigma, weights, tpu=_by_products, cpu=_by_needed_slices, default=_by_slices
    )


def _by_products(image, sigma, weights):
    return separable(image, *(gaussian_matrix(size, sigma, weights.size // 2) for size in image.shape[:2]))


def _by_slices(image, sigma, weights, needed=None):
    del sigma
    reach = weights.size // 2
    for axis in (0, 1):
        padded = borders.extended(image, reach, (axis,), "edge")
        image = sum_of_shifts(padded, weights, axis, needed)
    return image


def _by_needed_slices(image, sigma, weights):
    return _by_slices(image, sigma, weights, staging.largest(_radius(sigma, weights.size // 2).astype(jnp.int32)))


def sum_of_shifts(image: jax.Array, weights: jax.Array, axis: int, needed: jax.Array | None = None) -> jax.Array:
    """Correlates rows (axis 0) or columns (1) with n weights, where all of them lie inside the image.

    Args:
      image: float32 [H, W] or [H, W, C].
      weights: float32 [n].
      axis: that gets n - 1 shorter.
      needed: int32, the weights further than this from the middle one are zero, and the most of them
        left out; None for no such bound.
    """
    step = 1 if axis == 0 else math.prod(image.shape[2:])
    # Columns and channels in one axis: a CPU's vector units work along the last one, which has to be long.
    flat = staging.stage_on_cpu(image.reshape(image.shape[0], -1))
    length = flat.shape[axis] - (weights.size - 1) * step

    def part(taps):
        return sum(weights[k] * jax.lax.slice_in_dim(flat, k * step, k * step + length, axis=axis) for k in taps)

    if needed is None:
        total = part(range(weights.size))
    else:
        middle, inner = weights.size // 2, min(weights.size // 2, 4)
        total = part(range(middle - inner, middle + inner + 1))
        while inner < middle:
            outer = min(middle, 2 * inner)
            ring = [*range(middle - outer, middle - inner), *range(middle + inner + 1, middle + outer + 1)]
            total = jax.lax.cond(
                needed > inner, lambda total, ring=ring: total + part(ring), lambda total: total, total
            )
            inner = outer
    shape = (size - (weights.size - 1) * (i == axis) for i, size in enumerate(image.shape))
    return staging.stage_on_cpu(total).reshape(tuple(shape))


def separable(image: jax.Array, rows: jax.Array, columns: jax.Array) -> jax.Array:
    """Computes rows @ X @ columns^T of every channel X.

    Args:
      image: float32 [H, W] or [H, W, C].
      rows: float32 [H', H], acts along the first axis.
      columns: float32 [W', W], acts along the second.

    Returns:
      float32 [H', W'] or [H', W', C].
    """
    highest = jax.lax.Precision.HIGHEST
    image = jnp.einsum("ih,hw...->iw...", rows, image, precision=highest)
    return jnp.einsum("jw,iw...->ij...", columns, image, precision=highest)


def separable_for_tpus(image: jax.Array, rows: jax.Array, columns: jax.Array) -> jax.Array:
    """Does what `separable` does, on a TPU the columns first: of three channels it is compiled in a sixth
    less time. Not for a result that is mixed with the image: that is laid out for rows first.
    """
    return jax.lax.platform_dependent(image, rows, columns, tpu=columns_first, default=separable)


def columns_first(image: jax.Array, rows: jax.Array, columns: jax.Array) -> jax.Array:
    """Does what `separable` does in the other order, on any platform."""
    highest = jax.lax.Precision.HIGHEST
    image = jnp.einsum("jw,hw...->hj...", columns, image, precision=highest)
    return jnp.einsum("ih,hj...->ij...", rows, image, precision=highest)


def separable_by_halves(image: jax.Array, rows: jax.Array, columns: jax.Array) -> jax.Array:
    """Does what `separable` does to one channel by half the multiplications, with matrices [H, H] and
    [W, W] that a turn by 180 degrees leaves as they are: those of a symmetric filter, mirrored at
    the border.
    """
    return _by_halves(columns, _by_halves(rows, image).T).T


def _by_halves(matrix, image):
    """Computes matrix @ image: sum and difference of the halves are filtered each by itself."""
    half = -(-matrix.shape[0] // 2)
    near, far = matrix[:half, :half], matrix[:half, ::-1][:, :half]
    upper, lower = image[:half], image[half:][::-1]
    lower = jnp.pad(lower, ((0, half - lower.shape[0]), (0, 0)))  # the middle belongs to the upper half
    even, odd = (
        jnp.matmul(0.5 * kernel, part, precision=jax.lax.Precision.HIGHEST)
        for kernel, part in ((near + far, upper + lower), (near - far, upper - lower))
    )
    return jnp.concatenate([even + odd, (even - odd)[: matrix.shape[0] - half][::-1]])


def positions(rows: jax.Array, columns: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Computes where `separable` looks an image up: the mean position of what each sample weighs.

    Args:
      rows: float32 [H', H], columns: float32 [W', W]; their rows sum to one.

    Returns:
      float32 [H', 1] and [1, W'], in samples.
    """
    down, across = (
        jnp.matmul(matrix, jnp.arange(matrix.shape[1], dtype=jnp.float32), precision=jax.lax.Precision.HIGHEST)
        for matrix in (rows, columns)
    )
    return down[:, None], across[None, :]
