"""The test preprocessing is torchvision's `Resize(256)`, `CenterCrop(224)`, or `Resize((224, 224))`:
its rules written with Pillow.
"""

import numpy as np
import pytest
from PIL import Image

from data import decode


def torchvision_rule(image, resize, crop):
    """The shorter side becomes `resize`, the longer int(resize * longer / shorter); offsets are rounded halves."""
    width, height = image.size
    shorter = min(width, height)
    size = tuple(resize if side == shorter else int(resize * side / shorter) for side in (width, height))
    image = image.resize(size, Image.Resampling.BILINEAR)  # of Pillow: antialiased where it makes smaller
    left, top = (round((side - crop) / 2.0) for side in size)
    return np.asarray(image.crop((left, top, left + crop, top + crop)))


@pytest.mark.parametrize(
    "size", [(500, 375), (375, 500), (257, 256), (256, 257), (259, 256), (224, 224), (100, 61), (1201, 333)]
)
def test_pixels_are_those_of_torchvisions_rules(size):
    coarse = np.random.default_rng(sum(size)).integers(0, 256, (9, 11, 3), np.uint8)
    image = Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)
    np.testing.assert_array_equal(decode.square(image, 224), torchvision_rule(image, 256, 224))


@pytest.mark.parametrize("size", [(500, 375), (61, 100), (224, 224), (301, 97)])
def test_squashed_pixels_are_those_of_both_sides_resized(size):
    coarse = np.random.default_rng(sum(size)).integers(0, 256, (9, 11, 3), np.uint8)
    image = Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)
    [(side, short)] = {decode.sides(224, resize="squash")[split] for split in ("train", "test")}
    expected = np.asarray(image.resize((224, 224), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(decode.square(image, side, short), expected)


def test_what_was_done_is_said_and_another_way_is_refused():
    assert decode.description(decode.sides(224)) == "shorter side 256, centre crop 224, bilinear (Pillow)"
    assert decode.description(decode.sides(224, resize="squash")) == "both sides 224, bilinear (Pillow)"
    larger = decode.description(decode.sides(224, 256, "squash"))
    assert larger == "train: both sides 256; test: both sides 224, bilinear (Pillow)"
    with pytest.raises(ValueError, match="expected resize 'crop' or 'squash', found 'stretch'"):
        decode.sides(224, resize="stretch")
