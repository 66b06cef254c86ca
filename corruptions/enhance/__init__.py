"""Enhancements: processing of images, or averaging of answers, by a trained classifier at test time.

    enhance(images, "clahe")                   images of any batch, uint8 or float32
    averaged(classify, "ten_crop")(images)     probabilities of a classifier, averaged over crops

clahe            contrast-limited adaptive histogram equalisation, as OpenCV defines it, of the
                 lightness L of CIELAB: `clip` limit 2, `grid` of 8x8 tiles
clahe_hsv        the same of the HSV value
clahe_rgb        the same of each channel
clahe_skimage    scikit-image's `equalize_adapthist`: `clip` .01, `tiles` 8
nlm              non-local means: strength `h` of .8 times the noise, `patch` 5, `distance` 6; `sigma` 0 estimates the
                 noise, another one is its known standard deviation
ten_crop         corners, centre and their mirror images; averaged probabilities

Settings follow the name: `clahe:clip=4,grid=4x4`, `nlm:sigma=.1,h=.6`.

D. Hendrycks's and T. Dietterich's draft on corruption and structural robustness names histogram equalisation, denoising
and ten crops. It publishes neither the clip limit, grid and colour space nor the settings of the denoising.
"""

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.core import checks, dispatch, forks, program_cache
from corruptions.core.batch import from_float, to_float
from corruptions.enhance import clahe, clahe_skimage, denoise
from corruptions.primitives import staging

TEN_CROP = "ten_crop"
_OF_PIXELS: dict[str, Callable[..., jax.Array]] = {
    "clahe": clahe.of_lightness,
    "clahe_hsv": clahe.of_value,
    "clahe_rgb": clahe.of_channels,
    "clahe_skimage": clahe_skimage.equalize,
    "nlm": denoise.denoise_levels,
}
# Values processed at a time: as many as fit a core's cache, and as many as fit an accelerator's memory.
_CPU_CHUNK = 2**14
_CHUNK = 2**23
_CROP_RATIO = 256 / 224


def names() -> tuple[str, ...]:
    """Lists the enhancements, without settings."""
    return (*_OF_PIXELS, TEN_CROP)


def of_pixels() -> tuple[str, ...]:
    """Lists the enhancements that return an image for an image. Training takes these too."""
    return tuple(_OF_PIXELS)


def check(name: str) -> None:
    """Checks the name of an enhancement, and the settings that follow it.

    Raises:
      ValueError: an unknown name or setting, or a value out of its range.
    """
    _settings(name)


def _settings(name: str) -> tuple[str, dict[str, Any]]:
    """Splits `NAME:setting=value,...` into the name and the settings."""
    own, _, listed = name.partition(":")
    checks.one_of("name", "an enhancement", own, names())
    parameters = inspect.signature(_OF_PIXELS[own]).parameters if own in _OF_PIXELS else {}
    known = {p.name: p.default for p in parameters.values() if p.kind is p.KEYWORD_ONLY}
    settings: dict[str, Any] = {}
    for part in filter(None, listed.split(",")):
        setting, _, text = part.partition("=")
        checks.options(own, known, [setting])
        if setting in settings:
            raise ValueError(f"expected each setting of {own} once, found {setting} again in {name!r}")
        kind = type(known[setting])
        try:
            value = tuple(map(int, text.split("x"))) if kind is tuple else kind(text)
        except ValueError:
            value = None
        value = None if "+" in text else value  # names of models are joined by +
        numbers: Any = value if kind is tuple else (value,)
        pair = kind is not tuple or len(numbers or ()) == 2
        if not (numbers and pair and all(n is not None and (kind is not float) <= n < math.inf for n in numbers)):
            expected = {float: "a number from 0", int: "a whole number from 1", tuple: "ROWSxCOLUMNS"}[kind]
            raise ValueError(f"expected {setting}={expected} of {own}, found {part!r}")
        settings[setting] = value
    if (patch := settings.get("patch", 3)) % 2 == 0 or patch < 3:
        raise ValueError(f"expected an odd patch of {own}, 3 or more, found {patch}")
    return own, settings


