"""Folders and files in buckets, `gs://` and `s3://` (and `memory://` for tests), through fsspec, gcsfs and s3fs.

    path = staged("gs://b/data")        a copy on this machine, in a cache folder named by a digest of the address
    copy_of(path).put(path)             writes the object of a file of a copy
    with copy_of(folder).held():        this process is the one that writes the folder

The bucket is right: a copy is made like it before it is read. Each object is written whole. A writer leaves the object
`.owner.json` with a time, which it renews as it writes. Another process takes the folder over when that time is old; the
first one sees that before its next checkpoint, and writes nothing more.
"""

import base64
import contextlib
import functools
import importlib
import json
import logging
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from corruptions import files

SCHEMES = {"gs": "gcsfs.core.GCSFileSystem", "s3": "s3fs.core.S3FileSystem"}
SCHEMES["memory"] = "fsspec.implementations.memory.MemoryFileSystem"
SECONDS, _BATCH = 45, 64  # until a store is given up that does not answer a small request; objects fetched at once
TERM = float(os.environ.get("JAX_CORRUPTIONS_OWNER_SECONDS") or 180)  # after it an owner that wrote nothing is gone
_OWNER, _LEASE = (
    ".owner.json",
    ".lock",
)  # of this release and of 0.2, whose lease has no time and is renewed by another content
# What `fetch` leaves alone: checkpoints, and our own objects (two are of release 0.2).
_APART = re.compile(r"(?:.*/)?checkpoints/\d+(?:/.*|\.zip|\.tar)|\.(?:owner\.json|lock|times\.json)(?:/.*)?")
_REFUSED = r"Permission|Forbidden|AccessDenied|[Cc]redential|Unauthori|InvalidAccessKey|SignatureDoesNot|\b40[13]\b"
_SILENT = r"[Tt]imeout|[Cc]onnect|Proxy|SlowDown|Unavailable|InternalError|resolve|\b(429|50\d)\b"
_STAMP = ("size", "generation", "ETag", "created", "md5Hash")  # what changes with the content of an object
copies: dict[Path, "Copy"] = {}  # of this process, by their paths


class RemoteError(OSError):
    """A bucket cannot be reached, or refuses a request; the message names the address and what to do."""


class InUseError(RemoteError, BlockingIOError):
    """Another process writes the folder."""


def parse(text: str | os.PathLike) -> str:
    """Returns an address as SCHEME://BUCKET/KEY; ValueError for another scheme, no bucket, or parts such as `..`."""
    match = re.fullmatch(r"([a-z][a-z0-9+.-]+):/{1,2}([^/]+.*)", os.fspath(text), re.S)  # pathlib makes gs:/ of gs://
    with contextlib.suppress(ValueError):
        if match and match[1] in SCHEMES:
            return f"{match[1]}://{files.check_relative(match[2].rstrip('/'))}"
    raise ValueError(
        "expected a path of this machine, or gs://BUCKET/... or s3://BUCKET/... of names between slashes (neither empty ones "
        f"nor . and ..), found the address {os.fspath(text)}; copy its files to this machine, or mount the bucket"
    )


def place(address: str | os.PathLike) -> Path:
    """Returns the path of an address in its copy, which may end in a pattern (`*.npz`); asks the bucket nothing."""
    whole = parse(address)
    start = re.split(r"[*?\[]", whole)[0]
    copy = Copy(whole if start == whole else start.rpartition("/")[0])
    return copies.setdefault(copy.root, copy).root / whole[len(copy.address) + 1 :]


def staged(path: str | os.PathLike) -> str:
    """Copies what lies at an address to this machine, once in a process; returns its path there, or another path as it is."""
    if os.fspath(path).partition(":/")[0] not in SCHEMES:
        return os.fspath(path)
    if (copy := copy_of(found := place(path))) and copy.names is None:
        copy.fetch()
    return str(found)


def results(address: str | os.PathLike) -> Path:
    """Returns a path for results at an address, in a folder that ends with this process."""
    whole = parse(address)
    copy = Copy(whole if whole.count("/") == 2 else whole.rpartition("/")[0], TemporaryDirectory())
    path = copies.setdefault(copy.root, copy).root / whole[len(copy.address) + 1 :]
    for known in {path, path / "provenance.json", copy.root / "provenance.json"} - {copy.root}:  # what a writer reads
        with contextlib.suppress(FileNotFoundError):
            content = copy.call("cat_file", copy.key(copy.name(known)))
            known.parent.mkdir(parents=True, exist_ok=True)
            known.write_bytes(content)
    return path


def copy_of(path: str | os.PathLike) -> "Copy | None":
    """Returns the copy that holds a path; None for other paths."""
    return next((copy for above in (Path(path), *Path(path).parents) if (copy := copies.get(above))), None)


def shown(text: str) -> str:
    """Writes addresses in place of paths of copies."""
    return functools.reduce(lambda text, copy: text.replace(str(copy.root), copy.address), copies.values(), text)


