"""Severity tables of ImageNet-C by name, and the rule that picks one from the image size."""

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from corruptions import levels, padded

_SIDES = {"cifar": 32, "tiny": 64, "imagenet": 224, "inception": 299}
TABLES = tuple(_SIDES)


def table_for(shape: Sequence[int], table: str | None = None) -> str:
    """Picks the severity table: `table` where given, else by the image size.

    It is the one made for the side nearest in ratio to min(H, W). The tables were made for images
    of side 32, 64, 224 and 299: sides up to 45 use `cifar`, up to 119 `tiny`, up to 258 `imagenet`,
    larger ones `inception`.

    Raises:
      ValueError: `table` is not one of the four names.
    """
    return levels.nearest_table(_SIDES, shape, table)


def lookup(rows: Mapping[str, Sequence], shape: Sequence[int], table: str | None, severity: ArrayLike) -> jax.Array:
    """Reads a severity's row from `rows`, {table name: five rows}, of the table to use: that of the
    parameter `table` of a `padded.Shape`, traced.
    """
    if isinstance(shape, padded.Shape):
        every = jnp.asarray(np.array([rows[name] for name in TABLES], np.float32))
        return levels.lookup(every[shape.tables["table"]], severity)
    return levels.lookup(rows[table_for(shape, table)], severity)


def of_program(shape: Sequence[int], table: str | None, side: int) -> tuple[str, np.int32]:
    """Names the table after which the program for a padded image is built, and numbers the image's
    own among `TABLES`.

    In squares from 512 on, `inception` has room for what `imagenet` asks for (taps, passes, the
    side of the fog's map), and one program serves both.
    """
    own = table_for(shape, table)
    name = "inception" if own == "imagenet" and side >= 512 else own
    return name, np.int32(TABLES.index(own))
