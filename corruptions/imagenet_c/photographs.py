"""Photographs of frost: read from a folder, and known by the digest of what is in it.

The option `photographs` of `imagenet_c/frost` is such a digest, not a path: what was made with it
stays bound to the pictures, wherever they lie. `use_photographs` reads a folder and remembers it in
this process.
"""

import functools
import hashlib
import os
import pathlib
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

# How much smaller than the files the textures are used.
TEXTURE_SCALE = {"cifar": 0.2, "tiny": 0.3, "imagenet": 1.0, "inception": 1.0}

# Digest of the five files that ImageNet-C draws from, as imagecorruptions 1.1.2 on PyPI holds them
# beside a sixth.
ORIGINAL_PHOTOGRAPHS = "d58384ccf7e2b8b0b1dea4010b349a52c70b26179a6decb26278b7391ef77a64"

_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
_USED: dict[str, "Photographs"] = {}


class Photographs:
    """The image files of a folder as textures, in the order of their names.

    Attributes:
      folder: where they were read.
      digest: sha256 of the sha256 of each file, in that order; names do not count.

    Raises:
      FileNotFoundError: no such folder, or no image file in it.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.folder = pathlib.Path(path)
        if not self.folder.is_dir():
            raise FileNotFoundError(f"expected a folder of frost textures, found no folder at {str(self.folder)!r}")
        self._files = sorted(file for file in self.folder.iterdir() if file.suffix.lower() in _SUFFIXES)
        if not self._files:
            raise FileNotFoundError(
                f"expected image files ({', '.join(_SUFFIXES)}) in {str(self.folder)!r}, found none"
            )
        of_files = [hashlib.sha256(file.read_bytes()).hexdigest() for file in self._files]
        self.digest = hashlib.sha256("\n".join(of_files).encode()).hexdigest()
        textures = [_read(file) for file in self._files]
        self._resized = functools.cache(lambda scale: [_resize(texture, scale) for texture in textures])

    def crop(self, key: jax.Array, shape: Sequence[int], table: str) -> dict[str, jax.Array]:
        """Draws a file with equal probability, then the first row and the first column of its crop.

        Both are uniform over all places but the last, as in the original. Textures are resized by
        0.2 (`cifar`) or 0.3 (`tiny`) without smoothing.

        Returns:
          `texture`, float32 [H, W, 3], and `origin`, int32 [3]: file, row and column.

        Raises:
          ValueError: a texture is smaller than the image.
        """
        scaled = self._resized(TEXTURE_SCALE[table])
        for file, texture in zip(self._files, scaled, strict=True):
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
        return {
            "texture": crop.astype(jnp.float32),
            "origin": jnp.stack([index, row, column]).astype(jnp.int32),
        }


def use_photographs(path: str | os.PathLike[str]) -> str:
    """Reads the frost textures in a folder, for this process.

    `corruptions.corrupt(key, images, "imagenet_c/frost", 3, photographs=use_photographs(path))`
    then draws from them. Needs Pillow.

    Args:
      path: folder of images (png, jpg, bmp, webp); every file is drawn equally often, so the
        original benchmark takes exactly the five files it draws from (frost1.png, frost2.png,
        frost3.png, frost4.jpg, frost5.jpg).

    Returns:
      Their digest, the value of the option `photographs`; `ORIGINAL_PHOTOGRAPHS` for those five.

    Raises:
      FileNotFoundError: no such folder, or no image file in it.
    """
    photographs = Photographs(path)
    return _USED.setdefault(photographs.digest, photographs).digest


def used_photographs() -> tuple[str, ...]:
    """Lists the digests of the photographs that were read in this process."""
    return tuple(_USED)


def find(digest: str) -> Photographs:
    """Gives the photographs of a digest.

    Raises:
      ValueError: this process has not read them.
    """
    if digest not in _USED:
        raise ValueError(
            f"expected frost photographs of digest {str(digest)[:16]}, found them in no folder given here; name it, "
            "--config.frost=FOLDER of commands, corruptions.imagenet_c.use_photographs(FOLDER) in Python"
        )
    return _USED[digest]


def resize_taps(size: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Computes the two taps per output that resample an axis by `scale` <= 1 without smoothing.

    As `cv2.resize` with INTER_LINEAR, which the original calls: output o lies at
    (o + 1/2) / scale - 1/2, for scale 1/5 at every fifth sample, so that it is plain decimation.

    Args:
      size: number of outputs.
      scale: output size over input size.

    Returns:
      (first, fraction): int [size] and float64 [size]; output o is
      (1 - fraction) x[first] + fraction x[first + 1].
    """
    position = np.round((np.arange(size) + 0.5) / scale - 0.5, 9)
    first = np.floor(position).astype(int)
    return first, position - first


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
