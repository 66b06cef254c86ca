"""Digests of the pixels of every corruption of the library, in `pixels.txt`: what a change of code must not move unnoticed.

    make pixels                                    after a corruption's `version` was raised; NAMES="noc/hue noc/blur" takes some

A line of the file is a corruption at a size: its name, its version, the size, then for each severity the digest of two
images, the sum of their values, and 64 of these in base64. The first line says on what the digests were made: elsewhere
compilers round otherwise, and 64 values are compared within a level in place of digests. A line of NAMES that was made elsewhere
has no digests.
"""

import base64
import hashlib
import json
import os
import pathlib
import platform
import sys
from typing import Any, NamedTuple

import jax
import jaxlib
import numpy as np

import corruptions
from corruptions import laion_c
from tests.reference.photographs import photograph, photographs

FILE = pathlib.Path(__file__).with_name("pixels.txt")
SIZES = {"32x32": (32, 32), "64x48": (64, 48), "224x224": (224, 224)}
_IMAGES, _SAMPLED = 2, 64
_CLOSE = 0.01  # levels that a mean may differ elsewhere


class Line(NamedTuple):
    """The pixels of a corruption at a size, by severity."""

    version: int
    digests: tuple[str, ...]
    sums: tuple[int, ...]
    samples: np.ndarray  # uint8 [severities, 64]


def names() -> list[str]:
    """Lists the corruptions of the library; a test may have registered others."""
    return [name for name in corruptions.names() if corruptions.get(name).sampler.__module__.startswith("corruptions.")]


def made_on() -> dict[str, str]:
    """Describes what decides the last bits: processor, compiler and its flags."""
    info = pathlib.Path("/proc/cpuinfo")
    flags = info.read_text().split() if info.exists() else []
    vectors = [name for name in ("avx512f", "avx2", "avx", "asimd") if name in flags]
    machine = " ".join([platform.machine(), *vectors[:1]])
    return {"machine": machine, "jaxlib": jaxlib.__version__, "flags": os.environ.get("XLA_FLAGS", "")}


def compute(name: str, size: str) -> Line:
    """Corrupts the two images, one at a time, so that the number of cores does not count."""
    height, width = SIZES[size]
    digests, sums, samples = [], [], []
    for severity in corruptions.severities(name):
        images = [
            corruptions.corrupt(jax.random.key(0), photograph(height, width, i)[None], name, severity, index=[i])
            for i in range(_IMAGES)
        ]
        flat = np.concatenate([np.asarray(image).ravel() for image in images])
        digests.append(hashlib.sha256(flat).hexdigest()[:8])
        sums.append(int(flat.sum(dtype=np.int64)))
        samples.append(flat[np.linspace(0, flat.size - 1, _SAMPLED).astype(int)])
    return Line(corruptions.get(name).version, tuple(digests), tuple(sums), np.stack(samples))


def read() -> tuple[dict[str, str], dict[tuple[str, str], Line]]:
    """Reads the file: (what it was made on, {(name, size): line})."""
    head, *lines = FILE.read_text().splitlines()
    found = {}
    for line in lines:
        name, version, size, digests, sums, samples = line.split()
        values = np.frombuffer(base64.b64decode(samples), np.uint8).reshape(-1, _SAMPLED)
        of_each = tuple(digests.split(",")) if digests != "-" else ()
        found[name, size] = Line(int(version), of_each, tuple(map(int, sums.split(","))), values)
    return json.loads(head), found


def moved(stored: Line, now: Line, size: str) -> list[int]:
    """Lists the severities, from 1, whose pixels are others by more than rounding."""
    values = _IMAGES * 3 * np.prod(SIZES[size])
    apart = abs(stored.samples.astype(int) - now.samples).max(-1) > 1
    means = abs(np.subtract(stored.sums, now.sums)) > _CLOSE * values
    return [int(i) + 1 for i in np.flatnonzero(apart | means)]


def main(asked: list[str]) -> int:
    laion_c.use_bank(photographs(48, 32, 32))  # as conftest.py does
    before, stored = read() if FILE.exists() else ({}, {})
    here, known = made_on(), names()
    elsewhere = before not in ({}, here)
    lines: dict[Any, Line] = {key: line for key, line in stored.items() if key[0] in known}
    refused = []
    for name in asked or known:
        for size in SIZES:
            new, old = compute(name, size), stored.get((name, size))
            loosely = elsewhere or (old and not old.digests)
            changed = old and (moved(old, new, size) if loosely else new.digests != old.digests)
            if changed and new.version <= old.version:
                refused.append(
                    f"{name} at {size}: its pixels changed; raise version={old.version + 1} in its record first"
                )
            else:
                lines[name, size] = new._replace(digests=()) if elsewhere and asked else new
    for line in refused:
        print(f"error: {line}", file=sys.stderr)
    if refused and elsewhere and not asked:  # all digests of a file are made on one machine
        return 1
    text = [json.dumps(before if elsewhere and asked else here)]
    for (name, size), (version, digests, sums, samples) in sorted(lines.items()):
        encoded = base64.b64encode(samples.tobytes()).decode()
        text.append(f"{name} {version} {size} {','.join(digests) or '-'} {','.join(map(str, sums))} {encoded}")
    FILE.write_text("\n".join(text) + "\n")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
