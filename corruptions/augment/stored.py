"""Stored transforms: K draws of a scheme in a file; as a scheme, each image draws one of them.

A file is an .npz archive with an array [K, ...] for each of the params and `about`, JSON text:

    source    canonical name of the scheme that the transforms were drawn from
    shape     (H, W, 3) of the images they were drawn for: strengths in pixels belong to it
    label     name of the set
    origin    anything else about its origin

The digest is over source, shape and params, not over label, origin or the bytes of the file.
"""

import io
import json
import os
import pathlib
import re
import zipfile
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from corruptions import files
from corruptions.primitives import random

DIGITS = 12  # length of the digest in a scheme's name
_LABEL = re.compile(r"[A-Za-z0-9_.+=-]+")


class Stored(NamedTuple):
    """Content of a file; see the module. `params`: {name: array [K, ...]}, K at least 1."""

    source: str
    shape: tuple[int, int, int]
    label: str
    params: dict[str, np.ndarray]
    origin: dict

    @property
    def digest(self) -> str:
        """sha256 of source, shape and params, hexadecimal."""
        total = files.Digest(f"{self.source} {tuple(self.shape)}")
        for name, array in sorted(self.params.items()):
            total.add_named(name, np.asarray(array))
        return str(total)

    @property
    def number(self) -> int:
        """K, the number of transforms."""
        return len(next(iter(self.params.values())))

    @property
    def scheme_name(self) -> str:
        """The scheme's canonical name, `stored=LABEL@DIGEST`, wherever the file lies."""
        return f"stored={self.label}@{self.digest[:DIGITS]}"


def write(path: str | os.PathLike, stored: Stored) -> None:
    """Writes a file so that `path` holds the old content or the new one.

    Raises ValueError for a label with other characters than letters, digits and `_.+=-`, or params without one common
    first axis.
    """
    _check(stored)
    about = {"source": stored.source, "shape": list(stored.shape), "label": stored.label, "origin": stored.origin}
    arrays: dict[str, Any] = {"about": json.dumps(about, sort_keys=True), **stored.params}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    files.replace(pathlib.Path(path), buffer.getvalue())


def read(path: str | os.PathLike) -> Stored:
    """Reads a file into a `Stored`; raises FileNotFoundError, or ValueError where it holds no stored transforms."""
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"expected a file of stored transforms as the scheme stored={path}, found no such file")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(str(arrays.pop("about")))
        stored = Stored(about["source"], tuple(about["shape"]), about["label"], arrays, about["origin"])
        _check(stored)
    except (KeyError, ValueError, OSError, EOFError, TypeError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path}: expected a file of stored transforms, found another or a damaged one ({error})"
        ) from None
    return stored


def _check(stored):
    lengths = {array.shape[:1] for array in stored.params.values()}
    if len(lengths) != 1 or not all(length and length[0] for length in lengths):
        raise ValueError(f"expected params with one common first axis, found its lengths {sorted(lengths)}")
    for name, array in stored.params.items():
        if array.dtype.kind not in "fiub" or not np.isfinite(array).all():
            raise ValueError(f"expected finite numbers as the param {name!r}, found NaN, infinity or {array.dtype}")
    if not _LABEL.fullmatch(stored.label):
        raise ValueError(f"expected a label of letters, digits and _.+=-, found {stored.label!r}")


def choices(stored: Stored) -> dict[str, Any]:
    """Returns the arrays that the sampler draws from: {"params": {name: [K, ...]}, "number": int32 []}."""
    return {"params": stored.params, "number": np.int32(stored.number)}


def sample(
    key: jax.Array, shape: tuple[int, ...], choices: Mapping[str, Any], *, made_for: tuple[int, ...] | None = None
) -> dict[str, jax.Array]:
    """Draws one of the K stored transforms, all equally likely; returns the params of the source's transforms.

    Options: `made_for`, the shape of the images that they were drawn for (fixed by the file); others raise ValueError.
    """
    if made_for is not None and tuple(shape) != tuple(made_for):
        raise ValueError(
            f"expected images of {tuple(made_for)}, which the transforms were drawn for, found {tuple(shape)}"
        )
    number = choices["number"]
    place = jnp.floor(random.uniform(key, ()) * jnp.asarray(number, jnp.float32)).astype(jnp.int32)
    which = jnp.minimum(place, number - 1)  # the product may round up to K
    return jax.tree.map(lambda array: jnp.asarray(array)[which], choices["params"])
