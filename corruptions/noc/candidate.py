"""What the ImageNet-NOC candidates share: a severity range, rounding to nearest, the source, the range
of an image's own size.
"""

from typing import Any

import numpy as np

from corruptions import registry
from corruptions.levels import Fraction
from corruptions.noc import severities
from corruptions.padded import Padding

candidate = registry.registrar("noc", Fraction(), "nearest", "ImageNet-NOC (2021), appendix A, and the released code")


def padding(scaled: str = "", **given: Any) -> Padding:
    """Makes the `Padding` of a candidate; `scaled` is its name where its range depends on the size."""
    if scaled:
        given |= {
            "tables": lambda shape, table: {"range": np.array(severities.resolve(scaled, shape), np.float32)},
            "axes": 0,
        }
    return Padding(lambda shape, table, side: (None, np.int32(0)), **given)
