"""The protocols of ICONS-50 as datasets: trained on what is not held out, tested on what is."""

import os
from typing import Any

import numpy as np

from data.dataset import Dataset, describe, limited, make_split
from data.icons50 import protocols, release


def load_icons50(
    name: str,
    *,
    data_dir: str | os.PathLike | None = None,
    seed: int = 0,
    image_size: int | None = None,
    train_limit: int | None = None,
    test_limit: int | None = None,
) -> Dataset:
    """Reads ICONS-50 and holds out the icons of a protocol, which become the test images.

    Args:
      name: `icons50_microsoft` or `icons50_apple` (a style), `icons50_subclass` (50 subtypes, found
        as the released code does) or `icons50_subclass_exact` (see `protocols`).
      data_dir: either release, see `release.read`.
      seed: unused, nothing here is random.
      image_size: None or 32.
      train_limit: at most so many training images, as a class-balanced prefix.
      test_limit: the same for test images.

    Raises:
      FileNotFoundError: nothing is there.
      ValueError: it is no release of ICONS-50, no icon is held out, or image_size is another.
    """
    if data_dir is None:
        raise ValueError(f"{name} needs data_dir, a folder with ICONS-50 or its .npy file; found None")
    if image_size not in (None, release.SIDE):
        raise ValueError(f"expected image_size {release.SIDE} or None, found {image_size}")
    icons = release.read(data_dir)
    held = _held_out(name.removeprefix("icons50_"), icons)
    splits, facts = {}, {}
    for split, chosen, limit in (("train", ~held, train_limit), ("test", held, test_limit)):
        index = np.flatnonzero(chosen)
        made = make_split(icons.images[index], icons.labels[index], index, len(icons.classes), f"{name}-{split}")
        splits[split] = limited(made, limit)
        facts[split] = describe(splits[split])
    provenance: dict[str, Any] = {"source": str(data_dir), "format": "ICONS-50", "icons": len(icons.images), **facts}
    return Dataset(name, icons.classes, splits["train"], splits["test"], provenance)


def _held_out(protocol, icons):
    if protocol in protocols.STYLES:
        return protocols.of_style(icons, protocol)
    return protocols.of_subclass(icons, "subtype_exact" if protocol.endswith("_exact") else "path")
