"""The mirror of a folder in a bucket: a copy on this machine that is also written through, checkpoints as one object each.

`runtime.buckets` imports this module when an address is given.
"""

import contextlib
import io
import json
import os
import re
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from corruptions.files import contained
from corruptions.objects import MISSING, Copy, delete, state_of, time_of
from runtime.leases import Lease
from runtime.locks import take_lock
from runtime.log import bar

_LOCK, _TIMES = ".lock", ".times.json"  # objects: the lease; {name: time of change in ns} of the files
_APPENDED_SECONDS = 10  # between uploads of a file that grows
_PACKED = re.compile(r"(?:.*/)?checkpoints/\d+\.tar")


class Mirror(Copy):
    """The mirror of an address; see the module.

    Attributes:
      lease: while this process holds it as a workdir.
      fetched: whether this process brought it up to date.
    """

    def __init__(self, address: Any, root: Path, index: Path):
        super().__init__(address, root, index)
        self.lease: Lease | None = None
        self.fetched = False
        self._listed: set[str] | None = None  # names in the bucket
        self._times: dict[str, int] = {}
        self._stored_times: dict[str, int] = {}
        self._busy: list[Path] = []  # workdirs inside that other processes of this machine are writing
        self._appended: dict[Path, float] = {}  # files that grew, and since when the bucket's are older

    def name(self, path: Path) -> str:
        """Names a path of the mirror as its object; "" is the address itself."""
        return "" if path == self.root else path.relative_to(self.root).as_posix()

    def _path(self, name):
        """The file or folder of an object; None for a name that leads out of the mirror, or is ours alone."""
        path = None if name in (_LOCK, _TIMES) else super()._path(name)
        return path.with_suffix("") if path and _PACKED.fullmatch(name) else path

    # Reading.

    def is_written_here(self) -> bool:
        """Whether a process of this machine holds it as a workdir."""
        return _is_locked(self.root / _LOCK)

    def fetch(self) -> None:
        """Makes the mirror like the bucket, without the content of checkpoints."""
        self._index.parent.mkdir(parents=True, exist_ok=True)
        with open(self._index.with_suffix(".lock"), "a") as file:
            take_lock(file, self._index.parent, wait=True)  # against other processes that fetch
            super().fetch()
        self.fetched = True

    def _wanted(self, names):
        """Leaves out checkpoints, and what another process of this machine is writing."""
        self._stored_times = _times(self.bucket.read(self.key(_TIMES)).content) if _TIMES in names else {}
        self._times = dict(self._stored_times)
        self._busy = [folder for folder in _written_in(self.root) if folder != self.root]
        self._listed = names
        return [
            name
            for name in super()._wanted(names)
            if not _PACKED.fullmatch(name) and not any(map(self._path(name).is_relative_to, self._busy))
        ]

    def _read(self, keys):
        return bar("object", super()._read(keys), total=len(keys), desc=f"fetching {self.address}", leave=False)

    def _fill(self, path, name, one):
        if _PACKED.fullmatch(name):
            _extract(one.content, path)
        else:
            path.write_bytes(one.content)
            when = self._times.get(name) or time_of(one.generation)
            os.utime(path, ns=(when, when))

    def _drop_others(self, kept):
        super()._drop_others({*kept, *self._busy, self.root / _LOCK})

    def packed(self, folder: Path) -> list[str]:
        """Lists the checkpoints in a folder of the bucket, as the last fetch found them."""
        within = f"{self.name(folder)}/"
        return sorted(name for name in self._listed or () if name.startswith(within) and _PACKED.fullmatch(name))

    def unpack(self, folder: Path) -> None:
        """Makes folders of the objects FOLDER/NAME.tar, and removes others."""
        names = self.packed(folder)
        contained(self.root, self.name(folder))
        self._get(names)
        paths = set(map(self._path, names))
        for path in folder.iterdir() if names else ():
            if path.name.isdigit() and path not in paths:
                delete(path)
        self._save_index()

    # Writing.

    def put(self, path: Path) -> None:
        """Uploads a file of the mirror, or a folder as one object."""
        self._appended.pop(path, None)
        name = self.name(path) + (".tar" if path.is_dir() else "")
        content = _packed(path) if path.is_dir() else path.read_bytes()
        state = state_of(path)
        generation = self._write(name, content)
        self._known[name] = [generation.hex(), state]
        self._times[name] = path.stat().st_mtime_ns
        if self._listed is not None:
            self._listed.add(name)

    def upload(self, folder: Path) -> None:
        """Uploads the files of a folder that are not what the bucket has."""
        for path in bar("file", sorted(path for path in folder.rglob("*") if path.is_file()), desc="uploading"):
            if self._generation(self.name(path)) is None:
                self.put(path)
        self._save_index()

    def remove(self, name: str) -> None:
        """Deletes an object, if it is there."""
        if self._listed is None or name in self._listed or name in self._known:
            self._write(name, None)
            (self._listed or set()).discard(name)
            self._known.pop(name, None)
            self._times.pop(name, None)

    def _write(self, name, content):
        key = self.key(name)
        if self.lease is None:
            return self.bucket.write(key, content)
        self.lease.check()
        generation = self._known.get(name, (None,))[0]
        missing = MISSING if self._listed is not None and name not in self._listed else None
        known = bytes.fromhex(generation) if generation else missing
        written = self.bucket.write(key, content, known)
        while written is None:  # a command that takes no lease (a report) has written it, or a successor
            self.lease.check(thoroughly=True)
            written = self.bucket.write(key, content, self.bucket.read(key).generation)
        return written

    def appended(self, path: Path, last: bool) -> None:
        """Uploads a file that grew: the last time, else every ten seconds at most."""
        now = time.monotonic()
        if last or self.lease is None or now - self._appended.setdefault(path, now) >= _APPENDED_SECONDS:
            self.put(path)

    def publish(self, folder: Path) -> None:
        """Uploads the folders in `folder`, as one object each, and deletes those that are no longer there."""
        for path in [path for path in self._appended if path.parent == folder.parent]:
            self.put(path)
        present = {f"{self.name(path)}.tar": path for path in folder.iterdir() if path.name.isdigit()}
        for name, path in sorted(present.items()):
            if self._generation(name) is None:
                self.put(path)
        for name in self.packed(folder):
            if name not in present:
                self.remove(name)
        self._store_times()

    def _store_times(self):
        if self._times != self._stored_times:
            generation = self._write(_TIMES, json.dumps(self._times, indent=1, sort_keys=True).encode())
            self._known[_TIMES] = [generation.hex(), None]
            self._stored_times = dict(self._times)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Holds the lease while the block runs; first brings the mirror up to date."""
        with Lease(self.bucket, self.key(_LOCK), self.address) as lease:
            self.lease = lease
            try:
                self.fetch()
                try:
                    yield
                finally:
                    self._finish()
            finally:
                self.lease = None
                self._appended.clear()
                self._save_index()

    def _finish(self):
        for path in list(self._appended):
            self.put(path)
        self._store_times()

    def above(self) -> "Mirror":
        """Makes the mirror of the folder in which the address lies."""
        key = self.address.key.rpartition("/")[0]
        return Mirror(self.address._replace(key=key), self.root.parent, self._index)

    def prepare(self, name: str) -> None:
        """Brings up to date what a writer of NAME reads: what is there of this name, and records of origin."""
        if not any(_written_in(self.root / name)):
            delete(self.root / name)
        self._load_index()
        self._get([name, f"{name}/provenance.json", "provenance.json"])
        self.fetched = True


def _is_locked(path):
    """Whether a process of this machine holds the lock file of a workdir."""
    with contextlib.suppress(FileNotFoundError), open(path, "r+") as lock:
        return take_lock(lock, path.parent) is False
    return False


def _written_in(folder):
    """Lists the workdirs in a folder that processes of this machine hold."""
    found = (Path(above) for above, _, names in os.walk(folder) if _LOCK in names)
    return [workdir for workdir in found if _is_locked(workdir / _LOCK)]


def _times(content):
    """Reads the object of times; what another program wrote there counts as none."""
    try:
        times = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        return {}
    times = times if isinstance(times, dict) else {}
    return {name: ns for name, ns in times.items() if isinstance(ns, int) and 0 <= ns < 2**63}


def _packed(folder):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as packed:
        packed.add(folder, arcname=".")
    return content.getvalue()


def _extract(content, folder):
    """Makes a folder of an object: its files and folders, no links.

    Of a damaged one, or one with paths that lead out, it makes what comes before, which the reader of checkpoints refuses.
    """
    folder.mkdir(parents=True)
    damaged = (tarfile.TarError, EOFError, ValueError)
    with contextlib.suppress(*damaged), tarfile.open(fileobj=io.BytesIO(content)) as packed:
        for member in packed:
            path = contained(folder, name) if (name := member.name.removeprefix("./")) != "." else folder
            (path if member.isdir() else path.parent).mkdir(parents=True, exist_ok=True)
            if member.isfile():
                path.write_bytes(packed.extractfile(member).read())
