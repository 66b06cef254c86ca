"""Objects in buckets: `gs://BUCKET/KEY`, `s3://BUCKET/KEY`, and `memory://BUCKET/KEY` of this process for tests.

TensorStore does the requests. It is imported when an address is given, so nobody else needs it. A write is atomic; a
write or a deletion can be bound to the object's generation, which changes with each write.

The environment sets the rest: GOOGLE_APPLICATION_CREDENTIALS or gcloud's login for gs://; AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY, AWS_REGION and, for stores that speak S3, AWS_ENDPOINT_URL for s3://. STORAGE_EMULATOR_HOST names
a server that stands in for gs://, as it does for Google's own clients; no login is sent there.
"""

import collections
import contextlib
import functools
import hashlib
import json
import os
import pathlib
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from corruptions.files import check_relative, contained

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/{1,2}([^/]*)/?(.*)", re.S)  # pathlib makes gs:/bucket of gs://bucket
_SECONDS = 45  # until a store that does not answer is given up, for requests that carry little
_RETRIES = {"max_retries": 8, "initial_delay": "500ms", "max_delay": "8s"}  # some 40 s
_MOST, _ROOM = 32, 2**29  # requests at once, and bytes of memory that they may fill
_LOGINS = {
    "gs": "gcloud auth application-default login, or GOOGLE_APPLICATION_CREDENTIALS=FILE",
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile in ~/.aws",
}
_answered = {"memory"}  # schemes whose store has answered: credentials are found, and a list may take its time
SCHEMES = ("gs", "s3", "memory")
MISSING = b"\x02"
"""The generation of no object."""


class BucketError(OSError):
    """A bucket cannot be reached, or refuses a request; the message names the address and what to do."""


class Address(NamedTuple):
    """An address in parts; `str` writes it."""

    scheme: str
    bucket: str
    key: str = ""

    def __str__(self):
        return f"{self.scheme}://{self.bucket}{'/' if self.key else ''}{self.key}"


class Object(NamedTuple):
    """What a read found: `content` is None where the object is missing, or has the generation that was known."""

    content: bytes | None
    generation: bytes
    same: bool = False


def parse(text: str | os.PathLike) -> Address:
    """Splits an address into scheme, bucket and key, without slashes at its end.

    Raises:
      ValueError: no address, of another scheme, without a bucket, or with parts that are no names, such as `..`.
    """
    match = _ADDRESS.fullmatch(os.fspath(text))
    if not match or match[1] not in SCHEMES or not match[2]:
        raise ValueError(
            "expected a path of this machine, gs://BUCKET/... or s3://BUCKET/..., found the address "
            f"{os.fspath(text)}; copy its files to this machine, or mount the bucket and give that folder"
        )
    address = Address(match[1], match[2], match[3].rstrip("/"))
    try:
        check_relative("/".join(filter(None, address[1:])))
    except ValueError:
        raise ValueError(
            "expected an address gs://BUCKET/... or s3://BUCKET/... of names between slashes, neither empty ones nor . "
            f"and .., found {os.fspath(text)}"
        ) from None
    return address


@functools.cache
def _tensorstore():
    try:
        import tensorstore
    except ImportError:
        raise BucketError("addresses of buckets need tensorstore: pip install tensorstore") from None
    return tensorstore, tensorstore.Context({f"{name}_request_retries": _RETRIES for name in ("gcs", "s3")})


@contextlib.contextmanager
def _silence():
    """Drops what the search for credentials writes to standard error: each file that it does not find."""
    kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)


@functools.cache
def _open(scheme: str, name: str) -> Any:
    tensorstore, context = _tensorstore()
    if scheme == "memory":
        return tensorstore.KvStore.open({"driver": "memory", "path": f"{name}/"}, context=context).result()
    spec: dict[str, Any] = {"driver": {"gs": "gcs"}.get(scheme, scheme), "bucket": name}
    if scheme == "gs" and (host := os.environ.get("STORAGE_EMULATOR_HOST")):
        url = host if "://" in host else f"http://{host}"
        os.environ.setdefault("TENSORSTORE_GCS_HTTP_URL", url.rstrip("/"))  # TensorStore has no other way
        os.environ["GOOGLE_AUTH_TOKEN_FOR_TESTING"] = "none"  # else it looks for a login, and sends it
    if scheme == "s3":
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        spec |= {"endpoint": endpoint, "aws_region": region or "us-east-1"} if endpoint else {}
        spec |= {"aws_region": region} if region else {}
        spec |= {"aws_credentials": {"type": "environment"}} if "AWS_ACCESS_KEY_ID" in os.environ else {}
    return tensorstore.KvStore.open(spec, context=context).result()


