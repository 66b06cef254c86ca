"""The form of CIFAR-10-C: `<corruption>.npy`, uint8[S N, H, W, 3], the N images of severity 1
first, and `labels.npy` [S N].
"""

import hashlib
import io
import os
import pathlib

import numpy as np

from corruptions.write import checks, files, manifests
from corruptions.write.checks import Damage
from corruptions.write.layout import Entry, Layout, Severity, token

_LABELS = "labels.npy"


def damages(
    folder: pathlib.Path, manifest: manifests.Manifest, entry: Entry, known: checks.Checks, everything: bool
) -> list[Damage]:
    """Compares the file of a corruption with what was written; says what differs.

    Args:
      folder: of the dataset.
      manifest: of the dataset.
      entry: of the corruption.
      known: see `checks`; the time of a file that proves to be right is put there.
      everything: compare all of it with its sha256. Otherwise blocks are sampled, if it has the
        size and the time it was left with.
    """
    path, facts = folder / entry["path"], manifest["files"].get(entry["path"])
    every = tuple(entry["severities"])
    if facts is None:
        return []
    if not path.is_file():
        return [Damage(f"{path} is missing", every)]
    stat = path.stat()
    if stat.st_size != facts["bytes"]:
        return [Damage(f"{path}: expected {facts['bytes']} bytes, found {stat.st_size}", every)]
    remembered = known.get(entry["path"], {})
    blocks = remembered.get("blocks")
    as_left = remembered.get("modified_ns") == stat.st_mtime_ns and isinstance(blocks, dict)
    whole = everything or not as_left
    described = files.describe_file(path) if whole else None
    if described == facts:
        known[entry["path"]] = remembered | {"modified_ns": stat.st_mtime_ns}
        return []
    try:
        array = np.load(path, mmap_mode="r")
        shape = (len(every) * manifest["images"], *manifest["image_shape"])
        if array.shape != shape or array.dtype != np.uint8 or not array.flags.c_contiguous:
            raise ValueError(f"expected uint8{list(shape)}, found {array.dtype}{list(array.shape)}")
    except (ValueError, OSError, EOFError, SyntaxError) as error:
        return [Damage(f"{path}: its header is damaged ({error})", every)]
    wrong = unequal(array, entry, every, blocks if isinstance(blocks, dict) else {}, whole)
    if wrong and len(wrong) < len(every):
        return [Damage(f"{path}: severities {', '.join(map(token, wrong))} changed", wrong)]
    if wrong or whole:
        described = described or files.describe_file(path)
        return [Damage(f"{path}: expected sha256 {facts['sha256']}, found {described['sha256']}", every)]
    return []


def unequal(
    array: np.ndarray, entry: Entry, severities: tuple[Severity, ...], blocks: checks.Checks, everything: bool
) -> tuple[Severity, ...]:
    """Lists the severities whose blocks differ in the array of a file, or are not known."""
    number = len(array) // len(entry["severities"])

    def same(severity):
        at = entry["severities"].index(severity) * number
        return checks.equal(np.asarray(array[at : at + number]).reshape(-1), blocks.get(token(severity)), everything)

    return tuple(severity for severity in severities if not same(severity))


def damaged_labels(folder: pathlib.Path, manifest: manifests.Manifest) -> list[Damage]:
    """Compares labels.npy with its sha256."""
    path, facts = folder / _LABELS, manifest["files"].get(_LABELS)
    if facts is None:
        return []
    if not path.is_file():
        return [Damage(f"{path} is missing", (_LABELS,))]
    found = files.describe_file(path)
    return [] if found == facts else [Damage(f"{path}: expected {facts}, found {found}", (_LABELS,))]


