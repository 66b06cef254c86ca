"""PyTorch's files of tensors, `.pth` and `.pt`, without PyTorch and without running what they say.

Such a file is a pickle, beside the raw values of its tensors: all in one stream (before PyTorch 1.6), or in a zip archive.
A pickle may call any function of any module by its name; the reader here knows the few names below, all of them its own
functions, and refuses every other one.
"""

import pickle
import zipfile
from collections import Counter, defaultdict
from pathlib import Path

import ml_dtypes
import numpy as np

_MAGIC, _PROTOCOL = 0x1950A86A20F9469CFC6C, 1001  # of the old form
_TYPES = {
    "Float": np.float32,
    "Double": np.float64,
    "Half": np.float16,
    "BFloat16": ml_dtypes.bfloat16,
    "Long": np.int64,
    "Int": np.int32,
    "Short": np.int16,
    "Char": np.int8,
    "Byte": np.uint8,
    "Bool": np.bool_,
}


class Containers(dict):
    """A dict whose attributes, which state_dicts have and nobody reads, may be set."""


def _tensor(storage, offset, shape, strides, *unused):
    """The values of a tensor: a view of its storage; refuses what lies outside of it."""
    numbers = (offset, *shape, *strides)
    if (
        not isinstance(storage, np.ndarray)
        or len(shape) != len(strides)
        or any(type(n) is not int or n < 0 for n in numbers)
    ):
        raise pickle.UnpicklingError("a tensor of an impossible form")
    last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides))
    if 0 not in shape and last >= storage.size:
        raise pickle.UnpicklingError("a tensor that reaches outside of its values")
    if 0 in shape:
        return np.zeros(shape, storage.dtype)
    steps = [stride * storage.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(storage[offset:], shape, steps, writeable=False)


def _parameter(tensor, *unused):
    return tensor


def _size(numbers=()):
    return tuple(numbers)


_KNOWN = {("torch", f"{name}Storage"): np.dtype(dtype) for name, dtype in _TYPES.items()} | {
    ("collections", "OrderedDict"): Containers,
    ("collections", "defaultdict"): defaultdict,
    ("collections", "Counter"): Counter,
    ("torch._utils", "_rebuild_tensor"): _tensor,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch", "Size"): _size,
}


class _Reader(pickle.Unpickler):
    """Knows `_KNOWN` alone; `storage(key, dtype, number)` gives the values that the pickle only names."""

    def __init__(self, file, storage):
        super().__init__(file, encoding="utf-8")
        self._storage = storage

    def find_class(self, module, name):
        if (module, name) not in _KNOWN:
            raise pickle.UnpicklingError(f"{module}.{name}")
        return _KNOWN[module, name]

    def persistent_load(self, given):
        kind, dtype, key, _, number, *view = given
        plain = kind == "storage" and isinstance(dtype, np.dtype) and type(number) is int and number >= 0
        if not plain or any(part is not None for part in view):
            raise pickle.UnpicklingError("an unknown form of values")
        return self._storage(key, dtype, number)


def load(path):
    """Reads the content of a file: containers, numbers, texts, and NumPy arrays in place of tensors.

    Raises ValueError for a file that is damaged, or holds something else; its text says what.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            if zipfile.is_zipfile(file):
                return _of_archive(file)
            file.seek(0)
            return _of_stream(file, path.stat().st_size)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a damaged pickle raises any kind
        found = str(error).splitlines()[:1] or [type(error).__name__]
        raise ValueError(found[0]) from None


def _of_archive(file):
    with zipfile.ZipFile(file) as archive:
        (main,) = [name for name in archive.namelist() if name.count("/") == 1 and name.endswith("/data.pkl")]
        folder, arrays = main.removesuffix("data.pkl"), {}
        order = folder + "byteorder"
        if order in archive.namelist() and archive.read(order) != b"little":
            raise ValueError("values of another byte order")

        def storage(key, dtype, number):
            if key not in arrays:
                entry = archive.getinfo(f"{folder}data/{key}")
                if entry.file_size != number * dtype.itemsize or entry.compress_type != zipfile.ZIP_STORED:
                    raise ValueError("values of another length than stated")
                arrays[key] = np.frombuffer(archive.read(entry), dtype)
            return arrays[key]

        with archive.open(main) as inside:
            return _Reader(inside, storage).load()


def _of_stream(file, length):
    def storage(key, dtype, number):
        if number * dtype.itemsize > length:
            raise ValueError("values longer than the file")
        return arrays.setdefault(key, np.zeros(number, dtype))

    arrays = {}
    magic, protocol, system, content, keys = (_Reader(file, storage).load() for _ in range(5))
    if (magic, protocol, system["little_endian"]) != (_MAGIC, _PROTOCOL, True):
        raise ValueError("another format")
    for key in keys:  # a length, then the values, of each
        number, array = int.from_bytes(file.read(8), "little"), arrays[key]
        if number != array.size or file.readinto(array.view(np.uint8)) != array.nbytes:
            raise ValueError("values that end early")
    return content
