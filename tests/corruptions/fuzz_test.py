"""Fuzzing: whatever the shape, severity, dtype and picture, results are finite, in range and of the
input's kind.
"""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from tests.corruptions.extremes import BATCH, draw_severities, pictures

# A program is compiled per shape and dtype: few shapes, many pictures and severities in each. The
# sides meet the borders of the severity tables (45 | 46), powers of two, multiples of 8 and 16 and
# one more or less than those.
DEFAULT_SHAPES = ((16, 16), (33, 46))
SLOW_SHAPES = ((16, 70), (17, 16), (31, 32), (40, 33), (47, 48), (64, 45), (70, 65))
NAMES = corruptions.names()


def tables_of(name):
    """The severity tables of a corruption, () where it has none."""
    if "table" not in corruptions.get(name).options:
        return ()
    benchmark = getattr(corruptions, name.partition("/")[0], None)
    return getattr(benchmark, "TABLES", corruptions.imagenet_c.TABLES)  # most have those of ImageNet-C


TABULATED = [(name, table) for name in NAMES for table in tables_of(name)]


def check(name, images, severity, seed, **options):
    """Corrupts a batch and checks every picture in it; returns their number."""
    what = f"{name} on {images.dtype} {images.shape}, severity {severity}, seed {seed}, {options}"
    index = np.random.default_rng(seed).integers(0, 2**31 - 1, len(images)).astype(np.int32)
    found = corruptions.corrupt(jax.random.key(seed), images, name, severity, index=jnp.asarray(index), **options)
    assert found.shape == images.shape and found.dtype == images.dtype, what
    if images.dtype == np.float32:
        values = np.asarray(found)
        bad = ~((values >= 0) & (values <= 1)).all((1, 2, 3))  # comparisons with NaN are false
        assert not bad.any(), f"{what}: pictures {np.flatnonzero(bad)} leave [0, 1]"
    return len(images)


def fuzz(name, shape, rounds):
    """`rounds` batches of float pictures, each picture at its own severity; returns the number of
    pictures.
    """
    scale = corruptions.get(name).scale
    options = {"interpolate": True} if isinstance(scale, corruptions.Levels) else {}
    rng = np.random.default_rng(zlib.crc32(f"{name} {shape}".encode()))
    cases = 0
    for _ in range(rounds):
        floats = (pictures(*shape, rng) / np.float32(255)).astype(np.float32)
        floats[0, 0, 0] = np.finfo(np.float32).tiny
        floats[-1] = rng.random(floats[-1].shape, np.float32)  # values that are no whole levels
        floats[-2] = np.nextafter(np.float32(1), np.float32(0))
        severities = draw_severities(scale, BATCH, rng)
        cases += check(name, jnp.asarray(floats), severities, int(rng.integers(2**31)), **options)
    return cases


@pytest.mark.parametrize(
    "name", [name if i % 2 else pytest.param(name, marks=pytest.mark.slow) for i, name in enumerate(NAMES)]
)
def test_extreme_pictures(name):
    assert fuzz(name, DEFAULT_SHAPES[zlib.crc32(name.encode()) % len(DEFAULT_SHAPES)], 1) == BATCH


@pytest.mark.slow
@pytest.mark.parametrize("shape", SLOW_SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_extreme_pictures_of_many_shapes(name, shape):
    assert fuzz(name, shape, 2) == 2 * BATCH


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_bytes_at_drawn_and_whole_severities(name):
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    levels = pictures(24, 41, rng)
    check(name, levels, None, 5)
    severities = corruptions.severities(name)
    for severity in (severities[0], severities[-1]):
        check(name, levels, severity, int(rng.integers(2**31)))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_any_shape_is_accepted(name):
    """Traced, not compiled: what would fail while a program is built, at many sizes and under every
    option table.
    """
    corruption = corruptions.get(name)
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    key = jax.eval_shape(lambda: jax.random.key(0))
    severity = jax.ShapeDtypeStruct((), jnp.float32)
    for _ in range(8):
        shape = (*map(int, rng.integers(16, 71, 2)), 3)
        options = {"interpolate": True} if "interpolate" in corruption.options else {}
        if tables_of(name):
            options["table"] = rng.choice([None, *tables_of(name)])
        found = jax.eval_shape(
            lambda key, image, severity, options=options: corruption(key, image, severity, **options),
            key,
            jax.ShapeDtypeStruct(shape, jnp.float32),
            severity,
        )
        assert found.shape == shape and found.dtype == jnp.float32, (name, shape, options)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "table"), TABULATED)
def test_every_table_on_a_small_oblong_image(name, table):
    rng = np.random.default_rng(zlib.crc32(f"{name} {table}".encode()))
    floats = jnp.asarray(pictures(16, 37, rng) / np.float32(255), jnp.float32)
    severity = np.linspace(1, corruptions.get(name).scale.count, BATCH).round()
    check(name, floats, severity, 3, table=table)


def test_pictures_are_as_extreme_as_they_claim():
    images = pictures(16, 21, np.random.default_rng(0))
    assert images.shape == (BATCH, 16, 21, 3)
    assert {tuple(map(int, np.unique(image))) for image in images[:2]} == {(0,), (255,)}
    hot = images[10].astype(int)
    assert np.count_nonzero(hot) == 3 and hot.max() == 255
