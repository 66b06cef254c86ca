"""How many operations the products in a compiled program take."""

import math
import re

from runtime.chips.hlo import Operation, Program


def flops(program: Program, operation: Operation) -> int:
    """Counts multiplications and additions of the convolutions in a kernel, one each.

    Where a weight meets padding, or the gap between dilated pixels, nothing is counted. A TPU's
    compiler writes matrix products as convolutions too.

    Args:
      program: the whole program.
      operation: one that is executed.
    """
    return sum(_convolution(one, program.types) for one in program.kernel(operation) if one.code == "convolution")


def _convolution(operation, types):
    labels = re.search(r"dim_labels=(\w+)_(\w+)->(\w+)", operation.attributes).groups()
    arrays = (*(types[name] for name in operation.operands), operation.type)
    image, kernel, result = (dict(zip(names, _sizes(array))) for names, array in zip(labels, arrays, strict=True))
    windows = _windows(operation.attributes)
    met = [_met(image[axis], result[axis], windows, int(axis)) for axis in labels[0] if axis.isdecimal()]
    return 2 * result["b"] * result["f"] * kernel["i"] * math.prod(met)


def _met(before, after, windows, axis):
    """Counts the pixels that the weights meet along an axis, over all places of the window."""

    def value(name, default):
        return windows[name][axis] if name in windows else default

    size, stride = int(value("size", 1)), int(value("stride", 1))
    spread, gaps = int(value("rhs_dilate", 1)), int(value("lhs_dilate", 1))
    padding = int(value("pad", "0_0").split("_")[0])
    places = (i * stride + k * spread - padding for i in range(after) for k in range(size))
    return sum(0 <= place <= (before - 1) * gaps and place % gaps == 0 for place in places)


def _windows(attributes):
    """`window={size=3x3 pad=1_1x1_1}` as {"size": ["3", "3"], "pad": ["1_1", "1_1"]}."""
    found = re.search(r"window=\{([^}]*)\}", attributes)
    return {name: values.split("x") for name, values in re.findall(r"(\w+)=(\S+)", found[1] if found else "")}


def _sizes(array):
    return [int(size) for size in re.search(r"\[([\d,]*)\]", array)[1].split(",") if size]
