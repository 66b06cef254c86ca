"""Ranges, their scaling, custom ranges and other options, and the lists of names."""

import jax
import numpy as np

import corruptions
from corruptions import noc
from tests.corruptions.comparing import drawn
from tests.corruptions.noc.exact_test import NAMES

PUBLISHED = {
    "quantization": (8, 3), "gaussian": (0.05, 0.18), "salt_pepper": (0.003, 0.032), "blur": (0.40, 0.95),
    "thumbnail_resize": (1.1, 3.25), "pixelate": (2, 4), "artifacts": (14, 170), "vertical_artifacts": (14, 180),
    "rhombus": (9, 76), "rain": (12, 120), "circle": (7, 50), "obstruction": (47, 125), "border": (9, 46),
    "translation": (15, 62), "shear": (12, 39), "elastic": (44, 110), "rotation": (7, 50), "backlight": (0.11, 0.44),
    "brightness": (0.16, 0.51), "contrast": (0.33, 0.74), "color_distortion": (0.09, 0.40), "gray_scale": (0.49, 1.0),
    "hue": (0.05, 0.5), "arlequin": (3, 36),
}  # fmt: skip
AT_32 = {
    "obstruction": (7, 18), "border": (1, 7), "translation": (2, 9), "elastic": (6, 16), "circle": (3, 25),
    "rain": (6, 59), "rhombus": (4, 30), "artifacts": (4, 43), "vertical_artifacts": (4, 45), "pixelate": (2, 2),
}  # fmt: skip


def test_published_ranges():
    assert noc.ranges((224, 224)) == PUBLISHED
    small = noc.ranges((32, 32, 3))
    assert {name: small[name] for name in AT_32} == AT_32
    scale_free = set(PUBLISHED) - set(AT_32) - {"arlequin"}
    assert {name: small[name] for name in scale_free} == {name: PUBLISHED[name] for name in scale_free}
    assert set(noc.UNITS) == set(PUBLISHED)


def test_ranges_of_other_shapes():
    wide = noc.ranges((224, 448))
    assert wide["circle"] == (14, 100) and wide["border"] == (9, 46)
    counted = [name for name, (low, _) in PUBLISHED.items() if isinstance(low, int)]
    small = noc.ranges((16, 16))
    assert counted and all(small[name][0] >= 1 for name in counted)


def test_benchmarks_and_names():
    assert corruptions.names("noc_candidates") == tuple(f"noc/{name}" for name in list(PUBLISHED)[:-1])
    chosen = ("quantization", "blur", "vertical_artifacts", "rain", "border", "shear", "brightness", "hue")
    assert corruptions.names("imagenet_noc") == tuple(f"noc/{name}" for name in chosen)
    assert corruptions.get("color_disortion") is noc.color_distortion
    assert corruptions.get("noc/low_res") is noc.thumbnail_resize
    assert all(corruptions.get(f"noc/{name}") is getattr(noc, name) for name in NAMES)


def test_a_custom_range():
    assert np.all(drawn("noc/border", 3, 1.0, range=(10, 45))["thickness"] == 45)
    assert np.all(drawn("noc/quantization", 3, 0.0, range=(20, 5))["steps"] == 20)
    image = np.full((32, 32, 3), 0.5, np.float32)
    assert np.array_equal(noc.circle(jax.random.key(0), image, range=(0, 0)), image)
    shapes = drawn("noc/circle", 3, 1.0, range=(2, 300))
    assert shapes["rows"].shape == (3, 300) and np.all(shapes["number"] == 300)
    assert np.allclose(drawn("noc/contrast", 3, 0.5, range=(0.1, 0.2))["weight"], 0.15)
    assert np.all(drawn("noc/border", 3, range=(5, 5), grey=0.5)["grey"] == 0.5)
