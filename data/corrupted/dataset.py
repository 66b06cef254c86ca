"""One corrupted dataset on disk: conditions, batches, the manifest beside it, and published names."""

import abc
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import corruptions
from corruptions import cbar
from corruptions.core.checks import suggest
from corruptions.core.errors import Refused
from corruptions.files import content_sha256
from corruptions.write import WriteError, manifests, verify
from corruptions.write.manifests import Severity

MANIFEST = manifests.NAME
RANDOM = "random"
IMAGENET_OF_TFDS = "imagenet2012_corrupted"  # a benchmark of its own, see `data.corrupted.tfds`

Batch = tuple[np.ndarray, np.ndarray]

_PUBLISHED = ("imagenet_c", "imagenet_c_extra", "imagenet_c_bar", "cifar10_c_bar", "cbar_candidates")
_ORDER = list(dict.fromkeys(name for benchmark in _PUBLISHED for name in corruptions.names(benchmark)))
# The registry's aliases hold the spellings of C-bar's files; tfds' cifar10_corrupted has two more.
_QUALIFIED = {"elastic": "imagenet_c/elastic_transform", "frosted_glass_blur": "imagenet_c/glass_blur"} | {
    spelling: name for name in reversed(_ORDER) for c in [corruptions.get(name)] for spelling in (c.name, *c.aliases)
}


class CorruptedDataset(abc.ABC):
    """One set of test images under several conditions (corruption, severity).

    A severity is a level, a fraction of a range, or `random`, drawn for each image.
    """

    path: Path  # the folder
    number: int  # images in each condition
    image_shape: tuple[int, int, int]  # (H, W, 3)
    class_names: tuple[str, ...] | None  # names in the order of the labels, or None where the files do not tell
    provenance: Mapping[str, Any]  # JSON-ready description of the source of the pixels
    preprocessing: str | None = None  # the test images' preprocessing, in words, where it is not the published one

    def __init__(self, path: Path, places: Mapping[tuple[str, Severity], Any]):
        """Takes the place of each condition, in order."""
        if not places:
            raise FileNotFoundError(f"{path}: expected a corrupted dataset, found no corruption in it")
        self.path = path
        self._places = dict(places)
        self._contents: dict[tuple[Path, ...], str] = {}

    def conditions(self) -> tuple[tuple[str, Severity], ...]:
        """Lists every (corruption, severity).

        Corruptions have their qualified names (`imagenet_c/fog`, `cbar/ripple`) where the files tell the benchmark:
        a manifest, or a published name of ImageNet-C or C-bar (`qualified`); otherwise the name of the file or
        folder. Those of tfds' `imagenet2012_corrupted`, which is not ImageNet-C, are `imagenet2012_corrupted/fog`. Severities of released ImageNet-C-bar folders are 1 to 5, as in its papers.
        """
        return tuple(self._places)

    def batches(self, corruption: str, severity: Severity, batch_size: int) -> Iterator[Batch]:
        """Yields images uint8[n, H, W, 3] and labels int32[n] of one condition, in the order of the files.

        n is `batch_size`, but less in the last batch, which holds the rest.

        Args:
          corruption: as in `conditions()`, or without its benchmark.
          severity: as in `conditions()`, or its text.

        Raises:
          ValueError: no such corruption or severity; a file is damaged or of another shape than the others (named).
        """
        if batch_size < 1:
            raise ValueError(f"expected a batch_size of at least 1, found {batch_size}")
        return self._read(self._places[self._find(corruption, severity)], batch_size)

    def content(self, corruption: str, severity: Severity) -> str:
        """Computes a digest of the files of one condition, once.

        Of a folder tree it takes at most 256 images, of large files a sample (`corruptions.write.files.content_sha256`).
        """
        paths = tuple(self._files(self._places[self._find(corruption, severity)]))
        if paths not in self._contents:
            self._contents[paths] = content_sha256(paths)
        return self._contents[paths]

    def files(self) -> Iterator[Path]:
        """Yields the files of all conditions."""
        for place in self._places.values():
            yield from self._all_files(place)

    def _all_files(self, place: Any) -> Iterable[Path]:
        return self._files(place)

    @abc.abstractmethod
    def _files(self, place: Any) -> Iterable[Path]:
        """Lists the files that `content` reads of the condition at `place`."""

    @abc.abstractmethod
    def _read(self, place: Any, batch_size: int) -> Iterator[Batch]:
        """Yields the batches of the condition at `place`."""

    def _find(self, corruption, severity):
        there = list(dict.fromkeys(name for name, _ in self._places))
        matches = [name for name in there if corruption in (name, name.rpartition("/")[2])]
        if not matches:
            near = suggest(corruption, there + [name.rpartition("/")[2] for name in there])
            raise Refused("corruption", f"a corruption of {self.path}: {', '.join(there)}", repr(corruption), near)
        severity = parse_severity(str(severity))
        if (matches[0], severity) not in self._places:
            severities = [str(s) for name, s in self._places if name == matches[0]]
            raise ValueError(
                f"{self.path} has no severity {severity} of {matches[0]}; found severities {', '.join(severities)}"
            )
        return matches[0], severity