def label(name: str) -> str:
    """Returns the mark of a model whose images or answers are enhanced at test time: enhance=NAME."""
    return f"enhance={name}"


def enhance(images: jax.Array | np.ndarray, name: str, *, validate: bool = True) -> jax.Array:
    """Enhances a batch of images on the device, each by itself.

    Enhanced images have 256 levels, as they would on disk: float32 images are rounded to the nearest level before, and
    all images afterwards.

    Args:
      images: [N, H, W, 3], H and W at least 16; uint8, or float32 in [0, 1].
      name: one of `of_pixels`, with settings or without.
      validate: whether the values of concrete float batches are checked (this waits for the device once).

    Returns:
      The enhanced images, same shape and dtype.

    Raises:
      ValueError, TypeError: wrong shape, dtype, range or name; the message names the expected and the found value.
      RuntimeError: in a child that was forked after JAX had started, where this would hang.
    """
    if _settings(name)[0] not in _OF_PIXELS:
        raise ValueError(f"expected an enhancement of images, {', '.join(_OF_PIXELS)}, found {name!r}: see averaged")
    forks.refuse_forked()
    images = dispatch.unmasked(images)
    checks.image_batch(images, validate)
    return dispatch.dispatched(lambda _, part: _enhance(part, name), name, None, images)


@functools.partial(program_cache.jitted, static=("name",))
def _enhance(images, name):
    own, settings = _settings(name)

    def enhance_image(image):
        enhanced = _OF_PIXELS[own](from_float(to_float(image), jnp.uint8, "nearest"), **settings)
        return enhanced if image.dtype == jnp.uint8 else to_float(enhanced)

    def in_chunks(values):
        size = max(1, values // math.prod(images.shape[1:]))
        return lambda images: jax.lax.map(enhance_image, images, batch_size=size if size > 1 else None)

    return staging.by_platform(images, cpu=in_chunks(_CPU_CHUNK), default=in_chunks(_CHUNK))


def averaged(classify: Callable[[jax.Array], jax.Array], name: str) -> Callable[[jax.Array], jax.Array]:
    """Makes a classifier that averages the probabilities (softmax) of the ten crops of enlarged images.

    Networks for 224 pixels are tested on crops of 224 from an image of 256. Stored corrupted images have 224 pixels
    already, so they are enlarged first, in that ratio and bilinearly (32 pixels become 37). The draft on structural
    robustness does not describe its crops.

    Args:
      classify: logits [N, C] of images [N, H, W, 3], pure.
      name: `ten_crop`; with an enhancement of images, or with "", `classify` is returned unchanged.

    The function of images that is returned gives probabilities, float32 [N, C]. Raises ValueError for an unknown name.
    """
    if name:
        check(name)
    if name != TEN_CROP:
        return classify

    def probabilities(images):
        larger = jax.vmap(enlarged)(images)
        crops = jax.vmap(lambda image: ten_crops(image, *images.shape[1:3]), out_axes=1)(larger)
        of_crops = jax.lax.map(lambda crop: jax.nn.softmax(classify(crop).astype(jnp.float32)), crops)
        return of_crops.mean(0)

    return probabilities


def ten_crops(image: jax.Array, height: int, width: int) -> jax.Array:
    """Cuts the ten crops of an image [H, W, C], [10, height, width, C], in the order of fb.resnet.torch: centre, upper
    left, upper right, lower left, lower right, then the same of the mirror image.
    """
    down, right = image.shape[0] - height, image.shape[1] - width
    corners = (((down + 1) // 2, (right + 1) // 2), (0, 0), (0, right), (down, 0), (down, right))
    return jnp.stack(
        [turned[top : top + height, left : left + width] for turned in (image, image[:, ::-1]) for top, left in corners]
    )


def enlarged(image: jax.Array) -> jax.Array:
    """Enlarges an image [H, W, C] by 256 / 224, bilinearly, to whole pixels; uint8 images stay uint8."""
    height, width = (round(side * _CROP_RATIO) for side in image.shape[:2])
    larger = jax.image.resize(to_float(dispatch.held(image)), (height, width, image.shape[2]), "bilinear")
    return from_float(larger, image.dtype, "nearest")
