"""What the corruptions of Syn2Nat share: one severity, rounding to nearest, the source, lengths."""

from collections.abc import Sequence

from corruptions import registry
from corruptions.levels import Levels
from corruptions.noc.stamps import scale

candidate = registry.registrar("syn2nat", Levels(1), "nearest", "Laugros et al. (2021), albumentations 0.5.2")


def pixels(length: float, shape: Sequence[int], least: int = 1) -> int:
    """Scales a length at 224x224 pixels to images of this shape: whole pixels, at least `least`."""
    return max(least, round(length * scale(shape)))
