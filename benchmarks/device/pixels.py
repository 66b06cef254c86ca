"""200 cases of corruptions against the pixels of a CPU, so that a first run on a device is a test, too.

    python -m benchmarks.device.pixels        # writes pixels.npz beside this file, on a CPU

A case is a corruption, a severity and a size, on one procedural photograph; 2,048 values of the result are kept, at places
drawn from a seed. They agree within what `corruptions.corrupt` promises of two programs: below 1 value in 10,000 differs,
by one level; isolated pixels, where rounding decides on a nearest pixel or on a threshold, may differ by more, below 1 in
1,000.
"""

import pathlib
import zlib
from typing import Any

import jax
import numpy as np
from absl import flags

import corruptions
from runtime import command
from runtime.files import write_arrays
from tests.reference.photographs import photograph

FILE = pathlib.Path(__file__).with_name("pixels.npz")
CASES, VALUES = 200, 2048
SMALL, LARGE = (32, 32), (224, 180)
ROUNDED, ISOLATED = 1e-4, 1e-3  # shares of values


def cases() -> list[tuple[str, float, tuple[int, int]]]:
    """Lists (name, severity, size): two severities of every corruption at 32, then others at 224x180."""
    names = tuple(dict.fromkeys((*corruptions.names("imagenet_c"), *corruptions.names())))
    found = [(name, _severity(name, share), SMALL) for name in names for share in (0.3, 0.99)]
    more = [(name, _severity(name, share), LARGE) for share in (0.5, 0.99, 0.1) for name in names]
    return (found + more)[:CASES]


def _severity(name, share):
    known = corruptions.severities(name)
    return float(known[int(share * len(known))])


def values(name: str, severity: float, size: tuple[int, int]) -> np.ndarray:
    """Corrupts the photograph of a case: uint8 [2048] of its values."""
    seed = zlib.crc32(f"{name} {severity} {size}".encode())
    image = photograph(*size, seed=seed)
    corrupted = np.asarray(corruptions.corrupt(jax.random.key(seed), image[None], name, severity, index=[7]))
    return corrupted.ravel()[np.random.default_rng(seed).choice(corrupted.size, VALUES, replace=False)]


def stored() -> dict[str, list[tuple[float, tuple[int, int], np.ndarray]]]:
    """Reads the cases that are kept: {name: [(severity, size, values)]}."""
    found = {}
    with np.load(FILE) as file:
        for text, kept in zip(file["cases"].tolist(), file["values"], strict=True):
            name, severity, height, width = text.split()
            found.setdefault(name, []).append((float(severity), (int(height), int(width)), kept))
    return found


def compare(name: str) -> dict[str, Any]:
    """Compares a corruption's cases with the CPU's pixels: {"cases", "values", "by_one" (level), "by_more", "largest"}."""
    own = stored()[name]
    off = np.stack([np.abs(values(name, severity, size).astype(int) - kept) for severity, size, kept in own])
    counts = {"by_one": int((off == 1).sum()), "by_more": int((off > 1).sum()), "largest": int(off.max())}
    return {"cases": len(own), "values": off.size} | counts


def within(by_one: int, by_more: int, number: int) -> bool:
    """Returns True if differences among a number of values are within the tolerance."""
    return by_one <= ROUNDED * number and by_more <= ISOLATED * number


def main(argv):
    command.refuse_positional(argv)
    if jax.default_backend() != "cpu":
        raise ValueError(f"expected a CPU, found {jax.default_backend()}; JAX_PLATFORMS=cpu chooses it")
    names = np.array([f"{name} {severity:g} {height} {width}" for name, severity, (height, width) in cases()])
    write_arrays(flags.FLAGS.out, {"cases": names, "values": np.stack([values(*case) for case in cases()])})
    print(f"written to {flags.FLAGS.out}: {CASES} cases")


if __name__ == "__main__":
    flags.DEFINE_string("out", str(FILE), "File to write.")
    command.run(main)
