"""Names of what a model is shown, for readers of its answers: dataset, preprocessing, corruption.

`analysis.errors` compares errors only with errors of the same names.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from analysis.errors import conditions as named
from analysis.errors.conditions import FROST
from analysis.errors.reference import PREPROCESSING
from analysis.errors.summary import ORIGINAL
from data import Dataset, decode
from data.corrupted import CorruptedDataset

IMAGENET = "imagenet"
_NONE = "none"
_FOLDER = "image_folder"  # a dataset that its classes identify, not its name
_IDENTITY = ("format", "layout", "seed", "prng", "jpeg_quality", "source", "images", "image_shape", "class_names")
_SETTINGS = ("levels", "table", "options", "rounding")


def about(
    dataset: str, classes: int, shape: Sequence[int], preprocessing: str, imports: Iterable[str] = ()
) -> dict[str, Any]:
    """Names the test images of answers, for `analysis.answers.Record`.

    Args:
      dataset: its name, "" if it is not known.
      classes: how many.
      shape: (H, W, 3).
      preprocessing: of the test images, "" if it is not known.
      imports: modules of the user's that a reader of the answers imports too.
    """
    names = {"dataset": dataset, "classes": classes, "image_shape": list(shape), "preprocessing": preprocessing}
    return names | {"imports": list(imports)}


def of_dataset(dataset: Dataset, imports: Iterable[str] = ()) -> dict[str, Any]:
    """Names the test images of a dataset, see `about`."""
    return about(_name(dataset), dataset.num_classes, dataset.image_shape, preprocessing(dataset.provenance), imports)


def _name(dataset):
    return f"{_FOLDER}:{','.join(dataset.class_names)}" if dataset.name == _FOLDER else dataset.name


def described(
    name: str, shape: Sequence[int], options: Mapping[str, Any] | None = None, levels: Sequence[int] | None = None
) -> dict[str, Any]:
    """Describes a corruption at a size: its table, range, levels, frost and options."""
    return named.of_corruption(name, shape, options, levels)


def of_stored(dataset: Dataset, stored: CorruptedDataset, imports: Iterable[str] = ()) -> dict[str, Any]:
    """Names the images of a corrupted dataset on disk, see `about`; `stored` is true.

    A dataset that was published without a manifest has the published preprocessing.
    """
    manifest = stored.provenance.get("manifest")
    published = PREPROCESSING if dataset.name == IMAGENET and stored.image_shape[0] == 224 else _NONE
    words = published if manifest is None else _in_words(manifest.get("source", {}))
    return about(dataset.name, dataset.num_classes, stored.image_shape, words, imports) | {"stored": True}


def stored_description(stored: CorruptedDataset, name: str) -> dict[str, Any]:
    """Describes a corruption of a dataset on disk.

    A dataset that was published without a manifest has the published severities for its image size
    and, if it is ImageNet-C, the original photographs of frost.
    """
    manifest = stored.provenance.get("manifest")
    entry = (manifest or {}).get("corruptions", {}).get(name, {})
    options = dict(entry.get("options", {})) | ({"table": entry["table"]} if entry.get("table") else {})
    words = described(name, stored.image_shape, options)
    return words | {"frost": ORIGINAL} if manifest is None and name == FROST else words


def stored_source(stored: CorruptedDataset, name: str) -> dict[str, Any]:
    """Records the folder of a corrupted dataset and, from its manifest, the settings of one
    corruption.
    """
    source = {key: value for key, value in stored.provenance.items() if key != "manifest"}
    if manifest := stored.provenance.get("manifest"):
        source |= {key: manifest.get(key) for key in _IDENTITY}
        entry = manifest.get("corruptions", {}).get(name, {})
        source["corruption"] = {key: entry.get(key) for key in _SETTINGS}
    return source


def preprocessing(provenance: Mapping[str, Any]) -> str:
    """Tells in words how a dataset's test images were preprocessed; `none` if they are as they were
    published.
    """
    words = provenance.get("preprocess") or provenance.get("made_from", {}).get("preprocess") or _NONE
    return words.rpartition("test: ")[2]


def _in_words(source):
    """Tells how `corruptions.write` preprocessed its source."""
    recipe, size = source.get("preprocess", _NONE), source.get("size")
    if recipe == IMAGENET and size:
        return decode.description(decode.sides(size))
    return recipe if recipe == _NONE else f"{recipe} {size}"
