"""Folders and files in buckets: a mirror on this machine, which is read as any folder and written through.

    local("gs://b/runs/a", cache)   the path in the mirror, CACHE/buckets/gs/b/runs/a; no request
    fetch(path)                     brings the mirror of this path up to date, for a reader
    with held(folder)               the lease of a workdir: other writers are refused, the mirror is up to date
    wrote(path), removed(path)      the file goes to the bucket, or goes there, too
    publish(folder)                 every folder in it becomes one object, FOLDER/NAME.tar: checkpoints
    unpack(folder)                  these objects become folders

`runtime.files` calls these, and the rest of the program sees paths of this machine. The bucket is right: a file that the
bucket lacks leaves the mirror, and a file is fetched where the bucket's generation of it is another. Nothing here does
anything for a path that is in no mirror; only an address imports TensorStore (`corruptions.objects`).

The lease is the object `.lock` (`runtime.leases`). Whoever holds it writes on condition of the generations it knows.
"""

import contextlib
import fcntl
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runtime.leases import Lease
from runtime.log import bar

LOCK, _TIMES = ".lock", ".times.json"  # objects: the lease; {name: time of change in ns} of the files
_APPENDED_SECONDS = 10  # between uploads of a file that grows
_PACKED = re.compile(r"(?:.*/)?checkpoints/\d+\.tar")
_PATTERN = re.compile(r"[*?\[]")
_mirrors: dict[Path, "Mirror"] = {}
_folder = ""  # of all mirrors


