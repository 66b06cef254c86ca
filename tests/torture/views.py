"""Clips, samples of cameras and images of many sizes, against the same images alone."""

import pathlib

import jax
import numpy as np

import corruptions
from tests.corruptions.extremes import draw_severities, pictures
from tests.torture.fuzz import NAMES, judged, same_pixels
from tests.torture.outcomes import Outcome

_CLIP_SHAPES = ((16, 16), (16, 37), (33, 46), (32, 32))
_AXES = ("time", "camera", ("time", "camera"))
_CLIPS, _FRAMES, _CAMERAS = 2, 3, 2
_KINDS = ("uint8", "uint8", "float32", "float16", "float64", "grey", "alpha")


def clips(rng: np.random.Generator, folder: pathlib.Path | None = None) -> Outcome:
    """Clips or cameras of a corruption drawn at random: each frame has the pixels of the image alone, by its key."""
    del folder
    corruptions.core.program_cache.bound_programs()
    name, axis = str(rng.choice(NAMES)), _AXES[rng.integers(len(_AXES))]
    shape, kind = _CLIP_SHAPES[rng.integers(len(_CLIP_SHAPES))], str(rng.choice(["uint8", "float32"]))
    fresh = axis == "time" and bool(rng.random() < 0.4)
    what = f"{name} on clips, {kind} {shape[0]}x{shape[1]}, axis={axis!r}{', fresh noise' if fresh else ''}"
    images = _chosen(rng, shape, kind, _CLIPS * _FRAMES * _CAMERAS).reshape(_CLIPS, _FRAMES, _CAMERAS, *shape, 3)
    images = images if axis == ("time", "camera") else images[:, :, 0] if axis == "time" else images[:, 0]
    key = jax.random.key(int(rng.integers(2**31)))
    index = rng.integers(0, 2**31 - 1, _CLIPS).astype(np.int64)
    severity = _severities(name, _CLIPS, rng)
    found = np.asarray(corruptions.corrupt(key, images, name, severity, index=index, axis=axis, fresh_noise=fresh))
    count = _CLIPS * _FRAMES * (_CAMERAS if axis == ("time", "camera") else 1)
    if found.shape != images.shape or found.dtype != images.dtype:
        return Outcome("wrong", f"{what}: {found.dtype}{list(found.shape)} came back", count)
    if not ((found >= 0) & (found <= (255 if kind == "uint8" else 1))).all():
        return Outcome("wrong", f"{what}: values leave the range", count)
    own = fresh and corruptions.get(name).family == "noise"
    rig = axis == ("time", "camera")
    places = list(np.ndindex(images.shape[1 : 3 if rig else 2]))
    complaints = []
    for place in places:  # (frame,), (camera,) or (frame, camera)
        part = (slice(None), *place)
        own_key = key if axis == "time" else jax.random.fold_in(key, place[-1])
        position = index + 2**32 * place[0] * own
        alone = corruptions.corrupt(own_key, images[part], name, severity, index=position)
        complaints += same_pixels(np.asarray(alone), found[part], f"at {place} of {axis!r}")
    return judged(what, complaints, count)


def each(rng: np.random.Generator, folder: pathlib.Path | None = None) -> Outcome:
    """Images of many sizes and kinds: as they come alone, and at their own size where that is checked.

    One image in some lists is no image: those before it come back, and it is named by its place.
    """
    del folder
    corruptions.core.program_cache.bound_programs()
    name, key = str(rng.choice(NAMES)), jax.random.key(int(rng.integers(2**31)))
    number = int(rng.integers(1, 7))
    shapes = [tuple(int(side) for side in rng.integers(16, 128, 2)) for _ in range(number)]
    kinds = [str(kind) for kind in rng.choice(_KINDS, number)]
    severity = float(_severities(name, 1, rng)[0])
    images = [_as_kind(_chosen(rng, shape, "uint8", 1)[0], kind) for shape, kind in zip(shapes, kinds)]
    what = f"{name} at {severity:.3g} on {', '.join(f'{k} {h}x{w}' for k, (h, w) in zip(kinds, shapes))}"
    bad = int(rng.integers(number)) if rng.random() < 0.15 else None
    if bad is not None:
        images[bad] = _BAD[rng.integers(len(_BAD))]
    found = []
    try:
        for image in corruptions.corrupt_each(key, iter(images), name, severity):
            found.append(image)  # noqa: PERF402 - an error leaves those before it
    except (ValueError, TypeError) as error:
        good = bad is not None and len(found) == bad and f"image {bad}: " in str(error)
        return Outcome("refused" if good else "unclear", f"{what}: {error} after {len(found)}", number)
    if bad is not None:
        return Outcome("wrong", f"{what}: image {bad} is accepted", number)
    complaints = []
    for place, (image, result) in enumerate(zip(images, found, strict=True)):
        if result.shape != image.shape or result.dtype != image.dtype:
            complaints.append(f"image {place} comes back as {result.dtype}{list(result.shape)}")
        elif not ((result >= 0) & (result <= (255 if image.dtype == np.uint8 else 1))).all():
            complaints.append(f"image {place} leaves the range")
        elif image.ndim == 3 and image.shape[-1] == 4 and not np.array_equal(result[..., 3], image[..., 3]):
            complaints.append(f"the alpha of image {place} changed")
    place = int(rng.integers(number))
    (alone,) = corruptions.corrupt_each(key, [images[place]], name, severity, index=[place])
    complaints += [] if np.array_equal(alone, found[place]) else [f"image {place} alone differs"]
    return judged(what, complaints, number)


_BAD = (
    *(None, "image.png", 3, [[1, 2], [3]], np.zeros((15, 40, 3), np.uint8), np.zeros((40, 40, 5), np.uint8)),
    *(np.full((20, 20, 3), value, np.float32) for value in (np.nan, 2.0, -0.5)),
    *(np.zeros((2, 20, 20, 3), np.uint8), np.zeros((20, 20, 3), np.int32), np.zeros((0, 20, 3), np.uint8)),
)


def _severities(name, number, rng):
    """Draws whole levels if a corruption has levels: fractional levels need an option that not every corruption takes."""
    scale = corruptions.get(name).scale
    found = draw_severities(scale, number, rng)
    return np.round(found) if isinstance(scale, corruptions.Levels) else found


def _chosen(rng, shape, kind, number):
    """`number` of the extreme pictures of `tests.corruptions.extremes`."""
    images = pictures(*shape, rng)[rng.integers(0, 20, number)]
    return images if kind == "uint8" else (images / np.float32(255)).astype(np.float32)


def _as_kind(image, kind):
    if kind == "grey":
        return image[..., 0]
    if kind == "alpha":
        return np.dstack([image, image[..., :1]])
    return image if kind == "uint8" else (image / np.float64(255)).astype(kind)
