"""Glass blur of ImageNet-C: pixels copied from random neighbours, between two Gaussian blurs."""

import functools

import jax
import jax.numpy as jnp

from corruptions import padded
from corruptions.imagenet_c import tables
from corruptions.imagenet_c.member import member, padding
from corruptions.primitives import color, filters, random, staging

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
    pointer = jax.lax.platform_dependent(
        pointer, jnp.asarray(reach, jnp.int32), cpu=followed_to_the_end, cuda=followed_in_short_words, default=followed
    )
    return (pointer >> 1).reshape(height, width)


def followed(pointer: jax.Array, reach: jax.Array) -> jax.Array:
    """Follows pointers 2 i + f, int32 [n], to the pointer i while f is 1, at most 2^6 of them."""
    del reach
    # A loop, not its unrolled body: fused look-ups would compute one another again and again.
    return jax.lax.fori_loop(0, _DOUBLINGS, lambda _, p: _doubled(p), pointer)


def followed_to_the_end(pointer: jax.Array, reach: jax.Array) -> jax.Array:
    """Does what `followed` does, and stops when none of the batch is left to follow: at once where
    the reach is 1, and so no pixel is visited before its neighbours.
    """

    def twice(found):
        pointer = jax.lax.fori_loop(0, 2, lambda _, p: _doubled(p), found[0])
        return pointer, staging.largest(jnp.sum(pointer & 1, dtype=jnp.int32))

    return jax.lax.while_loop(lambda found: found[1] > 0, twice, (pointer, staging.largest(reach - 1)))[0]


def followed_in_short_words(pointer: jax.Array, reach: jax.Array) -> jax.Array:
    """Does what `followed` does, but that f is 0 in the end. It is memory that takes most of a GPU's
    time: two bytes a pointer, where they hold it, and no loop, which would copy what it carries.
    """
    del reach
    short = jnp.uint16 if pointer.size <= 2**16 else pointer.dtype
    source = (pointer >> 1).astype(short)
    # Without the bit f: a pointer that is not to be followed is left by its pixel pointing to itself.
    end = jnp.where(pointer & 1, source, jnp.arange(pointer.size, dtype=short))
    source, end = staging.stage(source), staging.stage(end)
    for _ in range(_DOUBLINGS):
        end = staging.stage(_look_up(end, end))
    return 2 * _look_up(source, end).astype(pointer.dtype)


def _doubled(pointer):
    return jnp.where(pointer & 1, _look_up(pointer, pointer >> 1), pointer)


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
    return _scrambled(image, params, _copied_levels)


def _smooth(image, params):
    return _scrambled(image, params, _look_up)


def _copied_levels(levels, index):
    def as_bytes(levels, index):
        return _look_up(levels.astype(jnp.uint8), index).astype(levels.dtype)

    def as_they_are(levels, index):
        return _look_up(jnp.floor(levels), index)

    return jax.lax.platform_dependent(levels, index, cuda=as_bytes, default=as_they_are)


def sources(params: dict[str, jax.Array]) -> jax.Array:
    """Composes the passes of copies, int32 [H W]: index of each pixel's source in the image."""

    def one_more(i, index):
        return _one_more(i, index, params["shifts"][i], params)

    # Made from the draws: under `shard_map` what a loop carries differs between devices from the start.
    start = jnp.zeros_like(params["shifts"][0, 0]).ravel()
    return jax.lax.fori_loop(0, params["shifts"].shape[0], one_more, start + jnp.arange(start.size))


def sources_by_need(params: dict[str, jax.Array]) -> jax.Array:
    """Does what `sources` does; passes that none of the batch has are left out.

    Not a loop: a slice at a traced place is ten times as slow on a CPU.
    """
    index, most = _one_pass(params["shifts"][0], params), staging.largest(params["passes"])
    for i in range(1, params["shifts"].shape[0]):

        def one_more(index, i=i):
            return _one_more(i, index, params["shifts"][i], params)

        index = jax.lax.cond(i < most, one_more, lambda index: index, index)
    return index


def sources_at_once(params: dict[str, jax.Array]) -> jax.Array:
    """Does what `sources` does; each pass of a GPU draws its shifts itself, which a loop reads from
    memory.
    """
    wanted = (jnp.where(i < params["passes"], shifts, 0) for i, shifts in enumerate(params["shifts"]))
    return functools.reduce(_look_up, (_one_pass(shifts, params) for shifts in wanted))


def _one_pass(shifts, params):
    return copied_from(shifts, params["reach"], params.get("size")).ravel()


def _one_more(i, index, shifts, params):
    return jnp.where(i < params["passes"], _look_up(index, _one_pass(shifts, params)), index)


def _scrambled(image, params, copied):
    blur, channels = (params["sigma"], params["weights"]), image.shape[-1]
    index = jax.lax.platform_dependent(params, cpu=sources_by_need, cuda=sources_at_once, default=sources)
    soft = 255 * filters.gaussian(image, *blur)
    glass = padded.repeat_border(copied(soft.reshape(-1, channels), index).reshape(image.shape), params.get("size"))
    return jnp.clip(filters.gaussian(color.from_levels(glass), *blur), 0.0, 1.0)


glass_blur = member(
    "glass_blur",
    "blur",
    _sample,
    _apply,
    (("sigma", "pixels"), ("reach", "pixels"), ("passes", "count")),
    padding=padding("edge"),
    straight_through=_smooth,
    moves="copies pixels from neighbours, between two blurs",
)
