"""The common parts of ImageNet-C: five severities in tables by image size, truncation to 8 bits, the source."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from corruptions import levels, padded, registry

_SIDES = {"cifar": 32, "tiny": 64, "imagenet": 224, "inception": 299}
TABLES = tuple(_SIDES)


def table_for(shape: Sequence[int], table: str | None = None) -> str:
    """Picks the severity table: `table` if not None, else by the image size.

    The tables were made for images of side 32, 64, 224 and 299; the side nearest in ratio to min(H, W) decides: sides
    up to 45 use `cifar`, up to 119 `tiny`, up to 258 `imagenet`, larger ones `inception`.

    Raises:
      ValueError: `table` is not one of the four names.
    """
    return levels.nearest_table(_SIDES, shape, table)


def lookup(rows: Mapping[str, Any], shape: Sequence[int], table: str | None, severity: ArrayLike) -> jax.Array:
    """Reads a severity's row from `rows`, {table name: five rows}; a padded image's own table is traced."""
    if isinstance(shape, padded.Shape):
        every = jnp.asarray(np.array([rows[name] for name in TABLES], np.float32))
        return levels.lookup(every[shape.tables["table"]], severity)
    return levels.lookup(rows[table_for(shape, table)], severity)


def _of_program(shape: Sequence[int], table: str | None, side: int) -> tuple[str, np.int32]:
    """Names the table of the program for a padded image, and numbers the image's own table.

    In squares from 512 on, `inception` has room for the taps, passes and fractal maps of `imagenet`, and one program
    serves both.
    """
    own = table_for(shape, table)
    name = "inception" if own == "imagenet" and side >= 512 else own
    return name, np.int32(TABLES.index(own))


padding: Any = functools.partial(padded.Padding, _of_program, quick=True)
_SOURCE = "Hendrycks & Dietterich (2019), appendix B and released code"
member = registry.registrar(
    "imagenet_c",
    levels.Levels(5),
    "truncate",
    _SOURCE,
    padding(),
    by_size=lambda name, shape, options: {"table": table_for(shape, options.get("table"))},
)
