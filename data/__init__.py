"""Where images come from: `data.load(name, ...)` gives a `Dataset` with `train` and `test`.

shapes.py        `shapes`: drawn from a seed by our own code, needs no download; shapes_scene.py draws one image
tfds_source.py   `cifar10`, `cifar100`: TensorFlow Datasets in array_record, read without TensorFlow
image_folder.py  `image_folder`: a tree of class folders, which tree.py lists
icons50/         `icons50_microsoft`, `icons50_apple`, `icons50_subclass`: icons, some held out
subclasses/      `cifar100_subclass_k1` ... `_k4`, `imagenet22k_superclasses`: superclasses, some subclasses of each held out
imagenet/        `imagenet`, `imagenet100` (every tenth class): prepared shards, or such a tree
corrupted/       corrupted datasets that are on disk already, published or written by `corruptions.write`
natural/         naturally shifted test sets of ImageNet's and CIFAR-10's classes
sequences/       sequences of one picture under small perturbations, ImageNet-P's and CIFAR-10-P's
prepare.py       the command `python -m data.prepare`: downloads CIFAR, makes the shards of ImageNet
dataset.py       what every source gives: `Dataset` of two `Split`s
union.py         two datasets as one to train on
sharded.py       images in several arrays, indexed like one
cache.py         decoded images on disk, so that a dataset is decoded once per machine
decode.py        one image file to pixels of the size that is asked for
blocks.py        checksums of blocks of images, compared when they are read
npy.py           writing an .npy file piece by piece
"""

import difflib
import importlib
import os
from typing import Any

from data.dataset import Dataset, Split, balanced_prefix

__all__ = ["OF_FILES", "Dataset", "Split", "balanced_prefix", "load", "names"]

# Modules are imported when asked for: `shapes` must not wait for what reads CIFAR-10.
_LOADERS = {
    "shapes": ("data.shapes", "load_shapes"),
    "cifar10": ("data.tfds_source", "load_cifar"),
    "cifar100": ("data.tfds_source", "load_cifar"),
    "icons50_microsoft": ("data.icons50.load", "load_icons50"),
    "icons50_apple": ("data.icons50.load", "load_icons50"),
    "icons50_subclass": ("data.icons50.load", "load_icons50"),
    "icons50_subclass_exact": ("data.icons50.load", "load_icons50"),
    **{f"cifar100_subclass_k{k}": ("data.subclasses.cifar100", "load_cifar100_subclass") for k in (1, 2, 3, 4)},
    "image_folder": ("data.image_folder", "load_image_folder"),
    "imagenet100": ("data.imagenet.load", "load_imagenet"),
    "imagenet": ("data.imagenet.load", "load_imagenet"),
    "imagenet22k_superclasses": ("data.subclasses.synsets", "load_superclasses"),
}
OF_FILES = ("image_folder", "imagenet100", "imagenet", "imagenet22k_superclasses")
"""Datasets of image files, of any size, that are resized."""


def names() -> tuple[str, ...]:
    """The names `load` knows."""
    return tuple(_LOADERS)


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
    """The dataset called `name`: uint8 images [N, H, W, 3] and int32 labels [N] on the host, train
    and test.

    Args:
      name: one of `names()`.
      data_dir: where files are looked for (no meaning for `shapes`).
      seed: of what is drawn or split at random.
      image_size: side in pixels; None is the dataset's own (32; 224 for folders).
      train_size: side of training images that are kept larger, to be cropped at random; None is
        image_size. Of folders and ImageNet only.
      resize: how images of any size become square, of folders and ImageNet: `crop` (shorter side
        to image_size * 256 / 224, then the centre) or `squash` (both sides, proportions not kept).
      train_limit: at most so many training images, a class-balanced prefix that is the same every
        time. `index` keeps the place of each in the whole split.
      test_limit: the same for test images.
      **kwargs: passed to the loader, e.g. `test_fraction` of `image_folder`, `train_images` of
        `shapes`.

    Raises:
      ValueError: there is no such dataset, or an argument is out of range.
      FileNotFoundError: the files are not there; the message says where they were looked for and
        what to do.
    """
    if name not in _LOADERS:
        close = difflib.get_close_matches(name, _LOADERS, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"expected a dataset out of {', '.join(_LOADERS)}, found {name!r}{hint}")
    for key, value in (("train_size", train_size), ("resize", None if resize == "crop" else resize)):
        if value is None:
            continue
        if name not in OF_FILES:
            raise ValueError(f"expected {key} with {', '.join(OF_FILES)} only, found it with {name}")
        kwargs[key] = value
    module, function = _LOADERS[name]
    loader = getattr(importlib.import_module(module), function)
    limits = {"train_limit": train_limit, "test_limit": test_limit}
    return loader(name, data_dir=data_dir, seed=seed, image_size=image_size, **limits, **kwargs)
