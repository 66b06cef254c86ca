"""The stored answers of models, image by image: errors of the same images go together."""

import pathlib
from collections.abc import Iterable, Mapping

import numpy as np

from analysis import answers
from analysis.tables import Count

Cell = tuple[str, int, str, int | float | str]
"""(model, seed, corruption, severity)."""


class ImageErrors:
    """Which images each model answers wrongly, where a folder keeps it.

    Args:
      counts: rows of counts.csv; answers that say otherwise than their row are left out.
      packed: {cell: uint8 [ceil(N / 8)], one bit per image, 1 correct}.
      shown: {cell: digest of what was shown, "" where it is not known}.
    """

    def __init__(
        self, counts: Iterable[Count], packed: Mapping[Cell, np.ndarray], shown: Mapping[Cell, str] | None = None
    ):
        self.counts = {count.key: count for count in counts}
        self._packed, self.shown = packed, shown or {}

    @classmethod
    def read(cls, folder: pathlib.Path, counts: Iterable[Count]) -> "ImageErrors":
        """Reads the folder `answers` of a workdir; none where there is no such folder.

        Raises:
          DamagedFileError: a file holds no answers.
        """
        counts = list(counts)
        if not any(folder.glob("*.npz")):
            return cls(counts, {})
        kept = answers.read(folder.parent)
        cells = [count.key for count in counts if count.key in kept]
        packed = {cell: np.packbits(kept.correct(cell)) for cell in cells}
        return cls(counts, packed, {cell: kept.shown(cell) for cell in cells})

    @classmethod
    def union(cls, parts: Iterable["ImageErrors"]) -> "ImageErrors":
        """Joins the errors of workdirs whose models, or seeds, differ."""
        counts: list[Count] = []
        packed: dict[Cell, np.ndarray] = {}
        shown: dict[Cell, str] = {}
        for part in parts:
            counts += part.counts.values()
            packed |= part._packed
            shown |= part.shown
        return cls(counts, packed, shown)

    def has(self, cells: Iterable[Cell]) -> bool:
        """Whether the answers behind some counts are all there, to the same number of images."""
        cells = list(cells)
        return all(cell in self._packed for cell in cells) and len({self.counts[cell].total for cell in cells}) == 1

    def sum(self, cells: Iterable[Cell]) -> np.ndarray:
        """Counts the wrong answers to each image under some conditions: float64 [N]."""
        cells = list(cells)
        number = self.counts[cells[0]].total
        wrong = np.zeros(number)
        for cell in cells:
            wrong += 1 - np.unpackbits(self._packed[cell], count=number)
        return wrong

    def error(self, cell: Cell) -> float:
        """Gives the error under one condition, in [0, 1]."""
        return self.counts[cell].error

    def bound(self, cells: Iterable[Cell]) -> float:
        """Bounds the standard error of the sum of errors: the sum of the binomial ones."""
        errors = ((self.error(cell), self.counts[cell].total) for cell in cells)
        return float(sum(np.sqrt(error * (1 - error) / total) for error, total in errors))
