"""Other channels and types than three of float32: what they come back as, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from tests.pages import example_of

KEY = jax.random.key(3)
IMAGES = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3)).astype(np.uint8)
FLOATS = IMAGES / np.float32(255)
GREY = IMAGES[..., :1]


@pytest.mark.parametrize("images", [GREY, GREY / np.float32(255)])
def test_grey_is_the_green_of_three_equal_channels(images):
    for name, severity in (("imagenet_c/contrast", 3), ("imagenet_c/gaussian_noise", 2)):
        found = corruptions.corrupt(KEY, images, name, severity)
        three = corruptions.corrupt(KEY, np.repeat(images, 3, -1), name, severity)
        assert found.shape == images.shape and found.dtype == images.dtype
        np.testing.assert_array_equal(found, three[..., 1:2])


@pytest.mark.parametrize("images", [IMAGES, FLOATS, GREY])
def test_alpha_comes_back_as_it_is(images):
    with_alpha = np.concatenate([images, images[..., :1] // 2], -1)
    found = np.asarray(corruptions.corrupt(KEY, with_alpha, "imagenet_c/contrast", 5))
    np.testing.assert_array_equal(found[..., -1], with_alpha[..., -1])
    np.testing.assert_array_equal(found[..., :-1], corruptions.corrupt(KEY, images, "imagenet_c/contrast", 5))


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16])
def test_small_floats_come_back_computed_in_float32(dtype):
    small = jnp.asarray(FLOATS, dtype)
    found = corruptions.corrupt(KEY, small, "imagenet_c/contrast", 3)
    assert found.dtype == dtype
    wide = corruptions.corrupt(KEY, np.asarray(small, np.float32), "imagenet_c/contrast", 3)
    np.testing.assert_array_equal(found, wide.astype(dtype))
    one = corruptions.imagenet_c.contrast(KEY, small[0], 3)
    assert one.dtype == dtype
    np.testing.assert_array_equal(
        one, corruptions.imagenet_c.contrast(KEY, small[0].astype(np.float32), 3).astype(dtype)
    )


def test_float64_of_numpy_is_taken_as_jax_takes_it():
    found = corruptions.corrupt(KEY, FLOATS.astype(np.float64), "imagenet_c/contrast", 3)
    np.testing.assert_array_equal(found, corruptions.corrupt(KEY, FLOATS, "imagenet_c/contrast", 3))
    with pytest.raises(ValueError, match="divide by 255"):
        corruptions.corrupt(KEY, IMAGES.astype(np.float64), "imagenet_c/contrast", 3)
    with jax.enable_x64(True):
        found = corruptions.corrupt(KEY, jnp.asarray(FLOATS[:1], jnp.float64), "imagenet_c/contrast", 3)
    assert found.dtype == np.float64


def test_many_channels_are_treated_one_by_one():
    many = np.concatenate([FLOATS, 1 - FLOATS], -1)[..., :5]
    found = corruptions.corrupt(KEY, many, "imagenet_c/contrast", 3)
    for three in ([0, 1, 2], [2, 3, 4]):
        alone = corruptions.corrupt(KEY, many[..., three], "imagenet_c/contrast", 3)
        np.testing.assert_allclose(found[..., three], alone, atol=1e-6)
    noise = corruptions.corrupt(KEY, np.full_like(many, 0.5), "imagenet_c/gaussian_noise", 1)
    correlation = np.corrcoef(np.asarray(noise).reshape(-1, 5).T) - np.eye(5)
    assert abs(correlation).max() < 0.15  # of 2,048 pairs: a standard error of .022


def test_what_mixes_channels_refuses_many_and_says_why():
    many = np.zeros((1, 32, 32, 5), np.uint8)
    with pytest.raises(ValueError, match=r"expected 1 to 4 channels .*saturate.*hue.* found 5"):
        corruptions.corrupt(KEY, many, "imagenet_c/saturate", 1)
    with pytest.raises(ValueError, match="found 5"):
        corruptions.imagenet_c.saturate(KEY, many[0].astype(np.float32), 1)
    with pytest.raises(ValueError, match="found 5"):
        corruptions.imagenet_c.saturate.sample(KEY, (32, 32, 5), 1)


def test_one_image_and_inside_a_program():
    grey, alpha = FLOATS[0, ..., :1], np.dstack([FLOATS[0], FLOATS[0, ..., :1]])
    contrast = corruptions.imagenet_c.contrast
    params = contrast.sample(KEY, grey.shape, 2)
    np.testing.assert_array_equal(contrast.apply(grey, params), contrast(KEY, grey, 2))
    assert contrast(KEY, grey, 2).shape == grey.shape
    np.testing.assert_array_equal(contrast(KEY, alpha, 2)[..., 3], alpha[..., 3])
    traced = jax.jit(lambda image: contrast(KEY, image, 2))(alpha)
    np.testing.assert_allclose(traced, contrast(KEY, alpha, 2), atol=4e-6)


def test_the_example_of_the_how_to_runs():
    given = {"images": FLOATS, "with_alpha": np.concatenate([IMAGES, GREY], -1), "spectral": np.repeat(GREY, 5, -1)}
    found = {"corruptions": corruptions, "jnp": jnp, "key": KEY, **given}
    exec(example_of("docs/howto/corrupt.md", "Corrupt grey images, alpha, other channels and floats"), found)
    shapes = {name: found[name].shape[1:] for name in ("grey", "pictures", "small", "bands")}
    assert shapes == {"grey": (32, 32, 1), "pictures": (32, 32, 4), "small": (32, 32, 3), "bands": (32, 32, 5)}
    assert found["small"].dtype == jnp.bfloat16
