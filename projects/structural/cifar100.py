"""CIFAR-100's superclasses, trained on some subclasses of each and tested on all.

Each superclass has five subclasses. The first k are held out, in the order of the released code: the order of first
appearance in the training file. Source: see `projects.structural.icons50`.
"""

import os

import numpy as np

import data
from data.dataset import Dataset, Parts, taken

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
