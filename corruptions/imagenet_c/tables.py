"""The common parts of ImageNet-C: five severities in tables by image size, truncation to 8 bits, the source."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from corruptions.core import registry, severity_tables
from corruptions.core.severity import Levels
from corruptions.primitives import padded

# The sides of the images that the tables were made for: sides up to 45 use `cifar`, up to 119 `tiny`, up to 258
# `imagenet`, larger ones `inception`.
_TABLES = severity_tables.Tables({"cifar": 32, "tiny": 64, "imagenet": 224, "inception": 299})
TABLES = tuple(_TABLES.sides)
table_for, lookup = _TABLES.name_for, _TABLES.lookup


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
register = registry.registrar(
    "imagenet_c",
    Levels(5),
    "truncate",
    _SOURCE,
    padding(),
    by_size=lambda name, shape, options: {"table": table_for(shape, options.get("table"))},
)
