"""`corrupt`: names of corruptions and benchmarks, conversions of pixels, severities and their tables."""

import contextlib
import dataclasses
import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify

import corruptions
from corruptions import cbar, imagenet_c
from corruptions.core import batch, checks, dispatch
from corruptions.core.errors import UnknownCorruption
from corruptions.core.severity import Levels, lookup
from corruptions.primitives import random
from runtime import meshes
from tests.corruptions.comparing import assert_same, refused
from tests.reference.photographs import photographs
from tests.refusing import refuses

KEY = jax.random.key(0)
IMAGES = np.zeros((2, 32, 32, 3), np.uint8)


def test_every_level_survives_the_way_to_float_and_back():
    levels = np.arange(256, dtype=np.uint8)
    for convert in (batch.to_float, jax.jit(batch.to_float)):
        np.testing.assert_array_equal(convert(levels), levels.astype(np.float32) / np.float32(255))
        for rounding in ("truncate", "nearest"):
            np.testing.assert_array_equal(batch.from_float(convert(levels), jnp.uint8, rounding), levels)


def test_rounding():
    values = jnp.array([0.0, 0.999 / 255, 1.5 / 255, 254.7 / 255, 1.0])
    np.testing.assert_array_equal(batch.from_float(values, jnp.uint8, "truncate"), [0, 0, 1, 254, 255])
    np.testing.assert_array_equal(batch.from_float(values, jnp.uint8, "nearest"), [0, 1, 2, 255, 255])


@pytest.mark.parametrize("bound", [(dispatch, "_CPU_PIECE"), (batch, "_CHUNK")], ids=["devices", "batch"])
@pytest.mark.parametrize("convert", [np.asarray, jnp.asarray])
def test_pieces_give_what_one_batch_gives(monkeypatch, bound, convert):
    images = np.random.default_rng(0).integers(0, 256, (7, 16, 16, 3)).astype(np.uint8)
    levels = np.linspace(0, 1, 7).astype(np.float32)
    whole = corruptions.corrupt(KEY, images, "noc/border", levels)
    monkeypatch.setattr(*bound, 3 * 16 * 16 * 3)
    batch._corrupt.clear_cache()
    parts = corruptions.corrupt(KEY, convert(images), "noc/border", levels)
    batch._corrupt.clear_cache()
    np.testing.assert_array_equal(parts, whole)


@pytest.mark.parametrize("implementation", ["rbg", "unsafe_rbg"])
def test_keys_of_other_generators_do_not_make_draws_depend_on_the_batch(implementation):
    key, images = jax.random.key(3, impl=implementation), np.full((256, 16, 16, 3), 0.5, np.float32)
    whole = np.asarray(corruptions.corrupt(key, images, "noc/border"))
    alone = corruptions.corrupt(key, images[:1], "noc/border", index=[200])[0]
    np.testing.assert_array_equal(whole[200], alone)
    assert len(np.unique(whole, axis=0)) > 1
    record, words = corruptions.get("noc/border"), random.threefry(key)
    np.testing.assert_array_equal(alone, record(jax.random.fold_in(words, 200), images[0]))
    np.testing.assert_array_equal(record(key, images[0]), record(jax.random.key_data(key), images[0]))


def test_threads_draw_under_the_settings_of_the_call():
    """A batch of several pieces, images of several sizes, and one image, which no other thread computes."""
    images = np.full((5, 32, 32, 3), 99, np.uint8)
    usual = np.asarray(corruptions.corrupt(KEY, images[:1], "imagenet_c/gaussian_noise", 3))
    with jax.threefry_partitionable(not jax.config.jax_threefry_partitionable):
        alone = np.asarray(corruptions.corrupt(KEY, images[:1], "imagenet_c/gaussian_noise", 3))[0]
        whole = corruptions.corrupt(KEY, images, "imagenet_c/gaussian_noise", 3)
        noise = ("imagenet_c/gaussian_noise", 3, "exact")
        each = list(corruptions.corrupt_each(KEY, images, *noise, table="by_size"))
    assert (alone != usual[0]).any()
    np.testing.assert_array_equal(whole[0], alone)
    np.testing.assert_array_equal(each[0], alone)


