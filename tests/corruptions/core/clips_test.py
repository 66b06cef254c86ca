"""Images that are no plain batch in [0, 1]: other channels, types, ranges of values, masks, clips, several cameras."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from corruptions.core.errors import Refused
from tests.corruptions.comparing import assert_same
from tests.pages import example_of
from tests.reference.photographs import photographs

KEY = jax.random.key(4)
IMAGES = photographs(4, 32, 32)
FLOATS = np.float32(IMAGES / 255)
SIGNED = np.float32(2 * FLOATS - 1)
MASK = np.zeros((4, 32, 32), bool)
MASK[:, 5:20, 8:30] = True
RIG = CLIPS = photographs(6, 32, 32).reshape(2, 3, 32, 32, 3)
INDEX = [7, 4]
QUICK = ("imagenet_c/contrast", "camera/color_quant", "imagenet_c/gaussian_noise")


GREY = IMAGES[0, ..., :1]
COLOUR, ALPHA = IMAGES[0], 255 - IMAGES[1, ..., :1]
CHANNELS = {
    "grey": GREY,
    "grey with alpha": np.dstack([GREY, ALPHA]),
    "colour": COLOUR,
    "alpha": np.dstack([COLOUR, ALPHA]),
}
CONTRAST = corruptions.imagenet_c.contrast
ENTRIES = {
    "corrupt": lambda image: corruptions.corrupt(KEY, image[None], CONTRAST, 3)[0],
    "one image": lambda image: CONTRAST(KEY, image, 3),
    "halves": lambda image: CONTRAST.apply(image, CONTRAST.sample(KEY, image.shape, 3)),
    "corrupt_image": lambda image: corruptions.corrupt_image(image, CONTRAST, 3, 0, sizes="exact"),
    "corrupt_each": lambda image: next(corruptions.corrupt_each(KEY, [image], CONTRAST, 3, "exact", table="by_size")),
}


TYPES = (np.uint8, np.float32, np.float16, jnp.bfloat16, np.float64)
# A call for one image and the two halves take floats alone.
CASES = [(e, t) for e in ENTRIES for t in TYPES if t != np.uint8 or e not in ("one image", "halves")]


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("entry, dtype", CASES)
def test_channels_and_types_come_back_as_they_went_in(entry, dtype, channels):
    """Computed in three channels of float32 (uint8 truncated): grey is the green of equal ones, alpha is kept."""
    image = CHANNELS[channels]
    image = image if dtype == np.uint8 else (image / 255).astype(dtype)
    found = ENTRIES[entry](image)
    of_jax = entry not in ("corrupt_image", "corrupt_each")
    assert found.shape == image.shape and found.dtype == (np.float32 if dtype == np.float64 and of_jax else dtype)
    colours = image[..., : 1 if image.shape[-1] < 3 else 3]
    three = np.repeat(colours, 3, -1) if colours.shape[-1] == 1 else colours
    three = three if dtype == np.uint8 else three.astype(np.float32)
    expected = np.asarray(corruptions.corrupt(KEY, three[None], CONTRAST, 3)[0]).astype(found.dtype)
    expected = expected[..., 1:2] if colours.shape[-1] == 1 else expected
    np.testing.assert_array_equal(np.asarray(found)[..., : colours.shape[-1]], expected)
    np.testing.assert_array_equal(
        np.asarray(found)[..., colours.shape[-1] :], image[..., colours.shape[-1] :].astype(found.dtype)
    )
    assert (expected != np.asarray(colours).astype(found.dtype)).any()


def test_float64_of_jax_stays_and_alpha_is_kept_inside_a_program():
    with jax.enable_x64(True):
        found = corruptions.corrupt(KEY, jnp.asarray(FLOATS[:1], jnp.float64), "imagenet_c/contrast", 3)
    assert found.dtype == np.float64
    alpha = CHANNELS["alpha"] / np.float32(255)
    np.testing.assert_allclose(jax.jit(ENTRIES["one image"])(alpha), ENTRIES["one image"](alpha), atol=4e-6)


def test_many_channels_are_treated_one_by_one():
    many = np.concatenate([FLOATS, 1 - FLOATS], -1)[..., :5]
    found = corruptions.corrupt(KEY, many, "imagenet_c/contrast", 3)
    for three in ([0, 1, 2], [2, 3, 4]):
        alone = corruptions.corrupt(KEY, many[..., three], "imagenet_c/contrast", 3)
        np.testing.assert_allclose(found[..., three], alone, atol=1e-6)
    noise = corruptions.corrupt(KEY, np.full_like(many, 0.5), "imagenet_c/gaussian_noise", 1)
    correlation = np.corrcoef(np.asarray(noise).reshape(-1, 5).T) - np.eye(5)
    assert abs(correlation).max() < 0.15  # of 2,048 pairs: a standard error of .022


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in corruptions.names()]
)
def test_a_range_of_values_changes_nothing_but_the_scale(name):
    severity = corruptions.severities(name)[-1]
    expected = 2 * np.asarray(corruptions.corrupt(KEY, FLOATS, name, severity)) - 1
    found = np.asarray(corruptions.corrupt(KEY, SIGNED, name, severity, value_range=(-1, 1)))
    assert found.dtype == np.float32 and (np.abs(found - expected) > 1e-5).mean() < 1e-3


@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16])
def test_values_at_the_ends_of_a_range_are_inside_in_their_precision(dtype):
    """A range as networks have it, ((0 - mean) / std, (1 - mean) / std), that the dtype holds rounded."""
    ends = (-0.485 / 0.229, 0.515 / 0.229)
    images = (jnp.asarray(FLOATS > 0.5, dtype) - jnp.asarray(0.485, dtype)) / jnp.asarray(0.229, dtype)
    found = corruptions.corrupt(KEY, images, "noc/hue", 1, value_range=ends)
    assert found.dtype == dtype and found.shape == images.shape
    corruptions.corrupt(KEY, jnp.clip(FLOATS, 0.1, 0.9).astype(dtype), "noc/hue", 1, value_range=(0.1, 0.9))
    with pytest.raises(Refused):
        corruptions.corrupt(KEY, jnp.clip(FLOATS, 0.05, 0.9).astype(dtype), "noc/hue", 1, value_range=(0.1, 0.9))


def test_a_range_keeps_levels_dtype_gradient_and_trace():
    levels = corruptions.corrupt(KEY, SIGNED, "camera/color_quant", 3, value_range=(-1.0, 1.0))
    np.testing.assert_array_equal(np.round(127.5 * (np.asarray(levels) + 1)), IMAGES // 32 * 32)
    half = corruptions.corrupt(KEY, jnp.asarray(SIGNED, jnp.bfloat16), "imagenet_c/contrast", 1, value_range=(-1, 1))
    assert half.dtype == jnp.bfloat16

    def loss(images):
        return corruptions.corrupt(KEY, images, "imagenet_c/contrast", 1, value_range=(-1, 1)).sum()

    slope = jax.jit(jax.grad(loss))(0.9 * jnp.asarray(SIGNED))
    np.testing.assert_allclose(slope, 1, atol=1e-4)  # contrast keeps the mean
    ends = jnp.asarray(np.where(SIGNED > 0, 1, -1), jnp.float32)  # white and black

    def brighter(images, **given):
        return corruptions.corrupt(KEY, images, "noc/brightness", 0.5, **given).sum()

    of_unit = jax.jit(jax.grad(brighter))((ends + 1) / 2)
    assert (of_unit == 1).any()
    of_range = jax.jit(jax.grad(functools.partial(brighter, value_range=(-1, 1))))(ends)
    np.testing.assert_allclose(of_range, of_unit, atol=1e-6)


@pytest.mark.parametrize("images", [IMAGES, FLOATS], ids=["uint8", "float32"])
def test_a_mask_corrupts_inside_alone(images):
    whole = np.asarray(corruptions.corrupt(KEY, images, "imagenet_c/gaussian_noise", 3))
    found = np.asarray(corruptions.corrupt(KEY, images, "imagenet_c/gaussian_noise", 3, where=MASK))
    assert found.dtype == images.dtype and (found != images).any()
    np.testing.assert_array_equal(found[MASK], whole[MASK])
    np.testing.assert_array_equal(found[~MASK], images[~MASK])
    signed = corruptions.corrupt(KEY, SIGNED, "noc/border", where=MASK, value_range=(-1, 1))
    np.testing.assert_array_equal(np.asarray(signed)[~MASK], SIGNED[~MASK])


@pytest.mark.parametrize("axis", ["time", "camera"])
def test_a_mask_of_clips_and_cameras(axis):
    mask = np.zeros(CLIPS.shape[:-1], bool)
    mask[0, 1, 5:20] = True
    for name, severity in (("imagenet_c/gaussian_noise", 3), ("noc/translation", 0.5)):
        whole = np.asarray(corruptions.corrupt(KEY, CLIPS, name, severity, axis=axis))
        found = np.asarray(corruptions.corrupt(KEY, CLIPS, name, severity, axis=axis, where=mask))
        np.testing.assert_array_equal(found, np.where(mask[..., None], whole, CLIPS))
        assert (found != CLIPS).any()


def test_cameras_share_a_severity_and_draw_alone():
    name = "imagenet_c/gaussian_noise"
    found = np.asarray(corruptions.corrupt(KEY, RIG, name, axis="camera", index=[7, 3]))
    for m in range(3):
        key = jax.random.fold_in(KEY, m)
        levels = np.array([severity_of(position) for position in (7, 3)])
        alone = corruptions.corrupt(key, RIG[:, m], name, levels, index=[7, 3])
        np.testing.assert_array_equal(found[:, m], alone)
    fewer = corruptions.corrupt(KEY, RIG[1:, :2], name, axis="camera", index=[3])
    np.testing.assert_array_equal(fewer, found[1:, :2])
    same = np.repeat(RIG[:, :1], 3, axis=1)
    drawn = np.asarray(corruptions.corrupt(KEY, same, name, 3, axis="camera"))
    assert (drawn[:, 0] != drawn[:, 1]).any() and (drawn[:, 1] != drawn[:, 2]).any()


def severity_of(position):
    """The severity that an image of this index draws with severity=None, by the documented keys."""
    severity_key, _ = jax.random.split(jax.random.fold_in(KEY, position))
    return int(jax.random.randint(severity_key, (), 1, 6))


def test_clips_of_cameras():
    clips = np.stack([RIG, RIG[:, ::-1]], axis=1)  # [N, T, M, H, W, C]
    found = np.asarray(corruptions.corrupt(KEY, clips, "noc/border", 0.5, axis=("time", "camera")))
    for m in range(3):
        one = corruptions.corrupt(jax.random.fold_in(KEY, m), clips[:, :, m], "noc/border", 0.5, axis="time")
        np.testing.assert_array_equal(found[:, :, m], one)


def of_clips(clips, name, severity=None, **more):
    return np.asarray(corruptions.corrupt(KEY, clips, name, severity, index=INDEX, axis="time", **more))


def test_each_frame_is_the_single_image_with_the_draws_of_its_clip():
    severity = np.array([0.2, 0.9])
    found = of_clips(CLIPS, "noc/border", severity)
    for frame in range(CLIPS.shape[1]):
        assert_same(found[:, frame], corruptions.corrupt(KEY, CLIPS[:, frame], "noc/border", severity, index=INDEX))
    assert (found[0] != CLIPS[0]).any()


def test_inside_a_program_with_the_index_of_many_bits():
    run = jax.jit(lambda clips: corruptions.corrupt(KEY, clips, "noc/border", index=[2**40, 4], axis="time"))
    alone = corruptions.corrupt(KEY, CLIPS[:, 2], "noc/border", index=[2**40, 4])
    assert_same(run(CLIPS)[:, 2], alone)


def test_fresh_noise_has_the_severity_of_its_clip_and_the_first_frame_as_it_was():
    still = np.full((2, 3, 32, 32, 3), 128, np.uint8)
    name = "noc/gaussian"
    fresh = of_clips(still, name, fresh_noise=True)
    assert_same(fresh[:, 0], corruptions.corrupt(KEY, still[:, 0], name, index=INDEX))
    noise = fresh.astype(np.float32) - 128
    deviation = noise.std((2, 3, 4))
    # With another severity it would be up to 3.6 times as large.
    np.testing.assert_allclose(deviation, np.broadcast_to(deviation[:, :1], (2, 3)), rtol=0.05)
    for clip in noise.reshape(2, 3, -1):
        np.testing.assert_allclose(np.corrcoef(clip), np.eye(3), atol=0.08)  # of 3,072 values: .018
    given = of_clips(still, name, 0.5, fresh_noise=True)
    alone = corruptions.corrupt(KEY, still[:, 2], name, 0.5, index=[7 + 2 * 2**32, 4 + 2 * 2**32])
    assert_same(given[:, 2], alone)


def test_what_is_no_noise_stays_the_same_over_a_clip():
    np.testing.assert_array_equal(of_clips(CLIPS, "noc/border", fresh_noise=True), of_clips(CLIPS, "noc/border"))


def test_the_recipe_of_masks_values_and_cameras():
    found = {"corruptions": corruptions, "key": KEY, "images": IMAGES, "masks": MASK}
    found |= {"policy_images": SIGNED, "samples": RIG}
    exec(example_of("docs/howto/corrupt.md", "Corrupt parts of images, other values, several cameras"), found)
    assert found["rigs"].shape == RIG.shape and float(found["signed"].min()) >= -1
    np.testing.assert_array_equal(np.asarray(found["hidden"])[~MASK], IMAGES[~MASK])


@pytest.mark.parametrize("name", ["imagenet_c/contrast", corruptions.random_choice(["noc/hue", "noc/quantization"])])
def test_a_range_is_fixed_once(name):
    signed, level = corruptions.get(name, value_range=(-1, 1)), 1
    assert signed is corruptions.get(signed, value_range=(-1, 1)) and signed is not corruptions.get(name)
    expected = corruptions.corrupt(KEY, SIGNED, name, level, value_range=(-1, 1))
    np.testing.assert_array_equal(corruptions.corrupt(KEY, SIGNED, signed, level), expected)
    within = jax.jit(lambda x: corruptions.corrupt(KEY, x, signed, level))(SIGNED)
    np.testing.assert_allclose(within, expected, atol=1e-5)
    of_one = (signed(KEY, SIGNED[0], level) + 1) / 2
    np.testing.assert_allclose(of_one, corruptions.get(name)(KEY, (SIGNED[0] + 1) / 2, level), atol=1e-5)
    slope = jax.grad(lambda x: corruptions.corrupt(KEY, x, signed, level, gradient="straight_through").sum())(
        jnp.asarray(SIGNED)
    )
    assert np.abs(slope).max() > 0.1
    with pytest.raises(Refused):
        corruptions.corrupt(KEY, 3 * SIGNED, signed, level)


def test_the_recipe_of_a_policys_training_loop():
    found = {"jax": jax, "jnp": jnp, "corruptions": corruptions}
    recipe = example_of("docs/howto/corrupt.md", "Augment the cameras of a policy")
    exec(recipe.replace("motion_blur", "contrast"), found)  # which compiles in a moment
    images = {"base": jnp.asarray(SIGNED), "left_wrist": jnp.asarray(SIGNED[::-1])}
    first = found["augmented"](KEY, images, jnp.arange(4))
    for name, before in images.items():
        after = np.asarray(first[name])
        assert after.shape == before.shape and after.dtype == np.float32 and np.abs(after).max() <= 1
        assert (after != np.asarray(before)).any((1, 2, 3)).all()
    again = found["augmented"](KEY, {name: x[2:] for name, x in images.items()}, jnp.arange(2, 4))
    np.testing.assert_allclose(again["base"], first["base"][2:], atol=1e-5)


def test_the_recipe_of_clips():
    found = {"corruptions": corruptions, "key": KEY, "clips": CLIPS, "positions": INDEX}
    exec(example_of("docs/howto/corrupt.md", "Corrupt clips"), found)
    assert found["turned"].shape == found["noisy"].shape == CLIPS.shape
    assert found["where"].shape == (2, 32, 32, 2)


def test_the_recipe_of_channels_and_types():
    given = {
        "images": FLOATS,
        "with_alpha": np.concatenate([IMAGES, IMAGES[..., :1]], -1),
        "spectral": np.repeat(IMAGES[..., :1], 5, -1),
    }
    found = {"corruptions": corruptions, "jnp": jnp, "key": KEY, **given}
    exec(example_of("docs/howto/corrupt.md", "Corrupt grey images, alpha, other channels and floats"), found)
    shapes = {name: found[name].shape[1:] for name in ("grey", "pictures", "small", "bands")}
    assert shapes == {"grey": (32, 32, 1), "pictures": (32, 32, 4), "small": (32, 32, 3), "bands": (32, 32, 5)}
    assert found["small"].dtype == jnp.bfloat16
