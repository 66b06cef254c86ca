"""`.checks.json` beside a manifest: what tells cheaply that files are what was written.

Of each file it has the time of change and the CRC-32 of blocks of it. Where the time is another
one, as after a copy, or the file of checks is not there, everything is compared with the sha256 in
the manifest instead. It is apart from the manifest, since times differ between two datasets that
are alike.
"""

import json
import pathlib
import random
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from corruptions.write import files

NAME = ".checks.json"
SAMPLES = 4
"""Blocks, or images, of each severity that are compared when times are as they were."""

_BLOCK = 2**20  # bytes
_BLOCKS = 256  # of a severity, at most

Checks = dict[str, Any]


class Damage(NamedTuple):
    """What is wrong with one file or folder, in words, and the severities to write again; none for
    foreign files.
    """

    line: str
    severities: tuple[int | float | str, ...]


def load(folder: pathlib.Path) -> Checks:
    """Reads the checks of a dataset; those that are absent or damaged are empty."""
    try:
        checks = json.loads((folder / NAME).read_text())
    except (OSError, ValueError):
        return {}
    return checks if isinstance(checks, dict) and all(isinstance(value, dict) for value in checks.values()) else {}


def save(folder: pathlib.Path, checks: Checks) -> None:
    files.replace(folder / NAME, json.dumps(checks).encode())


def blocks(content: np.ndarray) -> dict[str, Any]:
    """Computes the CRC-32 of all blocks of bytes uint8[n]: {"bytes": of a block, "crc32": [of
    each]}.
    """
    size = max(_BLOCK, -(-content.size // _BLOCKS))
    return {"bytes": size, "crc32": [zlib.crc32(content[at : at + size].data) for at in range(0, content.size, size)]}


def equal(content: np.ndarray, known: Any, everything: bool) -> bool:
    """Compares bytes with their blocks, or `SAMPLES` of them drawn at random; False too where
    `known` is no blocks.
    """
    try:
        size, expected = known["bytes"], known["crc32"]
        if size < 1 or len(expected) != -(-content.size // size):
            return False
    except (KeyError, TypeError):
        return False
    numbers: Sequence[int] = range(len(expected))
    if not everything:
        numbers = random.Random().sample(numbers, min(SAMPLES, len(expected)))
    return all(zlib.crc32(content[i * size : (i + 1) * size].data) == expected[i] for i in numbers)
