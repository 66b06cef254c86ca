"""The two published forms of a corrupted dataset on disk.

A layout writes blocks (one corruption at one severity) aside, records a complete block in the
manifest, and only then gives files their names; so whatever has its name is complete, and a killed
run loses at most the block it was in.
"""

import hashlib
import io
import os
import pathlib
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from corruptions.write import files, manifests
from corruptions.write.manifests import Manifest
from corruptions.write.sources import Source, require

Entry = dict[str, Any]  # of one corruption in the manifest
Severity = int | float | str


def token(severity: Severity) -> str:
    """Formats a severity as it appears in paths: `3`, `0.25` or `random`."""
    return f"{severity:g}" if isinstance(severity, float) else str(severity)


class _Layout:
    suffix: str

    def __init__(self, folder: str | os.PathLike, manifest: Manifest, source: Source) -> None:
        self.folder = pathlib.Path(folder)
        self.manifest = manifest
        self.source = source

    def record(self, entry: Entry, severity: Severity, path: str | None, facts: dict[str, Any] | None) -> None:
        entry["written"].append(severity)
        if path is not None:
            self.manifest["files"][path] = facts
        manifests.save(self.folder, self.manifest)

    def refuse_foreign(self, path: pathlib.Path) -> None:
        if path.exists():
            raise files.WriteError(f"{path} is there and was not written by this program; move it away")


class Npy(_Layout):
    """CIFAR-10-C: `<corruption>.npy`, uint8[S N, H, W, 3], the N images of severity 1 first, and
    `labels.npy` [S N].
    """

    suffix = ".npy"

    def start(self) -> None:
        """Writes labels.npy, once."""
        severities = {len(entry["severities"]) for entry in self.manifest["corruptions"].values()}
        if len(severities) > 1:
            raise files.WriteError(
                f"expected as many severities for every corruption, as labels.npy serves all; found {sorted(severities)}"
            )
        path = self.folder / "labels.npy"
        if "labels.npy" not in self.manifest["files"]:
            self.refuse_foreign(path)
            content = io.BytesIO()
            np.save(content, np.tile(self.source.labels, severities.pop()))
            facts = {"bytes": content.tell(), "sha256": hashlib.sha256(content.getvalue()).hexdigest()}
            self.manifest["files"]["labels.npy"] = facts
            manifests.save(self.folder, self.manifest)
        elif not path.exists():
            del self.manifest["files"]["labels.npy"]
            return self.start()
        else:
            return self._check(path)
        files.replace(path, content.getvalue())

    def todo(self, entry: Entry) -> list[Severity]:
        """Lists the severities still to be written; finishes what a killed run left almost done."""
        path, part = self.folder / entry["path"], self._part(entry)
        if entry["path"] in self.manifest["files"]:
            if not path.exists() and part.exists():
                os.replace(part, path)
            if path.exists():
                self._check(path)
                return []
            del self.manifest["files"][entry["path"]]
            entry["written"].clear()
        self.refuse_foreign(path)
        if not part.exists() or part.stat().st_size != self.bytes_of(entry):
            entry["written"].clear()
        return [severity for severity in entry["severities"] if severity not in entry["written"]]

    def bytes_of(self, entry: Entry) -> int:
        """Returns the size of the whole file."""
        return len(self._header(entry)) + len(entry["severities"]) * self._block_bytes()

    def missing_bytes(self, entry: Entry) -> int:
        """Returns the disk space that the file still takes."""
        done = entry["path"] in self.manifest["files"] or self._part(entry).exists()
        return 0 if done else self.bytes_of(entry)

    def begin(self, entry: Entry, severity: Severity) -> None:
        """Makes the file, at its whole size."""
        del severity
        part = self._part(entry)
        if entry["written"] or (part.exists() and part.stat().st_size == self.bytes_of(entry)):
            return
        try:
            with open(part, "wb") as file:
                file.write(self._header(entry))
                files.reserve(file, self.bytes_of(entry))
        except OSError:
            part.unlink(missing_ok=True)
            raise

    def write(self, entry: Entry, severity: Severity, start: int, images: np.ndarray) -> None:
        # Plain writes and no memory map: on a full disk a write fails cleanly, a store into a map
        # kills the process.
        block = entry["severities"].index(severity)
        with open(self._part(entry), "r+b") as file:
            file.seek(len(self._header(entry)) + block * self._block_bytes() + start * images[0].size)
            file.write(np.ascontiguousarray(images).data)

    def finish(self, entry: Entry, severity: Severity) -> None:
        part = self._part(entry)
        with open(part, "r+b") as file:
            os.fsync(file.fileno())
        last = len(entry["written"]) + 1 == len(entry["severities"])
        path = entry["path"] if last else None
        self.record(entry, severity, path, files.describe_file(part) if last else None)
        if last:
            os.replace(part, self.folder / entry["path"])

    def close(self) -> None:
        """Does nothing: no file is left aside once every file has its name."""

    def _check(self, path):
        expected, size = self.manifest["files"][path.name]["bytes"], path.stat().st_size
        if expected != size:
            raise files.WriteError(
                f"{path} is damaged: expected {expected} bytes, found {size}; delete it and it is written again"
            )

    def _part(self, entry):
        return self.folder / f".{entry['path']}.part"

    def _block_bytes(self):
        return self.manifest["images"] * int(np.prod(self.manifest["image_shape"]))

    def _header(self, entry):
        rows = len(entry["severities"]) * self.manifest["images"]
        file = io.BytesIO()
        facts = {"descr": "|u1", "fortran_order": False, "shape": (rows, *self.manifest["image_shape"])}
        np.lib.format.write_array_header_1_0(file, facts)
        return file.getvalue()


