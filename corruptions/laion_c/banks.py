"""Banks of images for LAION-C's mosaic and stickers, from arrays or from a folder.

The release does not say which images it took. The option `bank` is a digest of the images, not a place: results stay bound to
the bank, wherever it lies. `use_bank` reads a bank and remembers it in this process.
"""

import functools
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from corruptions import files
from corruptions.core.dispatch import unmasked
from corruptions.core.errors import MissingAssets
from corruptions.reading import pictures
from corruptions.reading.folders import SUFFIXES, image_paths

_USED: dict[str, "Bank"] = {}
_CHUNK = 1024


class Bank:
    """Square images that give tiles of any side.

    Attributes:
      images: uint8 [N, side, side, 3].
      digest: sha256 of them, in their order.
      reduced: whether they were larger, so that larger tiles would lack detail.
    """

    def __init__(self, images: np.ndarray, reduced: bool):
        self.images, self.reduced = images, reduced
        self.digest = files.digest_of(str(images.shape), images)
        self.tiles = functools.lru_cache(maxsize=16)(self._tiles)

    def _tiles(self, side: int) -> np.ndarray:
        """Resizes the images to tiles, uint8 [N, side, side, 3], by Pillow's bilinear filter; ValueError if they were
        reduced to less.
        """
        own = self.images.shape[1]
        if side > own and self.reduced:
            raise ValueError(
                f"expected a bank of images of at least {side}x{side} pixels for tiles of that side, found {own}x{own}; "
                f"read it again with use_bank(source, side={side})"
            )
        return np.concatenate([resized(self.images[k : k + _CHUNK], side) for k in range(0, len(self.images), _CHUNK)])


def use_bank(
    source: str | os.PathLike[str] | np.ndarray, *, side: int = 64, limit: int = 50_000, turn: bool = False
) -> str:
    """Reads a bank of images, which `laion_c/mosaic` and `laion_c/stickers` of this process use from then on.

    `use_bank(dataset.train.images)` takes the training images of a dataset. Their option `bank`, a digest, picks another bank
    that was read before.

    Args:
      source: uint8 [N, H, W, 3], of which the largest squares in the middle are taken; or a folder of images and
        of folders of them, each resized to a short side of 256 and cropped to 224, as in the release. Needs Pillow.
      side: squares larger than this are reduced to it, which bounds the memory; 224 keeps those of a folder as they are.
      limit: largest number of images, evenly spaced in the order of the array or of the files' names.
      turn: turn the files of a folder by the orientation in their EXIF data; by default pixels stay as stored, with a warning.

    Returns:
      Their digest, the value of the option `bank`.

    Raises:
      FileNotFoundError: no such folder, or no image in it.
      ValueError: an array of another shape or type, no images, a file that cannot be read, a side or limit below one, or an
        array to be turned.
    """
    if side < 1 or limit < 1:
        raise ValueError(f"expected a side and a limit of at least 1, found side={side} and limit={limit}")
    if isinstance(source, str | os.PathLike):
        bank = _from_folder(source, side, limit, turn)
    elif turn:
        raise ValueError("expected turn=True with a folder, found an array, which has no EXIF data; use_bank(images)")
    else:
        bank = _from_array(source, side, limit)
    if default() not in (None, bank.digest):
        jax.clear_caches()  # compiled programs contain the bank before
    _USED.pop(bank.digest, None)
    _USED[bank.digest] = bank  # the last one is the default
    return bank.digest


def used_banks() -> tuple[str, ...]:
    """Lists the digests of the banks that were read in this process, the default last."""
    return tuple(_USED)


def default(shape: Sequence[int] = ()) -> str | None:
    """Returns the digest of the bank that was read last, None where there is none."""
    return next(reversed(_USED), None)


def find(digest: str | None) -> Bank:
    """Gives the bank of a digest; raises ValueError where this process has not read it."""
    if digest not in _USED:
        wanted = "none" if digest is None else f"none of digest {str(digest)[:16]}"
        hint = "read one: corruptions.laion_c.use_bank(FOLDER) or use_bank(images [N, H, W, 3])"
        raise MissingAssets("bank", "a bank of images to make tiles of", wanted, hint)
    return _USED[digest]


def _from_array(images: Any, side: int, limit: int) -> Bank:
    images = unmasked(images)
    shape, dtype = tuple(getattr(images, "shape", ())), getattr(images, "dtype", None)
    if len(shape) != 4 or shape[-1] != 3 or 0 in shape or dtype != np.uint8:
        found = f"{dtype} {tuple(shape)}" if shape else type(images).__name__
        raise ValueError(f"expected a bank of images uint8 [N, H, W, 3], one or more, or a folder, found {found}")
    chosen, short = _spaced(len(images), limit), min(shape[1:3])
    top, left = ((n - short) // 2 for n in shape[1:3])
    squares = []
    for k in range(0, len(chosen), _CHUNK):
        part = np.asarray(images[chosen[k : k + _CHUNK]])[:, top : top + short, left : left + short]
        squares.append(resized(part, min(short, side)))
    return Bank(np.concatenate(squares), short > side)


def _from_folder(path: str | os.PathLike[str], side: int, limit: int, turn: bool) -> Bank:
    folder = pathlib.Path(path)
    if not folder.is_dir():
        raise FileNotFoundError(f"expected a folder of images for the bank, found no folder at {str(folder)!r}")
    files = image_paths(folder)
    if not files:
        raise FileNotFoundError(
            f"expected image files ({', '.join(SUFFIXES)}) for the bank in {str(folder)!r}, found none"
        )
    orientations = pictures.Orientations(turn)
    squares = [_square(files[k], min(side, 224), orientations) for k in _spaced(len(files), limit)]
    orientations.warn(folder, "turn=True of use_bank, or of the command,")
    return Bank(np.stack(squares), side < 224)


def _square(file, side, orientations):
    def prepare(image):
        return pictures.resized(pictures.centre(image, 224, 256), (side, side))

    return pictures.decode(file, file, prepare, orientations)


def _spaced(number, limit):
    return np.arange(min(number, limit)) * number // min(number, limit)


def resized(images: np.ndarray, side: int) -> np.ndarray:
    """Resizes squares uint8 [N, S, S, 3] as Pillow's BILINEAR does: columns, then rows, each rounded to 8 bits."""
    size = images.shape[1]
    if size == side:
        return np.ascontiguousarray(images)
    ratio = size / side
    place = np.arange(size)[None] + 0.5 - (np.arange(side)[:, None] + 0.5) * ratio
    weight = np.maximum(0, 1 - np.abs(place) / max(ratio, 1))
    # In Pillow's fixed point of 22 bits: sums of whole numbers are exact.
    weight = np.floor(weight / weight.sum(1, keepdims=True) * 2**22 + 0.5)
    for subscripts in ("ow,nhwc->nhoc", "oh,nhwc->nowc"):
        images = np.floor(np.einsum(subscripts, weight, images.astype(np.float64), optimize=True) / 2**22 + 0.5)
        images = np.clip(images, 0, 255)
    return images.astype(np.uint8)