def read_manifest(path: Path, everything: bool = False) -> dict[str, Any] | None:
    """Reads the manifest of a dataset written by `corruptions.write`; None for others. `everything` as of its `verify`.

    Raises ValueError where the manifest or files are damaged, or the dataset is not complete.
    """
    try:
        manifest = manifests.load(path)
        if manifest is None:
            return None
        missing = [name for name, e in manifest["corruptions"].items() if len(e["written"]) < len(e["severities"])]
        wrong = [] if missing else verify(path, everything=everything)
    except WriteError as error:
        raise ValueError(str(error)) from error
    if missing:
        raise ValueError(
            f"{path} is not written to its end ({', '.join(missing)}); run its command again, which continues: "
            f"{manifests.command(manifest)}"
        )
    if wrong:
        some = "\n  ".join(wrong[:10])
        raise ValueError(
            f"{path}: {len(wrong)} of its files changed since they were written:\n  {some}\nMend them with:\n  {mending(manifest)}"
        )
    return manifest


def problems(path: Path) -> list[str]:
    """Compares all files of a dataset that `corruptions.write` wrote with their sha256.

    Returns a line for each damaged file, with the command that mends it; raises FileNotFoundError without a manifest.
    """
    try:
        wrong = verify(path, everything=True)
        return [f"{line}; mend it with {mending(manifests.load(path))}" for line in wrong]
    except WriteError as error:
        return [str(error)]


def recorded(path: Path) -> int:
    """Counts the files and folders of images or shards that `problems` compares."""
    manifest = manifests.load(path)
    return len(manifest["files"]) if manifest else 0


def mending(manifest: Mapping[str, Any]) -> str:
    """Returns the command that writes damaged files of a dataset again."""
    return manifests.command(manifest, "--verify")


def parse_severity(text: str) -> Severity | None:
    """`3` -> 3, `0.25` -> 0.25, `1.00` -> 1, `random`; None for anything else."""
    if text == RANDOM:
        return RANDOM
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    return int(number) if number == int(number) else number


def qualified(name: str) -> str:
    """Returns the qualified name of a corruption for the name of a published file or folder.

    `imagenet_c/...` for the 19 of ImageNet-C, `cbar/...` for the 30 of C-bar in either spelling, unchanged for others.
    """
    return _QUALIFIED.get(name, name)


def published_order(names: Iterable[str]) -> list[str]:
    """Sorts names in the order of ImageNet-C, then of the C-bar benchmarks; others follow by the alphabet."""
    rank = {name: i for i, name in enumerate(_ORDER)}
    return sorted(names, key=lambda name: (rank.get(qualified(name), len(rank)), name))


def published_severities(name: str, folders: Sequence[str]) -> dict[str, int]:
    """Maps folders to severities 1..5, where their names are the strengths of a member of ImageNet-C-bar; else {}.

    The authors' program prints strengths with two decimals (`2.35`); their redistributed archive has 1 to 5.
    """
    name = qualified(name).removeprefix("cbar/")
    levels = cbar.SELECTED["imagenet_c_bar"].get(name, ())
    if len(folders) != len(levels) or not levels or not all(folder[-3:-2] == "." for folder in folders):
        return {}
    strengths = [cbar.severities.scan(name, "imagenet")[level - 1] for level in levels]
    ordered = sorted(folders, key=float)
    same = all(math.isclose(float(folder), strength) for folder, strength in zip(ordered, strengths))
    return {folder: severity for severity, folder in enumerate(ordered, 1)} if same else {}
