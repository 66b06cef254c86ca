"""The table of names and properties: what every registered corruption must keep, whatever it does to an image."""

import functools
import json
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from benchmarks import gradients
from corruptions.core import batch as batches
from corruptions.core import checks
from corruptions.core.severity import Fraction
from runtime import meshes
from tests.corruptions.comparing import as_on, assert_looks_where_its_map_says, assert_same, refused
from tests.corruptions.extremes import BATCH, draw_severities, pictures
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
# Their straight-through gradient is 1.
OF_THE_IMAGE_ITSELF = ("noc/quantization", "cbar/color_dither", "imagenet_c/shot_noise", "camera/color_quant")
ROWS_OF_CHANNELS = ("imagenet_c/defocus_blur",)  # rows of all channels are transformed at once and rounded together
ROUNDS_IN_PART = ("cbar/color_balance",)  # its gradient is not zero by default
# The golden tests compile a program of uint8 [64, 32, 32, 3] for these.
WITH_GOLDEN = tuple(name for name in NAMES if name.startswith(("cbar/", "imagenet_c/")))
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
    return photographs(64, 32, 32)


@every(*WITH_GOLDEN)
def test_batches_of_uint8(name, batch):
    """Shape, dtype, determinism, an effect, and one compile for severities: their ends, since what one program gives has one shape
    and dtype.
    """
    severities = corruptions.severities(name)
    with meshes.counting_compiles() as compiled:
        ends = severities[0], severities[-1]
        mildest, strongest = (np.asarray(corruptions.corrupt(KEY, batch, name, s)) for s in ends)
    assert compiled["_corrupt"] <= 1
    for corrupted in (mildest, strongest):
        assert corrupted.shape == batch.shape and corrupted.dtype == np.uint8
    assert (strongest != batch).any((1, 2, 3)).all()
    if (
        name in SOME
    ):  # test_an_image_depends_on_its_index_alone compares all corruptions, most of them where slow tests run
        np.testing.assert_array_equal(corruptions.corrupt(KEY, batch, name, severities[-1]), strongest)


@every(*SOME)
def test_an_image_depends_on_its_index_alone(name, images):
    """Other neighbours, none, and another order leave an image as it is, severities drawn."""
    index = jnp.array([11, 3, 8, 4])
    whole = np.asarray(corruptions.corrupt(KEY, images, name, index=index))
    turned = np.asarray(corruptions.corrupt(KEY, images[::-1], name, index=index[::-1]))
    np.testing.assert_array_equal(turned[::-1], whole)
    others = np.asarray(corruptions.corrupt(KEY, images[[2, 2, 2, 1]], name, index=jnp.array([5, 8, 9, 3])))
    np.testing.assert_array_equal(others[[1, 3]], whole[[2, 1]])
    assert_same(corruptions.corrupt(KEY, images[2:3], name, index=index[2:3]), whole[2:3])


def static(name, images):
    corruption = corruptions.get(name)
    return corruption, checks.static_options(corruption.options_for(images.shape[1:], {}))


