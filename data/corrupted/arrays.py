"""CIFAR-10-C and its kin: `<corruption>.npy` uint8[S N, H, W, 3], severity by severity, and
`labels.npy` [S N].
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from data.corrupted.dataset import Batch, CorruptedDataset
from data.corrupted.names import published_order, qualified
from runtime import files

_PUBLISHED_SEVERITIES = (1, 2, 3, 4, 5)
_LABELS = "labels.npy"


class CorruptedArrays(CorruptedDataset):
    """A folder of arrays, memory-mapped: only the images of a batch are read."""

    def __init__(self, path: Path, manifest: dict[str, Any] | None):
        """Looks at the headers of all files; without a manifest five severities are expected, as
        published.
        """
        if manifest is None:
            names = published_order([file.stem for file in path.glob("*.npy") if file.name != _LABELS])
            listed = {qualified(name): (f"{name}.npy", _PUBLISHED_SEVERITIES) for name in names}
        else:
            listed = {name: (e["path"], tuple(e["severities"])) for name, e in manifest["corruptions"].items()}
        super().__init__(path, {(c, s): (file, i) for c, (file, found) in listed.items() for i, s in enumerate(found)})
        severities = len(next(iter(listed.values()))[1])
        arrays = {file: _map(path / file) for file, _ in listed.values()}
        first = next(iter(arrays))
        for file, array in arrays.items():
            if array.dtype != np.uint8 or array.ndim != 4 or array.shape[-1] != 3:
                raise ValueError(f"{path / file}: expected uint8[N, H, W, 3], found {array.dtype}{list(array.shape)}")
            if array.shape != arrays[first].shape:
                raise ValueError(
                    f"{path / file}: expected the shape {list(arrays[first].shape)} of {first}, found {list(array.shape)}"
                )
        rows = arrays[first].shape[0]
        if rows == 0 or rows % severities:
            raise ValueError(
                f"{path / first}: expected a multiple of {severities} images, one block per severity, found {rows}"
            )
        self.number = rows // severities
        self.image_shape = tuple(arrays[first].shape[1:])
        self.class_names = tuple(manifest["class_names"]) if manifest else None
        self.provenance = {"source": str(path), "format": "npy", "manifest": manifest}
        self._labels = _labels(path / _LABELS, rows, self.number)

    def _read(self, place: tuple[str, int], batch_size: int) -> Iterator[Batch]:
        file, block = place
        array = _map(self.path / file)
        for start in range(0, self.number, batch_size):
            stop = min(start + batch_size, self.number)
            rows = slice(block * self.number + start, block * self.number + stop)
            yield np.array(array[rows]), self._labels[start:stop]


def _map(file: Path) -> np.ndarray:
    if not file.exists():
        raise FileNotFoundError(f"expected the file {file}, which is not there")
    return files.read_array(file, "copy it again", mapped=True)


def _labels(file: Path, rows: int, number: int) -> np.ndarray:
    """The labels of one severity, int32 [number]."""
    labels = _map(file)
    if labels.shape != (rows,) or labels.dtype.kind not in "iu":
        raise ValueError(
            f"{file}: expected whole labels [{rows}], one per image, found {labels.dtype}{list(labels.shape)}"
        )
    blocks = labels.reshape(-1, number)
    if (blocks != blocks[0]).any():
        raise ValueError(f"{file}: expected the same {number} labels for every severity, found them to differ")
    return blocks[0].astype(np.int32)
