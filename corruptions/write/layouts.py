"""The forms of a corrupted dataset on disk: arrays as in CIFAR-10-C, image files as in ImageNet-C, and shards.

    npy          `fog.npy`, uint8[S N, H, W, 3], the N images of the first severity first; `labels.npy` [S N]
    folders      `fog/3/class/name.JPEG` (quality 85 as published), or lossless `.png`; `classes.txt` where the class names
                 in the order of their labels are not sorted
    parquet, webdataset      see `corruptions.write.shards`

A unit (`corruptions.write.verifying`) is written below `.part`, recorded in the manifest when it is complete,
and only then takes its name. So each visible file is complete, and a killed run loses at most one block.
"""

import io
import logging
import os
import pathlib
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from corruptions import files
from corruptions.core import checks
from corruptions.write import manifests, verifying
from corruptions.write.manifests import Entry, Manifest, Severity
from corruptions.write.sources import Source, require
from corruptions.write.verifying import LABELS, Unit

LOG = logging.getLogger("corruptions.write")
CLASSES = "classes.txt"


class Layout:
    """A dataset that is being written, one block (a corruption at a severity) after another.

    A form of dataset is a subclass with `begin`, `write` and `_describe`, which raise NotImplementedError here.

    Attributes:
      folder: the dataset.
      manifest: its manifest, kept up to date on disk.
      source: clean images.
      stamps: see `corruptions.write.verifying`; empty to compare all files with their sha256.
      verified: number of files that were compared so.
    """

    suffix = ""  # ends the path of a corruption

    def __init__(
        self,
        folder: str | os.PathLike,
        manifest: Manifest,
        source: Source,
        everything: bool = False,
    ) -> None:
        self.folder = pathlib.Path(folder)
        self.manifest = manifest
        self.source = source
        self.stamps = {} if everything else verifying.load_stamps(self.folder)
        self.verified = 0
        self._everything = everything

    def start(self) -> None:
        """Prepares to write."""

    def todo(self, entry: Entry) -> list[Severity]:
        """Lists the severities to write, for the first time or because their unit was damaged.

        Publishes units that were complete when a run was killed.
        """
        for unit in verifying.units(self.manifest, entry):
            path, part = self.folder / unit.path, self._part(unit.path)
            if verifying.finished(entry, unit):
                if part.exists() and not path.exists():
                    self._publish(unit)
                if self._is_sound(unit):
                    continue
                entry["written"] = [severity for severity in entry["written"] if severity not in unit.severities]
                del self.manifest["files"][unit.recorded]
                if path.exists():  # aside in one rename: a kill here leaves no half of a folder under its name
                    _remove(part)
                    files.move(path, part)
            self._refuse_foreign(path)
        return [severity for severity in entry["severities"] if severity not in entry["written"]]

    def missing_bytes(self, entry: Entry) -> int:
        """Returns the disk space that a corruption still needs, as far as it is known in advance."""
        return 0

    def begin(self, entry: Entry, severity: Severity) -> None:
        """Begins a block."""
        raise NotImplementedError

    def write(self, entry: Entry, severity: Severity, start: int, images: np.ndarray) -> None:
        """Writes images uint8[n, H, W, 3] of a block, in order, from position `start`."""
        raise NotImplementedError

    def finish(self, entry: Entry, severity: Severity) -> None:
        """Forces a block to disk and records it; a unit that it completes takes its name."""
        entry["written"] = [other for other in entry["severities"] if other in (*entry["written"], severity)]
        (unit,) = (unit for unit in verifying.units(self.manifest, entry) if severity in unit.severities)
        complete = verifying.finished(entry, unit)
        if complete:
            self.manifest["files"][unit.recorded] = self._describe(unit)
            self.stamps[unit.path] = verifying.stamp_of(self.folder / ".part", unit)
            verifying.save_stamps(self.folder, self.stamps)
        manifests.save(self.folder, self.manifest)
        if complete:
            self._publish(unit)

    def first(self, entry: Entry, severity: Severity, number: int) -> list[np.ndarray]:
        """Reads the first images of a finished block from this machine, uint8[H, W, 3] each; none where they are not here."""
        raise NotImplementedError

    @property
    def lossy(self) -> bool:
        """Whether the files hold other pixels than were written."""
        return self.manifest["jpeg_quality"] is not None

    def as_written(self, image: np.ndarray) -> np.ndarray:
        """Returns the pixels that a reader finds after an image was written."""
        return image

    def close(self) -> None:
        """Removes the folder of unfinished units; keeps the stamps of units that were compared."""
        _remove(self.folder / ".part")
        verifying.save_stamps(self.folder, self.stamps)

    def _describe(self, unit: Unit) -> dict[str, Any]:
        raise NotImplementedError

    def _is_sound(self, unit):
        damage, foreign, number = verifying.compare(self.folder, self.manifest, unit, self.stamps)
        self.verified += number
        for line in foreign:
            LOG.warning("%s; left as it is", line)
        if damage:
            LOG.warning("%s; written again", damage)
        return not damage

    def _refuse_foreign(self, path):
        if path.exists():
            raise files.WriteError(f"{path} exists and was not written by this program; move it away")

    def _part(self, path):
        return files.contained(self.folder, f".part/{path}")  # a link there is no part of ours

    def _publish(self, unit):
        files.move(self._part(unit.path), self.folder / unit.path)


