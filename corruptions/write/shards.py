"""Shards: the images of a block one after another in few files, and a dataset card.

    parquet       contrast/3/00000.parquet    columns image {bytes, path} and label, as Hugging Face has images
    webdataset    contrast/3/00000.tar        00000042.jpg (or .png) and 00000042.cls, the label, for each image

Blocks, their checksums and what is done about damage are those of `Folders`. A shard holds 10,000
images: the same images give the same files, whatever the batch size.
"""

import importlib
import io
import json
import pathlib
import tarfile
from typing import Protocol

import numpy as np

from corruptions.write import card, files
from corruptions.write.checks import Damage
from corruptions.write.folders import Folders
from corruptions.write.layout import Entry, Severity
from corruptions.write.sources import require

IMAGES = 10_000  # of a shard: a few hundred megabytes of photographs
ROWS = 100  # of a row group of Parquet, which readers load as a whole


class Shard(Protocol):
    """A file that is being written."""

    def add(self, position: int, name: str, label: int, content: bytes) -> None:
        """Adds the encoded image at a position of the dataset."""

    def close(self) -> None:
        """Ends the file."""


class Shards(Folders):
    """Writes shards; of which form, `open_shard` says."""

    counted = "shards"
    file_suffix: str

    def open_shard(self, path: pathlib.Path) -> Shard:
        """Begins a file."""
        raise NotImplementedError

    def begin(self, entry: Entry, severity: Severity) -> None:
        self._fresh(entry, severity)
        self._shard: Shard | None = None

    def write(self, entry: Entry, severity: Severity, start: int, images: np.ndarray) -> None:
        for position, content in enumerate(self.pool.map(self.encode, images), start):
            if position % IMAGES == 0:
                self._end_shard()
                self._file = self._part(entry, severity) / f"{position // IMAGES:05d}{self.file_suffix}"
                self._shard = self.open_shard(self._file)
            assert self._shard is not None  # images come in order, from the first
            self._shard.add(position, self.name(position), int(self.source.labels[position]), content)

    def finish(self, entry: Entry, severity: Severity) -> None:
        self._end_shard()
        super().finish(entry, severity)

    def close(self) -> None:
        """Writes the dataset card too, unless it was edited."""
        path = self.folder / card.NAME
        if path.exists() and not card.is_own(path.read_text("utf-8")):
            self.say(Damage(f"{path} was edited", ()))
        else:
            files.replace(path, card.text(self.manifest, self.file_suffix).encode())
        super().close()

    def _end_shard(self):
        if self._shard is not None:
            self._shard.close()
            self.digests[self._file.name] = files.describe_file(self._file)["sha256"]


class Parquet(Shards):
    """Writes Parquet, by pyarrow."""

    file_suffix = ".parquet"

    def start(self) -> None:
        _pyarrow()  # before anything is written
        super().start()

    def open_shard(self, path: pathlib.Path) -> Shard:
        return _Rows(path, self.source.class_names)


class WebDataset(Shards):
    """Writes tar files."""

    file_suffix = ".tar"

    def open_shard(self, path: pathlib.Path) -> Shard:
        return _Members(path)


class _Rows:
    """A Parquet file. Encoded images do not become smaller: nothing is compressed."""

    def __init__(self, path, class_names):
        pyarrow = _pyarrow()
        label = {"_type": "ClassLabel", "names": list(class_names)}
        features = {"info": {"features": {"image": {"_type": "Image"}, "label": label}}}
        image = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
        schema = pyarrow.schema([("image", image), ("label", pyarrow.int64())])
        self._schema = schema.with_metadata({"huggingface": json.dumps(features)})
        self._table = pyarrow.Table.from_pylist
        plain = {"use_dictionary": False, "write_statistics": False}  # which would hold images, too
        self._file = pyarrow.parquet.ParquetWriter(path, self._schema, compression="NONE", **plain)
        self._rows = []

    def add(self, position, name, label, content):
        self._rows.append({"image": {"bytes": content, "path": name}, "label": label})
        if len(self._rows) == ROWS:
            self._write_rows()

    def close(self):
        if self._rows:
            self._write_rows()
        self._file.close()

    def _write_rows(self):
        self._file.write_table(self._table(self._rows, self._schema))
        self._rows = []


def _pyarrow():
    require("pyarrow.parquet", "writing Parquet needs pyarrow", extra="parquet")
    return importlib.import_module("pyarrow")


class _Members:
    """A tar file, without times and owners."""

    def __init__(self, path):
        self._file = tarfile.open(path, "w", format=tarfile.USTAR_FORMAT)  # noqa: SIM115 - closed by close()

    def add(self, position, name, label, content):
        image = ".png" if name.endswith(".png") else ".jpg"
        for suffix, of_suffix in ((image, content), (".cls", str(label).encode())):
            member = tarfile.TarInfo(f"{position:08d}{suffix}")
            member.size = len(of_suffix)
            self._file.addfile(member, io.BytesIO(of_suffix))

    def close(self):
        self._file.close()
