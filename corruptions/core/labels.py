"""Labels that follow their image: the position that each pixel shows, and masks, boxes and points moved by it."""

import functools
import warnings
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from corruptions.core import batch, checks, dispatch, forks, one_image, program_cache, registry
from corruptions.core.corruption import Array, Corruption
from corruptions.core.errors import Refused

_LOOKED_AT, _MIRRORED = 4, 0.01  # images, and the share of their pixels, by which mirrored positions are noticed
_FLAT, _FARTHEST = 1e-3, 64.0  # least area that a pixel shows; largest squared distance of a position, in pixels
_WARNED = False


def coordinates(
    key: jax.Array,
    images: Array | jax.ShapeDtypeStruct,
    name: str | Corruption,
    severity: ArrayLike | None = None,
    *,
    index: Array | Sequence[int] | None = None,
    reflected: bool = False,
    **options: Any,
) -> Any:
    """Finds where in each image each pixel comes from after `corrupt` with the same key, name, severity, index and options.

    These are the positions at which the corruption itself looks the image up, from the same draws. Where it
    interpolates several times (`imagenet_c/elastic_transform`, `cbar/fish_eye`), the mean of the positions that a pixel
    is made of. `get(name).moves` says how a corruption displaces the content of the image, in words, empty where
    everything stays in its place: a pixel's position is then its own.

    Args:
      key, name, severity, index, **options: as of `corrupt`.
      images: [N, H, W, C]; only their shape and dtype are used, so that a `jax.ShapeDtypeStruct` does. The frames of a
        clip have the positions of one image of it.
      reflected: whether to return which pixels are mirror images, too: beyond the border of `imagenet_c/elastic_transform` and
        `camera/elastic_field` the image is mirrored, and their positions are those of the object once more.

    Returns:
      float32 [N, H, W, 2], row and column in pixels, pixel centres at whole numbers; outside of the image where a pixel
      shows nothing of it. With `reflected` a pair of it and bool [N, H, W]. `move_masks`, `move_boxes` and `move_points`
      take either; boxes and points need the pair.

    Raises:
      ValueError: a corruption that displaces content without such a map, because a pixel shows several places
        (`zoom_blur`, `motion_blur`, `glass_blur`) or another place in each channel (the two chromatic aberrations);
        also a corruption that `random_choice` or `compose` made of any that displaces content. Other errors as of
        `corrupt`.
    """
    forks.refuse_forked()
    checks.key(key)
    images, corruption = dispatch.unmasked(images), registry.get(name)
    if values := [name for name in ("value_range", "validate", "gradient") if name in options]:
        expected = f"no {values[0]} for coordinates, which no values of pixels decide"
        raise Refused(values[0], expected, repr(options[values[0]]), "leave it out")
    checks.image_batch(images, validate=False, any_kind=True)
    corruption.check_request(images.shape[-1], options)
    options = corruption.options_for(images.shape[1:], options)
    if index is None:
        dispatch.refuse_counting("coordinates", key, images)
    severities, index = batch.severities_and_index(corruption, images.shape[0], severity, index, True, options)
    program_cache.bound_programs()
    key, index = dispatch.held((key, index))
    static = dict(shape=tuple(images.shape[1:]), options=checks.static_options(options), reflected=reflected)
    return _coordinates(key, severities, index, corruption=corruption, **static)


@functools.partial(program_cache.jitted, static=("corruption", "shape", "options", "reflected"))
def _coordinates(
    key: jax.Array,
    severities: jax.Array | None,
    index: Array,
    corruption: Corruption,
    shape: tuple[int, ...],
    options: tuple[tuple[str, Any], ...],
    reflected: bool,
) -> Any:
    def of_image(key: jax.Array, number: Any, severity: Any) -> Any:
        own_key = batch.image_key(key, number)
        params = one_image.sample(own_key, severity, corruption, one_image.seen_shape(shape), options)
        where = corruption.coordinates(shape, params)
        return (where, corruption.reflected(shape, params)) if reflected else where

    return batch.in_chunks(of_image, (index.shape[0], *shape), 2)(key, index, severities)