class Npy(Layout):
    """Writes one array for each corruption."""

    suffix = ".npy"

    def start(self) -> None:
        """Writes labels.npy, once."""
        severities = {len(entry["severities"]) for entry in self.manifest["corruptions"].values()}
        if len(severities) > 1:
            raise files.WriteError(
                f"expected as many severities for every corruption, as labels.npy serves all; found {sorted(severities)}"
            )
        path, unit = self.folder / LABELS, Unit(LABELS, ())
        if LABELS not in self.manifest["files"]:
            self._refuse_foreign(path)
        elif self._is_sound(unit):
            return
        content = io.BytesIO()
        np.save(content, np.tile(self.source.labels, severities.pop()))
        facts = {"bytes": content.tell(), "sha256": files.digest_of(content.getvalue())}
        self.manifest["files"][LABELS] = facts
        manifests.save(self.folder, self.manifest)
        files.replace(path, content.getvalue())

    def todo(self, entry: Entry) -> list[Severity]:
        missing, part = super().todo(entry), self._part(entry["path"])
        started = part.exists() and part.stat().st_size == self._file_bytes(entry)
        if len(missing) == len(entry["severities"]) or (missing and not started):
            _remove(part)
            entry["written"] = []
        return [severity for severity in entry["severities"] if severity not in entry["written"]]

    def missing_bytes(self, entry: Entry) -> int:
        return 0 if self._part(entry["path"]).exists() else self._file_bytes(entry)  # it begins at its full size

    def begin(self, entry: Entry, severity: Severity) -> None:
        """Makes the file at its whole size with the first severity."""
        part = self._part(entry["path"])
        if part.exists():
            return
        part.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(part, "wb") as file:
                file.write(self._header(entry))
                files.reserve(file, self._file_bytes(entry))
        except OSError:
            part.unlink(missing_ok=True)
            raise

    def write(self, entry: Entry, severity: Severity, start: int, images: np.ndarray) -> None:
        # No memory map: on a full disk a plain write raises an error, but a store into a map kills the process.
        with open(self._part(entry["path"]), "r+b") as file:
            position = entry["severities"].index(severity) * self.manifest["images"] + start
            file.seek(len(self._header(entry)) + position * images[0].size)
            file.write(np.ascontiguousarray(images).data)

    def finish(self, entry: Entry, severity: Severity) -> None:
        with open(self._part(entry["path"]), "r+b") as file:
            os.fsync(file.fileno())
        super().finish(entry, severity)

    def first(self, entry: Entry, severity: Severity, number: int) -> list[np.ndarray]:
        path = next((p for p in (self.folder / entry["path"], self._part(entry["path"])) if p.exists()), None)
        start = entry["severities"].index(severity) * self.manifest["images"]
        return [] if path is None else list(np.load(path, mmap_mode="r")[start : start + number])

    def _describe(self, unit):
        return files.describe_file(self._part(unit.path))

    def _file_bytes(self, entry):
        image = int(np.prod(self.manifest["image_shape"]))
        return len(self._header(entry)) + len(entry["severities"]) * self.manifest["images"] * image

    def _header(self, entry):
        rows = len(entry["severities"]) * self.manifest["images"]
        file = io.BytesIO()
        facts = {"descr": "|u1", "fortran_order": False, "shape": (rows, *self.manifest["image_shape"])}
        np.lib.format.write_array_header_1_0(file, facts)
        return file.getvalue()