class Copy:
    """The copy of what lies at an address: the path `root`, in a cache folder of its own."""

    def __init__(self, address: str, temporary: Any = None):
        self.address, self._temporary = address, temporary
        folder = f"remote/{files.digest_of(address)[:16]}"
        self._folder = Path(temporary.name) if temporary else files.contained(files.cache_folder(), folder)
        self.root = files.contained(self._folder, f"files/{address.rpartition('/')[2]}")
        self.names: Any = None  # {name: what changes with its content} of the objects, "" the address, once listed
        self.owner, self._renewed, self._failed = "", 0.0, False  # `owner`: random text of the process that writes
        self._put: dict[str, int] = {}  # times of the files that this process has put
        self._growing: set[Path] = set()  # files that grew since they were put

    def name(self, path: Path) -> str:
        """Names the object of a path."""
        return "" if path == self.root else path.relative_to(self.root).as_posix()

    def key(self, name: str) -> str:
        """Returns bucket and key of an object."""
        return f"{self.address.partition('://')[2]}/{name}".rstrip("/")

    def _path(self, name):
        return files.contained(self.root, name) if name else self.root

    def call(self, method: str, *given: Any, small: bool = True, **options: Any) -> Any:
        """Calls a method of fsspec; raises FileNotFoundError or, of any other trouble, RemoteError."""
        system = _system(self.address.partition(":")[0])
        if small and system.async_impl:
            options["timeout"] = SECONDS
        try:
            return getattr(system, method)(*given, **options)
        except Exception as error:
            if isinstance(error, FileNotFoundError) and method not in ("pipe_file", "put_file"):
                raise
            self._failed = not files.is_full(error)
            raise error if files.is_full(error) else _explained(self.address, error) from error

    def _owner(self, name=_OWNER):
        """Reads the object of the owner; {} where there is none."""
        found = None
        with contextlib.suppress(FileNotFoundError, ValueError, RecursionError):
            found = json.loads(self.call("cat_file", self.key(name)))
        if not isinstance(found, dict) or not isinstance(when := found.get("time", 0), int | float):
            return {}
        return found if abs(when) < 1e12 else {}

    def _own(self):
        self._renewed = time.time()
        about = {"owner": self.owner, "host": os.uname().nodename, "process": os.getpid(), "time": self._renewed}
        self.call("pipe_file", self.key(_OWNER), json.dumps(about).encode())

    def _take(self):
        """Becomes the owner, after waiting until the time of another is old; InUseError: it is renewed."""
        for name in (_LEASE, _OWNER):
            found, begun = self._owner(name), time.time()
            by = f"on {found.get('host')} by process {found.get('process')}"
            if found and found.get("time", begun) + TERM > begun:
                text = "%s was written %s: waiting up to %.0f s to see whether it goes on"
                files.LOG.warning(text, self.address, by, TERM)
            while found and min(begun, found.get("time", begun)) + TERM > time.time():  # the other clock may be ahead
                time.sleep(TERM / 40)
                before, found = found, self._owner(name)
                if found not in ({}, before):
                    raise InUseError(f"{self.address} is in use {by}; wait for it or use another folder")
            if found and name == _LEASE:
                self.call("rm_file", self.key(name))
        self.owner, self._failed = os.urandom(8).hex(), False
        self._own()

    def check(self, before_checkpoint: bool = False) -> None:
        """Looks, now and then or `before_checkpoint`, whether this process is still the owner; raises InUseError if not."""
        old = abs(time.time() - self._renewed) > TERM / 9  # a clock may be set back
        if self.owner and (before_checkpoint or old):
            if (found := self._owner()).get("owner") != self.owner:
                self._failed = True
                by = f"was taken over on {found.get('host')} by process {found.get('process')}"
                by = by if found else f"lost its {_OWNER}: another process ended there, or somebody removed it"
                raise InUseError(f"{self.address} {by}; this run writes nothing more")
            if old:
                self._own()
        for path in [*self._growing] if before_checkpoint else ():
            self.put(path)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Is the one writer of the folder while the block runs; InUseError: another process is."""
        self._take()
        try:
            self.fetch()
            self.check(before_checkpoint=True)  # another process may have begun in the same moment
            yield
        finally:
            if not self._failed:
                self.check(before_checkpoint=True)
                self.settle()
                with contextlib.suppress(FileNotFoundError):
                    self.call("rm_file", self.key(_OWNER))
            self.owner = ""

    def settle(self) -> None:
        """Dates the files that this process has put by their objects, so that they need no fetching later."""
        for name, stamp in self._list().items() if self._put else ():
            path = self._path(name)
            if self._put.get(name) == _time_of(path) and _may_be(path, stamp):
                os.utime(path, ns=(_date(stamp),) * 2)

    def _list(self):
        base, found = self.key(""), {}
        for path, info in self.call("find", base, small=False, detail=True).items():
            name = path.lstrip("/").removeprefix(base)
            with contextlib.suppress(ValueError):  # a name that leads out of the folder
                if info.get("type") != "directory" and (not name or files.check_relative(name[1:])):
                    found[name[1:]] = "|".join(str(info.get(key)) for key in _STAMP)
        return {name: stamp for name, stamp in found.items() if name or len(found) == 1}

    def fetch(self) -> None:
        """Makes the copy like the bucket, without checkpoints; leaves it alone where another process here writes it."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with open(self._folder / "lock", "a") as lock:
            files.take_lock(lock, self._folder, wait=True)  # against other processes that fetch
            if not self.owner:
                self._owner()  # ends soon where the store is silent
                if files.is_locked(self.root / ".lock"):
                    self.names = self.names or {}
                    return
            self.names = self._list()
            for path in [*sorted(self.root.rglob("*"), reverse=True), self.root]:
                kept = (name := self.name(path)) in self.names or _APART.fullmatch(name)
                if not kept and path.is_file() and (self.owner or self.has(path)):
                    path.unlink()  # a writer's copy keeps nothing that the bucket lacks
                elif name and self.owner and path.is_dir():
                    with contextlib.suppress(OSError):  # it holds something
                        path.rmdir()
            self.get([name for name in self.names if not _APART.fullmatch(name)])

    def get(self, names: Iterable[str]) -> None:
        """Fetches objects that are not here as they are in the bucket."""
        names = [name for name in names if _time_of(self._path(name)) != _date(self.names[name])]
        with TemporaryDirectory(dir=self._folder) as parts, files.bar(len(names), self.address, None, "objects") as bar:
            for start in range(0, len(names), _BATCH):
                few = {name: Path(parts, f"{start + i}") for i, name in enumerate(names[start : start + _BATCH])}
                self.call("get", list(map(self.key, few)), list(map(str, few.values())), small=False)
                for name, part in few.items():
                    path = self._path(name)
                    os.utime(part, ns=(_date(self.names[name]),) * 2)
                    if path.is_dir():
                        shutil.rmtree(path)
                    files.move(part, path)
                bar.update(len(few))

    def put(self, path: Path, grows: bool = False) -> None:
        """Writes the object of a file; of one that `grows` before the next checkpoint, and at the end."""
        self.check()
        if grows and self.owner:
            return self._growing.add(path)
        self._growing.discard(path)
        self._put[name := self.name(path)] = _time_of(path)
        self.call("put_file", str(path), self.key(name), small=path.stat().st_size < 2**20)
        if self.names is not None:
            self.names[name] = ""

    def has(self, path: Path) -> bool:
        """Returns True if a file is as its object was when it was fetched, or put by this process."""
        changed = _time_of(path)
        return 10**18 <= changed < 10**18 + 2**28 * 10**9 or self._put.get(self.name(path)) == changed

    def remove(self, name: str) -> None:
        """Deletes an object, if it is there."""
        if self.names is None or self.names.pop(name, None) is not None:
            with contextlib.suppress(FileNotFoundError):
                self.call("rm_file", self.key(name))