class Npy(Layout):
    """Writes the arrays."""

    suffix = ".npy"

    def start(self) -> None:
        """Writes labels.npy, once."""
        severities = {len(entry["severities"]) for entry in self.manifest["corruptions"].values()}
        if len(severities) > 1:
            raise files.WriteError(
                f"expected as many severities for every corruption, as labels.npy serves all; found {sorted(severities)}"
            )
        path = self.folder / _LABELS
        for damage in damaged_labels(self.folder, self.manifest):
            self.say(damage)
            path.unlink(missing_ok=True)
            del self.manifest["files"][_LABELS]
        if _LABELS not in self.manifest["files"]:
            self.refuse_foreign(path)
            content = io.BytesIO()
            np.save(content, np.tile(self.source.labels, severities.pop()))
            facts = {"bytes": content.tell(), "sha256": hashlib.sha256(content.getvalue()).hexdigest()}
            self.manifest["files"][_LABELS] = facts
            manifests.save(self.folder, self.manifest)
            files.replace(path, content.getvalue())

    def todo(self, entry: Entry) -> list[Severity]:
        """Lists the severities still to be written, or again; finishes what a killed run left
        almost done.
        """
        path, part = self.folder / entry["path"], self._part(entry)
        if entry["path"] in self.manifest["files"]:
            if not path.exists() and part.exists():
                os.replace(part, path)
            damaged = damages(self.folder, self.manifest, entry, self.checks, self.everything)
            if path.exists() and not damaged:
                return []
            del self.manifest["files"][entry["path"]]
            for damage in damaged:
                self.say(damage)
                entry["written"] = [severity for severity in entry["written"] if severity not in damage.severities]
            if path.exists():
                os.replace(path, part)  # what is right in it is kept
        self.refuse_foreign(path)
        if not part.exists() or part.stat().st_size != self.bytes_of(entry):
            entry["written"].clear()
        self._drop_damaged(entry, part)
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
            with open(part, "r+b") as file:
                file.write(self._header(entry))
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
        with open(self._part(entry), "r+b") as file:
            file.seek(self._offset(entry, severity) + start * images[0].size)
            file.write(np.ascontiguousarray(images).data)

    def finish(self, entry: Entry, severity: Severity) -> None:
        part = self._part(entry)
        with open(part, "r+b") as file:
            os.fsync(file.fileno())
        content = np.memmap(part, np.uint8, "r", self._offset(entry, severity), (self._block_bytes(),))
        remembered = self.checks.setdefault(entry["path"], {})
        remembered.setdefault("blocks", {})[token(severity)] = checks.blocks(np.asarray(content))
        last = len(entry["written"]) + 1 == len(entry["severities"])
        path = entry["path"] if last else None
        if last:
            remembered["modified_ns"] = part.stat().st_mtime_ns
        self.record(entry, severity, path, files.describe_file(part) if last else None)
        if last:
            os.replace(part, self.folder / entry["path"])

    def close(self) -> None:
        """Keeps the times of files that were compared."""
        checks.save(self.folder, self.checks)

    def _drop_damaged(self, entry, part):
        """Of a file that is not complete, the severities that are not what was written; those of
        which no blocks are known are taken for right.
        """
        blocks = self.checks.get(entry["path"], {}).get("blocks")
        blocks = blocks if isinstance(blocks, dict) else {}
        known = tuple(severity for severity in entry["written"] if token(severity) in blocks)
        if not known:
            return
        shape = (len(entry["severities"]) * self.manifest["images"], *self.manifest["image_shape"])
        array = np.memmap(part, np.uint8, "r", len(self._header(entry)), shape)
        for severity in unequal(array, entry, known, blocks, everything=True):
            entry["written"].remove(severity)
            self.say(Damage(f"{part}: severity {token(severity)} changed", (severity,)))

    def _part(self, entry):
        return self.folder / f".{entry['path']}.part"

    def _offset(self, entry, severity):
        return len(self._header(entry)) + entry["severities"].index(severity) * self._block_bytes()

    def _block_bytes(self):
        return self.manifest["images"] * int(np.prod(self.manifest["image_shape"]))

    def _header(self, entry):
        rows = len(entry["severities"]) * self.manifest["images"]
        file = io.BytesIO()
        facts = {"descr": "|u1", "fortran_order": False, "shape": (rows, *self.manifest["image_shape"])}
        np.lib.format.write_array_header_1_0(file, facts)
        return file.getvalue()
