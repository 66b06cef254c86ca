"""Sources of images: `data.load(name, ...)` gives a `Dataset` with `train` and `test`.

dataset.py       `Dataset` of two `Split`s, the result of every source; images in several arrays, two datasets as one
shapes.py        `shapes`: drawn from a seed, needs no download
tfds_source.py   `cifar10`, `cifar100`: TensorFlow Datasets in array_record, read without TensorFlow
image_folder.py  `image_folder`: a tree of class folders, which tree.py lists
photographs.py   `photographs`: your own, of some of ImageNet's classes
imagenet/        `imagenet`, `imagenet100` (every tenth class): prepared shards, or such a tree
corrupted/       corrupted datasets on disk, published or written by `corruptions.write`
natural/         naturally shifted test sets of ImageNet's and CIFAR-10's classes
listed.py        some of the test images, by a list: RobustBench's 5,000
prepare.py       the command `python -m data.prepare`: downloads CIFAR, makes the shards of ImageNet
cache.py         decoded images on disk, so that a dataset is decoded once per machine
decode.py        one image file to a square of pixels
hosts.py         the check that all processes of a run read the same data
blocks.py        .npy files of images: written piece by piece, compared with checksums when they are read

`data.register` adds a dataset; modules of `config.imports` call it.
"""

from corruptions.core import running  # isort: skip

running.watch_command(__name__)

# ruff: noqa: E402 - Ctrl-C is watched before the first import
import importlib
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from corruptions.core.checks import one_of
from corruptions.reading.folders import balanced_prefix
from data import tfds_source
from data.dataset import Dataset, Split
from runtime import files

__all__ = ["Dataset", "Split", "balanced_prefix", "load", "names", "of_files", "register"]


class _Source(NamedTuple):
    """A dataset that `load` knows; see `register`."""

    loader: str | Callable[..., Dataset]
    image_size: int | None = 32
    resizable: bool = False
    of_files: bool = False


_SOURCES = {
    "shapes": _Source("data.shapes:load_shapes", 32, resizable=True),
    "cifar10": _Source("data.tfds_source:load_cifar"),
    "cifar100": _Source("data.tfds_source:load_cifar"),
    "image_folder": _Source("data.image_folder:load_image_folder", 224, resizable=True, of_files=True),
    "photographs": _Source("data.photographs:load_photographs", 224, resizable=True, of_files=True),
    "imagenet100": _Source("data.imagenet.store:load_imagenet", 224, resizable=True, of_files=True),
    "imagenet": _Source("data.imagenet.store:load_imagenet", 224, resizable=True, of_files=True),
}


def register(
    name: str,
    loader: str | Callable[..., Dataset],
    image_size: int | None = 32,
    *,
    resizable: bool = False,
    of_files: bool = False,
) -> None:
    """Adds a dataset to `load`; raises ValueError where another loader has the name.

    Args:
      loader: `loader(name, data_dir=, seed=, image_size=, train_limit=, test_limit=)`, or "module:function", which is
        imported when the dataset is loaded. With `of_files` it takes `train_size` and `resize` too.
      image_size: default side of its images in pixels; None leaves sizes to the loader.
      resizable: its images come at any size.
      of_files: its images are files of any size below `data_dir` (then it is resizable).
    """
    source = _Source(loader, image_size, resizable or of_files, of_files)
    if _SOURCES.setdefault(name, source) != source:
        raise ValueError(f"dataset {name!r} is registered already")


def names() -> tuple[str, ...]:
    """Lists the names that `load` knows."""
    return tuple(_SOURCES)


def check_name(name: str) -> None:
    """Raises ValueError, with near names, unless `load` knows the name."""
    one_of("name", "a dataset", name, _SOURCES)


def of_files() -> tuple[str, ...]:
    """Lists the datasets of image files of any size, which are resized."""
    return tuple(name for name, source in _SOURCES.items() if source.of_files)


def load(
    name: str,
    *,
    data_dir: str | os.PathLike | None = None,
    seed: int = 0,
    image_size: int | None = None,
    train_size: int | None = None,
    resize: str = "crop",
    train_limit: int | None = None,
    test_limit: int | None = None,
    **kwargs: Any,
) -> Dataset:
    """Loads a dataset: uint8 images [N, H, W, 3] and int32 labels [N] on the host, train and test.

    Args:
      name: one of `names()`.
      data_dir: the folder of its files (no meaning for `shapes`).
      seed: seed of drawn images and random splits.
      image_size: side in pixels; None is the dataset's own (32; 224 for folders).
      train_size: side of training images that are kept larger, to be cropped at random; None is image_size. For folders
        and ImageNet only.
      resize: how files of any size become square: `crop` (shorter side to image_size * 256 / 224, then the centre) or
        `squash` (both sides, proportions not kept).
      train_limit: largest number of training images, a class-balanced prefix that is the same every time. `index`
        keeps the place of each in the whole split.
      test_limit: the same for test images.
      **kwargs: arguments of one loader, such as `test_fraction` of `image_folder`, `turn` of folders and ImageNet, `train_images` of
        `shapes`.

    Raises:
      ValueError: there is no such dataset, or an argument is out of range.
      FileNotFoundError: the files are not there; the message names the place and the remedy.
    """
    check_name(name)
    source = _SOURCES[name]
    for key, limit in (("train_limit", train_limit), ("test_limit", test_limit)):
        if limit is not None and limit < 1:
            raise ValueError(f"expected {key} of at least 1 image (or None for all), found {limit}")
    if image_size is not None and source.image_size is not None:
        if not source.resizable and image_size != source.image_size:
            raise ValueError(f"{name}: expected image_size {source.image_size} or None, found {image_size}")
        if image_size < 1:
            raise ValueError(f"expected image_size >= 1, found {image_size}")
    for key, value in (("train_size", train_size), ("resize", None if resize == "crop" else resize)):
        if value is not None and not source.of_files:
            raise ValueError(f"expected {key} with {', '.join(of_files())} only, found it with {name}")
    if source.of_files:
        kwargs |= {"train_size": train_size, "resize": resize}
        if data_dir is None and name in ("imagenet", "imagenet100"):
            default = tfds_source.default_folder()  # where data.prepare writes
            if Path(default, name).expanduser().is_dir():
                data_dir = default
        if data_dir is None:
            raise ValueError(
                f"{name} needs data_dir, the folder that holds train/ and val/ (or class folders) or what data.prepare made "
                "of them; found None. Commands take --config.dataset.data_dir=DIR"
            )
    data_dir = data_dir and files.local(data_dir, "data_dir")
    loader = source.loader
    if isinstance(loader, str):  # imported on demand: `shapes` must not wait for the readers of CIFAR-10
        module, _, function = loader.partition(":")
        loader = getattr(importlib.import_module(module), function)
    known = inspect.signature(loader).parameters
    if others := [
        key for key in kwargs if key not in known and not any(p.kind is p.VAR_KEYWORD for p in known.values())
    ]:
        one_of(others[0], f"arguments of {name}", others[0], known)
    size = source.image_size if image_size is None else image_size
    limits = {"train_limit": train_limit, "test_limit": test_limit}
    return loader(name, data_dir=data_dir, seed=seed, image_size=size, **limits, **kwargs)