def _time_of(path):
    return path.stat().st_mtime_ns if path.exists() else -1


def _may_be(path, stamp):
    """Whether a file has the size of an object, and its MD5 where the store tells it."""
    found = re.search(r"\b[0-9a-f]{32}\b|[\w+/]{22}==", stamp)
    own = files.digest_of_file(path, "md5") if found else ""
    told = own in stamp or base64.b64encode(bytes.fromhex(own)).decode() in stamp
    return told and stamp.startswith(f"{path.stat().st_size}|")


def _date(stamp):
    """Returns the time of a fetched file, from 2001 to 2010, by its object; with another it is fetched again."""
    return (10**9 + int(files.digest_of(stamp)[:7], 16)) * 10**9


@functools.cache
def _system(scheme):
    module, _, name = SCHEMES[scheme].rpartition(".")
    try:
        of_scheme = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise RemoteError(f"{scheme}:// needs {error.name}: pip install 'jax-corruptions[cloud]'") from None
    options = {"max_concurrency": 1} if scheme == "s3" else {}  # else it asks for sizes first
    if scheme == "gs":
        logging.getLogger("gcsfs").setLevel(logging.CRITICAL)  # it logs the traceback of what we explain
        timeout = importlib.import_module("aiohttp").ClientTimeout(total=None, sock_connect=10, sock_read=60)
        options = {"requests_timeout": timeout, "token": "anon" if os.environ.get("STORAGE_EMULATOR_HOST") else None}
    return of_scheme(skip_instance_cache=True, use_listings_cache=False, **options)


def _explained(address, error):
    text = f"{type(error).__name__}: {error}"
    why = f"no answer in {SECONDS} s" if isinstance(error, TimeoutError) else text.splitlines()[0][:200]
    if isinstance(error, FileNotFoundError):
        why = f"there is no bucket {'/'.join(address.split('/')[:3])}; create it, or correct the name"
    elif isinstance(error, TimeoutError | ConnectionError) or re.search(_SILENT, text):
        why = f"the store cannot be reached ({why}); what was written stays, and the same command continues"
    elif re.search(_REFUSED, text):
        login = "gcloud auth application-default login, or for s3:// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        why = f"access was refused; log in ({login}), or ask its owner for read and write access"
    return RemoteError(f"{address}: {why}")
