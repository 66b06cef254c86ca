"""Checksums of blocks of images, fast enough to be compared whenever images are read.

A block is so many consecutive images, about half a megabyte. Its checksum is the CRC-32 of the
sums, modulo 2^64, of the 64-bit words of each 4,096 bytes of it, and of the bytes that are left
over: summing runs at the speed of memory, where CRC-32 alone takes five times, SHA-256 ten times as
long. Zeroed, changed, shifted or exchanged pages are found; against changes made on purpose there
is the sha256 beside it, which `verify` of cache and store compare.
"""

import math
import os
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from runtime.files import DamagedFileError

_BYTES = 2**19  # of a block, at most, unless one image has more
_PAGE = 4096
_DIGITS = 8  # of a checksum, hexadecimal


def describe(images: np.ndarray) -> dict[str, Any]:
    """Computes the checksums of images uint8[N, H, W, 3].

    Returns:
      {"images": in a block, "checksums": of all blocks, 8 hexadecimal digits each, in order};
      JSON-able.
    """
    size = max(1, _BYTES // max(1, math.prod(images.shape[1:])))
    values = _in_threads(lambda i: checksum(images[i * size : (i + 1) * size]), -(-len(images) // size))
    return {"images": size, "checksums": "".join(f"{value:0{_DIGITS}x}" for value in values)}


def checksum(block: np.ndarray) -> int:
    """Computes the checksum of one block, as the module says: 32 bits."""
    flat = np.ascontiguousarray(block).reshape(-1)
    whole = len(flat) // _PAGE * _PAGE
    sums = flat[:whole].view("<u8").reshape(-1, _PAGE // 8).sum(1, dtype="<u8")
    return zlib.crc32(flat[whole:], zlib.crc32(sums))


class Blocks:
    """The blocks of one file of images, each compared when its images are first asked for."""

    def __init__(self, file: Path, images: np.ndarray, known: Mapping[str, Any], remedy: str):
        """Args:
          file: named in errors.
          images: uint8[N, H, W, 3], the memory map of the file.
          known: what `describe` gave.
          remedy: what a reader of the error should do.

        Raises:
          DamagedFileError: `known` is not of so many images.
        """
        try:
            self._size, digits = int(known["images"]), known["checksums"]
            count = -(-len(images) // self._size)
            self._known = np.array([int(digits[i * _DIGITS :][:_DIGITS], 16) for i in range(count)], np.uint32)
            complete = len(digits) == count * _DIGITS
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise DamagedFileError(f"{file}: expected checksums of its blocks, found {error!r}; {remedy}") from error
        if not complete:
            found = f"{len(digits) / _DIGITS:g}"
            raise DamagedFileError(f"{file}: expected {count} checksums of blocks, found {found}; {remedy}")
        # A plain array over the same memory: slices of a memmap are memmaps, slow to make.
        self._file, self._images, self._remedy = file, np.asarray(images), remedy
        self._seen = np.zeros(count, bool)

    def check(self, start: int, stop: int) -> None:
        """Compares the blocks that hold images start .. stop - 1, unless they were compared before.

        Raises:
          DamagedFileError: one differs; names the file and the images.
        """
        first, last = start // self._size, -(-stop // self._size)
        if self._seen[first:last].all():
            return
        for number in range(first, last):
            if not self._seen[number]:
                self._compare(number)
                self._seen[number] = True

    def wrong(self) -> list[str]:
        """Compares all blocks, in threads; a line for each that differs."""

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
    """[function(0), ..., function(count - 1)]; runs of neighbours in each thread, as they lie in
    the file.
    """
    if count < 8:
        return [function(i) for i in range(count)]
    step = 32
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = pool.map(lambda i: [function(k) for k in range(i, min(i + step, count))], range(0, count, step))
        return [value for part in parts for value in part]
