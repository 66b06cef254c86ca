"""Shards: the images of a block one after another in few files, and a dataset card.

    parquet       contrast/3/00000.parquet    columns image {bytes, path} and label, as Hugging Face stores images
    webdataset    contrast/3/00000.tar        00000042.jpg (or .png) and 00000042.cls, the label, for each image

A shard holds 10,000 images. The same images give the same files, whatever the batch size: a damaged shard is written again
with the bytes that its digest tells of. So pyarrow writes Parquet with settings of ours, and Python's own tarfile, below
`webdataset.TarWriter` too, writes the tar files: TarWriter puts the time and a user into them, and each label before its image.
"""

import importlib
import io
import json
import pathlib
import tarfile
from typing import Any

import numpy as np

from corruptions import files
from corruptions.write import manifests
from corruptions.write.layouts import LOG, Folders
from corruptions.write.manifests import Entry, Severity
from corruptions.write.sources import require

IMAGES = 10_000  # images in a shard: a few hundred megabytes of photographs
ROWS = 100  # images in a row group of Parquet, which readers load as a whole


class Shards(Folders):
    """Writes shards; a subclass opens them, and `open_shard` raises NotImplementedError here.

    A shard has `add(position, name, label, content)` and `close()`.
    """

    counted = "shards"
    file_suffix: str

    def _refuse_merged(self) -> None:
        """Does nothing: names are in the shards."""

    def open_shard(self, path: pathlib.Path) -> Any:
        """Begins a file."""
        raise NotImplementedError

    def begin(self, entry: Entry, severity: Severity) -> None:
        self._fresh(entry, severity)
        self._shard: Any = None

    def write(self, entry: Entry, severity: Severity, start: int, images: np.ndarray) -> None:
        for position, content in enumerate(self.pool.map(self.encode, images), start):
            if position % IMAGES == 0:
                self._end_shard()
                self._file = self._block(entry, severity) / f"{position // IMAGES:05d}{self.file_suffix}"
                self._shard = self.open_shard(self._file)
            assert self._shard is not None  # images come in order, from the first
            self._shard.add(position, self.name(position), int(self.source.labels[position]), content)

    def finish(self, entry: Entry, severity: Severity) -> None:
        self._end_shard()
        super().finish(entry, severity)

    def close(self) -> None:
        """Writes the dataset card too, unless it was edited."""
        if not manifests.save_card(self.folder, self.manifest, self.file_suffix):
            LOG.warning("%s was edited; left as it is", self.folder / manifests.CARD)
        super().close()

    def _end_shard(self):
        if self._shard is not None:
            self._shard.close()
            self.digests[self._file.name] = files.describe_file(self._file)["sha256"]


class Parquet(Shards):
    """Writes Parquet, by pyarrow."""

    file_suffix = ".parquet"

    def start(self) -> None:
        _pyarrow()  # refused before anything is written
        super().start()

    def open_shard(self, path: pathlib.Path) -> Any:
        return Rows(path, self.source.class_names)

    def _encoded(self, folder, number):
        rows = _pyarrow().parquet.ParquetFile(folder / f"{0:05d}{self.file_suffix}").read_row_group(0)
        return [row["bytes"] for row in rows["image"].slice(0, number).to_pylist()]


class WebDataset(Shards):
    """Writes tar files."""

    file_suffix = ".tar"

    def open_shard(self, path: pathlib.Path) -> Any:
        return Members(path)

    def _encoded(self, folder, number):
        with tarfile.open(folder / f"{0:05d}{self.file_suffix}") as file:
            return [file.extractfile(member).read() for member in file.getmembers()[: 2 * number : 2]]


class Rows:
    """A Parquet file, without compression: encoded images do not become smaller."""

    def __init__(self, path, class_names):
        pyarrow = _pyarrow()
        label = {"_type": "ClassLabel", "names": list(class_names)}
        features = {"info": {"features": {"image": {"_type": "Image"}, "label": label}}}
        image = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
        schema = pyarrow.schema([("image", image), ("label", pyarrow.int64())])
        self._schema = schema.with_metadata({"huggingface": json.dumps(features)})
        self._table = pyarrow.Table.from_pylist
        plain = {"use_dictionary": False, "write_statistics": False}  # both would store images a second time
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
    require("pyarrow.parquet", "writing Parquet needs pyarrow", "pyarrow")
    return importlib.import_module("pyarrow")


class Members:
    """A tar file, without times and owners."""

    def __init__(self, path):
        self._file = tarfile.open(path, "w", format=tarfile.USTAR_FORMAT)  # noqa: SIM115 - closed by close()

    def add(self, position, name, label, content):
        image = ".png" if name.endswith(".png") else ".jpg"
        for suffix, member_content in ((image, content), (".cls", str(label).encode())):
            member = tarfile.TarInfo(f"{position:08d}{suffix}")
            member.size = len(member_content)
            self._file.addfile(member, io.BytesIO(member_content))

    def close(self):
        self._file.close()
