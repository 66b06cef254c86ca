"""What the errors of an evaluation are measured under, for `analysis.errors`."""

import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from analysis import derived
from analysis.errors import conditions as named
from analysis.errors.conditions import FROST, Conditions
from analysis.errors.reference import PREPROCESSING
from analysis.errors.summary import ORIGINAL
from analysis.tables import CLEAN, RANDOM
from data import Dataset, decode
from data.corrupted import CorruptedDataset
from evaluation.conditions import Condition

IMAGENET = "imagenet"
_NONE = "none"
_FOLDER = "image_folder"  # a dataset that is told by its classes, not by its name


def of_images(
    dataset: str,
    classes: int,
    shape: Sequence[int],
    preprocessing: str,
    options: Mapping[str, Mapping[str, Any]],
    conditions: Iterable[Condition],
    folder: pathlib.Path | None = None,
) -> Conditions:
    """Makes the conditions of images that are corrupted here.

    Args:
      dataset: its name, "" where it is not known.
      classes: how many.
      shape: (H, W, 3).
      preprocessing: of the test images, "" where it is not known.
      options: corruption -> its static options.
      conditions: that are evaluated.
      folder: workdir; what it has answers to belongs to the conditions too.
    """
    levels: dict[str, Sequence[int] | None] = kept_levels(folder / "answers") if folder else {}
    levels |= {c.corruption: c.levels for c in conditions if c.severity == RANDOM or c.corruption not in levels}
    levels.pop(CLEAN, None)
    by_corruption = {
        name: named.of_corruption(name, shape, options.get(name), of_name) for name, of_name in levels.items()
    }
    return Conditions(dataset, classes, tuple(shape), preprocessing, by_corruption)


def of_dataset(dataset: Dataset, options, conditions: Iterable[Condition], folder: pathlib.Path | None) -> Conditions:
    """Makes the conditions of a dataset's test images, corrupted here; see `of_images`."""
    name = dataset.name
    if name == _FOLDER:
        name = f"{_FOLDER}:{','.join(dataset.class_names)}"
    given = (name, dataset.num_classes, dataset.image_shape, preprocessing(dataset.provenance))
    return of_images(*given, options, conditions, folder)


def of_stored(dataset: Dataset, stored: CorruptedDataset) -> Conditions:
    """Makes the conditions of a corrupted dataset on disk.

    What its manifest does not tell, for it was published without, is what was published: the
    severities for its image size and, of ImageNet-C, the original photographs of frost.
    """
    manifest = stored.provenance.get("manifest")
    entries = (manifest or {}).get("corruptions", {})
    source = (manifest or {}).get("source", {})
    published = PREPROCESSING if dataset.name == IMAGENET and stored.image_shape[0] == 224 else _NONE
    words = published if manifest is None else _in_words(source)
    by_corruption = {}
    for name in dict.fromkeys(name for name, _ in stored.conditions()):
        entry = entries.get(name, {})
        options = dict(entry.get("options", {})) | ({"table": entry["table"]} if entry.get("table") else {})
        by_corruption[name] = named.of_corruption(name, stored.image_shape, options)
        if manifest is None and name == FROST:
            by_corruption[name]["frost"] = ORIGINAL
    return Conditions(dataset.name, dataset.num_classes, tuple(stored.image_shape), words, by_corruption)


def preprocessing(provenance: Mapping[str, Any]) -> str:
    """Says what was done to a dataset's test images; `none` where they are as they were
    published.
    """
    words = provenance.get("preprocess") or provenance.get("made_from", {}).get("preprocess") or _NONE
    return words.rpartition("test: ")[2]


def _in_words(source):
    """Says what `corruptions.write` did to its source."""
    recipe, size = source.get("preprocess", _NONE), source.get("size")
    if recipe == IMAGENET and size:
        return decode.description(decode.sides(size))
    return recipe if recipe == _NONE else f"{recipe} {size}"


def kept_levels(folder: pathlib.Path) -> dict[str, tuple[int, ...] | None]:
    """Tells of which corruptions a folder holds answers, and the levels that random severities were
    drawn from.
    """
    levels: dict[str, tuple[int, ...] | None] = {}
    for path, (corruption, _) in reversed(derived.files_of(folder)):
        tail = re.search(rf"-{RANDOM}((?:-\d+)+)$", path.stem)
        if tail or corruption not in levels:
            levels[corruption] = tuple(map(int, tail[1].split("-")[1:])) if tail else None
    return levels
