"""CIFAR-10 and CIFAR-100 as TensorFlow Datasets stores them (array_record), read without TensorFlow.

The images are decoded once (about ten seconds for 60,000 on one core) and then memory-mapped from `data.cache`.
"""

import functools
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from corruptions.reading import pictures
from data import cache, tree
from data.dataset import Dataset, describe, limited, make_split
from runtime import files
from runtime.log import bar

CIFAR = {"cifar10": 10, "cifar100": 100}
_SIZE = 32
_CHUNK = 2000


def load_cifar(
    name: str,
    *,
    data_dir: str | os.PathLike | None = None,
    seed: int = 0,
    image_size: int = _SIZE,
    train_limit: int | None = None,
    test_limit: int | None = None,
    cache_dir: str | os.PathLike | None = None,
) -> Dataset:
    """Reads CIFAR-10 or CIFAR-100 (fine labels): 50,000 training and 10,000 test images, 32x32 (Krizhevsky, 2009).

    Arguments as of `data.load` (seed and image_size change nothing), and `cache_dir` as of `data.cache`. `data_dir` holds
    `<name>/<version>`; None takes `$TFDS_DATA_DIR`, then ~/tensorflow_datasets. Raises as `find`.
    """
    del seed, image_size
    folder = find(name, data_dir)
    splits, facts = {}, {}
    for split, limit in (("train", train_limit), ("test", test_limit)):
        state = tree.state(sorted(folder.glob(f"*-{split}.*")), folder)
        key = cache.fingerprint(folder.parent.name, folder.name, split, state)
        entry = cache.cached(f"{name}-{split}", key, functools.partial(_decode, folder, split), cache_dir)
        whole = make_split(entry.images, entry.labels, entry.index, CIFAR[name], f"{name} {split}")
        splits[split] = limited(whole, limit)
        facts[split] = describe(splits[split], entry.sha256 if limit is None else None)
    provenance = {"source": str(folder), "format": "tfds array_record", "version": folder.name, **facts}
    provenance["description"] = info(folder).get("description", "")
    return Dataset(name, class_names(folder, CIFAR[name]), splits["train"], splits["test"], provenance)


def find(name: str, data_dir: str | os.PathLike | None = None) -> Path:
    """Finds the folder `<data_dir>/<name>/<newest version>` of a prepared dataset.

    Raises FileNotFoundError, with the command that prepares it, where it is absent or in another format than
    array_record.
    """
    parent, command = data_folder(data_dir), f"python -m data.prepare --dataset={name} --data_dir="
    folder = newest(parent / name)
    if folder is None:
        raise FileNotFoundError(
            f"no prepared {name} in {parent / name} (expected {name}/<version>/dataset_info.json; the folder comes "
            f"from data_dir or TFDS_DATA_DIR). Prepare it with:\n  {command}{parent}"
        )
    check_format(folder, f"prepare it in another folder with:\n  {command}OTHER_FOLDER")
    return folder


def data_folder(data_dir: str | os.PathLike | None = None) -> Path:
    """Returns the folder of tfds datasets: `data_dir`, else `$TFDS_DATA_DIR`, else ~/tensorflow_datasets."""
    return Path(files.local(data_dir or default_folder())).expanduser()


def default_folder() -> str:
    """Returns `$TFDS_DATA_DIR`, else ~/tensorflow_datasets."""
    return os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets"


def newest(folder: Path) -> Path | None:
    """Finds the newest version in the folder of a tfds dataset; None when there is none."""
    versions = [path.parent for path in folder.glob("*/dataset_info.json") if _version(path.parent)]
    return max(versions, key=_version, default=None)


def _version(folder: Path) -> tuple[int, ...]:
    """(3, 0, 2) for a folder "3.0.2"; empty for any other name."""
    parts = folder.name.split(".")
    return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else ()


def info(folder: Path) -> dict[str, Any]:
    return files.read_json(folder / "dataset_info.json", remedy="copy the dataset again")


def check_format(folder: Path, remedy: str) -> None:
    """Raises FileNotFoundError, which ends in `remedy`, where a dataset has a file format that only TensorFlow reads."""
    if (found := info(folder).get("fileFormat", "tfrecord")) != "array_record":
        expected = "expected array_record, which is read without TensorFlow"
        raise FileNotFoundError(f"{folder} is stored as {found}, {expected}; {remedy}")


def records(folder: Path, split: str) -> Any:
    """Opens the records of a split for random access, images still encoded."""
    import tensorflow_datasets as tfds  # this import takes a second, which cached datasets save

    builder = tfds.builder_from_directory(folder)
    return builder.as_data_source(split, decoders={"image": tfds.decode.SkipDecoding()})


def class_names(folder: Path, num_classes: int) -> tuple[str, ...]:
    path = folder / "label.labels.txt"
    names = tuple(path.read_text().split()) if path.exists() else tuple(map(str, range(num_classes)))
    if len(names) != num_classes:
        raise ValueError(f"{path}: expected {num_classes} class names, found {len(names)}")
    return names


def _decode(folder: Path, split: str, notes: dict[str, Any]) -> Iterator[cache.Chunk]:
    # Reading records in bulk and decoding images here is three times as fast as one `source[i]` after another.
    source = records(folder, split)
    notes["records"] = len(source)
    with bar("image", total=len(source), desc=f"decoding {folder.parent.name} {split}") as shown:
        for start in range(0, len(source), _CHUNK):
            index = np.arange(start, min(start + _CHUNK, len(source)), dtype=np.int32)
            chunk = source.__getitems__(index.tolist())
            labels = np.array([record["label"] for record in chunk], np.int32)
            yield np.stack([_image(record["image"]) for record in chunk]), labels, index
            shown.update(len(index))


def _image(encoded: bytes) -> np.ndarray:
    from PIL import Image

    # Named formats save the search through every plug-in; tobytes is faster than np.asarray here.
    image = Image.open(io.BytesIO(encoded), formats=("PNG", "JPEG"))
    image = pictures.rgb(image)
    if image.size != (_SIZE, _SIZE):
        raise ValueError(f"expected a {_SIZE}x{_SIZE} image, found {image.height}x{image.width}")
    return np.frombuffer(image.tobytes(), np.uint8).reshape(_SIZE, _SIZE, 3)
