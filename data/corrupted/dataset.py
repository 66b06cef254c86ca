"""One corrupted dataset on disk: conditions, batches, and the manifest beside it."""

import abc
import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from corruptions.write import WriteError, manifests, verifying
from corruptions.write.layout import token
from runtime import files

MANIFEST = "manifest.json"
RANDOM = "random"

# A severity: a level, a fraction of a range, or RANDOM, drawn per image.
Severity = int | float | str
Batch = tuple[np.ndarray, np.ndarray]


class CorruptedDataset(abc.ABC):
    """One set of test images under several conditions (corruption, severity).

    Attributes:
      path: where it is.
      number: images in each condition.
      image_shape: (H, W, 3).
      class_names: names in the order of the labels, or None where the files do not say.
      provenance: JSON-ready description of where the pixels come from.
    """

    path: Path
    number: int
    image_shape: tuple[int, int, int]
    class_names: tuple[str, ...] | None
    provenance: Mapping[str, Any]

    def __init__(self, path: Path, places: Mapping[tuple[str, Severity], Any]):
        """`places`: what is there, in order; where each condition is found."""
        if not places:
            raise FileNotFoundError(f"{path}: expected a corrupted dataset, found no corruption in it")
        self.path = path
        self._places = dict(places)

    def conditions(self) -> tuple[tuple[str, Severity], ...]:
        """Every (corruption, severity) that is there.

        Corruptions have their qualified names (`imagenet_c/fog`, `cbar/ripple`) where the files
        tell the benchmark: a manifest, or one of the published names of ImageNet-C and C-bar
        (`data.corrupted.names`); otherwise the name of the file or folder. Severities of released
        ImageNet-C-bar folders are 1 to 5, as those of its papers.
        """
        return tuple(self._places)

    def batches(self, corruption: str, severity: Severity, batch_size: int) -> Iterator[Batch]:
        """Images uint8[n, H, W, 3] and labels int32[n] of one condition, in the order of the files.

        n is `batch_size` but for the last batch, which holds the rest.

        Args:
          corruption: as in `conditions()`, or without its benchmark.
          severity: as in `conditions()`, or its text.

        Raises:
          ValueError: no such corruption or severity; a file is damaged or of another shape than the
            others (named).
        """
        if batch_size < 1:
            raise ValueError(f"expected a batch_size of at least 1, found {batch_size}")
        return self._read(self._places[self._find(corruption, severity)], batch_size)

    @abc.abstractmethod
    def _read(self, place: Any, batch_size: int) -> Iterator[Batch]:
        """The batches of the condition at `place`."""

    def _find(self, corruption: str, severity: Severity) -> tuple[str, Severity]:
        there = list(dict.fromkeys(name for name, _ in self._places))
        matches = [name for name in there if corruption in (name, name.rpartition("/")[2])]
        if not matches:
            hint = difflib.get_close_matches(corruption, there + [name.rpartition("/")[2] for name in there], 1)
            hint = f"; did you mean {hint[0]!r}?" if hint else ""
            raise ValueError(f"{self.path} has no corruption {corruption!r}{hint}; found {', '.join(there)}")
        severity = parse_severity(str(severity))
        if (matches[0], severity) not in self._places:
            severities = [str(s) for name, s in self._places if name == matches[0]]
            raise ValueError(
                f"{self.path} has no severity {severity} of {matches[0]}; found severities {', '.join(severities)}"
            )
        return matches[0], severity


def read_manifest(path: Path, verify: bool = False) -> dict[str, Any] | None:
    """The manifest of a dataset written by `corruptions.write`, None for others.

    Args:
      path: of the dataset.
      verify: compare all files with their sha256; otherwise see `corruptions.write.verify`.

    Raises:
      ValueError: it is damaged, or says that the dataset is not complete, or files are not what was
        written.
    """
    file = path / MANIFEST
    if not file.exists():
        return None
    manifest = files.read_json(file, remedy="write or copy the dataset again")
    try:
        corruptions = manifest["corruptions"]
        missing = [name for name, e in corruptions.items() if len(e["written"]) < len(e["severities"])]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{file} is damaged: {type(error).__name__}: {error}") from error
    if missing:
        raise ValueError(
            f"{path} is not written to its end ({', '.join(missing)}); run its command again, which continues: "
            f"{manifests.command(manifest)}"
        )
    try:
        wrong = verifying.verify(path, everything=verify)
    except WriteError as error:
        raise ValueError(str(error)) from error
    if wrong:
        shown = "\n  ".join(wrong[:10])
        raise ValueError(
            f"{path}: {len(wrong)} of its files are not what was written:\n  {shown}\n"
            f"Mend them with:\n  {mending(manifest)}"
        )
    return manifest


def written_places(path: Path, manifest: Mapping[str, Any]) -> dict[tuple[str, Severity], Path]:
    """The folder of each condition of a dataset that `corruptions.write` wrote in folders."""
    return {
        (name, severity): path / entry["path"] / token(severity)
        for name, entry in manifest["corruptions"].items()
        for severity in entry["severities"]
    }


def problems(path: Path) -> list[str]:
    """Compares all files of a dataset that `corruptions.write` wrote with their sha256.

    Returns:
      A line for each that is wrong, with what mends it.

    Raises:
      FileNotFoundError: there is no manifest.
    """
    try:
        wrong = verifying.verify(path, everything=True)
        return [f"{line}; mend it with {mending(manifests.load(path))}" for line in wrong]
    except WriteError as error:
        return [str(error)]


def mending(manifest: Mapping[str, Any]) -> str:
    """Gives the command that writes again what is wrong with a written dataset."""
    return f"{manifests.command(manifest)} --verify"


def parse_severity(text: str) -> Severity | None:
    """`3` -> 3, `0.25` -> 0.25, `1.00` -> 1, `random`; None for anything else."""
    if text == RANDOM:
        return RANDOM
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if number == int(number) else number
