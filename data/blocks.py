"""Images in .npy files: written piece by piece, and compared with checksums of blocks whenever they are read.

A block is a number of consecutive images, about half a megabyte. Its checksum is the CRC-32 of the sums, modulo 2^64,
of the 64-bit words in each 4,096 bytes, followed by the remaining bytes. Summing runs at the speed of memory; CRC-32
alone takes five times, SHA-256 ten times as long. It finds zeroed, changed, shifted or exchanged pages. Changes made
on purpose are found by the sha256 of the file, which `verify` of cache and store compare.
"""

import math
import os
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from corruptions.files import Digest
from runtime.files import DamagedFileError

_BYTES = 2**19  # largest block, unless one image is larger
_PAGE = 4096
_DIGITS = 8  # hexadecimal digits of a checksum


def describe(images: np.ndarray) -> dict[str, Any]:
    """Computes the checksums of images uint8[N, H, W, 3].

    Returns {"images": images in a block, "checksums": 8 hexadecimal digits for each block, in order}; JSON-able.
    """
    size = max(1, _BYTES // max(1, math.prod(images.shape[1:])))
    values = _in_threads(lambda i: checksum(images[i * size : (i + 1) * size]), -(-len(images) // size))
    return {"images": size, "checksums": "".join(f"{value:0{_DIGITS}x}" for value in values)}


def checksum(block: np.ndarray) -> int:
    """Computes the checksum of one block: 32 bits."""
    flat = np.ascontiguousarray(block).reshape(-1)
    whole = len(flat) // _PAGE * _PAGE
    sums = flat[:whole].view("<u8").reshape(-1, _PAGE // 8).sum(1, dtype="<u8")
    return zlib.crc32(flat[whole:], zlib.crc32(sums))


class Blocks:
    """The blocks of one file of images, each compared when its images are first read."""

    def __init__(self, file: Path, images: np.ndarray, known: Mapping[str, Any], remedy: str):
        """Reads the checksums `known` (see `describe`) of a memory map of `file`; `remedy` ends errors.

        Raises DamagedFileError where `known` does not fit the number of images.
        """
        try:
            self._size, digits = int(known["images"]), known["checksums"]
            count = -(-len(images) // self._size)
            if len(digits) != count * _DIGITS:
                raise ValueError(f"{len(digits) / _DIGITS:g} for {count} blocks")
            self._known = np.array([int(digits[i * _DIGITS :][:_DIGITS], 16) for i in range(count)], np.uint32)
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise DamagedFileError(f"{file}: expected checksums of its blocks, found {error!r}; {remedy}") from error
        # A plain array over the same memory: slices of a memmap are memmaps, slow to make.
        self._file, self._images, self._remedy = file, np.asarray(images), remedy
        self._seen = np.zeros(count, bool)

    def check(self, start: int, stop: int) -> None:
        """Compares the blocks with images start .. stop - 1, unless they were compared before.

        Raises DamagedFileError, which names the file and the images, where a block differs.
        """
        first, last = start // self._size, -(-stop // self._size)
        if self._seen[first:last].all():
            return
        for number in range(first, last):
            if not self._seen[number]:
                self._compare(number)
                self._seen[number] = True

    def wrong(self) -> list[str]:
        """Compares all blocks, in threads; returns a line for each that differs."""

        def problem(number):
            try:
                self._compare(number)
            except DamagedFileError as error:
                return str(error)
            return None

        return [line for line in _in_threads(problem, len(self._seen)) if line]

    def _compare(self, number):
        begin, end = number * self._size, min((number + 1) * self._size, len(self._images))
        found = checksum(self._images[begin:end])
        if found != self._known[number]:
            expected = f"expected checksum {self._known[number]:08x}, found {found:08x}"
            raise DamagedFileError(f"{self._file}: images {begin} to {end - 1} changed: {expected}; {self._remedy}")


def _in_threads(function, count):
    """Computes [function(0), ..., function(count - 1)]; each thread takes neighbours in the file."""
    if count < 8:
        return [function(i) for i in range(count)]
    step = 32
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = pool.map(lambda i: [function(k) for k in range(i, min(i + step, count))], range(0, count, step))
        return [value for part in parts for value in part]


class Writer:
    """Writes pieces uint8[n, H, W, 3] one after the other as one array, which need never be in memory.

    The number of images is known only at the end: NumPy pads the header of a file so that the first axis can grow in
    place, and `finish` fills it in.
    """

    count = 0

    def __init__(self, file: BinaryIO, shape: tuple[int, ...] | None = None):
        """Takes a binary file, which stays open, and the shape (H, W, 3) of images; None takes the first piece's."""
        self._file, self._shape, self._digest = file, shape, Digest()
        self._header = None if shape is None else self._write_header()

    def append(self, piece: np.ndarray) -> None:
        """Adds a piece; raises ValueError where it is not uint8[n, H, W, 3], or H and W differ from those before."""
        shape = piece.shape[1:]
        if piece.dtype != np.uint8 or len(shape) != 3 or self._shape not in (None, shape):
            expected = "uint8[n, H, W, 3]" if self._shape is None else f"uint8[n, {', '.join(map(str, self._shape))}]"
            raise ValueError(f"expected images {expected}, found {piece.dtype}{list(piece.shape)}")
        if self._shape is None:
            self._shape = shape
            self._header = self._write_header()
        data = np.ascontiguousarray(piece).data
        self._file.write(data)
        self._digest.add(data)
        self.count += len(piece)

    def finish(self) -> None:
        """Writes the final header and flushes; raises ValueError where there was no image and no shape."""
        if self._shape is None:
            raise ValueError("expected at least one image to cache, found none")
        self._file.seek(0)
        if self._write_header() != self._header:
            raise RuntimeError("the length of the .npy header changed; the array would be shifted")
        self._file.flush()

    @property
    def sha256(self) -> str:
        """The sha256 of the bytes of all pieces, without the header, hexadecimal."""
        return str(self._digest)

    def _write_header(self) -> int:
        descr = np.lib.format.dtype_to_descr(np.dtype(np.uint8))
        header = {"descr": descr, "fortran_order": False, "shape": (self.count, *self._shape)}
        np.lib.format.write_array_header_1_0(self._file, header)
        return self._file.tell()