def test_severities_beyond_the_scale_are_clipped_in_a_program():
    images = np.linspace(0, 1, 3 * 16 * 16, dtype=np.float32).reshape(1, 16, 16, 3)
    corrupted = jax.jit(lambda severity: corruptions.corrupt(KEY, images, "noc/contrast", severity))
    np.testing.assert_array_equal(corrupted(3.0), corrupted(1.0))
    np.testing.assert_array_equal(corrupted(-2.0), corrupted(0.0))
    slope = jax.jacfwd(corrupted)
    assert np.abs(slope(2.0)).max() == 0 < np.abs(slope(1.0) - slope(0.999)).max() + np.abs(slope(1.0)).max()


def test_severity_per_image():
    images = np.full((3, 32, 32, 3), 100, np.uint8)
    found = corruptions.corrupt(KEY, images, "noc/brightness", np.array([0.0, 0.5, 1.0], np.float32))
    for k, severity in enumerate((0.0, 0.5, 1.0)):
        alone = corruptions.corrupt(KEY, images, "noc/brightness", severity)
        np.testing.assert_array_equal(found[k], alone[k])


def test_inside_jit_with_traced_severity():
    @jax.jit
    def step(images, level):
        return corruptions.corrupt(KEY, images, "imagenet_c/contrast", level)

    images = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3)).astype(np.uint8)
    with meshes.counting_compiles() as compiled:
        for level in (1, 4):
            expected = corruptions.corrupt(KEY, images, "imagenet_c/contrast", level)
            np.testing.assert_array_equal(step(images, jnp.int32(level)), expected)
    assert compiled["step"] == 1


def test_checkify_makes_errors_of_what_a_jit_clips():
    def step(images, level, **given):
        return corruptions.corrupt(KEY, images, "imagenet_c/contrast", level, validate="checkify", **given)

    images, checked = np.full((2, 32, 32, 3), 0.5, np.float32), checkify.checkify(jax.jit(step))
    good, corrupted = checked(images, np.int32([1, 5]))
    good.throw()
    np.testing.assert_array_equal(corrupted, corruptions.corrupt(KEY, images, "imagenet_c/contrast", np.array([1, 5])))
    np.testing.assert_array_equal(corrupted, corruptions.corrupt(KEY, images, "imagenet_c/contrast", [1, 5]))
    for wrong, level, message in (
        (2 * images + 1, 1, r"expected values in \[0, 1\], found values from 2.0 to 2.0"),
        (np.where(images == images[0, 0, 0, 0], np.nan, images), 1, r"expected values in \[0, 1\], found NaN \("),
        (np.where(images == images[0, 0, 0, 0], np.nan, images + 1), 1, r"found NaN \("),
        (images, 6, "expected severities from 1 to 5, found from 6"),
        (images, 0, "expected severities from 1 to 5, found from 0"),
    ):
        error, _ = checked(wrong.astype(np.float32), np.int32([level, level]))
        with pytest.raises(ValueError, match=message):
            error.throw()
    refuses(
        lambda: checkify.checkify(jax.jit(lambda x: step(x, 1, value_range=(-1, 1))))(images + 1)[0].throw(),
        "values from 1.5",
    )
    with refused("images", "values from 1.5 to 1.5"):
        step(images + 1, 1)  # outside of a jit, as always


def test_a_jit_may_close_over_images():
    images = jnp.full((2, 32, 32, 3), 0.5)
    for given in ({}, {"value_range": (-1, 1)}):
        call = functools.partial(corruptions.corrupt, images=images, name="noc/brightness", severity=1.0, **given)
        np.testing.assert_allclose(jax.jit(call)(KEY), call(KEY), atol=1e-6)
    images += 1
    with refused("images", "values from 1.5 to 1.5"):
        jax.jit(lambda key: corruptions.corrupt(key, images, "noc/brightness"))(KEY)


def mine(scale, rounding, **given):
    """Registers `mine/darker`."""
    member = corruptions.registrar("mine", scale, rounding, "of mine", **given)
    return member("colour", lambda key, shape, severity: {}, {}, name="darker")(lambda image, params: image / 2)


def test_a_cell_of_a_notebook_that_runs_again_replaces_its_corruption(own_registry):
    for replace in (False, True):
        darker = mine(Levels(5), "nearest", replace=replace)
        assert corruptions.get("mine/darker") is darker
        corruptions.register_benchmark("cell", ("cbar/ripple",), options={"table": "cifar"}, replace=replace)
    with refused("corruption", "'mine/darker', registered already"):
        mine(Levels(5), "nearest")


