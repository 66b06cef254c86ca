"""ICONS-50: 10,000 icons of 50 classes in 13 rendering styles, and protocols that hold some out.

A release is a tree `CLASS/STYLE_RENDITION_SUBTYPE.png`, or one .npy file: a pickled dictionary of five sequences of
one length, `class` (0 .. 49), `style`, `image` (uint8 [3, 32, 32]), `rendition` and `subtype`, read by
`projects.structural.unpickling`. A protocol tests on some icons and trains on the others:

    microsoft, apple    test on the icons of a style
    subclass            test on the icons of 50 held-out subtypes

The released code looks for the name of a style or subtype anywhere in an icon's path, `match=path`. `books` and
`monkey` are names of classes too, so it holds out every icon of both; longer names that contain a shorter one go with
it. `match=subtype_exact` holds out only the listed subtypes.

Source: D. Hendrycks, T. Dietterich, "Benchmarking the Corruption and Structural Robustness of Neural Networks", draft
of 2018, section 4.
"""

import logging
import os
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from corruptions.reading.folders import is_special
from corruptions.reading.pictures import Orientations
from data import decode, tree
from data.dataset import Dataset, taken
from projects.structural import unpickling

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
_TEXT = (str, bytes, int, np.generic)
_ELEMENTS = {"class": (int, np.generic, np.ndarray), "style": _TEXT, "image": np.ndarray}
_ELEMENTS |= {"rendition": _TEXT, "subtype": _TEXT}
_FIELDS = tuple(_ELEMENTS)
STYLES = ("microsoft", "apple")
MATCHES = ("path", "subtype_exact")
# CLASS=SUBTYPE+SUBTYPE
_HELD_OUT = """
airplane=small_airplane arrow_directions=top_with_upwards_arrow_above ball=soccer_ball bird=duck+hatching_chick
blade=crossed_swords boat=passenger_ship books=ledger+books building=derelict_house_building+convenience_store
bunny_ears=rabbit_face cartwheeling=cartwheel_type_6 clock=mantelpiece_clock+watch cloud=sun_behind_cloud_with_rain
drinks=wine_glass emotion_face=face_throwing_a_kiss envelope=e_mail_symbol
family=family_man_boy+family_man_girl+family_man_boy_boy+family_man_girl_boy+family_man_girl_girl
fast_train=monorail feline=leopard flag=chequered_flag flower=tulip footwear=womans_sandal hand=victory_hand
hat=womans_hat heart=broken_heart japanese_ideograph=unified_ideograph_5408+circled_ideograph_accept
lock=closed_lock_with_key mailbox=open_mailbox_with_lowered_flag marine_animals=shark medal=military_medal
money=banknote_with_dollar_sign monkey=monkey moon=crescent_moon mountain=mount_fuji phone=mobile_phone_off
prohibit_sign=no_smoking_symbol star=glowing_star tree=evergreen_tree umbrella=umbrella_with_rain_drops
vehicle=racing_car worker=factory_worker writing_utensil=pencil
"""
HELD_OUT = {name: tuple(held.split("+")) for name, held in (word.split("=") for word in _HELD_OUT.split())}
"""{class: subtypes}."""
SUBTYPES = tuple(name for names in HELD_OUT.values() for name in names)


def load_icons50(
    name: str,
    *,
    data_dir: str | os.PathLike | None,
    seed: int,
    image_size: int,
    train_limit: int | None,
    test_limit: int | None,
) -> Dataset:
    """Reads ICONS-50 and holds out the icons of a protocol, which become the test images; arguments as of `data.load`.

    `name` is `icons50_microsoft` or `icons50_apple` (a style), `icons50_subclass` (50 subtypes, matched as in the released
    code) or `icons50_subclass_exact`; `data_dir` is either release, see `read`.

    Raises:
      FileNotFoundError, ValueError: it is no release of ICONS-50, or no icon is held out.
    """
    del seed, image_size
    if data_dir is None:
        raise ValueError(f"{name} needs data_dir, a folder with ICONS-50 or its .npy file; found None")
    icons, protocol = read(data_dir), name.removeprefix("icons50_")
    if protocol in STYLES:
        held = of_style(icons, protocol)
    else:
        held = of_subclass(icons, "subtype_exact" if protocol.endswith("_exact") else "path")
    splits, facts = {}, {}
    for split, chosen, limit in (("train", ~held, train_limit), ("test", held, test_limit)):
        given = icons.images, icons.labels, np.flatnonzero(chosen), len(icons.classes), f"{name}-{split}"
        splits[split], facts[split] = taken(*given, limit)
    origin = {"source": str(data_dir), "format": "ICONS-50", "icons": len(icons.images)}
    return Dataset(name, icons.classes, splits["train"], splits["test"], origin | facts)


class Icons(NamedTuple):
    """Icons and their records."""

    images: np.ndarray  # uint8 [N, 32, 32, 3]
    labels: np.ndarray  # int32 [N], places in `classes`
    classes: tuple[str, ...]  # names
    styles: tuple[str, ...]  # of N icons, as the next two
    renditions: tuple[str, ...]
    subtypes: tuple[str, ...]

    @property
    def paths(self) -> list[str]:
        """The icons' places in the tree: CLASS/STYLE_RENDITION_SUBTYPE.png."""
        names = zip(self.labels, self.styles, self.renditions, self.subtypes)
        return [f"{self.classes[label]}/{style}_{number}_{subtype}.png" for label, style, number, subtype in names]


