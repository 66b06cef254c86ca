"""Arrays with the record of what they were made from, and the sha256 of both: the content of an .npz file that is compared when
it is read.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from corruptions.files import Digest

_RECORD, _SEAL = "made_from", "sha256"  # names in the files of `sealed`


def sealed(arrays: Mapping[str, np.ndarray], record: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Adds to the arrays of an .npz file the JSON-ready record of their origin, with the sha256 of both, as `made_from`."""
    kept = json.loads(json.dumps(record))
    return {**arrays, _RECORD: np.array(json.dumps({"record": kept, _SEAL: _seal(arrays, kept)}, sort_keys=True))}


def unsealed(arrays: dict[str, Any]) -> dict[str, Any]:
    """Takes the record of `sealed` out of the arrays of a file, and returns it; ValueError where it does not fit them."""
    try:
        found = json.loads(str(arrays.pop(_RECORD)))
        record, expected = dict(found["record"]), found[_SEAL]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"expected arrays with a record of what they were made from, found none ({error})") from None
    if expected != _seal(arrays, record):
        raise ValueError("expected content with the digest that it holds, found other content: the file was edited")
    return record


def _seal(arrays: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """The sha256 of the record and of names, types, shapes and bytes of the arrays."""
    content = Digest(json.dumps(record, sort_keys=True, separators=(",", ":")))
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        content.add(json.dumps([name, array.dtype.str, np.shape(arrays[name])], separators=(",", ":")), array)
    return str(content)
