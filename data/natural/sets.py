"""What each test set is called, where it lies, and what its labels mean."""

import dataclasses
import difflib
from collections.abc import Callable

from data.natural import classes
from data.natural.classes import Classes


@dataclasses.dataclass(frozen=True)
class NaturalSet:
    """A naturally shifted test set.

    Attributes:
      name: ours.
      classes: gives its classes.
      folders: what its folder may be called: ours, and what its archive unpacks to.
      tfds: its name in TensorFlow Datasets, with the variant; "" when it is not there.
      border: pixels that are cut off on every side first.
      side: of images that are taken as they are; 0 resizes and crops to the model's size.
      arrays: (images, labels) files of NumPy in place of class folders.
      below: the folder with the class folders, where it is not the only one.
      skipped: beginning of names of files that are left out.
      others: whether folders of other classes are left out too, not refused.
    """

    name: str
    classes: Callable[[], Classes]
    folders: tuple[str, ...]
    tfds: str = ""
    border: int = 0
    side: int = 0
    arrays: tuple[str, str] | None = None
    below: str = ""
    skipped: str = ""
    others: bool = False


def _imagenet_v2(name, variant, *archives):
    return NaturalSet(name, classes.imagenet, (name, *archives), f"imagenet_v2/{variant}")


def _cifar10_1(name, version):
    files = (f"cifar10.1_{version}_data.npy", f"cifar10.1_{version}_labels.npy")
    folders = (name, "cifar10_1", "CIFAR-10.1/datasets", "CIFAR-10.1")
    return NaturalSet(name, classes.cifar10, folders, f"cifar10_1/{version}", side=32, arrays=files)


_SETS = {
    natural.name: natural
    for natural in (
        _imagenet_v2(
            "imagenet_v2",
            "matched-frequency",
            "imagenetv2-matched-frequency-format-val",
            "imagenetv2-matched-frequency",
        ),
        _imagenet_v2(
            "imagenet_v2_threshold", "threshold-0.7", "imagenetv2-threshold0.7-format-val", "imagenetv2-threshold0.7"
        ),
        _imagenet_v2("imagenet_v2_top", "topimages", "imagenetv2-top-images-format-val", "imagenetv2-topimages"),
        NaturalSet("imagenet_a", lambda: classes.imagenet("imagenet_a"), ("imagenet_a", "imagenet-a"), "imagenet_a"),
        NaturalSet("imagenet_r", lambda: classes.imagenet("imagenet_r"), ("imagenet_r", "imagenet-r"), "imagenet_r"),
        NaturalSet("imagenet_sketch", classes.imagenet, ("imagenet_sketch", "sketch"), "imagenet_sketch"),
        # The border is there so that nobody trains on the images; three in four objects are no
        # class of ImageNet.
        NaturalSet(
            "objectnet", classes.objectnet, ("objectnet", "objectnet-1.0"), border=2, below="images", others=True
        ),
        _cifar10_1("cifar10_1", "v6"),
        _cifar10_1("cifar10_1_v4", "v4"),
        # CIFAR-10's own images, which CINIC-10 holds in all its splits, are no shift.
        NaturalSet("cinic10", classes.cifar10, ("cinic10", "CINIC-10"), side=32, below="test", skipped="cifar"),
    )
}
NAMES = tuple(_SETS)


def listed(text: str) -> list[str]:
    """Lists the names in a text that separates them by commas; none for an empty one.

    Raises:
      ValueError: a name that is none, or one given twice.
    """
    names = [get(name.strip()).name for name in text.split(",") if name.strip()]
    if len(set(names)) < len(names):
        raise ValueError(f"expected each test set once, found {text!r}")
    return names


def get(name: str) -> NaturalSet:
    """Gives a test set by name.

    Raises:
      ValueError: no such set; the message has the nearest name.
    """
    if name not in _SETS:
        near = difflib.get_close_matches(name, NAMES, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"expected natural test sets of {', '.join(NAMES)}, found {name!r}{hint}")
    return _SETS[name]
