"""Decoded images on disk, so that a dataset is decoded once per machine.

An entry is a folder `<root>/<name>-<key>` with `images.npy`, `labels.npy`, `index.npy` and `meta.json`. It is written
under a hidden name and renamed when it is complete: a reader sees a whole entry or none. Images come back as a
read-only memory map, after every block was compared with its checksum (`data.blocks`). An incomplete or damaged entry,
or one of another format, is decoded again in its place.

The root is the argument `cache_dir`, or `$JAXC_CACHE_DIR`, or `$XDG_CACHE_HOME/jax-corruptions`, or
`~/.cache/jax-corruptions`. If it cannot be written the images stay in memory, with a warning.
"""

import contextlib
import dataclasses
import logging
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from corruptions.files import cache_folder, digest_of, digest_of_json, move, take_lock
from data import blocks
from runtime import artifacts, files

# One piece of a dataset: images uint8[n, H, W, 3], labels [n], index [n].
Chunk = tuple[np.ndarray, np.ndarray, np.ndarray]

_FORMAT = 3  # raise it when the layout of an entry or the decoded pixels change
_KEYS = 1  # version of the keys: an entry of another _FORMAT has the same key, and is replaced
_ARRAYS = ("images", "labels", "index")
_META = "meta.json"
_SHAPE = {
    "format": int,
    **{"bytes": dict.fromkeys(_ARRAYS, int), "hashes": dict.fromkeys(_ARRAYS, str)},
    **{"blocks": {"images": int, "checksums": str}, "notes": {}},
}
_AGAIN = "the next load of the dataset decodes it again"
_STALE_SECONDS = 24 * 3600


@dataclasses.dataclass(frozen=True)
class Entry:
    """The three arrays of a split, their sha256 and the builder's notes."""

    images: np.ndarray
    labels: np.ndarray
    index: np.ndarray
    sha256: dict[str, str]
    notes: dict[str, Any]


def root(cache_dir: str | os.PathLike | None = None) -> Path:
    """Returns the folder that holds the entries."""
    if cache_dir is not None:
        return Path(cache_dir).expanduser()
    if named := os.environ.get("JAXC_CACHE_DIR"):
        return Path(named).expanduser()
    return cache_folder()


def fingerprint(*parts: Any) -> str:
    """Returns 16 hexadecimal digits that change when any of the (JSON-able) parts does."""
    return digest_of_json([_KEYS, *parts], default=str)[:16]


