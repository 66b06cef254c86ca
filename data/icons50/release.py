"""The releases of ICONS-50: a tree `CLASS/STYLE_RENDITION_SUBTYPE.png`, and one .npy file.

The file is a pickled dictionary of five sequences of one length: `class` (0 .. 49), `style`,
`image` (uint8 [3, 32, 32]), `rendition` and `subtype`, read by `data.icons50.pickled`.
"""

import os
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from data import decode, tree
from data.icons50 import pickled

# fmt: off
CLASSES = (
    "airplane", "arrow_directions", "ball", "biking", "bird", "blade", "boat", "books", "building",
    "bunny_ears", "cartwheeling", "clock", "cloud", "disk", "drinks", "emotion_face", "envelope",
    "family", "fast_train", "feline", "flag", "flower", "footwear", "golfing", "hand", "hat",
    "heart", "holding_hands", "japanese_ideograph", "kiss", "lock", "mailbox", "marine_animals",
    "medal", "money", "monkey", "moon", "mountain", "numbers", "phone", "prohibit_sign", "star",
    "surfing", "tree", "umbrella", "vehicle", "water_polo", "worker", "wrestling",
    "writing_utensil",
)
# fmt: on
FILE = "Icons-50.npy"
SIDE = 32
_FIELDS = ("class", "style", "image", "rendition", "subtype")


class Icons(NamedTuple):
    """Icons and what is known of each.

    Attributes:
      images: uint8 [N, 32, 32, 3].
      labels: int32 [N], places in `classes`.
      classes: names.
      styles, renditions, subtypes: N strings each.
    """

    images: np.ndarray
    labels: np.ndarray
    classes: tuple[str, ...]
    styles: tuple[str, ...]
    renditions: tuple[str, ...]
    subtypes: tuple[str, ...]

    @property
    def paths(self) -> list[str]:
        """The icons' places in the tree: CLASS/STYLE_RENDITION_SUBTYPE.png."""
        names = zip(self.labels, self.styles, self.renditions, self.subtypes)
        return [f"{self.classes[label]}/{style}_{number}_{subtype}.png" for label, style, number, subtype in names]


def read(source: str | os.PathLike) -> Icons:
    """Reads a release: the file, the tree, or a folder with the file or with the tree `Icons-50`.

    Raises:
      FileNotFoundError: no such thing.
      ValueError: it is no such release, or damaged; the message names the file.
    """
    path = Path(source).expanduser()
    if path.is_file():
        return read_array(path)
    if (path / FILE).is_file():
        return read_array(path / FILE)
    if not path.is_dir():
        raise FileNotFoundError(
            f"expected ICONS-50, a folder of class folders or {FILE}, found nothing at {path}; "
            "python -m data.icons50.standin makes a stand-in"
        )
    return read_tree(path / "Icons-50" if (path / "Icons-50").is_dir() else path)


def read_tree(root: Path) -> Icons:
    """Reads the tree; both sides of each icon become 32 pixels.

    Raises:
      FileNotFoundError: no class folder with PNG files.
      ValueError: icons with other names, or that cannot be read.
    """
    classes = [name for name in tree.class_folders(root) if any((root / name).glob("*.png"))]
    if not classes:
        raise FileNotFoundError(f"expected folders of classes with PNG files in {root}, found none")
    paths = [(label, path) for label, name in enumerate(classes) for path in sorted((root / name).glob("*.png"))]
    parts = [tuple(path.stem.split("_", 2)) for _, path in paths]
    wrong = [str(path) for (_, path), found in zip(paths, parts) if len(found) < 3 or not found[1].isdigit()]
    if wrong:
        raise ValueError(f"expected icons called STYLE_RENDITION_SUBTYPE.png, found {_few(wrong)}")
    images = [decode.read(path, SIDE, decode.BOTH) for _, path in paths]
    if damaged := [image for image in images if isinstance(image, str)]:
        raise ValueError(f"expected icons that can be read, found {_few(damaged)}")
    labels = np.array([label for label, _ in paths], np.int32)
    return Icons(np.stack(images), labels, tuple(classes), *map(tuple, zip(*parts)))


def read_array(path: Path) -> Icons:
    """Reads the .npy file.

    Raises:
      ValueError: it is no such file, or it holds anything else than arrays, strings and numbers.
    """
    with path.open("rb") as file:
        found = _unpickled(path, file)
    if not isinstance(found, dict):
        raise ValueError(f"{path}: expected a dictionary of {', '.join(_FIELDS)}, found {type(found).__name__}")
    values = {name: found.get(name) for name in _FIELDS}
    lengths = {name: len(value) for name, value in values.items() if isinstance(value, list | tuple) or np.ndim(value)}
    if set(lengths) != set(_FIELDS) or len(set(lengths.values())) > 1 or not all(lengths.values()):
        raise ValueError(f"{path}: expected sequences {', '.join(_FIELDS)} of one length, found {lengths or 'none'}")
    try:
        images = np.stack([np.asarray(image) for image in found["image"]])
        labels = np.asarray(found["class"])
        texts = [tuple(map(str, found[name])) for name in ("style", "rendition", "subtype")]
    except (TypeError, ValueError, SystemError) as error:  # the last from texts that are none
        raise ValueError(f"{path}: expected images and classes of one shape, and texts, found {error}") from error
    if images.dtype != np.uint8 or images.shape[1:] != (3, SIDE, SIDE):
        raise ValueError(
            f"{path}: expected images uint8 [N, 3, {SIDE}, {SIDE}], found {images.dtype} {list(images.shape)}"
        )
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= len(CLASSES):
        raise ValueError(
            f"{path}: expected classes 0 to {len(CLASSES) - 1}, integers [N], found {labels.dtype} "
            f"{list(labels.shape)} that ends in {labels.ravel()[-3:]}"
        )
    images = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
    return Icons(images, labels.astype(np.int32), CLASSES, *texts)


def _unpickled(path: Path, file: BinaryIO):
    """The object in an .npy file of one object."""
    try:
        version = np.lib.format.read_magic(file)
        header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, _, dtype = header(file)
    except (ValueError, KeyError) as error:
        raise ValueError(f"{path}: expected an .npy file, found {error}") from error
    if shape != () or dtype.kind != "O":
        raise ValueError(f"{path}: expected one pickled dictionary, found an array {dtype} {list(shape)}")
    try:
        array = pickled.load(file)
    except Exception as error:  # a damaged pickle raises any
        raise ValueError(f"{path}: expected a pickle of arrays, strings and numbers, found {error}") from error
    return array.item() if isinstance(array, np.ndarray) and array.shape == () else array


def _few(names):
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
