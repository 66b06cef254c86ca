"""A convolution's products counted by hand, and those of its gradients: each weight meets each pixel as often."""

import pytest

from runtime.chips import hlo, products

# 3x3 / 2 with padding 1 on 5x5 pixels: along an axis weights meet pixels 2 + 3 + 2 times
COUNTED = 2 * 2 * 3 * 4 * 7**2
CONVOLUTIONS = {
    "forward": (
        *("f32[2,5,5,3]", "f32[3,3,3,4]", "f32[2,3,3,4]"),
        "window={size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
        COUNTED,
    ),
    "of its pixels": (
        *("f32[2,3,3,4]", "f32[3,3,3,4]", "f32[2,5,5,3]"),
        "window={size=3x3 pad=1_1x1_1 lhs_dilate=2x2 rhs_reversal=1x1}, dim_labels=b01f_01oi->b01f",
        COUNTED,
    ),
    "of its weights": (
        *("f32[2,5,5,3]", "f32[2,3,3,4]", "f32[3,3,3,4]"),
        "window={size=3x3 pad=1_1x1_1 rhs_dilate=2x2}, dim_labels=f01b_i01o->01bf",
        COUNTED,
    ),
    "matrices": ("f32[5,7]", "f32[7,3]", "f32[5,3]", "dim_labels=bf_io->bf", 2 * 5 * 7 * 3),
}
TEXT = """HloModule jit_f

%fused (x: {x}, w: {w}) -> {y} {{
  %x = {x} parameter(0)
  %w = {w} parameter(1)
  ROOT %c = {y} convolution(%x, %w), {attributes}
}}

ENTRY %main (a: {x}, b: {w}) -> {y} {{
  %a = {x} parameter(0)
  %b = {w} parameter(1)
  %alone = {y} convolution(%a, %b), {attributes}
  ROOT %fusion = {y} fusion(%a, %b), kind=kOutput, calls=%fused
}}
"""


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_of_a_convolution(name):
    x, w, y, attributes, counted = CONVOLUTIONS[name]
    program = hlo.parse(TEXT.format(x=x, w=w, y=y, attributes=attributes))
    found = {operation.name: products.flops(program, operation) for operation, *_ in program.executed()}
    assert found == {"a": 0, "b": 0, "alone": counted, "fusion": counted}
