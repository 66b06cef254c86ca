"""The table of names and properties: what every registered corruption must keep, whatever it does to an image."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from benchmarks import gradients
from corruptions.levels import Fraction
from tests.corruptions.comparing import assert_same
from tests.corruptions.positions import assert_looks_where_its_map_says
from tests.reference.photographs import photographs

NAMES = corruptions.names()
SOME = ("imagenet_c/gaussian_noise", "imagenet_c/contrast", "imagenet_c/jpeg_compression", "noc/border", "noc/rain")
KEY = jax.random.key(7)


# How far a straight-through gradient may be from finite differences over several levels, where not .15. JPEG drops
# coefficients, photons are counted, and values that overflow 8 bits or steps of quantisation jump.
JUMPS = {
    "camera/color_quant": 1.2,
    "camera/dark": 0.3,
    "camera/iso_noise": 0.8,
    "cbar/bleach_bypass": 1.2,
    "cbar/color_dither": 1.2,
    "imagenet_c/jpeg_compression": 0.7,
    "imagenet_c/shot_noise": 0.6,
    "laion_c/mosaic": 1.2,  # other tiles
    "laion_c/vertical_lines": 1.2,  # lines lean by luma
    "noc/quantization": 1.2,
}
OF_THE_IMAGE_ITSELF = (
    "noc/quantization",
    "cbar/color_dither",
    "imagenet_c/shot_noise",
    "camera/color_quant",
)  # their gradient is 1
ROUNDS_IN_PART = ("cbar/color_balance",)  # its gradient is not zero as it is
HALVES = ("noc/elastic", "noc/thumbnail_resize")  # means on half a level, which padding may round either way


def every(*fast, where=lambda corruption: True):
    """Runs a test for every corruption for which `where` holds; for those not named in `fast`, in the slow suite."""
    chosen = [name for name in NAMES if where(corruptions.get(name))]
    assert chosen and set(fast) <= set(chosen)
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=() if name in fast else pytest.mark.slow) for name in chosen]
    )


@pytest.fixture(scope="module")
def images():
    return photographs(4, 32, 32)


@pytest.fixture(scope="module")
def batch():
    """As large as the batches of the golden tests, whose compiled programs serve here too."""
    return photographs(64, 32, 32)


@pytest.mark.parametrize("name", NAMES)
def test_batches_of_uint8(name, batch):
    """Shape, dtype, determinism, an effect, and one compile for severities: their ends, since what
    one program gives has one shape and dtype.
    """
    compiled = corruptions.batch._corrupt._cache_size()
    severities = corruptions.severities(name)
    mildest, strongest = (np.asarray(corruptions.corrupt(KEY, batch, name, s)) for s in (severities[0], severities[-1]))
    assert corruptions.batch._corrupt._cache_size() - compiled == 1
    for corrupted in (mildest, strongest):
        assert corrupted.shape == batch.shape and corrupted.dtype == np.uint8
    assert (strongest != batch).any((1, 2, 3)).all()
    if name in SOME:  # of all in test_an_image_depends_on_its_index_alone, slow
        np.testing.assert_array_equal(corruptions.corrupt(KEY, batch, name, severities[-1]), strongest)


@every(*SOME)
def test_an_image_depends_on_its_index_alone(name, images):
    """Other neighbours and another order leave an image as it is, severities drawn."""
    index = jnp.array([11, 3, 8, 4])
    whole = np.asarray(corruptions.corrupt(KEY, images, name, index=index))
    turned = np.asarray(corruptions.corrupt(KEY, images[::-1], name, index=index[::-1]))
    np.testing.assert_array_equal(turned[::-1], whole)
    others = np.asarray(corruptions.corrupt(KEY, images[[2, 2, 2, 1]], name, index=jnp.array([5, 8, 9, 3])))
    np.testing.assert_array_equal(others[[1, 3]], whole[[2, 1]])


@every(*SOME)
def test_an_image_alone_in_a_larger_batch_and_inside_a_users_program(name):
    images = photographs(9, 32, 32)
    whole = np.asarray(corruptions.corrupt(KEY, images, name))
    alone = corruptions.corrupt(KEY, images[4:5], name, index=jnp.array([4]))
    assert_same(alone, whole[4:5])
    severity = corruptions.severities(name)[-1]  # a constant of the program, worked out by the compiler
    inside = jax.jit(lambda images: 2 * corruptions.corrupt(KEY, images, name, severity).astype(jnp.float32))
    strongest = corruptions.corrupt(KEY, images, name, severity)
    assert_same((np.asarray(inside(images)) / 2).astype(np.uint8), strongest)


@every()
def test_a_float_image_alone_and_in_a_larger_batch(name):
    images = photographs(9, 32, 32) / np.float32(255)
    whole = np.asarray(corruptions.corrupt(KEY, images, name))
    assert_same(corruptions.corrupt(KEY, images[2:7], name, index=jnp.arange(2, 7)), whole[2:7])


@every(*SOME)
def test_one_image_eager_and_jitted(name):
    """float32 in [0, 1] in and out, non-square, jit equal to eager, sample and apply apart."""
    corruption = corruptions.get(name)
    image = jnp.asarray(photographs(1, 24, 33)[0], jnp.float32) / 255
    severity = corruptions.severities(name)[-1]
    found = corruption(KEY, image, severity)
    assert found.shape == image.shape and found.dtype == jnp.float32
    assert float(found.min()) >= 0 and float(found.max()) <= 1  # a NaN fails both
    params = corruption.sample(KEY, image.shape, severity)
    np.testing.assert_array_equal(corruption.apply(image, params), found)
    jitted = jax.jit(corruption)(KEY, image, severity if isinstance(severity, float) else jnp.int32(severity))
    assert_same(jitted, found)
    batch = corruptions.corrupt(KEY, image[None], name, severity, index=jnp.array([3]))
    # Two programs, which round otherwise: plasma_noise, sines of sines, differs by .012 of a level.
    assert_same(batch[0], corruption(jax.random.fold_in(KEY, 3), image, severity), bound=0.05 / 255)


@pytest.mark.parametrize("name", NAMES)
def test_record(name):
    corruption = corruptions.get(name)
    assert corruption.qualified_name == name and corruption.family
    assert corruption.parameters and all(p.name and p.unit and p.source for p in corruption.parameters)
    assert corruption.__doc__
    assert corruption.moves or corruption.mapper is None
    record = corruption.describe((48, 40, 3))
    assert json.loads(json.dumps(record)) == record and set(record) <= set(corruption.options)


@every("imagenet_c/gaussian_noise", "noc/border")
def test_the_record_says_whether_a_corruption_mixes_channels(name):
    """A channel that changes must not show in another one, or more than four channels are refused."""
    corruption = corruptions.get(name)
    severity = corruptions.severities(name)[-1]
    images = np.random.default_rng(1).uniform(size=(1, 32, 33, 5)).astype(np.float32)
    if not corruption.per_channel:
        with pytest.raises(ValueError, match=corruption.mixes):
            corruptions.corrupt(KEY, images, name, severity)
        return
    darker = images * np.array([1, 1, 0.02, 1, 1], np.float32)
    found, other = (np.asarray(corruptions.corrupt(KEY, x, name, severity)) for x in (images, darker))
    assert np.isfinite(found).all() and (found != images).any((0, 1, 2)).all()
    np.testing.assert_array_equal(found[..., [0, 1, 3, 4]], other[..., [0, 1, 3, 4]])


@every("noc/rotation", "cbar/ripple", where=lambda corruption: corruption.mapper)
def test_the_map_is_where_the_corruption_looks(name):
    assert_looks_where_its_map_says(corruptions.get(name))


@every(where=lambda corruption: corruption.moves and not corruption.mapper)
def test_a_corruption_that_moves_without_a_map_says_why(name):
    corruption = corruptions.get(name)
    with pytest.raises(ValueError, match=f"with a map of coordinates, found {name}, which {corruption.moves}"):
        corruption.coordinates((32, 32, 3), {})


@every("imagenet_c/pixelate", "noc/quantization", where=lambda corruption: corruption.straight_through)
def test_values_stay_and_gradients_are_those_of_the_formula_without_rounding(name):
    image, direction = (x[::2, ::2] for x in gradients.images())
    corruption = corruptions.get(name)
    params = corruption.sample(KEY, image.shape, corruptions.severities(name)[1])

    def derived(gradient):
        value, pull = jax.jit(lambda x: jax.vjp(lambda x: corruption.apply(x, params, gradient=gradient), x))(image)
        return value, np.asarray(pull(jnp.asarray(direction))[0])

    (value, slope), (as_before, zero) = derived("straight_through"), derived(None)
    np.testing.assert_array_equal(value, as_before)
    assert np.any(slope) and np.any(zero) == (name in ROUNDS_IN_PART)
    if name in OF_THE_IMAGE_ITSELF:
        np.testing.assert_allclose(slope, direction, atol=1e-6)


@every("imagenet_c/pixelate", "noc/quantization", where=lambda corruption: corruption.straight_through)
def test_gradients_are_near_finite_differences_over_several_levels(name):
    assert gradients.distance(name, "straight_through") < JUMPS.get(name, 0.15)


@every(
    *("imagenet_c/contrast", "imagenet_c/gaussian_noise", "imagenet_c/pixelate", "noc/border"),
    where=lambda corruption: corruption.padding,
)
def test_padded_images_come_out_as_the_exact_ones(name):
    """Four sizes of one square; the last one has another severity table."""
    images = [photographs(1, *shape)[0] for shape in ((30, 41), (52, 33), (33, 52), (60, 50))]
    for severity in (0.3, 1) if isinstance(corruptions.get(name).scale, Fraction) else (2, 5):
        exact, found = (corruptions.corrupt_each(KEY, images, name, severity, way) for way in ("exact", "bucket"))
        for one, other in zip(exact, found, strict=True):
            assert one.shape == other.shape and one.dtype == other.dtype
            difference = np.abs(one.astype(int) - other)
            share = 0.1 if name in HALVES else 0.005
            assert difference.max() <= 1 and np.count_nonzero(difference) <= share * difference.size
