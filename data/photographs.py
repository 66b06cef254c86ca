"""`photographs`: your own photographs of some of ImageNet's 1,000 classes, to show them to networks of ImageNet.

A folder of each class, named by its WordNet ID or its number, `n01440764/a.jpg` or `0/a.jpg`; all images are for testing. Labels are the
positions of the logits of ImageNet's networks, so that every answer of the 1,000 counts.
"""

import os
from typing import Any

from corruptions.reading.folders import class_folders
from data import decode, image_folder, tree
from data.dataset import Dataset
from data.natural import sets

LAYOUT = (
    "a folder of each class, named by its WordNet ID or its number among ImageNet's 1,000, n01440764/a.jpg or 0/a.jpg"
)


def load_photographs(
    name: str = "photographs",
    *,
    data_dir: str | os.PathLike | None = None,
    seed: int = 0,
    image_size: int = 224,
    train_size: int | None = None,
    resize: str = "crop",
    train_limit: int | None = None,
    test_limit: int | None = None,
    **given: Any,
) -> Dataset:
    """Reads the photographs below `data_dir`; there are no training images. Arguments and errors as of `load_image_folder`.

    Raises:
      FileNotFoundError: no folder, or none of the layout above with an image in it.
    """
    del seed, train_size, train_limit
    root, known = tree.find_root(data_dir), sets.imagenet()
    classes = [folder for folder in class_folders(root) if folder in known.folders]
    if not classes:
        found = ", ".join(class_folders(root)[:3]) or "no folders"
        raise FileNotFoundError(f"expected in {root} {LAYOUT}, found {found}")
    items = [(path, known.folders[classes[label]], at) for path, label, at in tree.list_images(root, classes)]
    keep = image_folder.balanced_prefix([label for _, label, _ in items], test_limit)
    sides = decode.sides(image_size, None, resize)
    splits, facts = {}, {}
    for split, chosen in (("train", []), ("test", [items[place] for place in keep])):
        what = f"{name}-{split}"
        splits[split], facts[split] = image_folder.decoded(chosen, root, what, known.number, sides[split], **given)
    origin = {"source": str(root), "format": "photographs", "preprocess": decode.description(sides)}
    return Dataset(name, tuple(known.groups), splits["train"], splits["test"], origin | facts)
