"""Datasets that are written to a bucket: each unit is made in a folder of this machine, uploaded, and removed here.

The manifest in the bucket records a unit after its files are there, so the bucket alone tells what is left to write.
The manifest is written on condition that it is still the one that this process knows: of two processes that write the
same dataset one is refused at its next unit.
"""

import contextlib
import hashlib
import os
import pathlib
import shutil
from collections.abc import Iterator

from corruptions import objects
from corruptions.files import WriteError, contained
from corruptions.write import manifests
from corruptions.write.manifests import Manifest
from corruptions.write.verifying import Unit


class Upload:
    """A dataset in a bucket.

    Attributes:
      folder: where its units are made.
    """

    def __init__(self, address: str | os.PathLike) -> None:
        try:
            self.address = objects.parse(address)
        except ValueError as error:
            raise WriteError(str(error)) from None
        self._bucket = objects.Bucket(self.address.scheme, self.address.bucket)
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        name = hashlib.sha256(str(self.address).encode()).hexdigest()[:16]
        self.folder = pathlib.Path(cache, "jax-corruptions", "uploads", name)
        self._names: set[str] = set()
        self._known = objects.MISSING

    @contextlib.contextmanager
    def begun(self) -> Iterator[None]:
        """Fetches the manifest; removes the folder when the block ends well."""
        self._clear()
        manifest = self._bucket.read(self._key(manifests.NAME))
        prefix = self._key("")
        self._names = {key.removeprefix(prefix) for key in self._bucket.list(prefix)}
        if manifest.content is not None:
            (self.folder / manifests.NAME).write_bytes(manifest.content)
            self._known = manifest.generation
        elif self._names:
            raise WriteError(
                f"expected an empty folder or one written by this program (with {manifests.NAME}), found {self.address} "
                f"holding {', '.join(sorted(self._names)[:5])}{' ...' if len(self._names) > 5 else ''}"
            )
        yield
        shutil.rmtree(self.folder)

    def has(self, manifest: Manifest, unit: Unit) -> bool:
        """Returns True if all files of a finished unit are in the bucket."""
        if unit.recorded == unit.path:
            return unit.path in self._names
        listing = self._bucket.read(self._key(unit.recorded)).content or b""
        if hashlib.sha256(listing).hexdigest() != manifest["files"][unit.recorded]["sha256"]:
            return False
        return {line.split("  ", 1)[1] for line in listing.decode().splitlines()} <= self._names

    def fetch(self, unit: Unit) -> None:
        """Brings the files of a unit here, to be compared."""
        names = [name for name in self._names if name in (unit.path, unit.recorded) or name.startswith(f"{unit.path}/")]
        for name, (_, found) in zip(names, self._bucket.read_many((self._key(name), None) for name in names)):
            path = contained(self.folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(found.content or b"")

    def fetch_file(self, name: str) -> None:
        """Brings a file here, if the bucket has it."""
        if name in self._names:
            contained(self.folder, name).write_bytes(self._bucket.read(self._key(name)).content or b"")

    def drop(self, unit: Unit) -> None:
        """Removes the files of a unit here."""
        for name in (unit.path, unit.recorded):
            objects.delete(contained(self.folder, name))

    def take(self) -> None:
        """Uploads all visible files, then the manifest, and removes them here but for the manifest."""
        found = [pathlib.Path(above, name) for above, _, names in os.walk(self.folder) for name in names]
        paths = {path.relative_to(self.folder).as_posix(): path for path in found}
        paths = {name: path for name, path in paths.items() if not name.startswith(".") and name != manifests.NAME}
        self._bucket.write_many((self._key(name), path.read_bytes) for name, path in sorted(paths.items()))
        self._names |= paths.keys()
        generation = self._bucket.write(
            self._key(manifests.NAME), (self.folder / manifests.NAME).read_bytes(), self._known
        )
        if generation is None:
            raise WriteError(f"another process is writing {self.address}; wait for it or use another folder")
        self._known = generation
        for path in paths.values():
            path.unlink()

    def _key(self, name):
        return f"{self.address.key}/{name}" if self.address.key else name

    def _clear(self):
        for path in self.folder.iterdir():
            if path.name != ".lock":
                objects.delete(path)
