"""Every NOC candidate, given its draws, equals an independent NumPy, SciPy or Pillow reference."""

import jax
import numpy as np
import pytest
from PIL import Image

import corruptions
from corruptions import noc
from tests.corruptions.comparing import compiled
from tests.corruptions.noc import references
from tests.reference.photographs import scene

NAMES = [name.removeprefix("noc/") for name in corruptions.names("noc_candidates")] + ["arlequin"]
SQUARE = (224, 224, 3)
# Candidates whose masks, passes and blocks change with scale: also at the published size and, in a slow test, at a middle
# one. The other candidates are compared at the published size in slow tests, but for three that move or cover pixels.
SCALED = ("blur", "pixelate", "artifacts", "vertical_artifacts", "rhombus", "rain", "circle", "arlequin", "elastic")
LARGE = (*SCALED, "border", "obstruction", "translation")
CASES = [(name, (40, 16, 3)) for name in NAMES] + [(name, SQUARE) for name in LARGE]
SLOW = [(name, SQUARE) for name in NAMES if name not in LARGE] + [(name, (176, 240, 3)) for name in SCALED]
PIXELATE = jax.jit(noc.pixelate.apply)


@pytest.mark.parametrize(
    ("name", "shape"),
    [*CASES, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)],
    ids=[f"{name}-{height}x{width}" for name, (height, width, _) in (*CASES, *SLOW)],
)
def test_equals_the_reference(name, shape):
    image = scene(*shape[:2]) / np.float32(255)
    run = compiled(f"noc/{name}", shape)
    for seed, severity in enumerate((0.0, 0.6, 1.0)):
        params, found = run(jax.random.key(seed), image, severity)
        expected = getattr(references, name)(image.astype(np.float64), jax.tree.map(np.asarray, params))
        assert found.shape == shape and found.dtype == np.float32
        assert np.all(found >= 0) and np.all(found <= 1)
        wrong = np.abs(found - expected) > 2e-5
        # Where nearest pixels are looked up, float32 and float64 may fall on two sides of a tie.
        assert wrong.mean() <= (1e-3 if name in ("shear", "rotation") else 0), (
            f"{wrong.mean():.2%} of the values differ"
        )


@pytest.mark.parametrize("size", [3, 5, 7, 30])
@pytest.mark.parametrize("mirrored_rim", [True, False])
def test_pixelate_where_blocks_do_not_fit(size, mirrored_rim):
    image = scene(32, 41) / np.float32(255)
    params = {"size": np.int32(size), "mirrored_rim": np.bool_(mirrored_rim)}
    assert np.allclose(PIXELATE(image, params), references.pixelate(image, params), atol=1e-6)


@pytest.mark.parametrize("name", ["shear", "rotation"])
def test_affine_agrees_with_pillow(name):
    """Pillow computes in steps of 2^-16, so a few pixels in a thousand fall to a neighbour."""
    image = scene(224, 224)
    params, found = compiled(name, SQUARE)(jax.random.key(5), image / np.float32(255), 0.7)
    data = references.affine_matrix(image, name, float(params["degrees"])).ravel()
    expected = Image.fromarray(image).transform((224, 224), Image.Transform.AFFINE, data, Image.Resampling.NEAREST)
    assert np.mean(np.round(np.asarray(found) * 255) != np.asarray(expected)) < 0.005


def test_disc_and_lozenge_have_the_released_pixels():
    square = np.zeros((224, 224))
    widths = {0: 6, 1: 6, 2: 5, 3: 5, 4: 4, 5: 3, 6: 1}
    disc = {(y, x) for y in range(-6, 7) for x in range(-widths[abs(y)], widths[abs(y)] + 1)}
    lozenge = {(y, x) for y in range(-6, 7) for x in range(-(7 - abs(y)), 7 - abs(y))}
    assert len(disc) == 121 and set(references.disc_pixels(square)) == disc
    assert len(lozenge) == 98 and set(references.lozenge_pixels(square)) == lozenge


def test_hue_of_known_colours():
    image = np.zeros((16, 16, 3), np.float32)
    image[0, :3], image[0, 3], image[0, 4] = np.eye(3), (1.0, 0.5, 0.0), (0.3, 0.3, 0.3)
    turned = noc.hue.apply(image, {"turns": np.float32(1 / 3)})[0, :5]
    assert np.allclose(turned, [[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0.5], [0.3] * 3], atol=1e-6)
