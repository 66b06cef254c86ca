"""Severity tables: a benchmark has one for each image size that it was made for, and images of other sizes take the nearest.

Functions for images of many sizes take one table for all (`Corruption.for_many_sizes`), so that a severity has one strength and
an image's pixels depend on no other image.
"""

import dataclasses
import functools
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from corruptions.core import checks
from corruptions.core.severity import lookup
from corruptions.primitives import padded

BY_SIZE = "by_size"
"""In place of a table: the one that is nearest to the shorter side of each image."""
OF_MANY_SIZES = "imagenet"
"""The table of functions for images of many sizes."""


@dataclasses.dataclass(frozen=True)
class Tables:
    """The severity tables of a benchmark.

    Attributes:
      sides: table name -> side in pixels of the images that the table was made for.
    """

    sides: Mapping[str, int]

    def name_for(self, shape: Sequence[int], table: str | None = None) -> str:
        """Picks a table for images of a shape (H, W, ...): `table` if it is neither None nor `BY_SIZE` (ValueError for
        an unknown one), else the one whose side is nearest in ratio to min(H, W). The borders between tables are the
        geometric means of neighbouring sides.
        """
        if table not in (None, BY_SIZE):
            checks.one_of("table", "a severity table", table, (*self.sides, BY_SIZE))
            return table
        side = min(shape[:2])
        return min(self.sides, key=lambda name: abs(math.log(side / self.sides[name])))

    def lookup(
        self, rows: Mapping[str, Any], shape: Sequence[int], table: str | None, severity: ArrayLike
    ) -> jax.Array:
        """Reads a severity's row from `rows`, {table name: its rows}; a padded image's own table is traced."""
        if isinstance(shape, padded.Shape):
            every = jnp.asarray(np.array([rows[name] for name in self.sides], np.float32))
            return lookup(every[shape.tables["table"]], severity)
        return lookup(rows[self.name_for(shape, table)], severity)


@functools.cache
def say_one_for_all(caller: str) -> None:
    """Warns once in a process that images of many sizes are corrupted by one table."""
    logging.getLogger(__name__).warning(
        "%s takes severity table %r for images of all sizes; table=%r takes the table nearest to the shorter side of each image",
        *(caller, OF_MANY_SIZES, BY_SIZE),
    )
