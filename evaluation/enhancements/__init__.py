"""Enhancements: what is done to images, or to answers, of a trained classifier at test time.

    enhance(images, "clahe")                   images of any batch, uint8 or float32
    averaged(classify, "ten_crop")(images)     probabilities of a classifier, averaged over crops

clahe            contrast-limited adaptive histogram equalisation, as OpenCV defines it, of the
                 lightness L of CIELAB; clip limit 2, 8x8 tiles
clahe_hsv        the same of the HSV value
clahe_rgb        the same of each channel
clahe_skimage    scikit-image's `equalize_adapthist`, with its defaults
nlm              non-local means, with the strength that an estimate of the noise gives
ten_crop         corners, centre and their mirror images; averaged probabilities

D. Hendrycks's and T. Dietterich's draft on corruption and structural robustness names histogram
equalisation, denoising and ten crops; it publishes neither clip limit, grid, colour space nor the
settings of the denoising. Imports `jax` and `corruptions` alone: training takes them from here too.
"""

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from corruptions import checks, forks, programs
from corruptions.batch import dispatched, from_float, to_float
from corruptions.checks import suggest
from evaluation.enhancements import clahe, clahe_skimage, crops, non_local_means

TEN_CROP = "ten_crop"
_OF_PIXELS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "clahe": clahe.of_lightness,
    "clahe_hsv": clahe.of_value,
    "clahe_rgb": clahe.of_channels,
    "clahe_skimage": clahe_skimage.equalize,
    "nlm": non_local_means.denoise_levels,
}
# Values worked on at a time: on a CPU what stays in a core's cache, on an accelerator what bounds temporaries.
_CPU_CHUNK = 2**14
_CHUNK = 2**23


def names() -> tuple[str, ...]:
    """Lists the enhancements."""
    return (*_OF_PIXELS, TEN_CROP)


def of_pixels() -> tuple[str, ...]:
    """Lists the enhancements that give an image for an image; training takes these."""
    return tuple(_OF_PIXELS)


def check(name: str) -> None:
    """Checks the name of an enhancement.

    Raises:
      ValueError: an unknown name.
    """
    if name not in names():
        raise ValueError(f"expected an enhancement out of {', '.join(names())}, found {name!r}{suggest(name, names())}")


def label(name: str) -> str:
    """Names what marks a model whose images, or answers, are enhanced at test time: enhance=NAME."""
    return f"enhance={name}"


def enhance(images: jax.Array | np.ndarray, name: str, *, validate: bool = True) -> jax.Array:
    """Enhances a batch of images on the device, each by itself.

    Enhanced images have 256 levels, as they would on disk: float32 images are rounded to the
    nearest level before, and all afterwards.

    Args:
      images: [N, H, W, 3], H and W at least 16; uint8, or float32 in [0, 1].
      name: one of `of_pixels`.
      validate: whether the values of concrete float batches are checked (this waits for the device
        once).

    Returns:
      The enhanced images, same shape and dtype.

    Raises:
      ValueError, TypeError: wrong shape, dtype, range or name; the message names what was expected
        and what was found.
      RuntimeError: in a child that was forked after JAX had started, where this would hang.
    """
    check(name)
    if name not in _OF_PIXELS:
        raise ValueError(f"expected an enhancement of images, {', '.join(_OF_PIXELS)}, found {name!r}: see averaged")
    forks.refuse()
    checks.image_batch(images, validate)
    if checks.is_traced(images):
        return _enhance(jnp.asarray(images), name)
    programs.bound()
    program = name, images.shape[1:], str(images.dtype)
    return dispatched(lambda part: _enhance(part, name), None, (images,), program)


@functools.partial(jax.jit, static_argnames=("name",))
def _enhance(images, name):
    def enhance_image(image):
        enhanced = _OF_PIXELS[name](from_float(to_float(image), jnp.uint8, "nearest"))
        return enhanced if image.dtype == jnp.uint8 else to_float(enhanced)

    def in_chunks(values):
        size = max(1, values // math.prod(images.shape[1:]))
        return lambda images: jax.lax.map(enhance_image, images, batch_size=size if size > 1 else None)

    return jax.lax.platform_dependent(images, cpu=in_chunks(_CPU_CHUNK), default=in_chunks(_CHUNK))


programs.on_drop(_enhance.clear_cache)


def averaged(classify: Callable[[jax.Array], jax.Array], name: str) -> Callable[[jax.Array], jax.Array]:
    """Makes a classifier that averages probabilities over the ten crops of each image.

    Args:
      classify: logits [N, C] of images [N, H, W, 3], pure.
      name: `ten_crop`, or an enhancement of images or "", with which `classify` stays as it is.

    Returns:
      The function of images; for ten crops its results are probabilities, float32 [N, C].
    """
    return crops.averaged(classify) if name == TEN_CROP else classify
