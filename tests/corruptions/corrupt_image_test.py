"""One image, NumPy in and out: equal to a batch of one, whatever the image comes as."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import corruptions
from corruptions import keys, one_image
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
        (expected,) = corruptions.corrupt_each(keys.seed_key(seed), [image], name, severity)
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


def test_a_bare_name_is_that_of_imagenet_c_first():
    found = exactly(IMAGE, "contrast", 2)
    np.testing.assert_array_equal(found, as_batch(IMAGE, "imagenet_c/contrast", 2))
    np.testing.assert_array_equal(exactly(IMAGE, "border", 1, 0), as_batch(IMAGE, "noc/border"))
    record = exactly(IMAGE, corruptions.noc.border, 1, 0)
    np.testing.assert_array_equal(record, as_batch(IMAGE, "noc/border"))
    with pytest.raises(ValueError, match="say 'imagenet_c/contrast' or 'noc/contrast'"):
        corruptions.corrupt(jax.random.key(0), IMAGE[None], "contrast", 2)


def test_one_compile_for_all_seeds_severities_sizes_and_channels():
    compiled = one_image._quick_to_compile._cache_size
    corruptions.corrupt_image(IMAGE, "contrast", 1)
    before = compiled()
    for seed, severity in enumerate((1, 5, np.int64(2), np.float32(3), jnp.int32(4))):
        corruptions.corrupt_image(IMAGE, "contrast", severity, seed)
    corruptions.corrupt_image(IMAGE[:20, :31], "contrast", 1, 2**63)
    corruptions.corrupt_image(IMAGE[..., 0], "contrast", 2)
    corruptions.corrupt_image(np.dstack([IMAGE, IMAGE[..., 0]]), "contrast", 2)
    assert compiled() == before


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


@pytest.mark.parametrize("channels", [2, 4])
def test_alpha_is_returned_as_it_is(channels):
    image = np.dstack([IMAGE, 255 - IMAGE[..., :1]])[..., -channels:]
    found = corruptions.corrupt_image(image, "contrast", 5)
    assert found.shape == image.shape and (found[..., :-1] != image[..., :-1]).any()
    np.testing.assert_array_equal(found[..., -1], image[..., -1])
    without = corruptions.corrupt_image(image[..., :-1], "contrast", 5)
    np.testing.assert_array_equal(found[..., :-1], without)


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16, np.float64])
def test_other_floats_are_worked_on_in_float32(dtype):
    image = FLOAT.astype(dtype)
    found = exactly(image, "contrast", 3)
    assert found.dtype == image.dtype
    np.testing.assert_array_equal(found, as_batch(image.astype(np.float32), "imagenet_c/contrast", 3).astype(dtype))
    with_alpha = exactly(np.dstack([image, image[..., :1]]), "contrast", 3)
    np.testing.assert_array_equal(with_alpha, np.dstack([found, image[..., :1]]))


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


@pytest.mark.parametrize(
    "image, error, message",
    [
        ("cat.png", TypeError, "expected an array, nested lists or a Pillow image, found str"),
        (None, TypeError, "found NoneType"),
        (IMAGE[None], ValueError, r"found a batch of shape \(1, 32, 32, 3\); use corruptions\.corrupt"),
        ([IMAGE, IMAGE], ValueError, r"found a batch of shape \(2, 32, 32, 3\)"),
        (IMAGE.transpose(2, 0, 1), ValueError, r"\(height, width, channels\) .* found shape \(3, 32, 32\)"),
        (IMAGE[0, 0], ValueError, r"found shape \(3,\)"),
        ([[1, 2], [3]], ValueError, r"lists of different lengths; .*corrupt_each\(key, images, name, severity\)"),
        ([], ValueError, r"found shape \(0,\)"),
        ((IMAGE.astype(int) * 2 - 9).tolist(), ValueError, "levels from 0 to 255, found values from -9 to 501"),
        (IMAGE[:8], ValueError, "at least 16x16 pixels, found 8x32"),
        (IMAGE[:0, :, 0], ValueError, "at least 16x16 pixels, found 0x32"),
        (IMAGE.astype(np.int64), TypeError, "found dtype int64"),
        (IMAGE > 9, TypeError, "found dtype bool"),
        (np.zeros((3, 20, 24), np.uint8), ValueError, r"shape \(3, 20, 24\); channels come last: image\.transpose"),
        (IMAGE.astype(np.float64), ValueError, "found values from 0 to 255; divide by 255 or pass uint8"),
        (np.full((32, 32), np.nan), ValueError, "found values from nan to nan"),
        (Image.fromarray(IMAGE).convert("P"), ValueError, r"found mode P; convert it: image\.convert\('RGB'\)"),
        (Image.fromarray(IMAGE).convert("CMYK"), ValueError, "mode L, LA, RGB, RGBA, found mode CMYK"),
    ],
)
def test_bad_images_are_named(image, error, message):
    with pytest.raises(error, match=message):
        corruptions.corrupt_image(image, "noc/border")


@pytest.mark.parametrize(
    "error, message, given",
    [
        (ValueError, "did you mean 'contrast'", {"name": "contrats"}),
        (TypeError, r"found 3; the order is .* corrupt_image\(image, name, severity\)", {"name": 3, "severity": "fog"}),
        (ValueError, "sizes='bucket' or 'exact', found 'padded'", {"name": "contrast", "sizes": "padded"}),
        (ValueError, r"level 1\.\.5, found 6", {"name": "contrast", "severity": 6}),
        (ValueError, r"in \[0, 1\], a fraction of the range, found 2", {"name": "border", "severity": 2}),
        (ValueError, r"scalar severity", {"name": "contrast", "severity": np.ones(32)}),
        (TypeError, "expected an integer seed, found 0.5", {"name": "contrast", "seed": 0.5}),
        (ValueError, r"from 0 to 2\*\*64 - 1, found -1", {"name": "contrast", "seed": -1}),
        (ValueError, "did you mean 'table'", {"name": "contrast", "tabel": "cifar"}),
        (ValueError, "has no option 'index'", {"name": "contrast", "index": [3]}),
    ],
)
def test_bad_requests_are_named(error, message, given):
    with pytest.raises(error, match=message):
        corruptions.corrupt_image(IMAGE, **given)


def test_a_traced_image_is_pointed_to_corrupt():
    with pytest.raises(TypeError, match=r"inside a jit use corruptions\.corrupt"):
        jax.jit(lambda image: corruptions.corrupt_image(image, "contrast"))(IMAGE)


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