class Mirror:
    """The mirror of an address.

    Attributes:
      address: address in parts (`corruptions.objects.Address`).
      root: its path.
      lease: while this process holds it as a workdir.
    """

    def __init__(self, address: Any, root: Path, index: Path):
        self.address, self.root, self.lease = address, root, None
        self.fetched = False
        self._index, self._bucket = index, None
        self._known: dict[str, list] = {}  # {name: [generation, state of the file]}; "" names the address itself
        self._listed: set[str] | None = None  # names in the bucket
        self._times: dict[str, int] = {}
        self._stored_times: dict[str, int] = {}
        self._busy: list[Path] = []  # workdirs inside that other processes of this machine are writing
        self._appended: dict[Path, float] = {}  # files that grew, and since when the bucket's are older

    @property
    def bucket(self):
        if self._bucket is None:
            from corruptions import objects

            self._bucket = objects.Bucket(self.address.scheme, self.address.bucket)
        return self._bucket

    def _key(self, name):
        return "/".join(filter(None, (self.address.key, name)))

    def _name(self, path):
        return "" if path == self.root else path.relative_to(self.root).as_posix()

    def _path(self, name):
        """The file or folder of an object; None for a name that leads out of the mirror, or is ours alone."""
        parts = name.split("/")
        if ".." in parts or "" in parts[:-1] or name in (LOCK, _TIMES) or name.endswith("/"):
            return None
        path = self.root / name if name else self.root
        return path.with_suffix("") if _PACKED.fullmatch(name) else path

    # Reading.

    def fetch(self) -> None:
        """Makes the mirror like the bucket, without the content of checkpoints."""
        self._index.parent.mkdir(parents=True, exist_ok=True)
        with open(self._index.with_suffix(".lock"), "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # against other processes that fetch
            self._fetch()

    def _fetch(self):
        self._load_index()
        prefix = self._key("") + "/" if self.address.key else ""
        keys = self.bucket.list(prefix)
        names = {key.removeprefix(prefix) for key in keys}
        times = self.bucket.read(self._key(_TIMES)).content if _TIMES in names else None
        self._times, self._stored_times = (json.loads(times) if times else {} for _ in range(2))
        self._busy = [lock.parent for lock in self.root.rglob(f"*/{LOCK}") if _is_locked(lock)]
        wanted = sorted(name for name in names if self._reads(name) and not _PACKED.fullmatch(name))
        found = self._get([*wanted, *([""] if self.address.key and not names else [])])
        self._listed = names
        self._known = {name: known for name, known in self._known.items() if name in names or name in found}
        if names:
            self._drop_others()
        elif not found:
            _delete(self.root)
        self.fetched = True
        self._save_index()

    def _reads(self, name):
        """Whether an object has a path that no other process of this machine is writing."""
        path = self._path(name)
        return path is not None and not any(path.is_relative_to(folder) for folder in self._busy)

    def _get(self, names):
        """Reads objects that changed into the mirror; returns the names of those that there are."""
        found = set()
        keys = [(self._key(name), self._generation(name)) for name in names]
        with bar("object", total=len(keys), desc=f"fetching {self.address}", leave=False) as shown:
            for name, (_, one) in zip(names, self.bucket.read_many(keys)):
                shown.update()
                if one.same:
                    found.add(name)
                elif one.content is not None:
                    found.add(name)
                    self._place(name, one)
        return found

    def _generation(self, name):
        """The generation of the object that the file in the mirror equals; None where it must be read."""
        generation, state = self._known.get(name, (None, None))
        return bytes.fromhex(generation) if generation and state == _state(self._path(name)) else None

    def _place(self, name, one):
        from corruptions.objects import time_of

        path = self._path(name)
        _delete(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f".part-{path.name}.{secrets.token_hex(4)}")
        try:
            if _PACKED.fullmatch(name):
                _extract(one.content, aside)
            else:
                aside.write_bytes(one.content)
                when = self._times.get(name) or time_of(one.generation)
                os.utime(aside, ns=(when, when))
            os.replace(aside, path)
        except BaseException:
            _delete(aside)
            raise
        self._known[name] = [one.generation.hex(), _state(path)]

    def _drop_others(self):
        """Removes what the bucket has not; folders of checkpoints by their objects."""
        kept = {path for name in self._listed if (path := self._path(name))}
        for folder, _, names in os.walk(self.root, topdown=False):
            here = Path(folder)
            above = (here, *here.parents)
            if any(parent in kept or parent in self._busy for parent in above):  # within a checkpoint, or another's
                continue
            for path in map(here.joinpath, names):
                if path not in kept and path != self.root / LOCK:
                    path.unlink()
            with contextlib.suppress(OSError):
                if here != self.root:
                    here.rmdir()

    def within(self, folder: Path) -> list[str]:
        """Lists the names in a folder of the bucket, as the last fetch found them."""
        return [name for name in self._listed or () if name.startswith(f"{self._name(folder)}/")]

    def unpack(self, folder: Path) -> None:
        """Makes folders of the objects FOLDER/NAME.tar, and removes others."""
        names = sorted(filter(_PACKED.fullmatch, self.within(folder)))
        self._get(names)
        paths = set(map(self._path, names))
        for path in folder.iterdir() if names else ():
            if path.name.isdigit() and path not in paths:
                _delete(path)
        self._save_index()

    # Writing.

    def put(self, path: Path) -> None:
        """Uploads a file of the mirror, or a folder as one object."""
        self._appended.pop(path, None)
        name = self._name(path) + (".tar" if path.is_dir() else "")
        content = _packed(path) if path.is_dir() else path.read_bytes()
        state = _state(path)
        generation = self._write(name, content)
        self._known[name] = [generation.hex(), state]
        self._times[name] = path.stat().st_mtime_ns
        if self._listed is not None:
            self._listed.add(name)

    def put_changed(self, path: Path) -> None:
        """Uploads a file, unless it is what the bucket has."""
        if self._generation(self._name(path)) is None:
            self.put(path)

    def remove(self, name: str) -> None:
        """Deletes an object, if it is there."""
        if self._listed is None or name in self._listed or name in self._known:
            self._write(name, None)
            (self._listed or set()).discard(name)
            self._known.pop(name, None)
            self._times.pop(name, None)

    def _write(self, name, content):
        from corruptions.objects import MISSING

        key = self._key(name)
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
        present = {f"{self._name(path)}.tar": path for path in folder.iterdir() if path.name.isdigit()}
        for name, path in sorted(present.items()):
            if self._generation(name) is None:
                self.put(path)
        for name in filter(_PACKED.fullmatch, self.within(folder)):
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
        with Lease(self.bucket, self._key(LOCK), self.address) as lease:
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

    def prepare(self, name: str) -> None:
        """Brings up to date what a writer of NAME reads: what is there of this name, and records of origin."""
        _delete(self.root / name)
        self._load_index()
        self._get([name, f"{name}/provenance.json", "provenance.json"])
        self.fetched = True

    # The index of a mirror: which generation its files have.

    def _load_index(self):
        with contextlib.suppress(OSError, ValueError):
            self._known = json.loads(self._index.read_text())

    def _save_index(self):
        self._index.parent.mkdir(parents=True, exist_ok=True)
        aside = self._index.with_suffix(f".{secrets.token_hex(4)}")
        aside.write_text(json.dumps(self._known))
        os.replace(aside, self._index)


# What runtime.files calls.


def local(address: str, cache: Path) -> Path:
    """Returns the path of an address in its mirror and makes the mirror known; asks the bucket nothing.

    Raises:
      ValueError: an address of another scheme than gs:// and s3://.
    """
    global _folder
    from corruptions import objects

    parts = objects.parse(address)
    _folder = str(cache / "buckets")
    path = Path(_folder, parts.scheme, parts.bucket, *filter(None, parts.key.split("/")))
    pattern = _PATTERN.search(parts.key)
    fixed = parts._replace(key=parts.key[: pattern.start()].rpartition("/")[0]) if pattern else parts
    root = Path(_folder, parts.scheme, parts.bucket, *filter(None, fixed.key.split("/")))
    if root not in _mirrors:
        index = hashlib.sha256(str(fixed).encode()).hexdigest()[:16]
        _mirrors[root] = Mirror(fixed, root, Path(_folder, "index", f"{index}.json"))
    return path


def fetch(path: Path) -> None:
    """Brings the mirror of a path up to date, once a process; one that another process of this machine writes is as it is."""
    mirror = _of(path)
    if mirror is None or mirror.fetched:
        return
    if _is_locked(mirror.root / LOCK):
        mirror.fetched = True
    else:
        mirror.fetch()


def prepare(path: Path) -> None:
    """Makes ready for results at a path: its mirror holds no file of an earlier time."""
    mirror = _mirrors.get(path)
    if mirror is None or mirror.fetched or mirror.lease:
        return
    del _mirrors[path]
    if _of(path.parent) is not None:
        return
    parent, _, name = mirror.address.key.rpartition("/")
    _mirrors[path.parent] = beside = Mirror(mirror.address._replace(key=parent), path.parent, mirror._index)
    beside.prepare(name)


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Holds the lease of a folder that is the root of a mirror; does nothing for others.

    Raises:
      InUseError: another process has it.
      OSError: the bucket is missing, refuses, or cannot be reached.
    """
    mirror = _mirrors.get(folder)
    with mirror.held() if mirror and not mirror.lease else contextlib.nullcontext():
        yield


def wrote(path: Path) -> None:
    """Uploads a file that was written; returns when it is in the bucket."""
    if mirror := _of(path):
        mirror.put(path)


def appended(path: Path, last: bool = False) -> None:
    """Uploads a file that grows: now and then, before the next checkpoint, at the end, and the `last` time."""
    if mirror := _of(path):
        mirror.appended(path, last)


def upload(folder: Path) -> None:
    """Uploads all files of a folder that other code wrote."""
    if mirror := _of(folder):
        for path in bar("file", sorted(path for path in folder.rglob("*") if path.is_file()), desc="uploading"):
            mirror.put_changed(path)
        mirror._save_index()


def removed(path: Path) -> None:
    """Deletes the object of a file that was removed."""
    if mirror := _of(path):
        mirror.remove(mirror._name(path))


def publish(folder: Path) -> None:
    """Uploads every checkpoint in `folder` as one object, and deletes the objects of those that are gone."""
    if mirror := _of(folder):
        mirror.publish(folder)


def unpack(folder: Path) -> None:
    """Fetches the checkpoints of `folder`."""
    if mirror := _of(folder):
        mirror.unpack(folder)


def packed(folder: Path) -> list[str]:
    """Lists the checkpoints of `folder` that are one object each."""
    mirror = _of(folder)
    return sorted(filter(_PACKED.fullmatch, mirror.within(folder))) if mirror else []


def address_of(path: Path) -> Any:
    """Returns the address of a path in a mirror; None for others."""
    if mirror := _of(path):
        return mirror.address._replace(key=mirror._key(mirror._name(path)))
    return None


def shown(text: str) -> str:
    """Writes addresses in place of paths of mirrors."""
    if not _mirrors:
        return text
    return re.sub(re.escape(_folder) + r"/(gs|s3|memory)/", r"\1://", text)


def _of(path: Path) -> Mirror | None:
    """The mirror that holds a path: one that this process holds as a workdir, else the innermost."""
    if not _mirrors:
        return None
    found = [mirror for parent in (path, *path.parents) if (mirror := _mirrors.get(parent))]
    return next((mirror for mirror in found if mirror.lease), found[0] if found else None)


def _is_locked(path):
    """Whether a process of this machine holds the lock file of a workdir."""
    try:
        with open(path) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def _state(path):
    """What changes with a file's content, in JSON; None where there is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return [stat.st_ino, stat.st_mtime_ns, stat.st_size]


def _delete(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _packed(folder):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as packed:
        packed.add(folder, arcname=".")
    return content.getvalue()


def _extract(content, folder):
    """Makes a folder of an object; of a damaged one what can be read, so that the reader of checkpoints refuses it."""
    folder.mkdir(parents=True)
    with contextlib.suppress(tarfile.TarError, EOFError), tarfile.open(fileobj=io.BytesIO(content)) as packed:
        packed.extractall(folder, filter="data")