@pytest.mark.parametrize(
    "name",
    [
        "imagenet_c/jpeg_compression",
        "imagenet_c/gaussian_noise",
        "cbar/fish_eye",
        "cbar/voronoi_noise",
        "laion_c/mosaic",
    ],
)
def test_numbers_of_64_bits_change_nothing(name):
    images = np.random.default_rng(0).integers(0, 256, (2, 20, 20, 3), np.uint8)
    expected = np.asarray(corruptions.corrupt(KEY, images, name))
    with jax.enable_x64(True):
        found = corruptions.corrupt(KEY, images, name, index=jnp.arange(2))
    np.testing.assert_array_equal(found, expected)


def test_lists_and_arrays_are_options_too():
    images = np.zeros((1, 16, 16, 3), np.uint8)
    expected = corruptions.corrupt(KEY, images, "imagenet_c/contrast", range=(1.5, 2.5))
    for bounds in ([1.5, 2.5], np.array([1.5, 2.5], np.float32), jnp.array([1.5, 2.5])):
        found = corruptions.corrupt(KEY, images, "imagenet_c/contrast", range=bounds)
        np.testing.assert_array_equal(found, expected)
    assert hash(checks.static_options({"nested": [[1, 2], np.ones((1, 2))]}))


def test_benchmarks_have_their_published_sizes():
    published = {
        **{"imagenet_c": 15, "imagenet_c_extra": 4, "noc_candidates": 23, "imagenet_noc": 8},
        **{"cbar_candidates": 30, "imagenet_c_bar": 10, "cifar10_c_bar": 10},
        **{"optics": 4, "optics_release": 4, "coverage_2026": 7},
    }
    assert {name: len(corruptions.names(name)) for name in published} == published
    assert set(published) <= set(corruptions.benchmarks())


def test_a_benchmark_that_fixes_options_has_members_of_its_own(own_registry):
    """They are listed, described and applied with these options; a call may give another value."""
    tables = {"table": lambda shape: "cifar" if min(shape[:2]) < 20 else "imagenet", "interpolate": True}
    corruptions.register_benchmark("small", ("cbar/ripple", "noc/border"), options=tables)
    assert corruptions.names("small") == ("small/ripple", "noc/border") and "small" in corruptions.benchmarks()
    ripple, images = corruptions.get("small/ripple"), np.arange(2 * 32 * 32 * 3).reshape(2, 32, 32, 3).astype(np.uint8)
    for shape, table in (((18, 40, 3), "cifar"), ((32, 32, 3), "imagenet")):
        assert ripple.describe(shape) == {"table": table, "interpolate": True}
    expected = corruptions.corrupt(KEY, images, "cbar/ripple", 2.5, table="imagenet", interpolate=True)
    np.testing.assert_array_equal(corruptions.corrupt(KEY, images, ripple, 2.5), expected)
    for sizes in ("exact", "bucket"):
        (first, _) = corruptions.corrupt_each(KEY, images, ripple, 2.5, sizes)
        np.testing.assert_array_equal(first, expected[0])
    floats = images[0] / np.float32(255)
    alone = corruptions.cbar.ripple(KEY, floats, 2.5, table="cifar", interpolate=True)
    np.testing.assert_array_equal(ripple(KEY, floats, 2.5, table="cifar"), alone)


def test_severities_of_a_table():
    assert corruptions.severities("imagenet_c/fog") == corruptions.severities("fog", "imagenet_c") == (1, 2, 3, 4, 5)
    assert corruptions.severities("noc/border", "imagenet_noc") == (0, 0.25, 0.5, 0.75, 1)
    assert corruptions.severities("cbar/sparkles", "cbar_candidates") == tuple(range(1, 11))
    assert corruptions.severities("cbar/sparkles", "cifar10_c_bar") == (1, 5, 8, 9, 10)
    assert corruptions.severities("cbar/sparkles", "imagenet_c_bar") == (1, 2, 3, 5, 6)


_QUICKLY_TESTED = ("imagenet_c/contrast", "imagenet_c/pixelate")


@pytest.mark.parametrize(
    "name",
    [
        name if name in _QUICKLY_TESTED else pytest.param(name, marks=pytest.mark.slow)
        for name in corruptions.names()
        if corruptions.get(name).alone
    ],
)
def test_an_image_alone_has_a_program_of_its_own_and_the_pixels_of_a_batch(name):
    """On a CPU, where it compiles in less time; each corruption that says so."""
    program = {"quick": batch._quick_alone, "traced": batch._traced_alone}[corruptions.get(name).alone]
    images, before = photographs(3, 32, 32), program._cache_size()
    for severity in (1, corruptions.severities(name)[-1]):
        found = corruptions.corrupt(KEY, images[1:2], name, severity, index=[1])
        assert program._cache_size() == before + (jax.default_backend() == "cpu")
        assert_same(found, corruptions.corrupt(KEY, images, name, severity)[1:2])
    assert program._cache_size() == before + (jax.default_backend() == "cpu"), "batches have the program of a batch"


