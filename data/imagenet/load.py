"""ImageNet and ImageNet-100 (every tenth class by WordNet ID), from a prepared store or a tree of class folders."""

import os
from pathlib import Path
from typing import Any

from data import decode, tree
from data.dataset import Dataset
from data.image_folder import load_image_folder
from data.imagenet import store

CLASSES = {"imagenet100": 100, "imagenet": 1000}


def class_stride(name: str, found: int, where: str | os.PathLike) -> int:
    """Returns k if every k-th of the `found` classes in sorted order belongs to the dataset `name`.

    Raises ValueError where `found` is neither 1,000 nor the number of classes of `name`.
    """
    if found == CLASSES[name]:
        return 1
    if found == 1000:
        return 1000 // CLASSES[name]
    counts = " or ".join(str(n) for n in sorted({1000, CLASSES[name]}, reverse=True))
    raise ValueError(f"{where}: expected {counts} class folders for {name}, found {found}")


def tree_stride(name: str, root: Path) -> int:
    """Returns the `class_stride` of the tree at `root`."""
    folders = (root / folder for folder in ("train", *tree.TEST_FOLDERS))
    first = next((folder for folder in folders if folder.is_dir()), root)
    return class_stride(name, len(tree.class_folders(first)), first)


def load_imagenet(
    name: str,
    *,
    data_dir: str | os.PathLike,
    seed: int = 0,
    image_size: int = 224,
    train_size: int | None = None,
    resize: str = "crop",
    train_limit: int | None = None,
    test_limit: int | None = None,
    **kwargs: Any,
) -> Dataset:
    """Opens ImageNet-100 or ImageNet: the store that `python -m data.prepare` wrote below `data_dir`, else a tree.

    The prepared store is memory-mapped, so loading takes a second and no memory. A tree is decoded at the first load into
    `data.cache`, on one machine and in one go; prepare a whole ImageNet instead. Arguments as of `data.load`, and for a tree
    as of `load_image_folder`. A store must have been made with the same sizes.

    Raises:
      FileNotFoundError: nothing is there, or it was prepared for other sizes or in the other way; the message has the command.
      ValueError: another `resize`, a prepared file is damaged, or the tree has another number of classes.
    """
    root = tree.find_root(data_dir)
    decode.sides(image_size, train_size, resize)  # refuses sizes before anything is searched
    folder = store.folder(root, name, image_size, train_size, resize)
    if (folder / store.META).exists():
        return store.load(folder, train_limit, test_limit, resize)
    if (root / name).is_dir():
        ready = sorted(path.parent.name for path in (root / name).glob(f"*/{store.META}"))
        others = [way for way in decode.RESIZE if store.folder(root, name, image_size, train_size, way).name in ready]
        other = f"\nor read the prepared one with --config.dataset.resize={others[0]}" if others else ""
        raise FileNotFoundError(
            f"{root / name} holds no finished {name} of size {folder.name}, found {', '.join(ready) or 'nothing'}. "
            f"Prepare it, or continue, with:\n  {store.command(name, root, image_size, train_size, resize)}{other}"
        )
    kwargs |= {"image_size": image_size, "train_size": train_size, "resize": resize}
    kwargs |= {"seed": seed, "train_limit": train_limit, "test_limit": test_limit}
    return load_image_folder(name, data_dir=root, class_stride=tree_stride(name, root), **kwargs)
