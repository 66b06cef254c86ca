"""Sample images of corruptions: a test image of the study, clean and at five severities of the range in use.

Imports JAX and draws on its default device.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image
from tqdm import tqdm

import corruptions
import data
from analysis import gallery
from corruptions import imagenet_c

_FRACTIONS = (0.0, 0.25, 0.5, 0.75, 1.0)
_CANDIDATES = 100  # test images that the most varied one is chosen from
_CELL, _BYTES = 96, 400_000  # side of a picture on the page; size of all of them, about


def draw(names: Sequence[str], config: Mapping[str, Any], image: str = "") -> tuple[Image.Image, str]:
    """Draws a row for each corruption that this version knows: (picture, caption).

    Args:
      names: qualified names.
      config: of the study; `dataset`, `frost` and `train.corruption_options` (ranges in use) are read.
      image: a photograph in the place of a test image of the study.

    Raises:
      FileNotFoundError, ValueError: the images of the study, or the photograph, are not there.
    """
    dataset = config.get("dataset", {})
    picture = gallery.photograph(image, dataset.get("image_size") or 224) if image else test_image(dataset)
    if (folder := config.get("frost")) and pathlib.Path(folder).is_dir():
        imagenet_c.use_photographs(folder)
    options = config.get("train", {}).get("corruption_options", {})
    rows = {}
    for name in tqdm(names, desc="sample images", unit="corruption", dynamic_ncols=True, leave=False, disable=None):
        try:
            rows[name] = corrupted(name, picture, options.get(name, {}))
        except ValueError:  # a corruption that is not known here, or whose photographs or weights are missing
            continue
    if not rows:
        raise ValueError(f"none of the corruptions {', '.join(names)} can be drawn here")
    source = image or f"a test image of {dataset.get('name')}"
    caption = (
        f"{source}, {picture.shape[1]}\N{MULTIPLICATION SIGN}{picture.shape[0]} pixels, clean and at five severities from 0, "
        "the mildest, to 1, the most severe. Along a row only the severity changes."
    )
    return gallery.grid(list(rows), _FRACTIONS, rows.values(), picture, _CELL, _BYTES), caption


def test_image(dataset: Mapping[str, Any]) -> np.ndarray:
    """Reads the most varied of the first test images of a study, uint8 [H, W, 3].

    Args:
      dataset: settings as `config.dataset`.
    """
    settings = {name: value for name, value in dataset.items() if name != "placement" and value not in ("", 0)}
    images = data.load(**settings | {"train_limit": 1}).test.images
    first = np.asarray(images[: min(_CANDIDATES, len(images))])
    return first[first.std((1, 2, 3)).argmax()]


def corrupted(name: str, image: np.ndarray, options: Mapping[str, Any]) -> np.ndarray:
    """Corrupts an image at five severities under one key: uint8 [5, H, W, 3].

    With a range in `options` the severities are fractions of it; else five levels, evenly spaced, or fractions.
    """
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    scale, severities = corruptions.get(name).scale, np.array(_FRACTIONS)
    if isinstance(scale, corruptions.Levels):
        if options.get("range"):
            mild, severe = options["range"]
            severities, options = mild + severities * (severe - mild), options | {"interpolate": True}
        else:
            severities = np.floor(1 + severities * (scale.count - 1) + 0.5)
    batch, index = np.repeat(image[None], len(severities), axis=0), jnp.zeros(len(severities), jnp.int32)  # equal draws
    severities = jnp.asarray(severities, jnp.float32)
    return np.asarray(corruptions.corrupt(jax.random.key(0), batch, name, severities, index=index, **options))