@pytest.mark.parametrize(
    "benchmark, borders",
    [
        (imagenet_c, {"cifar": (16, 45), "tiny": (46, 119), "imagenet": (120, 258), "inception": (259, 999)}),
        (cbar, {"cifar": (16, 84), "imagenet": (85, 999)}),
    ],
)
def test_the_shorter_side_picks_the_table_nearest_in_ratio(benchmark, borders):
    for table, sides in borders.items():
        for side in sides:
            assert benchmark.table_for((side, 1000, 3)) == benchmark.table_for((1000, side, 3)) == table
    assert benchmark.table_for((32, 32, 3), benchmark.TABLES[-1]) == benchmark.TABLES[-1] == list(borders)[-1]


def test_rows_are_exact_at_levels_linear_between_and_clipped_beyond():
    table = np.array([[0.1, 3], [0.7, 1], [0.4, 2]], np.float32)
    for severity, row in ((1.0, table[0]), (3.0, table[2]), (0.0, table[0]), (4.0, table[2])):
        np.testing.assert_array_equal(lookup(table, severity), row)
    np.testing.assert_allclose(lookup(table, 1.25), 0.75 * table[0] + 0.25 * table[1], rtol=1e-6)
    traced = jax.jit(lambda severity: lookup(table, severity))(jnp.float32(2.5))
    np.testing.assert_allclose(traced, (table[1] + table[2]) / 2, rtol=1e-6)


def looked_up(table):
    """Registers `mine/darker`, whose strength is looked up."""
    member = corruptions.registrar("mine", Levels(5), "nearest", "of mine", replace=True)
    sampler = lambda key, shape, severity: {"s": lookup(table, severity)}  # noqa: E731
    return member("colour", sampler, {}, name="darker")(lambda image, params: image * params["s"])


def test_a_table_has_a_row_for_each_level(own_registry):
    for table in ((0.1, 0.2, 0.3), (0.1,) * 6):
        with refused("table", len(table)):
            looked_up(table).sample(KEY, (32, 32, 3), 5)
    assert looked_up((0.1, 0.2, 0.3, 0.4, 0.5)).sample(KEY, (32, 32, 3), 5)["s"] == np.float32(0.5)


def test_a_corruption_that_is_replaced_is_always_found(own_registry):
    record = dataclasses.replace(corruptions.get("noc/border"), name="frame", benchmark="mine")
    corruptions.register(record)
    found = []

    def look(frame, event, argument):
        """Looks the name up before each line of `register`, as another thread may."""
        if frame.f_code.co_name != "register":
            return None
        with contextlib.suppress(ValueError):
            found.append((corruptions.get("mine/frame"), corruptions.get("frame")))
        lines.append(frame.f_lineno)
        return look

    before, lines = sys.gettrace(), []
    sys.settrace(look)
    try:
        corruptions.register(record, replace=True)
    finally:
        sys.settrace(before)
    assert found == [(record, record)] * len(lines) and len(lines) > 5


def test_a_replaced_corruption_leaves_no_alias(own_registry):
    first = dataclasses.replace(corruptions.get("noc/border"), name="frame", benchmark="mine", aliases=("old_frame",))
    corruptions.register(first)
    assert corruptions.get("old_frame") is first is corruptions.get("frame")
    second = corruptions.register(dataclasses.replace(first, aliases=()), replace=True)
    assert corruptions.get("mine/frame") is second is corruptions.get("frame")
    with refused("name", "'old_frame'", UnknownCorruption):
        corruptions.get("old_frame")


def test_empty_batches_stay_empty():
    assert corruptions.corrupt(KEY, IMAGES[:0], "noc/border").shape == (0, 32, 32, 3)


def test_values_are_not_read_where_they_need_no_check():
    outside = np.full((1, 16, 16, 3), 2, np.float32)
    for call in (
        lambda **given: corruptions.corrupt(KEY, outside, "noc/brightness", 0.5, **given),
        lambda **given: corruptions.augment.augment(KEY, outside, "op=rotate", **given),
    ):
        assert call(validate=False).shape == outside.shape
        with refused("images", "values from 2 to 2"):
            call()
