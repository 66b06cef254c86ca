"""Glass blur of ImageNet-C: pixels copied from random neighbours, between two Gaussian blurs."""

import jax
import jax.numpy as jnp

from corruptions import padded
from corruptions.imagenet_c import tables
from corruptions.imagenet_c.member import member, padding
from corruptions.primitives import color, filters, random

# Standard deviation of the blurs in pixels, reach of the copies in pixels, number of passes.
_TABLES = {
    "cifar": ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    "tiny": ((0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2)),
    "imagenet": ((0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    "inception": ((0.8, 1, 3), (1.0, 3, 1), (1.1, 2, 4), (1.2, 4, 2), (1.6, 5, 2)),
}
# A chain of copies of length 2^6 has probability 0.45^64 at the largest reach.
_DOUBLINGS = 6


def copied_from(shifts: jax.Array, reach: jax.Array | int, size: jax.Array | None = None) -> jax.Array:
    """Finds where each pixel's value comes from in one pass of copies.

    The original visits rows H - d, ..., d + 1 and in each the columns W - d, ..., d + 1
    (d the reach), and means to swap the pixel with its neighbour at (+dy, +dx), dy and dx in
    -d..d-1. What its array views do is a copy: the pixel takes the neighbour's current value, the
    neighbour keeps its own. A neighbour visited before (inside the loop's region and later in
    raster order) therefore gives what it has taken itself, any other its old value. Each pixel is
    thus a pointer; pointers to visited pixels are followed by doubling.

    Args:
      shifts: int32 [2, H, W], dy and dx of each pixel.
      reach: d, may be traced.
      size: own height and width of a padded image, may be traced.

    Returns:
      int32 [H, W]: index y W + x of the source in the pass's input.
    """
    height, width = shifts.shape[1:]
    own_height, own_width = (height, width) if size is None else size
    y, x = jnp.arange(height)[:, None], jnp.arange(width)[None, :]

    def visited(y, x):
        return (y > reach) & (y <= own_height - reach) & (x > reach) & (x <= own_width - reach)

    position = y * width + x
    dy, dx = jnp.where(visited(y, x), shifts, 0)
    source = position + dy * width + dx
    follow = visited(y + dy, x + dx) & (source > position)
    # The lowest bit says whether the pointer is to be followed further.
    pointer = (2 * source + follow.astype(jnp.int32)).ravel()
    # A loop, not its unrolled body: fused look-ups would compute one another again and again.
    pointer = jax.lax.fori_loop(0, _DOUBLINGS, lambda _, p: jnp.where(p & 1, _look_up(p, p >> 1), p), pointer)
    return (pointer >> 1).reshape(height, width)


def _look_up(values, index):
    return values.at[index].get(mode="promise_in_bounds")


def _sample(key, shape, severity, *, table=None):
    """Draws `shifts`, int32 [passes, 2, H, W]: dy and dx of each pass and pixel, in -d..d-1.

    `sigma`, `reach` d and `passes` are the severity's; for real severities sigma is interpolated,
    the other two are rounded to whole numbers.
    """
    rows = _TABLES[tables.table_for(shape, table)]
    sigma, reach, passes = tables.lookup(_TABLES, shape, table, severity)
    reach = jnp.round(reach).astype(jnp.int32)
    most = max(row[2] for row in rows)
    radius = int(4 * max(row[0] for row in rows) + 0.5)
    return {
        "shifts": random.integers(key, padded.stacked((most, 2), shape[:2]), -reach, reach),
        "reach": reach,
        "passes": jnp.round(passes).astype(jnp.int32),
        "sigma": sigma,
        "weights": filters.gaussian_weights(sigma, radius),
        **padded.own_size(shape),
    }


def _apply(image, params):
    """Blurs, scrambles and blurs again: clip(G_sigma * scramble(floor(255 G_sigma * x)) / 255).

    The scramble is `passes` times `copied_from`, each on the result of the one before; borders are
    repeated. Source: ImageNet-C, glass_blur.
    """
    return _scrambled(image, params, jnp.floor)


def _smooth(image, params):
    return _scrambled(image, params, lambda levels: levels)


def _scrambled(image, params, whole):
    shifts, blur = params["shifts"], (params["sigma"], params["weights"])
    height, width, channels = image.shape

    def one_pass(i, index):
        source = copied_from(shifts[i], params["reach"], params.get("size")).ravel()
        return jnp.where(i < params["passes"], _look_up(index, source), index)

    # Made from the draws: under `shard_map` what a loop carries differs between devices from the start.
    start = jnp.arange(height * width) + jnp.zeros_like(shifts[0, 0]).ravel()
    index = jax.lax.fori_loop(0, shifts.shape[0], one_pass, start)
    soft = whole(255 * filters.gaussian(image, *blur))
    glass = padded.repeat_border(_look_up(soft.reshape(-1, channels), index).reshape(image.shape), params.get("size"))
    return jnp.clip(filters.gaussian(color.from_levels(glass), *blur), 0.0, 1.0)


glass_blur = member(
    "glass_blur",
    "blur",
    _sample,
    _apply,
    (("sigma", "pixels"), ("reach", "pixels"), ("passes", "count")),
    padding=padding("edge"),
    smooth=_smooth,
    moves="copies pixels from neighbours, between two blurs",
)
