"""One image, NumPy in and out: equal to a batch of one, whatever the image comes as."""

import functools
import re

import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import corruptions
from corruptions.core import keys
from runtime import meshes
from tests.pages import ROOT, example_of

IMAGE = np.random.default_rng(0).integers(0, 256, (32, 32, 3)).astype(np.uint8)
FLOAT = IMAGE / np.float32(255)
exactly = functools.partial(corruptions.corrupt_image, sizes="exact")


def as_batch(image, name, severity=1, seed=0, **options):
    """The first image of `corrupt`'s batch of one."""
    return np.asarray(corruptions.corrupt(keys.seed_key(seed), image[None], name, severity, **options)[0])


@pytest.mark.parametrize("image, name, severity", [(IMAGE, "noc/border", 0.5), (FLOAT, "imagenet_c/contrast", 3)])
def test_an_image_is_a_batch_of_one(image, name, severity):
    before = image.copy()
    for seed in (0, 5, 2**40):
        found = exactly(image, name, severity, seed)
        np.testing.assert_array_equal(found, as_batch(image, name, severity, seed))
        assert type(found) is np.ndarray and found.dtype == image.dtype and found.flags.writeable
        padded = corruptions.corrupt_image(image, name, severity, seed)
        by_size = {"table": "by_size"} if "table" in corruptions.get(name).options else {}
        (expected,) = corruptions.corrupt_each(keys.seed_key(seed), [image], name, severity, **by_size)
        np.testing.assert_array_equal(padded, expected)
        np.testing.assert_allclose(padded, found, atol=1e-5)
    np.testing.assert_array_equal(image, before)
    assert (found != image).any()


def test_seed_and_severity_of_none_are_drawn_and_options_are_passed_on():
    first, second = (corruptions.corrupt_image(IMAGE, "gaussian_noise", 3) for _ in range(2))
    assert (first != second).any()
    np.testing.assert_array_equal(
        corruptions.corrupt_image(IMAGE, "contrast", seed=3), corruptions.corrupt_image(IMAGE, "contrast", None, 3)
    )
    found = exactly(IMAGE, "contrast", None, 3, levels=(5,))
    np.testing.assert_array_equal(found, as_batch(IMAGE, "imagenet_c/contrast", None, 3, levels=(5,)))
    np.testing.assert_array_equal(found, as_batch(IMAGE, "imagenet_c/contrast", 5))


def test_one_compile_for_all_seeds_severities_sizes_and_channels():
    corruptions.corrupt_image(IMAGE, "contrast", 1)
    with meshes.counting_compiles() as compiled:
        for seed, severity in enumerate((1, 5, np.int64(2), np.float32(3), jnp.int32(4))):
            corruptions.corrupt_image(IMAGE, "contrast", severity, seed)
        for image, seed in ((IMAGE[:20, :31], 2**63), (IMAGE[..., 0], 0), (np.dstack([IMAGE, IMAGE[..., 0]]), 0)):
            corruptions.corrupt_image(image, "contrast", 2, seed)
    assert not compiled["_corrupt_padded"]


def test_a_grey_image_comes_back_as_the_green_channel():
    """Noise drawn for each channel keeps the .08 of severity 3: the mean of three channels would
    have .046, the luminance .053.
    """
    grey = np.full((32, 32), 128, np.uint8)
    found = exactly(grey, "gaussian_noise", 3, 4)
    of_channels = as_batch(np.dstack([grey] * 3), "imagenet_c/gaussian_noise", 3, 4)
    assert (of_channels[..., 0] != of_channels[..., 1]).mean() > 0.9, "each channel has its own noise"
    np.testing.assert_array_equal(found, of_channels[..., 1])
    assert found.std() / 255 == pytest.approx(0.08, rel=0.1)  # of 1,024 values: a standard error of 2.2 %
    np.testing.assert_array_equal(exactly(grey[..., None], "gaussian_noise", 3, 4)[..., 0], found)


def test_lists_pillow_images_and_jax_arrays():
    expected = corruptions.corrupt_image(IMAGE, "contrast", 2)
    for given in (IMAGE.tolist(), list(IMAGE), Image.fromarray(IMAGE), jnp.asarray(IMAGE), IMAGE[::-1][::-1]):
        found = corruptions.corrupt_image(given, "contrast", 2)
        assert type(found) is np.ndarray and found.dtype == np.uint8
        np.testing.assert_array_equal(found, expected)
    floats = corruptions.corrupt_image(FLOAT.tolist(), "contrast", 2)
    np.testing.assert_array_equal(floats, corruptions.corrupt_image(FLOAT.astype(np.float64), "contrast", 2))
    for mode in ("L", "LA", "RGBA"):
        image = Image.fromarray(IMAGE).convert(mode)
        found = corruptions.corrupt_image(image, "contrast", 2)
        np.testing.assert_array_equal(found, corruptions.corrupt_image(np.asarray(image), "contrast", 2))


def test_the_example_of_the_how_to_runs(tmp_path, monkeypatch):
    Image.fromarray(IMAGE).save(tmp_path / "photo.png")
    monkeypatch.chdir(tmp_path)
    found = {"corruptions": corruptions}
    exec(example_of("docs/howto/corrupt.md", "Corrupt one image, without JAX in your code"), found)
    np.testing.assert_array_equal(found["weak"], corruptions.corrupt_image(IMAGE, "contrast", 3, 7))
    np.testing.assert_array_equal(Image.open("corrupted.png"), found["weak"])
    assert found["framed"].dtype == np.float64 and found["framed"].shape == (32, 32)


def test_the_page_for_users_of_imagecorruptions_has_its_names_and_order(tmp_path):
    text = (ROOT / "docs/from_imagecorruptions.md").read_text()
    found = {"corruptions": corruptions, "image": IMAGE, "number": 11}
    exec(example_of("docs/from_imagecorruptions.md", "Calls").replace("fog", "contrast"), found)
    np.testing.assert_array_equal(found["by_number"], corruptions.corrupt_image(IMAGE, "contrast", 3))
    listed = re.search(r"order of `corruption_number`:(.*?)\.\n", text, re.S)[1]
    assert [name.strip(" `\n") for name in listed.split(",")] == [n.split("/")[1] for n in found["every"]]
    assert len(found["every"]) == 19
