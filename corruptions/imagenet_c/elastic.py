"""ImageNet-C elastic_transform: a random affine map, then a smooth random displacement."""

import functools
from collections.abc import Iterable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from corruptions import padded
from corruptions.imagenet_c import tables
from corruptions.imagenet_c.member import member, padding
from corruptions.primitives import filters, random, staging
from corruptions.primitives.warping import geometry

# (amplitude alpha, smoothing sigma, affine jitter) in units of L, and L in pixels. The 244 is the
# original's.
_SHAPE = {
    "cifar": ((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)),
    "tiny": ((0, 0, 0.08), (0.05, 0.3, 0.06), (0.1, 0.08, 0.06), (0.1, 0.03, 0.03), (0.16, 0.03, 0.02)),
    "imagenet": ((2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02), (0.12, 0.01, 0.02)),
    "inception": ((2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02), (0.12, 0.01, 0.02)),
}
_LENGTH = {"cifar": 32, "tiny": 64, "imagenet": 244, "inception": 360}
_TRUNCATE = 3.0


def _sample(key, shape, severity, *, table=None):
    """Draws three displaced points and two displacement fields.

    `points`, float32[3, 2] as (x, y) in pixels, are where the affine map takes its three anchors,
    anchor + U(-jitter, jitter)^2. `dx` and `dy`, float32[H, W] in pixels to the right and down, are
    alpha G(U(-1, 1)), G a Gaussian filter of standard deviation sigma.
    """
    points_key, dx_key, dy_key = jax.random.split(key, 3)
    table = tables.table_for(shape, table)
    pixels = {name: np.multiply(rows, _LENGTH[name]) for name, rows in _SHAPE.items()}
    alpha, sigma, jitter = tables.lookup(pixels, shape, table, severity)
    fixed = shape.tables["anchors"] if isinstance(shape, padded.Shape) else anchors(shape)
    points = fixed + random.uniform(points_key, (3, 2), -jitter, jitter)
    radii = [int(_TRUNCATE * width + 0.5) for width in pixels[table][:, 1]]
    noise = (random.uniform(field_key, shape[:2], -1.0, 1.0) for field_key in (dx_key, dy_key))
    dx, dy = smooth_fields(noise, shape, alpha, sigma, max(radii), narrow=radii[-1])
    own = {"anchors": fixed, **padded.own_size(shape)} if isinstance(shape, padded.Shape) else {}
    return {"points": points, "dx": dx, "dy": dy, **own}


def _apply(image, params):
    """Warps the image by an affine map, then displaces every pixel, both bilinear.

    The affine warp has coordinates in 1/32 pixel and the border d c b | a b c d, the displacement
    the border c b a | a b c. The parameters are pixels whatever the image size; where the original
    assumes a square image, the centre is (W/2, H/2). Source: ImageNet-C, elastic_transform.
    """
    return jnp.clip(_warped(image, params), 0, 1)


def _map(shape, params):
    """Warps positions as an image: rows and columns [H, W]."""
    planes = jnp.mgrid[: shape[0], : shape[1]].astype(jnp.float32)
    # Made from the draws: under `shard_map` what a loop carries differs between devices from the start.
    seen = _warped(jnp.moveaxis(planes, 0, -1) + jnp.zeros_like(params["dx"])[..., None], params)
    return seen[..., 0], seen[..., 1]


def _warped(image, params):
    size = params.get("size", image.shape)
    y, x = affine_coordinates(params["points"], image.shape, params.get("anchors"))
    fraction = np.float32(1 / 32)
    down, right = ((v & 31).astype(jnp.float32) * fraction for v in (y, x))
    shape, stride = image.shape, image.shape[1]

    def looked_up(image, positions, mode):
        # In one axis: a TPU would rearrange the pixels of each look-up if positions had two.
        near = geometry.neighbours(*map(jnp.ravel, positions), size, mode, stride=stride)
        return geometry.interpolate(image, geometry.Neighbours(*staging.in_turn(*near))).reshape(shape)

    # Staged, or the first warp would be worked out anew in each of the four reads of the second.
    warped = staging.stage(looked_up(image, (y >> 5, x >> 5, down, right), "reflect"))
    warped, dy, dx = staging.in_turn(warped, params["dy"], params["dx"])
    return looked_up(warped, geometry.displaced(dy, dx), "symmetric")