def cached(
    name: str, key: str, build: Callable[[dict[str, Any]], Iterable[Chunk]], cache_dir: str | os.PathLike | None = None
) -> Entry:
    """Returns the entry `<name>-<key>`, built and stored if it is not there, complete and readable.

    Args:
      name: dataset and split, for people who look into the folder.
      key: a `fingerprint` of everything the pixels depend on.
      build: yields the dataset in pieces; takes a dictionary for notes; called only when needed.
      cache_dir: see the module.
    """
    folder = root(cache_dir) / f"{name}-{key}"
    stored = _read(folder)
    if stored is not None:
        return stored
    with contextlib.ExitStack() as stack:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(_alone(folder))
            if (stored := _read(folder, say=False)) is not None:  # built by another process meanwhile
                return stored
            _remove_stale(folder.parent)
            aside = folder.parent / f".part-{secrets.token_hex(8)}"
            aside.mkdir()  # as the umask says, where other users share the folder; mkdtemp's are private
        except OSError as error:
            logging.warning("cannot write the cache %s (%s): keeping %s in memory", folder.parent, error, name)
            return _in_memory(build)
        try:
            with _hold(aside):
                _write(aside, build)
                _publish(aside, folder)
        except OSError as error:  # the error of a full disk names no file
            error.filename = error.filename or str(folder)
            raise
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    entry = _read(folder)
    if entry is None:
        raise OSError(f"the cache entry {folder} was written but cannot be read back; is the disk full or failing?")
    return entry


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Waits until no other process of this machine builds the entry `folder`, such as those of a node of a cluster."""
    path, told = folder.with_name(f".lock-{folder.name}"), False
    while True:
        with open(path, "a") as file:
            while take_lock(file, folder.parent) is False:
                if not told:
                    logging.info("another process decodes %s; waiting for it", folder.name)
                told = True
                time.sleep(0.1)
            try:
                if not os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    continue
            except FileNotFoundError:  # the process before removed the file, after it was opened here
                continue
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def verify(path: str | os.PathLike) -> list[str]:
    """Compares an entry, or all entries of a root, with checksums and sha256; returns a line for each wrong file.

    Raises FileNotFoundError where there is no entry.
    """
    folders = _entries(path)
    if not folders:
        raise FileNotFoundError(f"expected entries of the cache (with {_META}) in {path}, found none")
    return [line for folder in folders for line in _problems(folder)]


def recorded(path: str | os.PathLike) -> int:
    """Counts the files that `verify` compares."""
    return len(_entries(path)) * len(_ARRAYS)


def _entries(path):
    path = Path(path)
    return [path] if (path / _META).exists() else sorted(meta.parent for meta in path.glob(f"*/{_META}"))


def _problems(folder):
    try:
        entry = _open(folder)
    except (OSError, ValueError) as error:
        return [str(error)]
    return [
        f"{folder / name}.npy: expected sha256 {entry.sha256[name]}, found {found}; {_AGAIN}"
        for name in _ARRAYS
        if (found := digest_of(getattr(entry, name))) != entry.sha256[name]
    ]


def _read(folder: Path, say: bool = True) -> Entry | None:
    """Reads an entry; None when it is absent, unfinished or damaged, with a warning."""
    if not folder.exists():
        return None
    try:
        return _open(folder)
    except (OSError, ValueError) as error:
        if say:
            logging.warning("the cache entry %s is made again: %s", folder.name, error)
        return None


def _open(folder: Path) -> Entry:
    """Reads an entry and compares all its blocks; raises OSError or ValueError."""
    meta = artifacts.read_record(folder / _META, _AGAIN, shape=_SHAPE)
    if meta["format"] != _FORMAT:
        raise ValueError(f"{folder / _META}: expected format {_FORMAT}, found {meta['format']}; {_AGAIN}")
    arrays = {}
    for name in _ARRAYS:
        file = folder / f"{name}.npy"
        if (size := file.stat().st_size) != meta["bytes"][name]:
            raise ValueError(f"{file}: expected {meta['bytes'][name]} bytes, found {size}; {_AGAIN}")
        arrays[name] = files.read_array(file, _AGAIN, mapped=name == "images")
    for name in ("labels", "index"):
        if (found := digest_of(arrays[name])) != meta["hashes"][name]:
            raise ValueError(f"{folder / name}.npy: expected sha256 {meta['hashes'][name]}, found {found}; {_AGAIN}")
    if wrong := blocks.Blocks(folder / "images.npy", arrays["images"], meta["blocks"], _AGAIN).wrong():
        raise ValueError(wrong[0] + (f" ({len(wrong)} blocks in all)" if len(wrong) > 1 else ""))
    return Entry(**arrays, sha256=meta["hashes"], notes=meta["notes"])


def _write(aside: Path, build: Callable[[dict[str, Any]], Iterable[Chunk]]) -> None:
    """Streams the pieces into .npy files; they need never be in memory at once."""
    notes: dict[str, Any] = {}
    labels, index = [], []
    with open(aside / "images.npy", "wb") as file:
        images = blocks.Writer(file)
        for piece, piece_labels, piece_index in build(notes):
            images.append(piece)
            labels.append(piece_labels)
            index.append(piece_index)
        images.finish()
        os.fsync(file.fileno())
    hashes = {"images": images.sha256}
    for name, pieces in (("labels", labels), ("index", index)):
        array = np.concatenate(pieces).astype(np.int32)
        files.write_array(aside / f"{name}.npy", array)
        hashes[name] = digest_of(array)
    sizes = {name: (aside / f"{name}.npy").stat().st_size for name in _ARRAYS}
    known = blocks.describe(files.read_array(aside / "images.npy", mapped=True))
    meta = {"format": _FORMAT, "bytes": sizes, "hashes": hashes, "blocks": known, "notes": notes}
    artifacts.write_record(aside / _META, meta)


def _publish(aside: Path, folder: Path) -> None:
    """Renames the finished entry into place, unless another process was faster; removes an entry that cannot be read."""
    try:
        move(aside, folder)
    except OSError:
        if _read(folder, say=False) is not None:
            return
        shutil.rmtree(folder, ignore_errors=True)  # an entry of another format, or a damaged one
        try:
            move(aside, folder)
        except OSError:
            if _read(folder) is None:
                raise


def _in_memory(build: Callable[[dict[str, Any]], Iterable[Chunk]]) -> Entry:
    notes: dict[str, Any] = {}
    columns = [np.concatenate(column) for column in zip(*build(notes), strict=True)]
    arrays = dict(zip(_ARRAYS, (columns[0], columns[1].astype(np.int32), columns[2].astype(np.int32)), strict=True))
    hashes = {name: digest_of(array) for name, array in arrays.items()}
    return Entry(**arrays, sha256=hashes, notes=notes)


def _remove_stale(folder: Path) -> None:
    """Removes the unfinished files of killed runs: a day old and held by no process (clocks may jump)."""
    for path in filter(Path.is_dir, folder.glob(".part-*")):
        if time.time() - path.stat().st_mtime > _STALE_SECONDS:
            with _hold(path) as held:
                if held:
                    shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _hold(folder: Path) -> Iterator[bool | None]:
    """Holds a folder against other processes until this one ends or dies; yields `take_lock`'s answer."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield take_lock(descriptor, folder.parent)
    finally:
        os.close(descriptor)
