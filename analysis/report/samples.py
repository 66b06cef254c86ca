"""Sample pictures of corruptions: one picture clean and at five severities of the range that a
study used.

Imports JAX; a report that draws no pictures does without this module.
"""

import pathlib
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image
from tqdm import tqdm

import corruptions
from analysis import gallery
from corruptions import imagenet_c
from data import shapes

_FRACTIONS = (0.0, 0.25, 0.5, 0.75, 1.0)
_PICTURE = 82  # a test image of `shapes`, a striped star
_SMALL, _LARGE, _GAP = 64, 96, 2  # sides of a cell in pixels
_BYTES = 60_000  # of one strip, about


class Strips(NamedTuple):
    """Strips by name.

    Attributes:
      pictures: uint8 [1 + columns, H, W, 3], clean first.
      images: the same side by side, the bytes of a PNG.
      columns: texts of the severities.
      caption: what is shown.
    """

    pictures: dict[str, np.ndarray]
    images: dict[str, bytes]
    columns: dict[str, tuple[str, ...]]
    caption: str


def draw(names, config, image=""):
    """Strips of the corruptions among `names` that this version knows.

    Args:
      names: qualified names.
      config: of the study; `dataset.image_size` and `train.corruption_options` (calibrated ranges)
        are used.
      image: a photograph to corrupt instead of a test image of `shapes`.
    """
    size = config.get("dataset", {}).get("image_size") or 32
    picture = gallery.photograph(image, size) if image else _shape(size)
    options = config.get("train", {}).get("corruption_options", {})
    if (folder := config.get("frost")) and pathlib.Path(folder).is_dir():
        imagenet_c.use_photographs(folder)
    pictures, columns = {}, {}
    for name in tqdm(names, desc="sample images", unit="corruption", dynamic_ncols=True, leave=False, disable=None):
        try:
            pictures[name], columns[name] = corrupted(name, picture, options.get(name, {}))
        except ValueError:  # not known here, or its photographs or weights are not at hand
            continue
    images = {name: _strip(strip) for name, strip in pictures.items()}
    what = "the photograph given" if image else "a test image of the embedded dataset"
    caption = (
        f"Clean, and at five severities: levels, or fractions of the range (0 mild, 1 severe); {what}, {size}\N{MULTIPLICATION SIGN}{size} pixels. "
        "Along a strip only the severity changes."
    )
    return Strips(pictures, images, columns, caption)


def corrupted(name, image, options):
    """(uint8 [6, H, W, 3], texts of five severities): the image clean and corrupted, all under one
    key.

    With a calibrated range in `options` the severities are fractions of it.
    """
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    scale = corruptions.get(name).scale
    severities, texts = _FRACTIONS, tuple(f"{f:g}" for f in _FRACTIONS)
    if isinstance(scale, corruptions.Levels):
        if options.get("range"):
            mild, severe = options["range"]
            severities = tuple(mild + f * (severe - mild) for f in _FRACTIONS)
            options |= {"interpolate": True}
        else:
            severities = _levels(scale.count)
            texts = tuple(map(str, severities))
    number = len(severities)
    batch = np.repeat(image[None], number, axis=0)
    index = jnp.zeros(number, jnp.int32)  # the same draws for all
    out = corruptions.corrupt(
        jax.random.key(0), batch, name, jnp.asarray(severities, jnp.float32), index=index, **options
    )
    return np.concatenate([image[None], np.asarray(out)]), texts


def _levels(count):
    """Five levels from the first to the last, evenly spaced (1, 3, 5, 8, 10 of ten)."""
    return (
        tuple(int(1 + (count - 1) * f + 0.5) for f in _FRACTIONS)
        if count > len(_FRACTIONS)
        else tuple(range(1, count + 1))
    )


def _shape(size):
    index = np.array([_PICTURE])
    return shapes.draw(shapes.split_key("test"), index, index % len(shapes.CLASSES), size)[0]


def _strip(pictures):
    side = pictures.shape[1]
    shown = min(side, _LARGE) if side >= _SMALL else _SMALL
    method = Image.BOX if shown < side else Image.NEAREST
    cells = [gallery.variants(Image.fromarray(picture).resize((shown, shown), method)) for picture in pictures]
    strip = Image.new("RGB", (len(cells) * (shown + _GAP) - _GAP, shown), "white")
    for k, cell in enumerate(gallery.fitted(cells, _BYTES)):
        strip.paste(cell, (k * (shown + _GAP), 0))
    return gallery.png(strip)
