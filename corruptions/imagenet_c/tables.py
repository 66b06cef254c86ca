"""Severity tables of ImageNet-C by name, and the rule that picks one from the image size."""

import math

TABLES = ("cifar", "tiny", "imagenet", "inception")
_SIDES = {"cifar": 32, "tiny": 64, "imagenet": 224, "inception": 299}


def table_for(shape, table=None):
    """The table to use: `table` when given, else the one whose image side is nearest in ratio to min(H, W).

    The borders between the four tables (made for sides 32, 64, 224 and 299) are the geometric means of neighbours:
    sides up to 45 use `cifar`, up to 119 `tiny`, up to 258 `imagenet`, larger ones `inception`.

    Raises:
      ValueError: `table` is not one of the four names.
    """
    if table is not None:
        if table not in TABLES:
            raise ValueError(f"expected a severity table among {', '.join(TABLES)}, found {table!r}")
        return table
    side = min(shape[:2])
    return min(TABLES, key=lambda name: abs(math.log(side / _SIDES[name])))
