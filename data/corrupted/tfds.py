"""`cifar10_corrupted` and `imagenet2012_corrupted` of TensorFlow Datasets, read from array_record without TensorFlow.

`cifar10_corrupted` is CIFAR-10-C as published. `imagenet2012_corrupted` is another benchmark than ImageNet-C, and its
corruptions have names of their own, `imagenet2012_corrupted/fog`: images are cropped before they are resized, values are rounded
where ImageNet-C's are cut off (half of those of contrast, defocus_blur and zoom_blur lie a level higher), pixelate averages bicubically
(4 to 8 levels off on average), motion_blur has one angle, and fog comes from a larger map (.8 of the deviation within a picture).
Source: the code of tensorflow-datasets 4.9.10.
"""

import io
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from data import tfds_source
from data.corrupted.dataset import IMAGENET_OF_TFDS, Batch, CorruptedDataset, published_order, qualified
from data.corrupted.readers import in_batches, read_image

_SPLITS = ("test", "validation")
_PREPROCESSING = "centre crop of 87.5 % of the shorter side, 224, bicubic without antialiasing (TensorFlow)"
_IMAGEMAGICK = (
    "\nIts motion_blur and snow call ImageMagick's convert by the name imagemagick, which no system has: first give it that "
    'name, ln -s "$(command -v convert)" ~/.local/bin/imagemagick, in a folder of PATH'
)
_CHUNK = 2000  # records of array_record that are read at a time


class CorruptedTfds(CorruptedDataset):
    """The prepared configurations `<corruption>_<severity>`, or the named one."""

    def __init__(self, name: str, config: str, data_dir: str | os.PathLike | None, threads: int | None):
        parent = tfds_source.data_folder(data_dir) / name
        configs = [folder for folder in parent.glob("*") if re.fullmatch(r"\w+_\d+", folder.name)]
        folders = {config.name: version for config in configs if (version := tfds_source.newest(config))}
        if not folders or (config and config not in folders):
            raise FileNotFoundError(
                f"no prepared {name}/{config or '<corruption>_<severity>'} in {parent} (the folder comes from data_dir "
                "or TFDS_DATA_DIR). Prepare it, which needs TensorFlow, with:\n"
                f"  tfds build {name}{'/' + config if config else ''} --file_format=array_record --data_dir={parent.parent}"
                + (_IMAGEMAGICK if name == IMAGENET_OF_TFDS else "")
            )
        configs = [config] if config else _in_order(folders)
        super().__init__(parent, {_condition(name, one): (one, folders[one]) for one in configs})
        self.preprocessing = _PREPROCESSING if name == IMAGENET_OF_TFDS else None
        self._threads = threads or os.cpu_count()
        source, info = _open(folders[configs[0]])
        self.number = len(source)
        self.class_names = tuple(info.features["label"].names)
        self.image_shape = read_image(io.BytesIO(source[0]["image"]), f"{configs[0]} [0]").shape
        version = folders[configs[0]].name
        self.provenance = {"source": str(parent), "format": "tfds array_record", "version": version}

    def _files(self, place: tuple[str, Path]) -> list[Path]:
        return sorted(place[1].glob("*.array_record*"))

    def _read(self, place: tuple[str, Path], batch_size: int) -> Iterator[Batch]:
        _, folder = place
        source, _ = _open(folder)
        if len(source) != self.number:
            raise ValueError(f"{folder}: expected {self.number} images as in the others, found {len(source)}")
        yield from in_batches(self._items(source, folder), self.image_shape, batch_size, self._threads)

    def _items(self, source: Any, folder: Path) -> Iterator[tuple[Callable[[], tuple[str, Any]], int]]:
        """Yields for each record a function that decodes its image, and its label."""
        for start in range(0, self.number, _CHUNK):
            records = source.__getitems__(list(range(start, min(start + _CHUNK, self.number))))
            for position, record in enumerate(records, start):
                name, content = f"{folder} record {position}", io.BytesIO(record["image"])
                yield lambda name=name, content=content: (name, read_image(content, name)), int(record["label"])


def _condition(dataset: str, config: str) -> tuple[str, int]:
    corruption, _, severity = config.rpartition("_")
    name = qualified(corruption)
    return name.replace("imagenet_c/", f"{dataset}/") if dataset == IMAGENET_OF_TFDS else name, int(severity)


def _in_order(configs: Any) -> list[str]:
    corruptions = published_order({config.rpartition("_")[0] for config in configs})
    rank = {corruption: i for i, corruption in enumerate(corruptions)}
    return sorted(configs, key=lambda config: (rank[config.rpartition("_")[0]], int(config.rpartition("_")[2])))


def _open(folder: Path) -> tuple[Any, Any]:
    """Returns the source of encoded records, and the dataset's info."""
    import tensorflow_datasets as tfds

    again = "prepare it in another folder with `tfds build ... --file_format=array_record`"
    tfds_source.check_format(folder, again)
    builder = tfds.builder_from_directory(folder)
    split = next((name for name in _SPLITS if name in builder.info.splits), None)
    if split is None:
        raise ValueError(f"{folder}: expected a split test or validation, found {', '.join(builder.info.splits)}")
    return builder.as_data_source(split, decoders={"image": tfds.decode.SkipDecoding()}), builder.info
