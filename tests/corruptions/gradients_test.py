"""Gradients: the word straight_through, and what it gives where definitions round."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from benchmarks import gradients
from tests.pages import ROOT, example_of

KEY = jax.random.key(3)
# How far the gradient may be from finite differences over several levels. JPEG drops coefficients, photons are counted,
# and values that overflow 8 bits or steps of quantisation jump: for these another test says what the gradient is.
ROUNDING = {
    "cbar/chromatic_aberration": 0.15,
    "cbar/transverse_chromatic_aberration": 0.15,
    "cbar/bleach_bypass": 1.2,
    "cbar/technicolor": 0.15,
    "cbar/color_balance": 0.15,
    "cbar/color_dither": 1.2,
    "cbar/lines": 0.15,
    "imagenet_c/glass_blur": 0.15,
    "imagenet_c/jpeg_compression": 0.7,
    "imagenet_c/motion_blur": 0.15,
    "imagenet_c/shot_noise": 0.6,
    "imagenet_c/pixelate": 0.15,
    "noc/quantization": 1.2,
}
SOME = ("imagenet_c/pixelate", "noc/quantization")
SLOWLY = [pytest.param(name, marks=() if name in SOME else pytest.mark.slow) for name in ROUNDING]
WORD = "straight_through"


@pytest.fixture(scope="module")
def pair():
    """An image of 32x32 without values near 0 or 1, and a smooth direction."""
    return tuple(x[::2, ::2] for x in gradients.images())


def test_these_round():
    assert {name for name in corruptions.names() if corruptions.get(name).straight_through} == set(ROUNDING)


@pytest.mark.parametrize("name", SLOWLY)
def test_values_stay_and_gradients_are_those_of_the_formula_without_rounding(name, pair):
    image, direction = pair
    corruption = corruptions.get(name)
    params = corruption.sample(KEY, image.shape, corruptions.severities(name)[1])

    def derived(gradient):
        value, pull = jax.jit(lambda x: jax.vjp(lambda x: corruption.apply(x, params, gradient=gradient), x))(image)
        return value, np.asarray(pull(jnp.asarray(direction))[0])

    (value, slope), (as_before, zero) = derived(WORD), derived(None)
    np.testing.assert_array_equal(value, as_before)
    assert np.any(slope) and (np.any(zero) == (name == "cbar/color_balance"))
    if name in ("noc/quantization", "cbar/color_dither", "imagenet_c/shot_noise"):
        np.testing.assert_allclose(slope, direction, atol=1e-6)


@pytest.mark.parametrize("name", SLOWLY)
def test_gradients_are_near_finite_differences_over_several_levels(name):
    assert gradients.distance(name, WORD) < ROUNDING[name]


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
    exec(example_of("docs/howto.md", "Take gradients through a corruption"), found)
    assert np.abs(found["slope"]).min() > 0.1
    assert not np.any(jax.grad(lambda x: corruptions.corrupt(KEY, x, "imagenet_c/pixelate", 3).sum())(found["images"]))


def test_the_page_lists_every_corruption():
    text = (ROOT / "docs/gradients.md").read_text()
    rows = [line.split("|")[1].strip(" `") for line in text.splitlines() if line.startswith("| `")]
    assert rows == sorted(corruptions.names())
    assert not [name for name in rows if f"{name}` | 1.00 | the same" in text]


@pytest.mark.parametrize("make", [lambda name: corruptions.random_choice((name,)), corruptions.compose])
def test_corruptions_made_of_others_hand_the_word_on(make, pair):
    made, batch = make("noc/quantization"), jnp.asarray(np.stack([pair[0]] * 2))

    def slope(gradient):
        return jax.grad(lambda x: corruptions.corrupt(KEY, x, made, 0.1, gradient=gradient).sum())(batch)

    assert not np.any(slope(None))
    np.testing.assert_allclose(slope(WORD), 1, atol=1e-6)


def test_another_word_is_refused_and_others_are_as_they_were(pair):
    with pytest.raises(ValueError, match="gradient=None or 'straight_through', found 'smooth'"):
        corruptions.noc.quantization(KEY, pair[0], gradient="smooth")
    fog = corruptions.get("imagenet_c/fog")
    assert fog.with_gradient(WORD) is fog