def move_masks(
    masks: Array,
    coordinates: Array | tuple[Array, Array],
    fill: ArrayLike = 0,
    reflected: Array | bool | None = None,
) -> jax.Array:
    """Moves masks as their images were moved: each pixel takes the label nearest to its position.

    Args:
      masks: [N, H, W] or [N, H, W, K] of numbers or bool: classes, instances, depths.
      coordinates: [N, H, W, 2], or the pair of it and bool [N, H, W], from `coordinates`.
      fill: the label of pixels whose position is outside of the image, a value that the masks' dtype holds.
      reflected: True with the pair, or its bool [N, H, W]: mirror images take `fill`, too. None keeps them as they are seen.

    Returns:
      The moved masks, same shape and dtype (32 bits for NumPy's 64, as in JAX).

    Raises:
      ValueError: shapes that do not go together, or a fill or a label that the masks' dtype does not hold.
      TypeError: masks or coordinates of other things than numbers.
      RuntimeError: in a child that was forked after JAX had started, where this would hang.
    """
    forks.refuse_forked()
    where, mirrored = _parted(coordinates)
    if reflected is True and mirrored is None:
        expected = "the pair of coordinates(..., reflected=True) with move_masks(..., reflected=True)"
        raise Refused("coordinates", expected, "positions alone")
    left_out = reflected if not isinstance(reflected, bool) else mirrored if reflected else None
    masks = checks.array(masks, "masks", "biufc")
    if isinstance(masks, np.ndarray) and masks.dtype in (np.int64, np.uint64) and masks.size:
        least, most = int(masks.min()), int(masks.max())
        if least <= -(2**31) or most >= 2**31:
            raise Refused("masks", "labels of at most 31 bits", most if most >= 2**31 else least)
    masks, where, fill, left_out = dispatch.held((masks, where, fill, left_out))
    masks, (height, width) = jnp.asarray(masks), where.shape[1:3]
    if masks.shape[:3] != where.shape[:3] or masks.ndim > 4:
        raise Refused("masks", f"masks of shape {tuple(where.shape[:3])} or with one axis more", masks.shape)
    _check_reflected(left_out, where)
    fill = _checked_fill(fill, masks)
    nearest = jnp.floor(jnp.asarray(where) + 0.5)
    row, column = nearest[..., 0], nearest[..., 1]
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)  # of a NaN False
    row, column = (jnp.where(inside, place, 0).astype(jnp.int32) for place in (row, column))
    inside = inside if left_out is None else inside & ~jnp.asarray(left_out)
    number = jnp.arange(masks.shape[0])[:, None, None]
    inside = inside.reshape(*inside.shape, *[1] * (masks.ndim - 3))
    return jnp.where(inside, masks[number, row, column], jnp.asarray(fill, masks.dtype))


def _parted(coordinates: Array | tuple[Array, Array]) -> tuple[Array, Array | None]:
    """Parts the pair of `coordinates(..., reflected=True)`; positions alone have None beside them."""
    where, reflected = coordinates if isinstance(coordinates, tuple) else (coordinates, None)
    where = checks.array(where, "coordinates", "iuf")
    if len(where.shape) != 4 or where.shape[3] != 2:
        raise Refused("coordinates", "coordinates of shape (number, height, width, 2)", tuple(where.shape))
    _check_reflected(reflected, where)
    return where, reflected


def _with_pair(what: str, labels: Any, columns: int, coordinates: Any, reflected: Array | None) -> tuple[Any, Any, Any]:
    """Checks labels [N, K, columns] of `move_boxes` or `move_points`; returns them in float32, positions and mirror images.

    Positions alone may warn.
    """
    labels = checks.array(labels, what, "iuf")
    coordinates, mirrored = _parted(coordinates)
    reflected = mirrored if reflected is None else reflected
    _check_reflected(reflected, coordinates)
    if reflected is None:
        _warn_of_mirror_images(f"move_{what}", coordinates)
    labels, coordinates, reflected = dispatch.held((labels, coordinates, reflected))
    labels = jnp.asarray(labels, jnp.float32)
    if len(labels.shape) != 3 or labels.shape[::2] != (coordinates.shape[0], columns):
        expected = f"{what} of shape ({coordinates.shape[0]}, number, {columns})"
        raise Refused(what, expected, tuple(labels.shape))
    return labels, jnp.asarray(coordinates), reflected