def read(source: str | os.PathLike) -> Icons:
    """Reads a release: the file, the tree, or a folder with the file or with the tree `Icons-50`.

    Raises FileNotFoundError where nothing is there; ValueError, which names the file, where it is another thing or
    damaged.
    """
    path = Path(source).expanduser()
    if path.is_file():
        return read_array(path)
    if (path / FILE).is_file():
        return read_array(path / FILE)
    if not path.is_dir():
        raise FileNotFoundError(
            f"expected ICONS-50, a folder of class folders or {FILE}, found nothing at {path}; "
            "python -m projects.structural.standin --dataset=icons50 makes a stand-in"
        )
    return read_tree(path / "Icons-50" if (path / "Icons-50").is_dir() else path)


def read_tree(root: Path) -> Icons:
    """Reads the tree; both sides of each icon become 32 pixels.

    Raises FileNotFoundError without class folders of PNG files; ValueError for icons with other names, or damaged ones.
    """
    classes = [name for name in tree.class_folders(root) if any((root / name).glob("*.png"))]
    if not classes:
        raise FileNotFoundError(f"expected folders of classes with PNG files in {root}, found none")
    paths = [
        (label, path)
        for label, name in enumerate(classes)
        for path in sorted((root / name).glob("*.png"))
        if not is_special(path)
    ]
    parts = [tuple(path.stem.split("_", 2)) for _, path in paths]
    wrong = [str(path) for (_, path), found in zip(paths, parts) if len(found) < 3 or not found[1].isdigit()]
    if wrong:
        raise ValueError(f"expected icons called STYLE_RENDITION_SUBTYPE.png, found {_few(wrong)}")
    orientations = Orientations()
    images = [decode.read(path, SIDE, decode.BOTH, orientations=orientations) for _, path in paths]
    orientations.warn(root)
    if damaged := [image for image in images if isinstance(image, str)]:
        raise ValueError(f"expected icons that can be read, found {_few(damaged)}")
    labels = np.array([label for label, _ in paths], np.int32)
    return Icons(np.stack(images), labels, tuple(classes), *map(tuple, zip(*parts)))


def _text(value):
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def read_array(path: Path) -> Icons:
    """Reads the .npy file; raises ValueError for another file, or anything in it but arrays, strings and numbers."""
    with path.open("rb") as file:
        found = _unpickled(path, file)
    if not isinstance(found, dict):
        raise ValueError(f"{path}: expected a dictionary of {', '.join(_FIELDS)}, found {type(found).__name__}")
    values = {name: found.get(name) for name in _FIELDS}
    lengths = {name: len(value) for name, value in values.items() if isinstance(value, list | tuple) or np.ndim(value)}
    if set(lengths) != set(_FIELDS) or len(set(lengths.values())) > 1 or not all(lengths.values()):
        raise ValueError(f"{path}: expected sequences {', '.join(_FIELDS)} of one length, found {lengths or 'none'}")
    try:
        for name, kinds in _ELEMENTS.items():
            if wrong := [value for value in found[name] if not isinstance(value, kinds)]:
                raise ValueError(f"{type(wrong[0]).__name__} in {name}")
        images, labels = np.stack(list(found["image"])), np.asarray(found["class"])
        texts = [tuple(map(_text, found[name])) for name in ("style", "rendition", "subtype")]
    except (TypeError, ValueError, SystemError) as error:  # SystemError: damaged texts
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
    try:
        version = np.lib.format.read_magic(file)
        header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, _, dtype = header(file)
    except (ValueError, KeyError) as error:
        raise ValueError(f"{path}: expected an .npy file, found {error}") from error
    if shape != () or dtype.kind != "O":
        raise ValueError(f"{path}: expected one pickled dictionary, found an array {dtype} {list(shape)}")
    try:
        array = unpickling.load(file)
    except Exception as error:  # a damaged pickle raises any
        raise ValueError(f"{path}: expected a pickle of arrays, strings and numbers, found {error}") from error
    return array.item() if isinstance(array, np.ndarray) and array.shape == () else array


def _few(names):
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def of_style(icons: Icons, style: str) -> np.ndarray:
    """Marks the icons of a style, matched as in the released code: bool [N]; ValueError where none or all are."""
    return _checked(np.array([style in path for path in icons.paths]), f"style {style}")


def of_subclass(icons: Icons, match: str = "path") -> np.ndarray:
    """Marks the icons of the held-out subtypes by `path` or `subtype_exact`: bool [N]; ValueError where none or all are."""
    if match not in MATCHES:
        raise ValueError(f"expected match {' or '.join(MATCHES)}, found {match!r}")
    if match == "path":
        held = np.array([[name in path for name in SUBTYPES] for path in icons.paths])
    else:
        held = np.array([[name == subtype for name in SUBTYPES] for subtype in icons.subtypes])
    if missing := [name for name, one in zip(SUBTYPES, held.any(0)) if not one]:
        logging.warning("ICONS-50: no icon of the subtypes %s, which are held out.", ", ".join(missing))
    return _checked(held.any(1), f"subtypes by {match}")


def _checked(held, what):
    if not held.any() or held.all():
        raise ValueError(f"expected icons of the {what} and others, found {held.sum()} of {len(held)}")
    return held