class Bucket:
    """The objects of a bucket, by their keys; every method raises BucketError."""

    def __init__(self, scheme: str, name: str):
        self.address = Address(scheme, name)
        try:
            self._store = _open(scheme, name)
        except ValueError as error:
            raise self._explained(error, "") from error

    def list(self, prefix: str = "") -> list[str]:
        """Lists the keys that begin with `prefix`, sorted. A missing bucket of gs:// looks empty."""
        if self.address.scheme not in _answered:
            self.read(prefix or "any")  # without an answer it fails within a minute, where a list takes several
        tensorstore, _ = _tensorstore()
        keys = tensorstore.KvStore.KeyRange(prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)) if prefix else None
        return sorted(key.decode() for key in self._result(self._store.list(keys), prefix, 10 * _SECONDS))

    def read(self, key: str, known: bytes | None = None) -> Object:
        """Reads an object, unless it has the generation `known`."""
        return self._object(self._result(self._store.read(key, if_not_equal=known), key, _SECONDS), known)

    def read_many(self, keys: Iterable[tuple[str, bytes | None]]) -> Iterator[tuple[str, Object]]:
        """Reads objects, given as (key, generation that is known or None), many at once; yields (key, object) in order."""
        waiting: collections.deque = collections.deque()
        left, largest = iter(keys), 2**26
        while True:
            while len(waiting) < max(2, min(_MOST, _ROOM // largest)) and (following := next(left, None)):
                waiting.append((*following, self._store.read(following[0], if_not_equal=following[1])))
            if not waiting:
                return
            key, known, future = waiting.popleft()
            found = self._object(self._result(future, key), known)
            largest = max(2**14 if largest == 2**26 else largest, len(found.content or b""))
            yield key, found

    def write(self, key: str, content: bytes | None, known: bytes | None = None) -> bytes | None:
        """Writes an object, or deletes it where `content` is None; returns its generation.

        With `known` only where the object has that generation (`MISSING`: where there is none). Returns None where it
        had another. A write whose answer was lost is repeated, and finds its own object: that counts as written.
        """
        small = content is None or len(content) < 2**20
        future = self._store.write(key, content, if_equal=known)
        generation = self._result(future, key, _SECONDS if small else None).generation
        if generation or known is None:
            return generation
        found = self.read(key)
        if found.content is None and known == MISSING:
            self.list(key)  # raises where the bucket is missing, which S3 says only here
        return found.generation if found.content == content else None

    def write_many(self, contents: Iterable[tuple[str, Callable[[], bytes]]]) -> None:
        """Writes objects, given as (key, function that reads the content), many at once."""
        waiting: collections.deque = collections.deque()
        largest = 2**14
        for key, read in contents:
            content = read()
            largest = max(largest, len(content))
            while len(waiting) >= max(2, min(2 * _MOST, _ROOM // largest)):
                self._result(*reversed(waiting.popleft()))
            waiting.append((key, self._store.write(key, content)))
        for key, future in waiting:
            self._result(future, key)

    def _object(self, result, known):
        same = result.state == "unspecified" or result.stamp.generation == known != MISSING
        return Object(result.value if result.state == "value" and not same else None, result.stamp.generation, same)

    def _result(self, future, key, seconds=None):
        try:
            with contextlib.nullcontext() if self.address.scheme in _answered else _silence():
                found = future.result(timeout=seconds)
            _answered.add(self.address.scheme)
            return found
        except TimeoutError as error:
            raise self._explained(error, key) from None
        except (ValueError, OSError, RuntimeError) as error:
            raise self._explained(error, key) from error

    def _explained(self, error, key):
        address, text = self.address._replace(key=key), str(error)
        login = _LOGINS.get(address.scheme, "")
        if isinstance(error, TimeoutError) or re.search(r"UNAVAILABLE|DEADLINE_EXCEEDED|Connect|ABORTED", text):
            return BucketError(
                f"{address}: the store cannot be reached ({_brief(text) or f'no answer in {_SECONDS} s'}); what was "
                "written stays, and the same command continues"
            )
        if re.search(r"PERMISSION_DENIED|UNAUTHENTICATED|credential|http_response_code='40[13]'", text):
            return BucketError(
                f"{address}: access was refused; log in ({login}), or ask its owner for read and write access"
            )
        if re.search(r"NOT_FOUND|NoSuchBucket|http_response_code='404'", text):
            return BucketError(f"{address}: there is no bucket {self.address}; create it, or correct the name")
        return BucketError(f"{address}: {_brief(text)}")


class Copy:
    """A folder, or a file, of this machine that is like what lies at an address.

    The bucket is right: what it lacks leaves the copy, and a file is read again where its object has another generation
    than the one read before, or where the file was changed here.

    Attributes:
      address: the address.
      root: path of the copy.
    """

    def __init__(self, address: Address, root: pathlib.Path, index: pathlib.Path):
        self.address, self.root, self._index = address, root, index
        self._known: dict[str, list] = {}  # {name: [generation, state of the file]}; "" names the address itself

    @functools.cached_property
    def bucket(self) -> Bucket:
        """Its bucket, opened when it is first asked."""
        return Bucket(self.address.scheme, self.address.bucket)

    def key(self, name: str) -> str:
        """Returns the key of an object of the copy."""
        return "/".join(filter(None, (self.address.key, name)))

    def _path(self, name):
        """The path of an object; None for a name that leads out of the copy."""
        with contextlib.suppress(ValueError):
            return self.root / check_relative(name) if name else self.root
        return None

    def fetch(self) -> None:
        """Makes the copy like the bucket."""
        self._load_index()
        prefix = f"{self.address.key}/" if self.address.key else ""
        names = {key.removeprefix(prefix) for key in self.bucket.list(prefix)} - {
            ""
        }  # some tools make an object of a folder
        wanted = self._wanted(names)
        found = self._get([""] if prefix and not names else wanted)
        self._known = {name: known for name, known in self._known.items() if name in names or name in found}
        if names:
            self._drop_others({path for name in names if (path := self._path(name))})
        elif not found:
            delete(self.root)
        self._save_index()

    def _wanted(self, names):
        """Chooses the objects that are read."""
        wanted = {name for name in names if self._path(name)}
        for name in wanted:
            for folder in map(str, pathlib.PurePosixPath(name).parents):
                if folder in wanted:
                    raise BucketError(
                        f"{self.address._replace(key=self.key(folder))}: expected a file or a folder of this name, found an "
                        f"object beside {name!r}; remove one of them"
                    )
        return sorted(wanted)

    def _get(self, names):
        """Reads objects that changed; returns the names of those that there are."""
        found, keys = set(), [(self.key(name), self._generation(name)) for name in names]
        for name, (_, one) in zip(names, self._read(keys)):
            if one.same or one.content is not None:
                found.add(name)
            if one.content is not None and not one.same:
                self._place(name, one)
        return found

    def _read(self, keys):
        return self.bucket.read_many(keys)

    def _generation(self, name):
        """The generation of the object that the file here equals; None where it must be read."""
        generation, state = self._known.get(name, (None, None))
        return bytes.fromhex(generation) if generation and state == state_of(self._path(name)) else None

    def _place(self, name, one):
        path = self._path(name)
        if path != self.root:
            contained(self.root, path.relative_to(self.root).as_posix())
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f".part-{secrets.token_hex(8)}")
        try:
            self._fill(aside, name, one)
            if path.is_dir() or aside.is_dir():
                delete(path)
            os.replace(aside, path)
        except BaseException:
            delete(aside)
            raise
        self._known[name] = [one.generation.hex(), state_of(path)]

    def _fill(self, path, name, one):
        path.write_bytes(one.content)
        os.utime(path, ns=(time_of(one.generation),) * 2)

    def _drop_others(self, kept):
        """Removes files that are not among `kept`, which may name folders, and folders that are empty then."""
        for folder, _, names in os.walk(self.root, topdown=False):
            here = pathlib.Path(folder)
            if not kept.isdisjoint((here, *here.parents)):
                continue
            for path in map(here.joinpath, names):
                if path not in kept:
                    path.unlink()
            with contextlib.suppress(OSError):
                if here != self.root:
                    here.rmdir()

    def _load_index(self):
        with contextlib.suppress(OSError, ValueError):
            known = json.loads(self._index.read_text())
            self._known = known if isinstance(known, dict) else {}

    def _save_index(self):
        self._index.parent.mkdir(parents=True, exist_ok=True)
        aside = self._index.with_suffix(f".{secrets.token_hex(4)}")
        aside.write_text(json.dumps(self._known))
        os.replace(aside, self._index)


def copied(path: str | os.PathLike) -> str:
    """Copies what lies at an address to this machine and returns its path there; other paths come back as they are.

    The copies stay in ~/.cache/jax-corruptions/inputs. What did not change in the bucket is not copied again.
    """
    text = os.fspath(path)
    match = _ADDRESS.fullmatch(text)
    if not match or match[1] not in SCHEMES:
        return text
    address = parse(text)
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    inputs = pathlib.Path(cache, "jax-corruptions", "inputs")
    name = hashlib.sha256(str(address).encode()).hexdigest()[:16]
    root = contained(inputs, f"{name}/{address.key.rpartition('/')[2] or address.bucket}")
    copy = Copy(address, root, inputs / name / "generations.json")
    copy.fetch()
    return str(copy.root)


def time_of(generation: bytes) -> int:
    """Gives a file a time, in nanoseconds: the same on every machine, another for another generation of its object."""
    return (10**9 + int(hashlib.sha256(generation).hexdigest()[:7], 16)) * 10**9


def _brief(text):
    lines = text.strip().splitlines()
    return lines[0].partition(" [")[0][:200] if lines else ""


def state_of(path: pathlib.Path) -> list[int] | None:
    """Reads what changes with a file's content, in JSON; None where there is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return [stat.st_ino, stat.st_mtime_ns, stat.st_size]


def delete(path: pathlib.Path) -> None:
    """Removes a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
