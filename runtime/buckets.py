"""Folders and files in buckets: a mirror on this machine, which is read as any folder and written through.

    local("gs://b/runs/a", cache)   the path in the mirror, CACHE/buckets/gs/b/runs/a; no request
    fetch(path)                     brings the mirror of this path up to date, for a reader
    with held(folder)               the lease of a workdir: other writers are refused, the mirror is up to date
    wrote(path)                     uploads the file
    removed(path)                   deletes the object of the file
    publish(folder)                 every folder in it becomes one object, FOLDER/NAME.tar: checkpoints
    unpack(folder)                  these objects become folders

`runtime.files` calls these, and the rest of the program sees paths of this machine. The bucket is right: a file that the
bucket lacks leaves the mirror, and a file is fetched where the bucket's generation of it is another. Nothing here does
anything for a path that is in no mirror; only an address imports TensorStore (`corruptions.objects`).

The mirrors are `runtime.mirrors`. A lease is the object `.lock` (`runtime.leases`); whoever holds it writes on condition of
the generations it knows.
"""

import contextlib
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime.mirrors import Mirror

_PATTERN = re.compile(r"[*?\[]")
_mirrors: dict[Path, "Mirror"] = {}
_folder = ""  # of all mirrors


def local(address: str, cache: Path) -> Path:
    """Returns the path of an address in its mirror and makes the mirror known; asks the bucket nothing.

    Raises:
      ValueError: an address of another scheme than gs:// and s3://, or that leads out of the mirrors.
    """
    global _folder
    from corruptions import objects
    from corruptions.files import contained
    from runtime.mirrors import Mirror

    parts = objects.parse(address)
    _folder = str(cache / "buckets")
    path = contained(_folder, "/".join(filter(None, parts)))
    pattern = _PATTERN.search(parts.key)
    fixed = parts._replace(key=parts.key[: pattern.start()].rpartition("/")[0]) if pattern else parts
    root = Path(_folder, *filter(None, fixed))
    if root not in _mirrors:
        index = hashlib.sha256(str(fixed).encode()).hexdigest()[:16]
        _mirrors[root] = Mirror(fixed, root, Path(_folder, "index", f"{index}.json"))
    return path


def fetch(path: Path) -> None:
    """Brings the mirror of a path up to date, once a process; one that another process of this machine writes is as it is."""
    mirror = _of(path)
    if mirror is None or mirror.fetched:
        return
    if mirror.is_written_here():
        mirror.fetched = True
    else:
        mirror.fetch()


def prepare(path: Path) -> None:
    """Makes ready for results at a path: its mirror holds no file of an earlier time."""
    mirror = _mirrors.get(path)
    if mirror is None or mirror.fetched or mirror.lease:
        return
    if not mirror.address.key or mirror.is_written_here():
        return fetch(path)
    del _mirrors[path]
    if _of(path.parent) is not None:
        return
    _mirrors[path.parent] = above = mirror.above()
    above.prepare(path.name)


def held(folder: Path) -> contextlib.AbstractContextManager[None]:
    """Holds the lease of a folder that is the root of a mirror; does nothing for others.

    Raises:
      InUseError: another process has it.
      OSError: the bucket is missing, refuses, or cannot be reached.
    """
    mirror = _mirrors.get(folder)
    return mirror.held() if mirror and not mirror.lease else contextlib.nullcontext()


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
        mirror.upload(folder)


def removed(path: Path) -> None:
    """Deletes the object of a file that was removed."""
    if mirror := _of(path):
        mirror.remove(mirror.name(path))


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
    return mirror.packed(folder) if mirror else []


def address_of(path: Path) -> Any:
    """Returns the address of a path in a mirror; None for others."""
    if mirror := _of(path):
        return mirror.address._replace(key=mirror.key(mirror.name(path)))
    return None


def shown(text: str) -> str:
    """Writes addresses in place of paths of mirrors."""
    if not _mirrors:
        return text
    return re.sub(re.escape(_folder) + r"/(gs|s3|memory)/", r"\1://", text)


def _of(path: Path) -> "Mirror | None":
    """The mirror that holds a path: one that this process holds as a workdir, else the innermost."""
    if not _mirrors:
        return None
    found = [mirror for parent in (path, *path.parents) if (mirror := _mirrors.get(parent))]
    return next((mirror for mirror in found if mirror.lease), found[0] if found else None)
