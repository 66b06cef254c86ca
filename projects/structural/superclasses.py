"""Superclasses, trained on some subclasses of each and tested on all: CIFAR-100's, and synsets of ImageNet.

Each of CIFAR-100's superclasses has five subclasses. The first k are held out, in the order of the released code: the order
of first appearance in the training file. Source: see `projects.structural.icons50`.

Superclasses of synsets are trained on the seen ones of each and tested on seen and unseen ones:

    DIR/superclasses.json   the synsets of each superclass, as `imagenet22k` lists them
    DIR/train, DIR/val      a folder for each seen synset, from ImageNet
    DIR/unseen              a folder for each unseen synset, from ImageNet-22K

Each of the three folders may be a link. Folders that are not listed are not read.
"""

import os
import re
from pathlib import Path
from typing import Any

import numpy as np

import data
from corruptions.files import digest_of, digest_of_file
from corruptions.reading.folders import balanced_prefix
from data import decode, tree
from data.dataset import Dataset, Parts, ShardedImages, describe, make_split, taken
from data.image_folder import decoded
from runtime import files

PREFIX = "cifar100_subclass_k"
SUPERCLASSES = {  # in the order of CIFAR-100's coarse labels; subclasses in the order they are held out
    "aquatic_mammals": ("seal", "beaver", "whale", "dolphin", "otter"),
    "fish": ("shark", "flatfish", "ray", "trout", "aquarium_fish"),
    "flowers": ("tulip", "rose", "sunflower", "orchid", "poppy"),
    "food_containers": ("can", "plate", "bottle", "bowl", "cup"),
    "fruit_and_vegetables": ("mushroom", "apple", "orange", "pear", "sweet_pepper"),
    "household_electrical_devices": ("lamp", "keyboard", "clock", "television", "telephone"),
    "household_furniture": ("chair", "couch", "wardrobe", "table", "bed"),
    "insects": ("butterfly", "cockroach", "bee", "beetle", "caterpillar"),
    "large_carnivores": ("lion", "wolf", "leopard", "bear", "tiger"),
    "large_man-made_outdoor_things": ("house", "castle", "skyscraper", "bridge", "road"),
    "large_natural_outdoor_scenes": ("mountain", "forest", "sea", "cloud", "plain"),
    "large_omnivores_and_herbivores": ("camel", "chimpanzee", "cattle", "elephant", "kangaroo"),
    "medium_mammals": ("skunk", "porcupine", "raccoon", "possum", "fox"),
    "non-insect_invertebrates": ("snail", "crab", "lobster", "worm", "spider"),
    "people": ("boy", "baby", "girl", "man", "woman"),
    "reptiles": ("dinosaur", "turtle", "crocodile", "snake", "lizard"),
    "small_mammals": ("rabbit", "mouse", "shrew", "hamster", "squirrel"),
    "trees": ("palm_tree", "oak_tree", "maple_tree", "pine_tree", "willow_tree"),
    "vehicles_1": ("bicycle", "pickup_truck", "train", "bus", "motorcycle"),
    "vehicles_2": ("streetcar", "rocket", "lawn_mower", "tractor", "tank"),
}
SUBCLASSES = tuple(sorted(name for names in SUPERCLASSES.values() for name in names))
"""In the order of CIFAR-100's fine labels."""
_PLACES = np.array([divmod(i, 5) for i in np.argsort([name for names in SUPERCLASSES.values() for name in names])])


def superclasses(fine: np.ndarray) -> np.ndarray:
    """Maps fine labels [N], 0 to 99, to labels of their superclasses, 0 to 19."""
    return _PLACES[fine, 0]


def held_out(fine: np.ndarray, k: int) -> np.ndarray:
    """Marks the fine labels [N] among the first k (1 to 4) of their superclass: bool [N]."""
    return _PLACES[fine, 1] < k


def load_cifar100_subclass(
    name: str,
    *,
    data_dir: str | os.PathLike | None,
    seed: int,
    image_size: int,
    train_limit: int | None,
    test_limit: int | None,
) -> Dataset:
    """Reads CIFAR-100 with superclasses as labels and leaves k subclasses of each out of training; arguments as of `data.load`.

    Of the 50,000 training images (5 - k) 10,000 remain. The test images are all 10,000, in two parts: `seen` subclasses,
    (5 - k) 2,000, and `unseen` ones, k 2,000. `name` is `cifar100_subclass_k1` to `_k4`; limits are balanced over superclasses.

    Raises:
      FileNotFoundError, ValueError: CIFAR-100 is missing, or its classes differ from CIFAR-100's.
    """
    k = int(name.removeprefix(PREFIX))
    whole = data.load("cifar100", data_dir=data_dir, seed=seed, image_size=image_size)
    if wrong := [pair for pair in zip(SUBCLASSES, whole.class_names, strict=True) if pair[0] != pair[1]]:
        raise ValueError(f"expected CIFAR-100's fine classes, of them {wrong[0][0]}, found {wrong[0][1]} in its place")
    unseen = held_out(whole.test.labels, k)
    kept = {"train": np.flatnonzero(~held_out(whole.train.labels, k)), "test": np.arange(len(whole.test))}
    splits, facts = {}, {}
    for split, limit in (("train", train_limit), ("test", test_limit)):
        full = getattr(whole, split)
        given = full.images, superclasses(full.labels), kept[split], len(SUPERCLASSES), f"{name} {split}"
        splits[split], facts[split] = taken(*given, limit)
    parts = Parts(unseen[splits["test"].index].astype(np.int32), ("seen", "unseen"))
    return Dataset(name, tuple(SUPERCLASSES), splits["train"], splits["test"], {**whole.provenance, **facts}, parts)


