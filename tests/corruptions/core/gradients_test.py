"""Gradients: the word straight_through, and what it gives where definitions round."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from benchmarks import gradients
from corruptions.primitives import color
from tests.pages import ROOT, example_of
from tests.reference.photographs import crops

KEY = jax.random.key(3)
WORD = "straight_through"


@pytest.fixture(scope="module")
def pair():
    """An image of 32x32 without values near 0 or 1, and a smooth direction."""
    return tuple(x[::2, ::2] for x in gradients.images())


def test_jpeg_of_the_best_quality_is_near_its_formula_without_rounding(pair):
    image, direction = pair
    jpeg = corruptions.imagenet_c.jpeg_compression
    derive = jax.jit(lambda x, v: jax.jvp(lambda x: jpeg.apply(x, {"quality": 100.0}, gradient=WORD), (x,), (v,))[1])
    ahead, behind = (np.asarray(jpeg.apply(image + k * 20 / 255 * direction, {"quality": 100.0})) for k in (1, -1))
    expected = (ahead - behind) / (40 / 255)
    assert np.sqrt(np.mean((derive(image, direction) - expected) ** 2) / np.mean(expected**2)) < 0.1


def test_a_batch_as_the_page_says(pair):
    image, _ = pair
    found = {"corruptions": corruptions, "key": KEY, "jax": jax, "images": jnp.asarray(image[None])}
    exec(example_of("docs/howto/corrupt.md", "Take gradients through a corruption"), found)
    assert np.abs(found["slope"]).min() > 0.1
    assert not np.any(jax.grad(lambda x: corruptions.corrupt(KEY, x, "imagenet_c/pixelate", 3).sum())(found["images"]))


def test_the_page_lists_corruptions_and_the_gradient_of_each_that_rounds():
    text = (ROOT / "docs/gradients.md").read_text()
    rows = {line.split("|")[1].strip(" `"): line for line in text.splitlines() if line.startswith("| `")}
    assert len(rows) > 70 and set(rows) <= set(corruptions.names())
    assert not [name for name, row in rows.items() if "| 1.00 | the same" in row]
    rounding = [name for name, row in rows.items() if "the same" not in row]
    assert rounding == [name for name in rows if corruptions.get(name).straight_through]


# A clip, an overflow, a kink of max and min at grey pixels, a wheel of hues: what once halved or quartered the slope.
_CLIPS = ("imagenet_c/contrast", "imagenet_c/saturate", "cbar/hue_shift", "cbar/technicolor", "noc/rain")


@pytest.mark.parametrize("name", _CLIPS)
def test_black_and_white_pixels_have_the_slope_of_pixels_just_inside(name):
    assert gradients.difference_at_the_ends(name, side=16) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in corruptions.names() if name not in _CLIPS])
def test_black_and_white_pixels_of_every_corruption(name):
    if name in ("laion_c/mosaic", "laion_c/stickers"):
        corruptions.laion_c.use_bank(crops(600))
    assert gradients.difference_at_the_ends(name, side=32) < 0.1


@pytest.mark.parametrize("given", [[-1, 0, 0.5, 1, 2], [0, 0, 0, 0, 0]])
def test_a_clip_has_the_values_of_jnp_and_slope_one_up_to_both_ends(given):
    x = jnp.asarray(given, jnp.float32)
    values, slopes = jax.jvp(color.clip, (x,), (jnp.ones_like(x),))
    np.testing.assert_array_equal(values, jnp.clip(x, 0, 1))
    np.testing.assert_array_equal(slopes, (x >= 0) & (x <= 1))
    np.testing.assert_array_equal(jax.grad(lambda x: color.clip(x, 0, 0.5).sum())(x), (x >= 0) & (x <= 0.5))


@pytest.mark.parametrize("make", [lambda name: corruptions.random_choice((name,)), corruptions.compose])
def test_corruptions_made_of_others_hand_the_word_on(make, pair):
    made, batch = make("noc/quantization"), jnp.asarray(np.stack([pair[0]] * 2))

    def slope(gradient):
        return jax.grad(lambda x: corruptions.corrupt(KEY, x, made, 0.1, gradient=gradient).sum())(batch)

    assert not np.any(slope(None))
    np.testing.assert_allclose(slope(WORD), 1, atol=1e-6)


def test_where_nothing_rounds_the_record_is_the_same():
    fog = corruptions.get("imagenet_c/fog")
    assert fog.with_gradient(WORD) is fog
