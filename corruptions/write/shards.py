"""Shards: the images of a block one after another in few files, and a dataset card.

    parquet       contrast/3/00000.parquet    columns image {bytes, path} and label, as Hugging Face stores images
    webdataset    contrast/3/00000.tar        00000042.jpg (or .png) and 00000042.cls, the label, for each image

A shard holds 10,000 images. The same images give the same files, whatever the batch size.
"""

import html
import importlib
import io
import json
import pathlib
import tarfile
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from corruptions import files
from corruptions.write.layouts import LOG, Folders
from corruptions.write.manifests import Entry, Manifest, Severity, token
from corruptions.write.sources import require

IMAGES = 10_000  # images in a shard: a few hundred megabytes of photographs
ROWS = 100  # images in a row group of Parquet, which readers load as a whole
CARD = "README.md"
_SEAL = "<!-- Written by corruptions.write, and again by its next call unless edited: sha256 {} -->\n"


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
        path = self.folder / CARD
        if path.exists() and (before := path.read_text("utf-8")) != _sealed(before[: before.rfind("<!--")]):
            LOG.warning("%s was edited; left as it is", path)
        else:
            files.replace(path, card(self.manifest, self.file_suffix).encode())
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
        return _Rows(path, self.source.class_names)

    def _encoded(self, folder, number):
        rows = _pyarrow().parquet.ParquetFile(folder / f"{0:05d}{self.file_suffix}").read_row_group(0)
        return [row["bytes"] for row in rows["image"].slice(0, number).to_pylist()]


class WebDataset(Shards):
    """Writes tar files."""

    file_suffix = ".tar"

    def open_shard(self, path: pathlib.Path) -> Any:
        return _Members(path)

    def _encoded(self, folder, number):
        with tarfile.open(folder / f"{0:05d}{self.file_suffix}") as file:
            return [file.extractfile(member).read() for member in file.getmembers()[: 2 * number : 2]]


class _Rows:
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


class _Members:
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


def card(manifest: Manifest, suffix: str) -> str:
    """Makes the dataset card, README.md, with the metadata that Hugging Face reads on top; `suffix` ends its shards.

    Nothing in it depends on time or machine. Its last line holds the digest of the others, which tells an edited
    card from one to be written again.
    """
    source, shape, quality = manifest["source"], manifest["image_shape"], manifest["jpeg_quality"]
    sizes = f"{shape[1]}x{shape[0]} pixels" if shape else "their own sizes"
    name, split = source.get("name", source["kind"]), source.get("split", "all")
    encoded = "PNG, without loss" if quality is None else f"JPEG of quality {quality}, 4:2:0"
    lines = [
        "---",
        "task_categories:",
        "- image-classification",
        "configs:",
        *_configurations(manifest["corruptions"], suffix),
        "---",
        "",
        "# Images under corruptions",
        "",
        f"{manifest['images']} images of {sizes} in {len(manifest['class_names'])} classes, corrupted by "
        "`jax-corruptions`. A configuration is one corruption at one severity.",
        "",
        "| corruption | severities | levels | table | options |",
        "|---|---|---|---|---|",
        *_rows(manifest["corruptions"]),
        "",
        f"- Source: {_code(name)}, split {_code(split)}. This copy has the same licence.",
        f"- Draws: seed {manifest['seed']}; image i has the key `{manifest['key']}`.",
        f"- Files: {encoded}, labels beside the images. `checksums/` has the sha256 of each, for `sha256sum -c`;",
        "  `manifest.json` has all settings, versions and commands.",
        "",
    ]
    return _sealed("\n".join(lines))


def _sealed(lines):
    return lines + _SEAL.format(files.digest_of(lines))


def _configurations(entries: Mapping[str, Entry], suffix: str) -> Iterator[str]:
    for _, entry in sorted(entries.items()):
        for severity in map(token, entry["written"]):
            name, path = f"{entry['path']}-{severity}", f"{entry['path']}/{severity}/*{suffix}"
            yield from (f"- config_name: {json.dumps(name)}", "  data_files:")
            yield from ("  - split: test", f"    path: {json.dumps(path)}")


def _rows(entries: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, entry in sorted(entries.items()):
        severities = ", ".join(map(token, entry["written"]))
        levels = ", ".join(map(str, entry["levels"] or ())) or "-"
        options = _code(json.dumps(entry["options"], sort_keys=True)) if entry["options"] else "-"
        version = entry.get("version") or 1
        named = f"{_code(name)}{f', version {version} of its pixels' * (version > 1)}"
        yield f"| {named} | {severities} | {levels} | {entry['table'] or '-'} | {options} |"


def _code(text):
    """Formats text so that Markdown shows it unchanged, in a table too: names come from foreign datasets and corruptions."""
    return f"<code>{html.escape(' '.join(str(text).split())).replace('|', '&#124;')}</code>"