LISTS = "superclasses.json"
_SOURCES = {"train": ("train", "seen"), "seen": ("val", "seen"), "unseen": ("unseen", "unseen")}
_MAKE = f"python -m projects.structural.imagenet22k --wordnet=DICT --tree=DIR/unseen --out=DIR/{LISTS}"


def load_superclasses(
    name: str,
    *,
    data_dir: str | os.PathLike,
    seed: int = 0,
    image_size: int = 224,
    train_size: int | None = None,
    resize: str = "crop",
    train_limit: int | None = None,
    test_limit: int | None = None,
    max_damaged: float = 0.01,
) -> Dataset:
    """Reads the images of listed synsets, with superclasses as labels; arguments as of `data.load` and `load_image_folder`.

    The test images are in two parts, `seen` and `unseen` synsets. In the accuracies of the parts images that cannot be
    read count as errors, as in the released code; other accuracies leave them out. Images are decoded once into
    `data.cache`. Training limits are balanced over superclasses, test limits over their parts; other files are not opened.

    Raises FileNotFoundError where the lists, or the folder of a listed synset, do not exist; ValueError for malformed
    lists or too many damaged images.
    """
    del seed
    root = tree.find_root(data_dir)
    lists = read_lists(root / LISTS)
    sides = decode.sides(image_size, train_size, resize)
    items = {split: _items(root / folder, lists, part) for split, (folder, part) in _SOURCES.items()}
    keep = {"train": balanced_prefix(_labels(items["train"]), train_limit)}
    seen = len(items["seen"])  # at most `test_limit` images, balanced over the parts of superclasses
    of_test = balanced_prefix(np.r_[2 * _labels(items["seen"]), 2 * _labels(items["unseen"]) + 1], test_limit)
    keep |= {"seen": of_test[of_test < seen], "unseen": of_test[of_test >= seen] - seen}
    splits, facts = {}, {}
    for split, side in (("train", "train"), ("seen", "test"), ("unseen", "test")):
        chosen = [items[split][i] for i in keep[split]]
        splits[split], facts[split] = decoded(chosen, root, f"{name}-{split}", len(lists), sides[side], max_damaged)
    test, facts["test"] = _joined(splits["seen"], splits["unseen"], facts, seen, name, len(lists))
    provenance: dict[str, Any] = {
        "source": str(root),
        "format": "folders of synsets",
        "lists": digest_of_file(root / LISTS),
        "preprocess": decode.description(sides),
        "train": facts["train"],
        "test": facts["test"],
    }
    parts = ("seen", "unseen")
    counts = [len(splits[part]) for part in parts] + [len(facts[part].get("damaged", ())) for part in parts]
    of_images = Parts(np.repeat(np.array([0, 1, 0, 1], np.int32), counts), parts)
    return Dataset(name, tuple(lists), splits["train"], test, provenance, of_images)


def read_lists(path: Path) -> dict[str, dict[str, list[str]]]:
    """Reads {superclass: {"seen": synsets, "unseen": synsets}}.

    Raises FileNotFoundError; ValueError for something else, a name that is no synset, one twice, or a superclass
    without seen synsets.
    """
    if not path.is_file():
        raise FileNotFoundError(f"expected lists of synsets, found no file {path}; make it with: {_MAKE}")
    lists = files.read_json(path, remedy=f"make it anew with: {_MAKE}")
    listed = set()
    for name, parts in lists.items():
        both = isinstance(parts, dict) and set(parts) == {"seen", "unseen"}
        if not both or not all(isinstance(part, list) for part in parts.values()) or not parts["seen"]:
            raise ValueError(
                f"{path}: expected lists 'seen', not empty, and 'unseen' of {name}, found {str(parts)[:60]}"
            )
        for synset in (*parts["seen"], *parts["unseen"]):
            if not isinstance(synset, str) or not re.fullmatch(r"n\d{8}", synset):
                raise ValueError(f"{path}: expected synsets such as n02084071, found {synset!r} in {name}")
            if synset in listed:
                raise ValueError(f"{path}: expected each synset once, found {synset} again in {name}")
            listed.add(synset)
    return lists


def _items(folder, lists, part):
    """Lists the files of the synsets of a part, with superclasses as labels."""
    labels = {synset: label for label, parts in enumerate(lists.values()) for synset in parts[part]}
    there = set(tree.class_folders(folder)) if folder.is_dir() else set()
    if missing := sorted(labels.keys() - there):
        rest = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        remedy = f", or list the existing folders with: {_MAKE}" if part == "unseen" else ""
        raise FileNotFoundError(
            f"expected a folder for each of {len(labels)} {part} synsets in {folder}, found none of "
            f"{', '.join(missing[:5])}{rest}; get them{remedy}"
        )
    of_synset = list(labels.values())
    return [(path, of_synset[number], i) for path, number, i in tree.list_images(folder, list(labels))]


def _labels(items):
    return np.array([label for _, label, _ in items], int)


def _joined(seen, unseen, facts, number, name, num_classes):
    """Joins both parts to a test split, the second's index counted from `number` on; returns its provenance too."""
    images = ShardedImages([seen.images, unseen.images], seen.images.shape[1:])
    labels = np.concatenate([seen.labels, unseen.labels])
    index = np.concatenate([seen.index, unseen.index + np.int32(number)])
    hashes = [facts[part]["sha256"]["images"] for part in ("seen", "unseen")]
    known = {"image_shards": digest_of(np.array(hashes, "S64")), "labels": digest_of(labels), "index": digest_of(index)}
    made = make_split(images, labels, index, num_classes, f"{name} test")
    return made, {**describe(made, known), "parts": {part: facts[part] for part in ("seen", "unseen")}}