def _warn_of_mirror_images(call: str, coordinates: Array) -> None:
    """Warns once in a process of positions that are mirrored somewhere, as beyond a reflecting border, without the pixels.

    Which pixels are mirror images does not follow from positions: where both axes are mirrored none shows it.
    """
    global _WARNED
    if _WARNED or dispatch.is_traced(coordinates):
        return
    where = np.asarray(coordinates[:_LOOKED_AT], np.float32)
    down, right = np.diff(where, axis=1)[:, :, :-1], np.diff(where, axis=2)[:, :-1]
    turned = down[..., 0] * right[..., 1] < down[..., 1] * right[..., 0]
    if turned.size and turned.mean() > _MIRRORED:
        _WARNED = True
        warnings.warn(
            f"{call} got positions alone, and some are mirrored, as beyond the border of elastic_transform: mirror images "
            "count as the object. Give it the pair of coordinates(..., reflected=True)",
            stacklevel=4,
        )


def _checked_fill(fill: Any, masks: jax.Array) -> Any:
    """Requires a value that masks of this dtype hold: a fill of .5 or 300 would become another label."""
    dtype, whole = masks.dtype, jnp.issubdtype(masks.dtype, jnp.integer)
    if dispatch.is_traced(fill):
        if jnp.issubdtype(fill.dtype, jnp.inexact) and (whole or dtype.kind == "b"):
            raise Refused("fill", f"fill of {dtype} as the masks", f"dtype {fill.dtype}", "fill.astype(masks.dtype)")
        return fill
    low, high = (0, 1) if dtype.kind == "b" else (float(end) for end in _ends(dtype))
    value = np.asarray(None if isinstance(fill, list | tuple) else fill)
    known = value.dtype.kind in ("biufc" if dtype.kind == "c" else "biuf") or jnp.issubdtype(value.dtype, jnp.floating)
    if known and dtype.kind != "c":
        wide = value.astype(np.float64)
        inside = (wide >= low) & (wide <= high)
        known = bool(
            (inside & (wide == np.floor(wide)) if whole or dtype.kind == "b" else inside | ~np.isfinite(wide)).all()
        )
    if not known:
        kind = "True or False" if dtype.kind == "b" else f"a {'whole ' * whole}number from {low:.9g} to {high:.9g}"
        hint = "" if dtype == jnp.float32 else "move_masks(masks.astype(numpy.float32), ...) takes other numbers"
        raise Refused("fill", f"fill: {kind} for masks of {dtype}", " ".join(repr(fill).split()), hint)
    if value.ndim and value.shape not in ((1,), masks.shape[3:]):
        raise Refused("fill", f"one fill, or one for each of the last axis {masks.shape[3:]}", value.shape)
    return value


def _ends(dtype: Any) -> tuple[Any, Any]:
    bounds = jnp.iinfo(dtype) if jnp.issubdtype(dtype, jnp.integer) else jnp.finfo(dtype)
    return bounds.min, bounds.max


def _check_reflected(reflected: Any, coordinates: Array) -> None:
    if reflected is None:
        return
    shape, dtype = np.shape(reflected), getattr(reflected, "dtype", type(reflected).__name__)
    if dtype != np.dtype(bool) or shape != tuple(coordinates.shape[:3]):
        expected = f"reflected: bool of shape {tuple(coordinates.shape[:3])}"
        raise Refused("reflected", expected, f"{dtype} of shape {shape}")


def move_boxes(boxes: Array, coordinates: Array | tuple[Array, Array], reflected: Array | None = None) -> jax.Array:
    """Moves boxes as their images were moved: the smallest box of whole pixels around all pixels whose position lies in
    the old box.

    A box around a rotated object comes out larger than the object; if you have masks, take the boxes of moved
    masks.

    Args:
      boxes: [N, K, 4], left, top, right and bottom edge in pixels; pixel i reaches from i to i + 1.
      coordinates: the pair of `coordinates(..., reflected=True)`: [N, H, W, 2], and bool [N, H, W], the mirror images,
        which do not count. With [N, H, W, 2] alone a box grows around mirror images, and one warning says so.
      reflected: the bool [N, H, W], where it is not given in the pair.

    Returns:
      float32 [N, K, 4]; four zeros where no pixel shows any part of a box.

    Raises:
      ValueError: shapes that do not go together, or a left edge beyond the right one, a top beyond the bottom.
      TypeError: boxes or coordinates of other things than real numbers.
      RuntimeError: in a child that was forked after JAX had started, where this would hang.
    """
    forks.refuse_forked()
    boxes, where, reflected = _with_pair("boxes", boxes, 4, coordinates, reflected)
    if not dispatch.is_traced(boxes) and (crossed := ~(boxes[..., :2] <= boxes[..., 2:]).all(-1)).any():
        found = f"left, top, right, bottom = {boxes[crossed][0].tolist()}"
        raise Refused("boxes", "boxes left <= right, top <= bottom", found)
    return _boxes_of_batch(boxes, where, reflected)


