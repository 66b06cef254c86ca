"""One image for code without JAX: NumPy in and out, grey or coloured, with or without alpha."""

from typing import Any, Protocol

import numpy as np
from jax.typing import ArrayLike

from corruptions import batch, channels, checks, keys, registry
from corruptions.record import Array, Corruption

_MODES = ("L", "LA", "RGB", "RGBA")


class PilImage(Protocol):
    """What is asked of a Pillow image, which this package does not import."""

    @property
    def mode(self) -> str: ...

    @property
    def __array_interface__(self) -> Any: ...


def corrupt_image(
    image: Array | list[Any] | tuple[Any, ...] | PilImage,
    name: str | Corruption,
    severity: ArrayLike | None = 1,
    seed: int = 0,
    **options: Any,
) -> np.ndarray:
    """Corrupts one image, for code without JAX: NumPy out, whatever came in.

    Of an RGB image it gives what `corrupt(jax.random.key(seed), image[None], name, severity)[0]`
    gives. It compiles once for each size of image, corruption and set of options, uint8 and floats
    apart; another severity or seed, grey or alpha compile nothing.

    A grey image is shown to the corruption as three equal channels and comes back as the green one
    of the result: noise that is drawn for each channel keeps its strength, which a mean over
    channels would take from it, and of a tint green is nearest to the luminance. What changes hue
    or the balance of colours alone leaves a grey image as it is. Repeat the channel three times
    yourself to keep the colours that frost, spatter or saturate add.

    Args:
      image: [H, W] or [H, W, C], H and W at least 16; C is 1 (grey), 3 (RGB), 2 or 4 (with alpha,
        which is returned as it is). uint8, or float16, bfloat16, float32 or float64 in [0, 1]. An
        array, nested lists (integers are uint8 levels, floats float64), or a Pillow image of mode
        L, LA, RGB or RGBA.
      name: a name (see `corruptions.names`), or a `Corruption`. A name without its benchmark is
        ImageNet-C's where ImageNet-C has it: `contrast` is `imagenet_c/contrast`.
      severity: a level or a fraction of the range, whichever the corruption has, or `None` to draw
        one. Of a range 1, the default, is the strongest.
      seed: of all draws, from 0 to 2^64 - 1. One seed gives one noise: give each image of a
        dataset its own, such as its position.
      **options: static options of the corruption (`get(name).options`).

    Returns:
      A new array of the image's shape and dtype. Floats are worked on in float32.

    Raises:
      ValueError, TypeError: wrong shape, dtype, range, name, severity, seed or option; the message
        names what was expected and what was found.
    """
    corruption = _find(name)
    checks.options(corruption.qualified_name, corruption.options, options)
    given = as_array(image)
    shown = as_shown(given)
    key = keys.seed_key(seed)
    corrupted = batch.corrupt(key, shown[None], corruption, severity, validate=False, **options)
    return given_back(corrupted[0], given)


def _find(name: str | Corruption) -> Corruption:
    in_imagenet_c = f"imagenet_c/{name}"
    return registry.get(in_imagenet_c if in_imagenet_c in registry.names() else name)


def as_array(image: Any) -> np.ndarray:
    """Makes an array of an image whose type, shape and dtype are as `corrupt_image` takes them.

    Raises:
      ValueError, TypeError: they are not; the message names what was expected and what was found.
    """
    if checks.is_traced(image):
        raise TypeError("expected an image with values, found a traced one; inside a jit use corruptions.corrupt")
    if isinstance(image, list | tuple):
        array = _from_lists(image)
    elif hasattr(image, "shape") and hasattr(image, "dtype"):
        array = np.asarray(image)
    elif hasattr(image, "mode"):
        if image.mode not in _MODES:
            raise ValueError(
                f"expected a Pillow image of mode {', '.join(_MODES)}, found mode {image.mode}; convert it: "
                "image.convert('RGB')"
            )
        array = np.asarray(image)
    else:
        raise TypeError(f"expected an array, nested lists or a Pillow image, found {type(image).__name__}")
    if array.ndim == 4:
        raise ValueError(
            f"expected one image, found a batch of shape {array.shape}; "
            "use corruptions.corrupt(key, images, name, severity) for batches"
        )
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[-1] not in (1, 2, 3, 4)):
        raise ValueError(
            "expected an image of shape (height, width) or (height, width, channels) with 1 to 4 channels, "
            f"found shape {array.shape}"
        )
    if array.dtype != np.uint8 and array.dtype not in checks.FLOATS:
        raise TypeError(f"expected an image of uint8 or of floats in [0, 1], found dtype {array.dtype}")
    return array


def as_shown(image: np.ndarray) -> np.ndarray:
    """Makes of an image of `as_array` what corruptions see: uint8 or float32 [H, W, 3], checked.

    Raises:
      ValueError: it is too small, or its values are outside [0, 1].
    """
    shown = channels.shown(_pixels(image))
    shown = shown if image.dtype == np.uint8 else shown.astype(np.float32)
    checks.image_batch(shown[None], True)
    return shown


def given_back(corrupted: Any, image: np.ndarray) -> np.ndarray:
    """Makes a new array of the image's shape and dtype of what became of `as_shown(image)`."""
    found = np.asarray(corrupted).astype(image.dtype)
    return channels.restored(found, _pixels(image)).reshape(image.shape)


def _pixels(image: np.ndarray) -> np.ndarray:
    return image[..., None] if image.ndim == 2 else image


def _from_lists(rows: list[Any] | tuple[Any, ...]) -> np.ndarray:
    try:
        array = np.asarray(rows)
    except ValueError:
        raise ValueError("expected an image as lists of equal lengths, found lists of different lengths") from None
    if array.dtype.kind != "i" or not array.size:
        return array
    if array.min() < 0 or array.max() > 255:
        raise ValueError(f"expected levels from 0 to 255, found values from {array.min()} to {array.max()}")
    return array.astype(np.uint8)
