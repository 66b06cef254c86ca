"""Enhancements by name: batches, dtypes, ten crops, names that are wrong; programs for TPU and GPU."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from corruptions import enhance as enhancements
from corruptions.enhance import clahe, clahe_skimage, denoise

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (3, 32, 32, 3)).astype(np.uint8)


def test_names():
    assert enhancements.names() == ("clahe", "clahe_hsv", "clahe_rgb", "clahe_skimage", "nlm", "ten_crop")
    assert set(enhancements.of_pixels()) == set(enhancements.names()) - {"ten_crop"}


def test_a_batch_is_its_images_one_by_one_of_either_dtype():
    found = enhancements.enhance(IMAGES, "clahe")
    assert found.dtype == jnp.uint8
    one_by_one = np.stack([jax.jit(clahe.of_lightness)(image) for image in IMAGES])
    np.testing.assert_array_equal(found, one_by_one)
    floats = enhancements.enhance((IMAGES / 255).astype(np.float32), "clahe")
    assert floats.dtype == jnp.float32
    np.testing.assert_allclose(floats, one_by_one / 255, atol=1e-6)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("clahe:clip=4,grid=4x2", lambda image: clahe.of_lightness(image, clip=4, grid=(4, 2))),
        ("clahe_rgb:grid=4x4", lambda image: clahe.of_channels(image, grid=(4, 4))),
        ("clahe_skimage:clip=.05,tiles=4", lambda image: clahe_skimage.equalize(image, clip=0.05, tiles=4)),
        ("nlm:patch=3,distance=2,h=.6,sigma=.1", lambda image: denoise.denoise_levels(image, patch=3, distance=2, h=0.6, sigma=0.1)),
    ],
)  # fmt: skip
def test_settings_follow_the_name(name, expected):
    found = enhancements.enhance(IMAGES[:1], name)[0]
    np.testing.assert_array_equal(found, jax.jit(expected)(IMAGES[0]))
    assert (np.asarray(found) != enhancements.enhance(IMAGES[:1], name.partition(":")[0])[0]).any()


@pytest.mark.parametrize(
    "name, message",
    [
        ("clahe:clipp=4", "clahe has no option 'clipp'; did you mean 'clip'"),
        ("clahe:grid=4", "expected grid=ROWSxCOLUMNS of clahe, found 'grid=4'"),
        ("clahe:clip=high", "expected clip=a number from 0 of clahe, found 'clip=high'"),
        ("nlm:h=nan", "expected h=a number from 0 of nlm, found 'h=nan'"),
        ("nlm:patch=2.5", "expected patch=a whole number from 1 of nlm, found 'patch=2.5'"),
        ("clahe:grid=0x4", "found 'grid=0x4'"),
        ("nlm:patch=4", "expected an odd patch of nlm, found 4"),
        ("nlm:sigma=-1", "found 'sigma=-1'"),
        ("ten_crop:crops=5", "ten_crop has no option 'crops'"),
    ],
)
def test_wrong_settings_are_named(name, message):
    with pytest.raises(ValueError, match=message):
        enhancements.check(name)


def test_what_is_wrong_is_named():
    with pytest.raises(ValueError, match=r"expected an enhancement out of clahe, .*found 'clahee'; did you mean"):
        enhancements.enhance(IMAGES, "clahee")
    with pytest.raises(ValueError, match=r"expected an enhancement of images, .*found 'ten_crop'"):
        enhancements.enhance(IMAGES, "ten_crop")
    with pytest.raises((TypeError, ValueError), match="expected"):
        enhancements.enhance(IMAGES.astype(np.int32), "clahe")


def test_ten_crops_are_corners_centre_and_their_mirror_images():
    rows, columns = np.mgrid[:37, :41]
    index = jnp.asarray(np.stack([rows, columns], -1))
    found = np.asarray(enhancements.ten_crops(index, 32, 35))
    assert found.shape == (10, 32, 35, 2)
    starts = [(3, 3), (0, 0), (0, 6), (5, 0), (5, 6)]  # the centre's half pixel is rounded up
    assert [tuple(crop[0, 0]) for crop in found[:5]] == starts
    for (top, left), crop, mirrored in zip(starts, found[:5], found[5:]):
        assert tuple(crop[-1, -1]) == (top + 31, left + 34)
        assert tuple(mirrored[0, 0]) == (top, 40 - left)  # the same crop of the mirror image
        assert (np.diff(mirrored[0, :, 1]) == -1).all()


def test_an_image_that_is_stored_at_the_size_of_a_crop_is_enlarged():
    for side, larger in ((224, 256), (32, 37)):
        assert jax.eval_shape(enhancements.enlarged, jax.ShapeDtypeStruct((side, side, 3), np.uint8)).shape[0] == larger
    constant = jnp.full((32, 32, 3), 77, jnp.uint8)
    np.testing.assert_array_equal(enhancements.enlarged(constant), np.full((37, 37, 3), 77))


def test_probabilities_are_averaged_not_logits():
    weights = jnp.asarray(RNG.normal(size=(32 * 32 * 3, 4)) * 0.2, jnp.float32)

    def classify(images):
        return (images.astype(jnp.float32) / 255).reshape(images.shape[0], -1) @ weights

    found = np.asarray(jax.jit(enhancements.averaged(classify, "ten_crop"))(IMAGES))
    cut = jax.jit(lambda image: enhancements.ten_crops(enhancements.enlarged(image), 32, 32))
    views = [classify(cut(image)) for image in IMAGES]
    expected = np.stack([jax.nn.softmax(view).mean(0) for view in views])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-5)
    of_mean = np.stack([jax.nn.softmax(view.mean(0)) for view in views])
    assert np.abs(of_mean - expected).max() > 0.01
    assert enhancements.averaged(classify, "clahe") is classify


@pytest.mark.parametrize("name", ["clahe", "clahe_skimage", "nlm"])
def test_programs_for_accelerators(name):
    images = jax.ShapeDtypeStruct((2, 48, 40, 3), np.uint8)
    traced = jax.jit(lambda x: enhancements.enhance(x, name)).trace(images)
    assert "callback" not in str(traced.jaxpr)
    for platform in ("cuda", "tpu"):
        assert traced.lower(lowering_platforms=(platform,)).as_text()
