"""ImageNet-C frost with texture photographs from a folder, such as those of the original."""

import dataclasses
import functools
import os
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.contract import Corruption, Parameter
from corruptions.imagenet_c import tables
from corruptions.imagenet_c.frost import TEXTURE_SCALE, frost, resize_taps, weights

_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")


def frost_from_folder(path: str | os.PathLike[str]) -> Corruption:
    """Makes `imagenet_c/frost` with the texture images in a folder.

    Every image file is drawn equally often, so the original benchmark takes exactly the five files
    it draws from (frost1.png, frost2.png, frost3.png, frost4.jpg, frost5.jpg). The result is not in
    the registry; pass it where a name is expected:
    `corruptions.corrupt(key, images, frost_from_folder(path), severity=3)`. Needs Pillow.

    Args:
      path: folder of images (png, jpg, bmp, webp), read now, in the order of their names.

    Returns:
      A `Corruption` whose draws also hold `origin`, int32 [3]: file, first row and first column of
      the crop.

    Raises:
      FileNotFoundError: no such folder, or no image file in it.
      ValueError: while sampling, a texture (resized as the table asks for) smaller than the image.
    """
    folder = pathlib.Path(path)
    if not folder.is_dir():
        raise FileNotFoundError(f"expected a folder of frost textures, found no folder at {str(folder)!r}")
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() in _SUFFIXES)
    if not files:
        raise FileNotFoundError(f"expected image files ({', '.join(_SUFFIXES)}) in {str(folder)!r}, found none")
    textures = [_read(file) for file in files]

    @functools.cache
    def resized(scale):
        return [_resize(texture, scale) for texture in textures]

    def sample(key, shape, severity, *, table=None):
        """Draws a file with equal probability, then the first row and the first column of its crop.

        Both are uniform over all places but the last, as in the original. Textures are resized by
        0.2 (`cifar`) or 0.3 (`tiny`) without smoothing.
        """
        table = tables.table_for(shape, table)
        scaled = resized(TEXTURE_SCALE[table])
        for file, texture in zip(files, scaled, strict=True):
            if texture.shape[0] < shape[0] or texture.shape[1] < shape[1]:
                raise ValueError(
                    f"expected textures of at least {shape[0]}x{shape[1]} pixels after resizing by "
                    f"{TEXTURE_SCALE[table]:g} (table {table!r}), found {texture.shape[0]}x{texture.shape[1]} "
                    f"of {file.name}"
                )
        places = np.array([[max(t.shape[axis] - shape[axis], 1) for axis in (0, 1)] for t in scaled])
        file_key, row_key, column_key = jax.random.split(key, 3)
        index = jax.random.randint(file_key, (), 0, len(scaled))
        row = jax.random.randint(row_key, (), 0, jnp.asarray(places)[index, 0])
        column = jax.random.randint(column_key, (), 0, jnp.asarray(places)[index, 1])
        crop = jax.lax.dynamic_slice(_stack(scaled), (index, row, column, 0), (1, *shape))[0]
        origin = jnp.stack([index, row, column]).astype(jnp.int32)
        return {**weights(shape, severity, table), "texture": crop.astype(jnp.float32), "origin": origin}

    image_weight, frost_weight, _ = frost.parameters
    texture = Parameter("texture", "RGB levels 0..255", f"photographs in {folder}")
    return dataclasses.replace(frost, sampler=sample, parameters=(image_weight, frost_weight, texture))


def _read(file):
    from PIL import Image

    with Image.open(file) as image:
        return np.asarray(image.convert("RGB"))


def _resize(texture, scale):
    """Resizes uint8 [H, W, 3] by `scale` with two taps and without smoothing, sides rounded."""
    if scale == 1:
        return texture
    x = texture.astype(np.float64)
    for axis in (0, 1):
        first, fraction = resize_taps(round(texture.shape[axis] * scale), scale)
        last = texture.shape[axis] - 1
        share = fraction.reshape((-1, 1, 1) if axis == 0 else (1, -1, 1))
        before, after = (np.take(x, np.clip(first + k, 0, last), axis) for k in (0, 1))
        x = before + share * (after - before)
    return np.rint(x).astype(np.uint8)


def _stack(textures):
    """Stacks all textures in one array [number, H, W, 3], zeros beyond the smaller ones."""
    height, width = np.max([texture.shape[:2] for texture in textures], axis=0)
    return np.stack([np.pad(t, ((0, height - t.shape[0]), (0, width - t.shape[1]), (0, 0))) for t in textures])
