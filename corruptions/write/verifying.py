"""Compares the files of a written dataset with its manifest.

A unit takes its name in one rename: a file `fog.npy`, or a folder of image files or shards `fog/3`. The sha256
of a file is in the manifest; the digests of a folder's files are in a list `checksums/fog-3.sha256` (for `sha256sum
-c`), whose own sha256 is in the manifest. `.checks.json` keeps the stamp of each unit: while names, sizes and
times of change stay, nothing needs to be read. It is not in the manifest, since times differ between equal
datasets.
"""

import json
import os
import pathlib
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from corruptions import files
from corruptions.write import manifests
from corruptions.write.manifests import Entry, Manifest, Severity, token

LABELS = "labels.npy"
_STAMPS = ".checks.json"


class Unit(NamedTuple):
    """A file or folder that takes its name in one rename, with the severities that it holds."""

    path: str
    severities: tuple[Severity, ...]

    @property
    def recorded(self) -> str:
        """The name under which the manifest has the sha256: the file's own, or a list for a folder."""
        return self.path if self.path.endswith(".npy") else f"checksums/{self.path.replace('/', '-')}.sha256"


def units(manifest: Manifest, entry: Entry) -> list[Unit]:
    """Lists the units of a corruption: one file, or a folder for each severity."""
    if manifest["layout"] == "npy":
        return [Unit(entry["path"], tuple(entry["severities"]))]
    return [Unit(f"{entry['path']}/{token(severity)}", (severity,)) for severity in entry["severities"]]


def finished(entry: Entry, unit: Unit) -> bool:
    """Returns True if all severities of a unit are written."""
    return set(unit.severities) <= set(entry["written"])


def verify(folder: str | os.PathLike, *, everything: bool = False) -> list[str]:
    """Compares the files of a dataset that `write_dataset` wrote with its manifest.

    Files with the name, size and time of change that they were left with are taken for unchanged; all others
    are compared with their sha256. Nothing is changed: `python -m corruptions.write` with the same flags as
    before writes damaged files again.

    Args:
      folder: the dataset.
      everything: compare all files with their sha256.

    Returns:
      One line for each file or folder that is missing, changed, foreign, or not written yet.

    Raises:
      FileNotFoundError: there is no manifest.
      WriteError: the manifest is damaged, or the folder an address.
    """
    folder = files.local(folder)
    lines, _ = compared(folder, read_manifest(folder), everything=everything)
    return lines


def read_manifest(folder: pathlib.Path) -> Manifest:
    """Reads the manifest of a dataset; raises as `verify`."""
    if (manifest := manifests.load(folder)) is None:
        raise FileNotFoundError(f"expected a dataset of corruptions.write, with {manifests.NAME}, in {folder}")
    return manifest


def compared(folder: pathlib.Path, manifest: Manifest, *, everything: bool) -> tuple[list[str], int]:
    """Compares the files of a dataset with its manifest: the lines of `verify`, and the number of files whose sha256 was
    compared.
    """
    entries = manifest["corruptions"].items()
    stamps = {} if everything else load_stamps(folder)
    lines = [
        f"{folder} is not written to its end ({name})"
        for name, entry in entries
        if len(entry["written"]) < len(entry["severities"])
    ]
    whole = [Unit(LABELS, ())] if LABELS in manifest["files"] else []
    whole += [unit for _, entry in entries for unit in units(manifest, entry) if finished(entry, unit)]
    found = [compare(folder, manifest, unit, stamps) for unit in whole]
    return lines + [line for one in found for line in one.lines], sum(one.files for one in found)


class Comparison(NamedTuple):
    """Describes the damage of a unit, "" where it has none, and names foreign files in it.

    `files` counts the files that were compared with their sha256.
    """

    damage: str
    foreign: list[str]
    files: int = 0

    @property
    def lines(self) -> list[str]:
        """The damage and the foreign files."""
        return [self.damage, *self.foreign] if self.damage else self.foreign


def compare(folder: pathlib.Path, manifest: Manifest, unit: Unit, stamps: dict[str, int]) -> Comparison:
    """Compares a finished unit of a folder with its manifest.

    Where the unit's stamp equals that in `stamps`, no file is read. The stamp of a sound unit is added.
    """
    path, record = folder / unit.path, manifest["files"][unit.recorded]
    there = _files_of(folder, unit)
    if not there:
        return Comparison(f"{path} is missing", [])
    digests = {unit.path: record["sha256"]}
    if unit.recorded != unit.path:
        listing = folder / unit.recorded
        if _sha256(listing) != record["sha256"]:
            return Comparison(f"{listing} is not the list of checksums that was written", [])
        lines = (line.split("  ", 1) for line in listing.read_text().splitlines())
        digests = {name: digest for digest, name in lines}
    stamp = _stamp(there)
    if stamps.get(unit.path) == stamp:
        return Comparison("", [])
    names = [name for name in there if name not in digests]
    foreign = [f"{folder / name} was not written by this program; move it away" for name in sorted(names)[:10]]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda name: _sha256(folder / name) if name in there else None, digests)
        wrong = [(name, digest) for name, digest in zip(digests, found) if digest != digests[name]]
    if wrong:
        name, digest = wrong[0]
        what = "is missing" if digest is None else f"expected sha256 {digests[name]}, found {digest}"
        more = f"; and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        return Comparison(f"{folder / name}{' ' if digest is None else ': '}{what}{more}", foreign, len(digests))
    if not foreign:
        stamps[unit.path] = stamp
    return Comparison("", foreign, len(digests))


def stamp_of(folder: pathlib.Path, unit: Unit) -> int:
    """Computes a number that changes with the name, size or time of any file of a unit below `folder`."""
    return _stamp(_files_of(folder, unit))


def load_stamps(folder: pathlib.Path) -> dict[str, int]:
    """Reads the stamps of a dataset; damaged ones are dropped, and their files are then read."""
    try:
        stamps = json.loads((folder / _STAMPS).read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return stamps if isinstance(stamps, dict) else {}


def save_stamps(folder: pathlib.Path, stamps: dict[str, int]) -> None:
    """Writes the stamps."""
    files.replace(folder / _STAMPS, json.dumps(stamps).encode())


def _stamp(there):
    lines = (f"{name} {size} {time}\n" for name, (size, time) in sorted(there.items()))
    return zlib.crc32("".join(lines).encode("utf-8", "surrogateescape"))


def _files_of(folder, unit) -> dict[str, tuple[int, int]]:
    """{path in the dataset: (bytes, time of change in nanoseconds)} of all files of a unit."""
    there = {}
    for name in _names(folder, unit.path):
        stat = os.stat(folder / name, follow_symlinks=False)
        there[name] = (stat.st_size, stat.st_mtime_ns)
    return there


def _names(folder, path) -> Iterator[str]:
    if (folder / path).is_file():
        yield path
    for below, _, names in os.walk(folder / path):
        prefix = pathlib.PurePath(below).relative_to(folder).as_posix()
        yield from (f"{prefix}/{name}" for name in names)


def _sha256(path):
    """The sha256 of a file, or the reason why it cannot be read."""
    try:
        return files.describe_file(path)["sha256"]
    except OSError as error:
        return error.strerror
