"""The small shapes that NOC corruptions paint, scaled to the image: disc, lozenge, dashed mark.

All were published for 224x224 images. At another size the scale is s = min(H, W) / 224 and shapes shrink or grow with
s down to the smallest shape of a pixel grid: a plus of 5 pixels, a dash of 3. A disc or lozenge is a tuple of runs, one per
row from top to bottom: row offset, leftmost and rightmost column offset, both included.
"""

import dataclasses
import fractions
from collections.abc import Sequence

Runs = tuple[tuple[int, int, int], ...]
PUBLISHED_SIDE = 224
_PLUS = ((-1, 0, 0), (0, -1, 1), (1, 0, 0))


def scale(shape: Sequence[int]) -> fractions.Fraction:
    """Computes s = min(H, W) / 224, as an exact fraction."""
    return fractions.Fraction(min(shape[:2]), PUBLISHED_SIDE)


def disc(shape: Sequence[int]) -> Runs:
    """Makes the disc x^2 + y^2 <= (6.2 s)^2, at least a plus of 5 pixels.

    At s = 1 it has 121 pixels and radius 6, as released; the paper says 7.
    """
    radius = 6.2 * float(scale(shape))
    if radius < 1:
        return _PLUS
    rows = range(-int(radius), int(radius) + 1)
    widths = [int((radius**2 - y**2) ** 0.5) for y in rows]
    return tuple((y, -w, w) for y, w in zip(rows, widths, strict=True))


def lozenge(shape: Sequence[int]) -> Runs:
    """Makes the lozenge |x + 1/2| + |y| <= 6.5 s, at least a plus of 5 pixels.

    At s = 1 it has 98 pixels, and is one pixel longer on the left.
    """
    radius = 6.5 * float(scale(shape))
    if radius < 1.5:
        return _PLUS
    rows = range(-int(radius - 0.5), int(radius - 0.5) + 1)
    widths = [int(radius - abs(y) + 0.5) for y in rows]
    return tuple((y, -w, w - 1) for y, w in zip(rows, widths, strict=True))


def area(runs: Runs) -> int:
    """Counts the pixels of a shape."""
    return sum(right - left + 1 for _, left, right in runs)


def margin(runs: Runs) -> int:
    """Returns the least row and column of a centre, 7 at 224.

    With centres in margin..side - margin no shape leaves the image.
    """
    return runs[-1][0] + 1


@dataclasses.dataclass(frozen=True)
class Mark:
    """A dash with dotted tails, repeated on neighbouring rows; offsets are columns from the centre."""

    half_length: int  # the dash covers -half_length..half_length (2 at 224)
    half_height: int  # repeated on rows -half_height..half_height (1 at 224)
    right: tuple[int, ...]  # tail offsets to the right: 6, 8, 10, 12, 14 at 224; empty at 64 and below
    # Tail offsets to the left: -10, -8, -6, -4, -2 at 224 (the last lies in the dash, as published); empty at
    # 64 and below.
    left: tuple[int, ...]


TAIL_PROBABILITY = 6 / 7


def mark(shape: Sequence[int]) -> Mark:
    """Makes the mark of `artifacts`: a dash of 5 pixels on 3 rows at 224, of 3 on 1 row at 32."""
    s = scale(shape)
    half_length = max(1, round(2 * s))
    dots = round(5 * s)
    dots = dots if dots > 1 else 0  # at 64 pixels and below only the dash remains
    gap = round(4 * s)
    return Mark(
        half_length=half_length,
        half_height=round(s),
        right=tuple(half_length + gap + 2 * k for k in range(dots)),
        left=tuple(-half_length - 2 * k for k in reversed(range(dots))),
    )


def mean_mark_area(shape: Sequence[int]) -> float:
    """Computes the expected number of pixels of one mark: about 37 at 224."""
    m, width = mark(shape), shape[1]
    centres = range(m.half_length, width - m.half_length)
    right = sum(c + max(m.right, default=0) < width for c in centres) / len(centres)
    left = sum(c + min(m.left, default=0) >= 0 for c in centres) / len(centres)
    outside = sum(x < -m.half_length for x in m.left)
    pixels = 2 * m.half_length + 1 + TAIL_PROBABILITY * (right * len(m.right) + left * outside)
    return pixels * (2 * m.half_height + 1)
