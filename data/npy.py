"""Writing an .npy file of images piece by piece: the whole array need never be in memory."""

import hashlib
from typing import BinaryIO

import numpy as np


class Writer:
    """Writes uint8[n, H, W, 3] pieces, one after the other, as one array.

    The number of images is known only at the end: NumPy pads the header of a file so that the first
    axis can grow in place, and `finish` fills it in.
    """

    def __init__(self, file: BinaryIO, shape: tuple[int, ...] | None = None):
        """Args:
        file: open for writing in binary; it stays open.
        shape: of one image (H, W, 3); None takes that of the first piece.
        """
        self._file, self._shape, self._digest = file, None, hashlib.sha256()
        self.count = 0
        if shape is not None:
            self._begin(shape)

    def _begin(self, shape):
        self._shape = tuple(shape)
        self._header = self._write_header()

    def append(self, piece: np.ndarray) -> None:
        """Adds the images of a piece.

        Raises:
          ValueError: the piece is not uint8[n, H, W, 3], or H and W differ from those before.
        """
        shape = piece.shape[1:]
        if piece.dtype != np.uint8 or len(shape) != 3 or self._shape not in (None, shape):
            expected = "uint8[n, H, W, 3]" if self._shape is None else f"uint8[n, {', '.join(map(str, self._shape))}]"
            raise ValueError(f"expected images {expected}, found {piece.dtype}{list(piece.shape)}")
        if self._shape is None:
            self._begin(shape)
        data = np.ascontiguousarray(piece).data
        self._file.write(data)
        self._digest.update(data)
        self.count += len(piece)

    def finish(self) -> None:
        """Writes the final header and flushes.

        Raises:
          ValueError: there was no image and no shape.
        """
        if self._shape is None:
            raise ValueError("expected at least one image to cache, found none")
        self._file.seek(0)
        if self._write_header() != self._header:
            raise RuntimeError("the length of the .npy header changed; the array would be shifted")
        self._file.flush()

    @property
    def sha256(self) -> str:
        """Of the bytes of all pieces, without the header, hexadecimal."""
        return self._digest.hexdigest()

    def _write_header(self) -> int:
        descr = np.lib.format.dtype_to_descr(np.dtype(np.uint8))
        header = {"descr": descr, "fortran_order": False, "shape": (self.count, *self._shape)}
        np.lib.format.write_array_header_1_0(self._file, header)
        return self._file.tell()
