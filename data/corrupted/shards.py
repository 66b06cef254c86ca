"""Parquet and WebDataset, as `corruptions.write` writes them: shards of encoded images with their labels,
`contrast/3/00000.parquet` or `contrast/3/00000.tar`.
"""

import importlib
import io
import itertools
import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from corruptions.write.shards import ROWS, Parquet, WebDataset
from corruptions.write.sources import require
from data import decode
from data.corrupted.dataset import Batch, CorruptedDataset, mending, written_places
from data.corrupted.folders import in_batches, read_image

Record = tuple[bytes, int]


class CorruptedShards(CorruptedDataset):
    """Shards, read one record after another; threads decode the next batch while one is used."""

    def __init__(self, path: Path, manifest: dict[str, Any], threads: int | None):
        super().__init__(path, written_places(path, manifest))
        self._suffix, self._records = FORMS[manifest["layout"]]
        if self._records is read_parquet:
            require("pyarrow.parquet", "reading Parquet needs pyarrow", extra="parquet")
        self._threads = threads or os.cpu_count()
        self._mending = mending(manifest)
        self.number = manifest["images"]
        self.image_shape = tuple(manifest["image_shape"])
        self.class_names = tuple(manifest["class_names"])
        self.provenance = {"source": str(path), "format": manifest["layout"], "manifest": manifest}

    def _read(self, place: Path, batch_size: int) -> Iterator[Batch]:
        items = itertools.chain.from_iterable(map(self._items, sorted(place.glob(f"*{self._suffix}"))))
        number = 0
        for images, labels in in_batches(items, self.image_shape, batch_size, self._threads):
            number += len(labels)
            yield images, labels
        if number != self.number:
            raise ValueError(f"{place}: expected {self.number} images as in its manifest, found {number}")

    def _items(self, shard: Path) -> Iterator[tuple[Callable[[], tuple[str, np.ndarray]], int]]:
        """For each record of a shard what decodes its image, and its label."""
        try:
            for position, (content, label) in enumerate(self._records(shard)):
                name = f"{shard} record {position}"
                if label not in range(len(self.class_names)):
                    raise ValueError(
                        f"record {position}: expected a label 0..{len(self.class_names) - 1}, found {label}"
                    )
                yield lambda name=name, content=content: (name, read_image(io.BytesIO(content), name)), label
        except (*decode.DAMAGED, tarfile.TarError, LookupError, AttributeError, TypeError) as error:
            raise ValueError(
                f"{shard} is damaged ({type(error).__name__}: {str(error)[:120]}); mend it with:\n  {self._mending}"
            ) from error


def read_parquet(path: Path) -> Iterator[Record]:
    """Reads a row group of a Parquet file at a time."""
    with importlib.import_module("pyarrow.parquet").ParquetFile(path) as file:
        for rows in file.iter_batches(ROWS, columns=["image", "label"]):
            for row in rows.to_pylist():
                yield row["image"]["bytes"], row["label"]


def read_webdataset(path: Path) -> Iterator[Record]:
    """Reads the members of a tar file two by two: an image and its label."""
    with tarfile.open(path, "r:") as archive:
        members = iter(archive)
        for image, label in zip(members, members, strict=True):
            if label.name != f"{Path(image.name).stem}.cls":
                raise ValueError(f"expected the label of {image.name} beside it, found {label.name}")
            yield archive.extractfile(image).read(), int(archive.extractfile(label).read())


FORMS = {"parquet": (Parquet.file_suffix, read_parquet), "webdataset": (WebDataset.file_suffix, read_webdataset)}
"""Layout: the suffix of its shards, and what reads one."""
