"""The form of ImageNet-C: `<corruption>/<severity>/<class>/<name>.JPEG` (quality as published: 85)
or lossless `.png`.

The sha256 of every image is in `checksums/<corruption>-<severity>.sha256`, for `sha256sum -c`.
"""

import hashlib
import io
import os
import pathlib
import random
import shutil
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from corruptions.write import checks, files, manifests
from corruptions.write.checks import Damage
from corruptions.write.layout import Entry, Layout, Severity, token
from corruptions.write.sources import require


def damages(
    folder: pathlib.Path, manifest: manifests.Manifest, entry: Entry, known: checks.Checks, everything: bool
) -> list[Damage]:
    """Compares the images of a corruption with what was written; says what differs.

    Arguments as of `npy.damages`: images are sampled where all have the names, sizes and times they
    were left with.
    """
    return [
        damage
        for severity in entry["written"]
        for damage in _of_severity(folder, manifest, entry, severity, known, everything)
    ]


def _of_severity(folder, manifest, entry, severity, known, everything):
    root = f"{entry['path']}/{token(severity)}"
    path, listing = folder / root, folder / _listing(entry, severity)
    if not path.is_dir():
        return [Damage(f"{path} is missing", (severity,))]
    facts = manifest["files"].get(_listing(entry, severity), {})
    if not listing.is_file() or files.describe_file(listing).items() - facts.items():
        return [Damage(f"{listing} is not the list of checksums that was written", (severity,))]
    lines = (line.split("  ", 1) for line in listing.read_text().splitlines())
    digests = {name.removeprefix(f"{root}/"): digest for digest, name in lines}
    there = _files_below(path)
    foreign = [f"{path / name} was not written by this program; move it away" for name in there if name not in digests]
    strangers = [Damage(line, ()) for line in foreign[:10]]
    now = stamp(there)
    as_left = known.get(root, {}).get("stamp") == now
    names = sorted(digests)
    if as_left and not everything:
        names = random.Random().sample(names, min(checks.SAMPLES, len(names)))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        same = pool.map(lambda name: name in there and _sha256(path / name) == digests[name], names)
        wrong = [name for name, right in zip(names, same) if not right]
    if wrong:
        count = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        what = "is missing" if wrong[0] not in there else f"is not of the sha256 {digests[wrong[0]]}"
        return [*strangers, Damage(f"{path / wrong[0]} {what}{count}", (severity,))]
    if not foreign:
        known[root] = {"stamp": now}
    return strangers


def stamp(there: dict[str, tuple[int, int]]) -> int:
    """Computes a number that changes with the name, size or time of any file."""
    return zlib.crc32("".join(f"{name} {there[name]}\n" for name in sorted(there)).encode("utf-8", "surrogateescape"))


def _files_below(path):
    """{relative path: (bytes, time in nanoseconds)} of all files."""
    there = {}
    for folder, _, names in os.walk(path):
        prefix = pathlib.PurePath(folder).relative_to(path).as_posix()
        for name in names:
            stat = os.stat(os.path.join(folder, name), follow_symlinks=False)
            there[name if prefix == "." else f"{prefix}/{name}"] = (stat.st_size, stat.st_mtime_ns)
    return there


def _sha256(path):
    try:
        return files.describe_file(path)["sha256"]
    except OSError as error:
        return str(error)


def _listing(entry, severity):
    return f"checksums/{entry['path']}-{token(severity)}.sha256"


class Folders(Layout):
    """Writes the images."""

    suffix = ""
    counted = "images"  # what the files are, in the manifest

    def start(self) -> None:
        require("PIL", "writing image files needs Pillow")
        self.pool = ThreadPoolExecutor(os.cpu_count())
        self.digests: dict[str, str] = {}

    def todo(self, entry: Entry) -> list[Severity]:
        """Lists the severities still to be written, or again; finishes what a killed run left
        almost done.
        """
        for severity in entry["written"]:
            if not self._path(entry, severity).exists() and self._part(entry, severity).exists():
                self._publish(entry, severity)
        for damage in damages(self.folder, self.manifest, entry, self.checks, self.everything):
            self.say(damage)
            for severity in damage.severities:
                entry["written"].remove(severity)
                # Aside first: a run that is killed here finds no half of a folder under its name.
                if self._path(entry, severity).exists():
                    shutil.rmtree(self._part(entry, severity), ignore_errors=True)
                    self._part(entry, severity).parent.mkdir(parents=True, exist_ok=True)
                    os.replace(self._path(entry, severity), self._part(entry, severity))
        missing = [severity for severity in entry["severities"] if severity not in entry["written"]]
        for severity in missing:
            self.refuse_foreign(self._path(entry, severity))
        return missing

    def missing_bytes(self, entry: Entry) -> int:
        """Returns 0: the space depends on how well the images will compress."""
        del entry
        return 0

    def begin(self, entry: Entry, severity: Severity) -> None:
        part = self._fresh(entry, severity)
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
        listing = _listing(entry, severity)
        (self.folder / "checksums").mkdir(exist_ok=True)
        files.replace(self.folder / listing, "".join(lines).encode())
        facts = {self.counted: len(lines), **files.describe_file(self.folder / listing)}
        self.checks[root] = {"stamp": stamp(_files_below(self._part(entry, severity)))}
        self.record(entry, severity, listing, facts)
        self._publish(entry, severity)

    def close(self) -> None:
        """Removes the folder where blocks were written aside; keeps the times of files that were
        compared.
        """
        self.pool.shutdown()
        shutil.rmtree(self.folder / ".part", ignore_errors=True)
        checks.save(self.folder, self.checks)

    def name(self, position: int) -> str:
        """Names an image by its class and its name in the source."""
        class_name = self.source.class_names[self.source.labels[position]]
        suffix = ".png" if self.manifest["jpeg_quality"] is None else ".JPEG"
        return f"{class_name}/{self.source.names[position]}{suffix}"

    def encode(self, image: np.ndarray) -> bytes:
        """Encodes uint8[H, W, 3] as the file of an image."""
        from PIL import Image

        quality = self.manifest["jpeg_quality"]
        kind = {"format": "PNG"} if quality is None else {"format": "JPEG", "quality": quality, "optimize": True}
        content = io.BytesIO()
        # Pillow's JPEG default is 4:2:0, as published.
        Image.fromarray(image).save(content, **kind)
        return content.getvalue()

    def _write_image(self, part, position, image):
        content, name = self.encode(image), self.name(position)
        path = part / name
        if "/" in self.source.names[position]:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return name, hashlib.sha256(content).hexdigest()

    def _fresh(self, entry, severity):
        """The folder where a block is written aside, empty."""
        self.digests = {}
        part = self._part(entry, severity)
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        return part

    def _path(self, entry, severity):
        return self.folder / entry["path"] / token(severity)

    def _part(self, entry, severity):
        return self.folder / ".part" / entry["path"] / token(severity)

    def _publish(self, entry, severity):
        path = self._path(entry, severity)
        path.parent.mkdir(exist_ok=True)
        os.replace(self._part(entry, severity), path)
