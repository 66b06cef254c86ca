"""ImageNet-C against pixels and feature figures of the original code (needs JAXC_SHARED)."""

import pytest

from corruptions import imagenet_c
from tests.corruptions import goldens

# Largest fraction of levels that may be one off. Colours: results that are whole levels up to rounding errors, which
# float32 and the original's float64 truncate to either side (its own closed form in float64 differs from it about as
# often). Defocus: kernels that are plain means of 5, 9 or 29 pixels hit whole numbers all the time, and the last bit
# of the original's float32 weights decides their floor.
BUDGETS = {
    ("brightness", 32): (0.002, 0.004, 0.004, 0.06, 0.01),
    ("brightness", 224): (0.01, 0.04, 0.01, 0.015, 0.015),
    ("contrast", 32): (1e-4,) * 5,
    ("contrast", 224): (1e-4,) * 5,
    ("saturate", 32): (0.015, 0.015, 0.12, 0.02, 0.02),
    ("saturate", 224): (0.02, 0.02, 0.04, 0.03, 0.03),
    ("defocus_blur", 32): (0.01, 0.01, 0.01, 0.07, 0.07),
    ("defocus_blur", 224): (0.07, 1e-4, 1e-4, 1e-4, 1e-4),
    **{(name, size): (1e-3,) * 5 for name in ("gaussian_blur", "zoom_blur") for size in (32, 224)},
    **{(name, size): (0,) * 5 for name in ("jpeg_compression", "pixelate") for size in (32, 224)},
}
RANDOM = (
    *("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise", "glass_blur", "motion_blur"),
    *("snow", "fog", "spatter", "elastic_transform"),
)


@pytest.mark.parametrize(("name", "size"), BUDGETS)
def test_pixels_match_the_original(shared, name, size):
    goldens.assert_pixels(shared, getattr(imagenet_c, name), size, BUDGETS[name, size])


@pytest.mark.parametrize("size", [32, 224])
@pytest.mark.parametrize("name", RANDOM)
def test_features_match_the_original(shared, name, size):
    goldens.assert_features(shared, getattr(imagenet_c, name), size)
