"""Sequences of one picture under a growing or redrawn perturbation: ImageNet-P, CIFAR-10-P.

    DIR/gaussian_noise.npy             uint8 [sequences, frames, H, W, 3], as CIFAR-10-P is published
    DIR/gaussian_noise/CLASS/NAME/*    a folder of images for each sequence, frames in the order of
                                       their names: ImageNet-P, once its videos are taken apart

Videos are not decoded here: ffmpeg -i NAME.mp4 NAME/%02d.png takes one apart. Networks see frames as they are, neither
resized nor cropped. Labels are not needed. Source: D. Hendrycks, T. Dietterich, "Benchmarking Neural Network Robustness
to Common Corruptions and Perturbations" (2019), section 4, and its released data.
"""

import concurrent.futures
import dataclasses
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from corruptions.write.sources import SUFFIXES
from data import cache, tree
from data.corrupted.readers import read_image
from runtime import files


@dataclasses.dataclass(frozen=True, eq=False)
class Sequences:
    """All sequences of one perturbation."""

    name: str  # such as gaussian_noise
    shape: tuple[int, ...]  # (sequences, frames, H, W, 3)
    source: np.ndarray | list[list[Path]]  # the array, or the images of each sequence
    stamp: tuple[int, ...]  # a digest of the files' `tree.state`

    def read(self, start: int, stop: int) -> np.ndarray:
        """Reads sequences start, ..., stop - 1: uint8 [n, frames, H, W, 3].

        Raises:
          ValueError: a file is no image, or of another size than the first; it is named.
        """
        if isinstance(self.source, np.ndarray):
            return np.asarray(self.source[start:stop])
        paths = [path for frames in self.source[start:stop] for path in frames]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            images = list(pool.map(lambda path: _image(path, self.shape[2:]), paths))
        return np.stack(images).reshape(-1, *self.shape[1:])


def list_sequences(folder: str | os.PathLike) -> dict[str, Path]:
    """Lists the perturbations in a folder without opening them: {name: array or folder}.

    Raises:
      FileNotFoundError: no such folder.
      ValueError: a perturbation exists both as an array and as a folder.
    """
    folder, paths = Path(folder).expanduser(), {}
    if not folder.is_dir():
        raise FileNotFoundError(f"expected a folder of sequences, found none at {folder}")
    visible = [path for path in folder.iterdir() if not path.name.startswith(".") and path.name != "labels.npy"]
    for path in visible:
        if path.is_dir() or path.suffix == ".npy":
            name = path.name if path.is_dir() else path.stem
            if name in paths:
                raise ValueError(f"{folder}: expected {name}.npy or {name}/, found both; remove one of them")
            paths[name] = path
    return paths


def open_sequences(folder: str | os.PathLike, names: Iterable[str] = ()) -> list[Sequences]:
    """Opens the named perturbations (without names: all) of a folder, sorted by name; pixels are read later.

    Raises:
      FileNotFoundError: no such folder, no sequences in it, or not those.
      ValueError: see `list_sequences`; an array of another form, a damaged image, sequences of unequal length, or
        fewer than two.
    """
    paths = list_sequences(folder)
    names = sorted(names or paths)
    if missing := [name for name in names if name not in paths]:
        raise FileNotFoundError(f"{folder}: expected {', '.join(missing)}, found {', '.join(sorted(paths)) or 'none'}")
    if not names:
        raise FileNotFoundError(
            f"{folder}: expected PERTURBATION.npy or PERTURBATION/CLASS/SEQUENCE/FRAME.png, found neither"
        )
    return [(_of_folder if paths[name].is_dir() else _of_array)(paths[name]) for name in names]


def _of_array(path):
    array = files.read_array(path, "copy it again", mapped=True)
    if array.ndim != 5 or array.dtype != np.uint8 or array.shape[-1] != 3 or min(array.shape[:2]) < 2:
        raise ValueError(
            f"{path}: expected uint8 [sequences, frames, H, W, 3], two of the first two at least, found {array.dtype} "
            f"{list(array.shape)}"
        )
    return Sequences(path.stem, array.shape, array, _stamp([path], path.parent))


def _of_folder(path):
    frames = {}
    for file in sorted(path.rglob("*")):
        if file.suffix.lower() in SUFFIXES:
            frames.setdefault(file.parent, []).append(file)
    lengths = {len(images) for images in frames.values()}
    if len(frames) < 2 or len(lengths) != 1 or min(lengths) < 2:
        raise ValueError(
            f"{path}: expected two or more folders of equally many images, two at least, found "
            f"{len(frames)} of {', '.join(map(str, sorted(lengths))) or 'no'} images"
        )
    ((first, *_), *_) = listed = list(frames.values())
    stamp = _stamp([file for images in listed for file in images], path)
    return Sequences(path.name, (len(listed), *lengths, *read_image(first).shape), listed, stamp)


def _stamp(paths, root):
    """One number that changes with the `tree.state` of the files."""
    return (int(cache.fingerprint(tree.state(paths, root)), 16),)


def _image(path, shape):
    pixels = read_image(path)
    if pixels.shape != shape:
        raise ValueError(f"{path}: expected {shape[0]}x{shape[1]} pixels, found {pixels.shape[0]}x{pixels.shape[1]}")
    return pixels