class Folders(_Layout):
    """ImageNet-C: `<corruption>/<severity>/<class>/<name>.JPEG` (quality as published: 85) or
    lossless `.png`.

    The sha256 of every image is in `checksums/<corruption>-<severity>.sha256`, for `sha256sum -c`.
    """

    suffix = ""

    def start(self) -> None:
        require("PIL", "writing image files needs Pillow")
        self.pool = ThreadPoolExecutor(os.cpu_count())
        self.digests: dict[str, str] = {}

    def todo(self, entry: Entry) -> list[Severity]:
        """Lists the severities still to be written; finishes what a killed run left almost done."""
        missing = []
        for severity in entry["severities"]:
            path, part = self._path(entry, severity), self._part(entry, severity)
            if severity in entry["written"]:
                if not path.exists() and part.exists():
                    self._publish(entry, severity)
                if path.exists():
                    continue
                entry["written"].remove(severity)
            self.refuse_foreign(path)
            missing.append(severity)
        return missing

    def missing_bytes(self, entry: Entry) -> int:
        """Returns 0: the space depends on how well the images will compress."""
        del entry
        return 0

    def begin(self, entry: Entry, severity: Severity) -> None:
        self.digests = {}
        part = self._part(entry, severity)
        shutil.rmtree(part, ignore_errors=True)
        for name in self.source.class_names:  # all of them: readers number classes by their folders
            (part / name).mkdir(parents=True)

    def write(self, entry: Entry, severity: Severity, start: int, images: np.ndarray) -> None:
        part = self._part(entry, severity)
        positions = range(start, start + len(images))
        self.digests.update(self.pool.map(lambda i: self._write_image(part, i, images[i - start]), positions))

    def finish(self, entry: Entry, severity: Severity) -> None:
        os.sync()  # one call for thousands of files
        root = f"{entry['path']}/{token(severity)}"
        lines = [f"{digest}  {root}/{name}\n" for name, digest in sorted(self.digests.items())]
        listing = f"checksums/{entry['path']}-{token(severity)}.sha256"
        (self.folder / "checksums").mkdir(exist_ok=True)
        files.replace(self.folder / listing, "".join(lines).encode())
        facts = {"images": len(lines), **files.describe_file(self.folder / listing)}
        self.record(entry, severity, listing, facts)
        self._publish(entry, severity)

    def close(self) -> None:
        """Removes the folder where blocks were written aside."""
        self.pool.shutdown()
        shutil.rmtree(self.folder / ".part", ignore_errors=True)

    def _write_image(self, part, position, image):
        from PIL import Image

        quality = self.manifest["jpeg_quality"]
        kind = {"format": "PNG"} if quality is None else {"format": "JPEG", "quality": quality, "optimize": True}
        content = io.BytesIO()
        # Pillow's JPEG default is 4:2:0, as published.
        Image.fromarray(image).save(content, **kind)
        class_name = self.source.class_names[self.source.labels[position]]
        name = f"{class_name}/{self.source.names[position]}{'.png' if quality is None else '.JPEG'}"
        path = part / name
        if "/" in self.source.names[position]:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.getvalue())
        return name, hashlib.sha256(content.getvalue()).hexdigest()

    def _path(self, entry, severity):
        return self.folder / entry["path"] / token(severity)

    def _part(self, entry, severity):
        return self.folder / ".part" / entry["path"] / token(severity)

    def _publish(self, entry, severity):
        path = self._path(entry, severity)
        path.parent.mkdir(exist_ok=True)
        os.replace(self._part(entry, severity), path)


LAYOUTS = {"npy": Npy, "folders": Folders}