def assert_the_same_pixels(name, images):
    """Compares a batch, in one piece, with its images alone, a part of it, and the batch in pieces and inside another
    program, for which the severity is a constant that the compiler works out.
    """
    severity, index = corruptions.severities(name)[-1], jnp.arange(len(images))
    levels = jnp.full(len(images), severity, jnp.float32)
    whole = batches._corrupt(KEY, jnp.asarray(images), levels, index, *static(name, images))
    assert_same(corruptions.corrupt(KEY, images, name, severity), whole)
    alone = [corruptions.corrupt(KEY, images[i : i + 1], name, severity, index=index[i : i + 1]) for i in index]
    assert_same(jnp.concatenate(alone), whole)
    part = slice(len(images) // 3, len(images) // 3 + max(2, len(images) // 5))
    assert_same(corruptions.corrupt(KEY, images[part], name, severity, index=index[part]), whole[part])
    inside = jax.jit(lambda images: 2 * corruptions.corrupt(KEY, images, name, severity).astype(jnp.float32))
    assert_same((np.asarray(inside(images)) / 2).astype(images.dtype), whole)


def mixed(side, number):
    """Photographs, and pictures of few colours, whose filtered values are whole levels: uint8 [2 number, side, side, 3]."""
    extreme = pictures(side, side, np.random.default_rng(0))
    return np.concatenate([photographs(number, side, side), extreme[[1, 4, 10, 17, 18, 0, 14, 15, 16, 5][:number]]])


@every(*SOME, "cbar/circular_motion_blur", "noc/contrast")
def test_the_same_pixels_of_bytes(name):
    assert_the_same_pixels(name, mixed(32, 10))


@every()
@pytest.mark.parametrize(
    ("side", "number", "unit"), [(32, 10, np.float32(255)), (47, 6, np.uint8(1)), (224, 2, np.uint8(1))]
)
def test_the_same_pixels_of_floats_and_other_sizes(name, side, number, unit):
    images = mixed(side, number)
    assert_the_same_pixels(name, images if unit == 1 else images / unit)


@every()
def test_the_same_pixels_as_on_a_gpu(name, monkeypatch):
    images, (severity, *_) = mixed(47, 4), corruptions.severities(name)[-1:]
    index, given = jnp.arange(len(images)), static(name, images)
    expected = corruptions.corrupt(KEY, images, name, severity)
    as_on("cuda", monkeypatch)
    levels = jnp.full(len(images), severity, jnp.float32)
    # Compiled, as sums are rounded otherwise operation by operation.
    found = jax.jit(lambda images: batches._corrupt.__wrapped__(KEY, images, levels, index, *given))(images)
    different = np.abs(np.asarray(found).astype(int) - np.asarray(expected))
    # On surfaces of one colour sums of another order fall on the two sides of a whole level.
    assert different.max() <= 1 and (different > 0).mean() < 1e-2


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


# Numbers a level of the released make_imagenet_c.py (`c`); zoom_blur has the end and step of a range, motion_blur's kernel two.
COLUMNS = {
    f"imagenet_c/{name}": number
    for number, names in {
        1: "gaussian_noise shot_noise impulse_noise speckle_noise gaussian_blur brightness contrast pixelate jpeg_compression",
        2: "defocus_blur motion_blur zoom_blur frost fog saturate",
        3: "glass_blur elastic_transform",
        6: "spatter",
        7: "snow",
    }.items()
    for name in names.split()
}


@pytest.mark.parametrize("name", NAMES)
def test_record(name):
    corruption = corruptions.get(name)
    assert corruption.qualified_name == name and corruption.family
    assert corruption.parameters and all(p.name and p.unit and p.source for p in corruption.parameters)
    returned = corruption.sample(KEY, (48, 40, 3), 1 if isinstance(corruption.scale, corruptions.Levels) else 0.5)
    assert {p.name for p in corruption.random_parameters} == set(returned)
    listed = corruption.severity_parameters
    assert len(listed) == COLUMNS.get(name, len(listed)) > 0 and all(p.name and p.unit and p.source for p in listed)
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
        with refused("images", 5):
            corruptions.corrupt(KEY, images, name, severity)
        return
    darker = images * np.array([1, 1, 0.02, 1, 1], np.float32)
    found, other = (np.asarray(corruptions.corrupt(KEY, x, name, severity)) for x in (images, darker))
    assert np.isfinite(found).all() and (found != images).any((0, 1, 2)).all()
    rounding = 1e-6 if name in ROWS_OF_CHANNELS else 0
    np.testing.assert_allclose(found[..., [0, 1, 3, 4]], other[..., [0, 1, 3, 4]], rtol=0, atol=rounding)


@every("noc/rotation", "cbar/ripple", where=lambda corruption: corruption.mapper)
def test_the_map_is_where_the_corruption_looks(name):
    assert_looks_where_its_map_says(corruptions.get(name))


@every(where=lambda corruption: corruption.moves and not corruption.mapper)
def test_a_corruption_that_moves_pixels_and_has_no_map_says_why(name):
    corruption = corruptions.get(name)
    with refused("name", f"{name}, which {corruption.moves}"):
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
    """Four sizes of one square; by their sides the last one has another severity table."""
    images = [photographs(1, *shape)[0] for shape in ((30, 41), (52, 33), (33, 52), (60, 50))]
    by_size = {"table": "by_size"} if "table" in corruptions.get(name).options else {}
    mild, severe = (0.3, 1) if isinstance(corruptions.get(name).scale, Fraction) else (2, 5)
    for severity, given in ((mild, {}), (severe, {}), (severe, by_size))[: 3 if by_size else 2]:
        ways = ("exact", "bucket")
        exact, found = (corruptions.corrupt_each(KEY, images, name, severity, way, **given) for way in ways)
        for one, other in zip(exact, found, strict=True):
            assert one.shape == other.shape and one.dtype == other.dtype
            difference = np.abs(one.astype(int) - other)
            share = 0.1 if name in HALVES else 0.005
            assert difference.max() <= 1 and np.count_nonzero(difference) <= share * difference.size


# A program is compiled for each shape and dtype: few shapes, many pictures and severities in each. The sides meet the
# borders of the severity tables (45 | 46), powers of two, multiples of 8 and 16, and one more or less than these.
SHAPES = ((16, 16), (33, 46))
MORE_SHAPES = ((16, 70), (17, 16), (31, 32), (40, 33), (47, 48), (64, 45), (70, 65))


def tables_of(name):
    """The severity tables of a corruption, () where it has none; benchmarks without their own have ImageNet-C's."""
    benchmark = getattr(corruptions, name.partition("/")[0], None)
    return (
        getattr(benchmark, "TABLES", corruptions.imagenet_c.TABLES) if "table" in corruptions.get(name).options else ()
    )


def assert_in_range(name, floats, severity, seed, **options):
    """Corrupts a batch of float pictures, which come back finite and in [0, 1]."""
    index = np.random.default_rng(seed).integers(0, 2**31 - 1, len(floats)).astype(np.int32)
    found = np.asarray(corruptions.corrupt(jax.random.key(seed), floats, name, severity, index=index, **options))
    assert found.shape == floats.shape and found.dtype == np.float32
    bad = ~((found >= 0) & (found <= 1)).all((1, 2, 3))  # comparisons with NaN are false
    assert not bad.any(), f"severity {severity}, seed {seed}, {options}: pictures {np.flatnonzero(bad)} leave [0, 1]"
    return found


def shapes_of(name):
    """One shape in the fast suite, for those without a golden test, and more in the slow one."""
    fast = () if name in WITH_GOLDEN else (SHAPES[zlib.crc32(name.encode()) % len(SHAPES)],)
    return [
        pytest.param(name, s, id=f"{name}-{s[0]}x{s[1]}", marks=() if s in fast else pytest.mark.slow)
        for s in (*fast, *MORE_SHAPES)
    ]


@pytest.mark.parametrize(("name", "shape"), [case for name in NAMES for case in shapes_of(name)])
def test_extreme_pictures(name, shape):
    """Extreme pictures, each at its own severity."""
    scale = corruptions.get(name).scale
    rng = np.random.default_rng(zlib.crc32(f"{name} {shape}".encode()))
    floats = (pictures(*shape, rng) / np.float32(255)).astype(np.float32)
    floats[0, 0, 0] = np.finfo(np.float32).tiny
    floats[-1] = rng.random(floats[-1].shape, np.float32)  # values that are no whole levels
    floats[-2] = np.nextafter(np.float32(1), np.float32(0))
    options = {} if isinstance(scale, Fraction) else {"interpolate": True}
    with meshes.counting_compiles() as compiled:
        assert_in_range(name, floats, draw_severities(scale, BATCH, rng), int(rng.integers(2**31)), **options)
        strongest = assert_in_range(name, floats, corruptions.severities(name)[-1], 0, **options)
    assert (strongest != floats).any((1, 2, 3))[[14, -1]].all()  # of noise
    assert compiled["_corrupt"] <= 1, "one compile must serve all severities"


@every()
def test_any_shape_is_accepted(name):
    """Traced, not compiled: at many sizes and under every table."""
    corruption, rng = corruptions.get(name), np.random.default_rng(zlib.crc32(name.encode()))
    for _ in range(8):
        image = jax.ShapeDtypeStruct((*map(int, rng.integers(16, 71, 2)), 3), jnp.float32)
        options = {"interpolate": True} if "interpolate" in corruption.options else {}
        if tables_of(name):
            options["table"] = rng.choice([None, *tables_of(name)])
        call = functools.partial(corruption, **options)
        found = jax.eval_shape(call, KEY, image, jax.ShapeDtypeStruct((), jnp.float32))
        assert found.shape == image.shape and found.dtype == jnp.float32, (image, options)


@every(where=lambda corruption: tables_of(corruption.qualified_name))
def test_every_table_on_a_small_oblong_image(name):
    for table in tables_of(name):
        rng = np.random.default_rng(zlib.crc32(f"{name} {table}".encode()))
        floats = (pictures(16, 37, rng) / np.float32(255)).astype(np.float32)
        assert_in_range(name, floats, np.linspace(1, corruptions.get(name).scale.count, BATCH).round(), 3, table=table)


def test_pictures_are_as_extreme_as_they_claim():
    images = pictures(16, 21, np.random.default_rng(0))
    assert images.shape == (BATCH, 16, 21, 3)
    assert {tuple(map(int, np.unique(image))) for image in images[:2]} == {(0,), (255,)}
    hot = images[10].astype(int)
    assert np.count_nonzero(hot) == 3 and hot.max() == 255