def anchors(shape: Sequence[int]) -> np.ndarray:
    """Places the three points that define the affine map.

    Returns:
      float32[3, 2], (x, y) in pixels: c + (q, q), c + (q, -q) and c - (q, q) with c = (W//2, H//2)
      and q = min(H, W) // 3.
    """
    height, width = shape[:2]
    offset = min(height, width) // 3 * np.array([[1, 1], [1, -1], [-1, -1]])
    return (np.array([width // 2, height // 2]) + offset).astype(np.float32)


def smooth_fields(
    fields: Iterable[jax.Array],
    shape: Sequence[int],
    alpha: jax.Array,
    sigma: jax.Array,
    max_radius: int,
    narrow: int,
) -> list[jax.Array]:
    """Filters each field [H, W] with a Gaussian of `sigma` pixels and multiplies it by `alpha`.

    The filter is cut at 3 sigma, at most `max_radius` pixels; the field is mirrored at its border.
    A CPU sums shifted fields where the filter reaches at most `narrow` pixels, of each image alone.
    """
    owns = shape.own[:2] if isinstance(shape, padded.Shape) else (None, None)

    def by_products(sigma, *fields, product=filters.separable):
        rows, columns = (
            filters.gaussian_matrix(side, sigma, max_radius, mode="symmetric", truncate=_TRUNCATE, own=own)
            for side, own in zip(shape[:2], owns)
        )
        # Else a TPU makes the matrices anew in each product, which takes its compiler long.
        rows, columns = staging.in_turn(rows, columns)
        return [product(field, rows, columns) for field in fields]

    def by_shifts(sigma, *fields):
        weights = filters.gaussian_weights(sigma, narrow, _TRUNCATE)
        mirrored = (jnp.pad(field, narrow, mode="symmetric") for field in fields)
        return [filters.sum_of_shifts(filters.sum_of_shifts(field, weights, 0), weights, 1) for field in mirrored]

    @jax.custom_batching.sequential_vmap
    def either(sigma, *fields):
        by_halves = functools.partial(by_products, product=filters.separable_by_halves)
        return jax.lax.cond(_TRUNCATE * sigma + 0.5 < narrow + 1, by_shifts, by_halves, sigma, *fields)

    cpu = by_products if isinstance(shape, padded.Shape) else either
    # The fields are draws: there is no derivative by sigma, nor one of what is mapped in turn.
    sigma = jax.lax.stop_gradient(jnp.asarray(sigma, jnp.float32))
    smooth = jax.lax.platform_dependent(sigma, *fields, cpu=cpu, default=by_products)
    return [alpha * field for field in smooth]


def affine_coordinates(
    points: jax.Array, shape: Sequence[int], fixed: jax.Array | None = None
) -> tuple[jax.Array, jax.Array]:
    """Computes the source coordinates (y, x) of the warp that takes the anchors to `points`.

    As OpenCV does: with the inverse map x' = a x + b y + c,
    x'32 = (rint(1024 a x) + rint(1024 (b y + c)) + 16) >> 5, and y' likewise.

    Each rounding needs 1024 a to about 2^-25, more than float32 holds. So every coefficient is a
    whole number, good to half a unit, plus a small float32 correction: what the whole numbers map
    wrongly is computed in integers, without error, and the correction is solved from that.

    Args:
      points: float32[3, 2], (x, y) in pixels.
      shape: (H, W, ...) of the image.
      fixed: the anchors, where they are not those of `shape`.

    Returns:
      int32[H, W] each, in 1/32 pixel.
    """
    height, width = shape[:2]
    target = 1024 * (anchors(shape) if fixed is None else fixed).astype(np.int32)
    first, second = points[0] - points[1], points[1] - points[2]
    slope = _to_int(_solve(first, second, jnp.asarray(target[:-1] - target[1:], jnp.float32)))
    # 24 bits of a coordinate in three parts: whole pixels, 1/4096, and what is left of it.
    whole = jnp.floor(points)
    part = jnp.floor((points - whole) * 4096)
    left = (points - whole) - part / 4096
    part = _product(part.astype(jnp.int32), slope)
    error = target - _product(whole.astype(jnp.int32), slope) - (part >> 12)
    constant = error[0]
    error = (
        (error - constant[None, :]).astype(jnp.float32)
        - (part & 4095).astype(jnp.float32) / 4096
        - _product(left, slope.astype(jnp.float32))
    )
    slope_rest = _solve(first, second, error[:-1] - error[1:])
    constant_rest = error[0] - jnp.sum(slope_rest * points[:1], axis=1)
    x, y = jnp.arange(width)[None, :], jnp.arange(height)[:, None]

    def source(k):
        along_x = slope[k, 0] * x + _to_int(slope_rest[k, 0] * x.astype(jnp.float32))
        along_y = slope[k, 1] * y + constant[k] + _to_int(slope_rest[k, 1] * y.astype(jnp.float32) + constant_rest[k])
        return (along_x + along_y + 16) >> 5

    return source(1), source(0)


def _solve(first, second, images):
    """Finds the matrix [2, 2] that maps vectors `first` and `second` to the rows of `images`."""
    determinant = first[0] * second[1] - first[1] * second[0]
    # Three points on a line have no inverse map; any finite one will do.
    determinant = jnp.where(determinant == 0, 1, determinant)
    inverse = jnp.stack([second[1], -second[0], -first[1], first[0]]).reshape(2, 2) / determinant
    return images[0][:, None] * inverse[:1] + images[1][:, None] * inverse[1:]


def _product(points, slope):
    """Computes points[3, 2] @ slope[2, 2]^T by sums, exact in integers."""
    return jnp.sum(points[:, None, :] * slope[None], axis=-1)


def _to_int(x):
    """Rounds to int32, ties to even; bounded, so that products with coordinates fit int32."""
    return jnp.rint(jnp.clip(x, -(2**15), 2**15)).astype(jnp.int32)


elastic_transform = member(
    "elastic_transform",
    "digital",
    _sample,
    _apply,
    (("alpha", "pixels"), ("sigma", "pixels"), ("jitter", "pixels")),
    padding=padding(tables=lambda shape, table: {"anchors": anchors(shape)}, axes=0),
    moves="moves pixels by an affine map and a random field",
    mapper=_map,
)
