"""The format of the answers: which test images each model answers correctly, one file per condition.

    WORKDIR/answers/noc.border-random.npz              a corruption at a severity, `/` written as `.`
    WORKDIR/answers/cbar.lines-random-1-4-7.npz        severities drawn from some of its levels

A file holds, by `model|seed`, one bit per test image (1: correct), packed as `numpy.packbits` does: uint8 [ceil(N / 8)].
"""

import pathlib
from collections.abc import Iterable, Mapping

import numpy as np

Key = tuple[str, int]
"""(model, seed)."""


def file_stem(corruption: str, severity: str | int | float, levels: Iterable[int] | None = None) -> str:
    """Names the file of a condition, without `.npz`.

    Args:
      corruption: qualified name, or `clean`.
      severity: a level, a fraction or `random`.
      levels: those that random severities are drawn from, where a benchmark selects some.
    """
    return "-".join(map(str, (corruption.replace("/", "."), severity, *(levels or ()))))


def pack(answers: Mapping[Key, np.ndarray]) -> dict[str, np.ndarray]:
    """Packs {(model, seed): bool [N]} into the arrays of a file."""
    return {f"{model}|{seed}": np.packbits(bits) for (model, seed), bits in answers.items()}


def unpack(path: pathlib.Path, arrays: Mapping[str, np.ndarray], number: int) -> dict[Key, np.ndarray]:
    """Unpacks the arrays of a file into {(model, seed): bool [N]}.

    Args:
      path: of the file, for messages.
      arrays: what it holds.
      number: N, test images.

    Raises:
      ValueError: an array of another name, or of another number of images.
    """
    answers = {}
    for name, bits in arrays.items():
        model, bar, seed = name.rpartition("|")
        if not bar or not seed.lstrip("-").isdigit():
            raise ValueError(f"{path}: expected arrays called model|seed, found {name!r}")
        if bits.shape != (-(-number // 8),) or bits.dtype != np.uint8:
            raise ValueError(
                f"{path}: expected answers to {number} images, found {bits.dtype}{list(bits.shape)} for {name}"
            )
        answers[model, int(seed)] = np.unpackbits(bits, count=number).astype(bool)
    return answers