def _boxes_of_image(boxes: jax.Array, coordinates: jax.Array, reflected: jax.Array | None) -> jax.Array:
    row, column = coordinates[..., 0] + 0.5, coordinates[..., 1] + 0.5

    def of_box(box: jax.Array) -> jax.Array:
        left, top, right, bottom = box
        inside = (column >= left) & (column < right) & (row >= top) & (row < bottom)
        inside = inside if reflected is None else inside & ~reflected
        (left, right), (top, bottom) = (_extent(inside.any(axis)) for axis in (0, 1))
        return jnp.stack([left, top, right, bottom]).astype(jnp.float32)

    # One after the other: masks of all boxes at once are as large as that many images.
    return jax.lax.map(of_box, boxes)


_boxes_of_batch = dispatch.program(jax.vmap(_boxes_of_image))


def _extent(taken: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the first True place and the place behind the last one; both 0 where none is True."""
    last = taken.shape[0] - jnp.argmax(taken[::-1])
    return jnp.argmax(taken), jnp.where(taken.any(), last, 0)


def move_points(points: Array, coordinates: Array | tuple[Array, Array], reflected: Array | None = None) -> jax.Array:
    """Moves points, such as joints and corners, as their images were moved: to where the corrupted image shows them.

    Args:
      points: [N, K, 2], x and y in pixels, as the edges of boxes: the centre of the first pixel is (.5, .5).
      coordinates, reflected: as of `move_boxes`: mirror images do not count, and positions alone warn as there.

    Returns:
      float32 [N, K, 2], within about half a pixel; NaN where no pixel shows the point.

    Raises:
      ValueError: shapes that do not go together.
      TypeError: points or coordinates of other things than real numbers.
      RuntimeError: in a child that was forked after JAX had started, where this would hang.
    """
    forks.refuse_forked()
    return _points_of_batch(*_with_pair("points", points, 2, coordinates, reflected))


def _points_of_image(points: jax.Array, where: jax.Array, reflected: jax.Array | None) -> jax.Array:
    down, right = (_slope(where, axis) for axis in (0, 1))

    def of_point(point: jax.Array) -> jax.Array:
        missing = (point[::-1] - 0.5)[None, None] - where  # [H, W, 2], row and column
        apart = jnp.square(missing).sum(-1)
        apart = apart if reflected is None else jnp.where(reflected, jnp.inf, apart)
        row, column = jnp.unravel_index(jnp.argmin(apart), apart.shape)
        # The rest of the way, by the slope of the positions around the nearest one.
        rest, ((a, c), (b, d)) = missing[row, column], (of[row, column] for of in (down, right))
        area = a * d - b * c
        area = jnp.where(jnp.abs(area) < _FLAT, jnp.inf, area)
        below, beside = (d * rest[0] - b * rest[1]) / area, (a * rest[1] - c * rest[0]) / area
        near = (jnp.maximum(jnp.abs(below), jnp.abs(beside)) <= 1) & (apart[row, column] <= _FARTHEST)
        place = jnp.stack([column, row]).astype(jnp.float32) + 0.5
        return jnp.where(near, place + jnp.stack([beside, below]), jnp.nan)

    return jax.lax.map(of_point, points)


def _slope(where: jax.Array, axis: int) -> jax.Array:
    """Differences of positions by one pixel along an axis, the mean of both sides; at the border of one."""
    steps = jnp.diff(where, axis=axis)
    first, last = jax.lax.slice_in_dim(steps, 0, 1, axis=axis), jax.lax.slice_in_dim(steps, -1, None, axis=axis)
    before, after = (jnp.concatenate(parts, axis) for parts in ([first, steps], [steps, last]))
    return (before + after) / 2


_points_of_batch = dispatch.program(jax.vmap(_points_of_image))