class Folders(Layout):
    """Writes image files."""

    counted = "images"  # name of the number of files in the manifest

    def start(self) -> None:
        require("PIL", "writing image files needs Pillow", "pillow")
        self.pool = ThreadPoolExecutor(os.cpu_count())
        self.digests: dict[str, str] = {}  # path in the block -> sha256
        names = self.source.class_names
        self._refuse_merged()
        if empty := len(names) - len(np.unique(self.source.labels)):
            LOG.warning("%s: %d of %d classes have no image; their folders stay empty", self.folder, empty, len(names))
        if list(names) != sorted(names):
            LOG.warning(
                "%s: labels are the places of class names in %s. Readers that number sorted folders, as torchvision does, give "
                "other labels: %r would be 0, not %d",
                *(self.folder, CLASSES, min(names), names.index(min(names))),
            )
            manifests.save(self.folder, self.manifest)  # without it the file would be foreign to the next run
            files.replace(self.folder / CLASSES, "".join(f"{name}\n" for name in names).encode())

    def _refuse_merged(self) -> None:
        """Refuses names that this file system takes for one; warns of those that others do."""
        pairs = checks.merged(self.source.class_names) or checks.merged(map(self.name, range(len(self.source))))
        if not pairs:
            return
        if not files.keeps_apart(self.folder, *pairs[0]):
            raise files.WriteError(
                f"expected names that the file system of {self.folder} keeps apart, found {pairs[0][0]!r} and {pairs[0][1]!r}; "
                "rename one, or write with the layout parquet"
            )
        LOG.warning(
            "%s: %d names differ from others only in capitals or in composed letters (the first: %r from %r). A copy to a disk of "
            "macOS or Windows makes one of both; the layout parquet keeps them apart",
            *(self.folder, len(pairs), *reversed(pairs[0])),
        )

    def begin(self, entry: Entry, severity: Severity) -> None:
        part = self._fresh(entry, severity)
        for name in self.source.class_names:  # empty classes too: readers number classes by their folders
            (part / name).mkdir(parents=True)

    def write(self, entry: Entry, severity: Severity, start: int, images: np.ndarray) -> None:
        part = self._block(entry, severity)
        positions = range(start, start + len(images))
        self.digests.update(self.pool.map(lambda i: self._write_image(part, i, images[i - start]), positions))

    def finish(self, entry: Entry, severity: Severity) -> None:
        os.sync()  # one call for thousands of files
        super().finish(entry, severity)

    def close(self) -> None:
        self.pool.shutdown()
        super().close()

    def name(self, position: int) -> str:
        """Returns the file name of an image: its class, its name in the source and a suffix."""
        class_name = self.source.class_names[self.source.labels[position]]
        suffix = ".png" if self.manifest["jpeg_quality"] is None else ".JPEG"
        return f"{class_name}/{self.source.names[position]}{suffix}"

    def encode(self, image: np.ndarray) -> bytes:
        """Encodes uint8[H, W, 3] as an image file."""
        from PIL import Image

        quality = self.manifest["jpeg_quality"]
        kind = {"format": "PNG"} if quality is None else {"format": "JPEG", "quality": quality, "optimize": True}
        content = io.BytesIO()
        Image.fromarray(image).save(content, **kind)  # Pillow's default for JPEG is 4:2:0, as published
        return content.getvalue()

    def as_written(self, image: np.ndarray) -> np.ndarray:
        return _decoded(self.encode(image))

    def first(self, entry: Entry, severity: Severity, number: int) -> list[np.ndarray]:
        folder = self.folder / entry["path"] / manifests.token(severity)
        return [_decoded(content) for content in self._encoded(folder, number)] if folder.exists() else []

    def _encoded(self, folder, number):
        """Reads the first encoded images of a block."""
        return [(folder / self.name(position)).read_bytes() for position in range(number)]

    def _write_image(self, part, position, image):
        content, name = self.encode(image), self.name(position)
        path = part / name
        if "/" in self.source.names[position]:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return name, files.digest_of(content)

    def _describe(self, unit):
        lines = [f"{digest}  {unit.path}/{name}\n" for name, digest in sorted(self.digests.items())]
        listing = self.folder / unit.recorded
        listing.parent.mkdir(exist_ok=True)
        files.replace(listing, "".join(lines).encode())
        return {self.counted: len(lines), **files.describe_file(listing)}

    def _block(self, entry, severity):
        return self._part(entry["path"]) / manifests.token(severity)

    def _fresh(self, entry, severity):
        self.digests = {}
        part = self._block(entry, severity)
        _remove(part)
        part.mkdir(parents=True)
        return part


def _decoded(content):
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(content)))


def _remove(path):
    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
