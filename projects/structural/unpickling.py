"""Reads a pickle that may be an attack: arrays, texts, numbers and containers of them.

A pickle calls functions by name and sets the state of their results. Here it can name only the functions below, and
a state is set only if NumPy could have written it: NumPy trusts a state, and would take numbers in the file for
addresses of objects. A container may hold the one before twice, so a small file can hold 2^60 elements for whoever walks
through all of them. Hashing does, so keys are texts and there are no sets; callers look at types before they look inside.
"""

import math
import pickle
import re
from typing import BinaryIO, ClassVar

import numpy as np


def load(file: BinaryIO) -> object:
    """Reads a pickle; bytes in a pickle of Python 2 are Latin-1.

    Raises UnpicklingError, which names it, for any other thing in it; a damaged file raises other exceptions, too.
    """
    return _Unpickler(file, encoding="latin1").load()


def _bytes(text, encoding):
    """Encodes the text that protocols before 3 write for bytes; refuses other encodings."""
    if not (isinstance(encoding, str) and encoding == "latin1"):
        raise pickle.UnpicklingError(f"bytes in an encoding as {_shown(encoding)}")
    return text.encode("latin1")


def _type(text, align=False, copy=True):
    """Makes a type of numbers, texts or objects; a new one, since its state is set next."""
    if not (isinstance(text, str) and re.fullmatch(r"[biufSUO]\d+", text)):
        raise pickle.UnpicklingError(f"the type of an array as {_shown(text)}")
    return np.dtype(text, align=False, copy=True)


def _shown(value):
    return repr(value) if isinstance(value, str) else type(value).__name__


def _empty(kind, shape, code):
    """Makes an array, whose state is set next."""
    return np.empty(0, np.uint8)


def _scalar(dtype, content):
    if dtype.hasobject:
        raise pickle.UnpicklingError("an object as a number")
    return np._core.multiarray.scalar(dtype, content)


_ADMITTED = {  # the parts of a pickled NumPy array, under the names of NumPy 1 and 2
    (f"numpy.{core}.multiarray", name): function
    for core in ("core", "_core")
    for name, function in (("_reconstruct", _empty), ("scalar", _scalar))
} | {("numpy", "ndarray"): None, ("numpy", "dtype"): _type, ("_codecs", "encode"): _bytes}
_NONE = type(None)
_STATE_OF_TYPE = (int, str, _NONE, _NONE, _NONE, int, int, int)  # no base type, names or fields


class _Unpickler(pickle._Unpickler):  # the Python version: the one in C offers no hook on states
    dispatch: ClassVar = dict(pickle._Unpickler.dispatch)

    def find_class(self, module, name):
        if (module, name) not in _ADMITTED:
            raise pickle.UnpicklingError(f"{module}.{name}, which is not read: it could run code")
        return _ADMITTED[module, name]

    def load_build(self):
        found, state = self.stack[-2:]
        if not (_fits_type(found, state) if isinstance(found, np.dtype) else _fits_array(found, state)):
            raise pickle.UnpicklingError(f"a state of {type(found).__name__} that NumPy does not write")
        super().load_build()

    dispatch[pickle.BUILD[0]] = load_build

    def load_setitem(self):
        _refuse_keys(self.stack[-2:-1])
        super().load_setitem()

    def load_setitems(self):
        _refuse_keys(self.stack[::2])
        super().load_setitems()

    def load_dict(self):
        _refuse_keys(self.stack[::2])
        super().load_dict()

    def refuse_set(self):
        raise pickle.UnpicklingError("a set")

    dispatch |= {pickle.SETITEM[0]: load_setitem, pickle.SETITEMS[0]: load_setitems, pickle.DICT[0]: load_dict}
    dispatch |= dict.fromkeys((pickle.EMPTY_SET[0], pickle.FROZENSET[0], pickle.ADDITEMS[0]), refuse_set)


def _refuse_keys(keys):
    if wrong := [key for key in keys if not isinstance(key, str)]:
        raise pickle.UnpicklingError(f"a key of type {type(wrong[0]).__name__}")


def _fits_type(dtype, state):
    """Returns True if a state tells only the byte order beside facts that the type has already."""
    if type(state) is not tuple or tuple(map(type, state)) != _STATE_OF_TYPE:
        return False
    version, order, *_, size, align, flags = state
    return (
        version == 3
        and order in ("<", ">", "|", "=")
        and size in (-1, dtype.itemsize)
        and align in (-1, dtype.alignment)
        and flags == dtype.flags
    )


def _fits_array(array, state):
    """Returns True if a state holds as many objects in a list, or bytes, as its shape and type need."""
    version, shape, dtype, _, content = state
    return (
        type(array) is np.ndarray
        and version == 1
        and type(shape) is tuple
        and all(type(side) is int and side >= 0 for side in shape)
        and isinstance(dtype, np.dtype)
        and isinstance(content, list if dtype.hasobject else bytes | str)
        and len(content) == math.prod(shape) * (1 if dtype.hasobject else dtype.itemsize)
    )
