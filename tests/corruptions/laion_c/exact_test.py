"""Every LAION-C corruption, given its draws, equals an independent reference: Pillow's shapes and lines, NumPy's rolls."""

import jax
import numpy as np
import pytest

import corruptions
from corruptions import laion_c
from tests.reference.laion_c import definition, glitch, lines
from tests.reference.photographs import photograph, photographs

BANK = photographs(48, 32, 32)  # as tests/conftest.py reads it

CASES = [  # glitched also with draws for each image
    "glitched", "glitched-random", "vertical_lines", "geometric_shapes", "luminance_checkerboard", "mosaic", "stickers",
]  # fmt: skip
SHAPES = ((48, 40), (33, 70))
LARGE = ((224, 224), (300, 410))


def test_every_corruption_has_a_reference():
    members = {f"laion_c/{case.split('-')[0]}" for case in CASES}
    assert members == set(corruptions.names("laion_c")) and members <= set(corruptions.names())


@pytest.mark.parametrize("shape", [*SHAPES, *(pytest.param(shape, marks=pytest.mark.slow) for shape in LARGE)], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_equals_the_reference(case, shape):
    name, _, mode = case.partition("-")
    options = {"mode": mode} if mode else {}
    corruption, reference = getattr(laion_c, name), definition(name, BANK)
    sample = jax.jit(lambda key, severity: dict(corruption.sample(key, (*shape, 3), severity, **options)))
    apply, image = jax.jit(corruption.apply), photograph(*shape, 3)
    image[:4], image[4, :9] = 255, np.eye(3, dtype=np.uint8).repeat(3, 0) * 255
    for severity in range(1, 6):
        params = sample(jax.random.key(severity), severity)
        found = np.asarray(apply(image / np.float32(255), params), np.float64) * 255
        expected = reference(image, jax.tree.map(np.asarray, params), severity)
        off = np.abs(found - expected)
        assert np.mean(off > 1e-3) <= 1e-3 * (case == "mosaic"), f"severity {severity}: {off.max()}"
        assert (found.round() != image).any()


@pytest.mark.parametrize("severity", range(1, 6))
def test_glitches_are_the_released_ones(severity):
    params = laion_c.glitched.sample(jax.random.key(severity), (224, 224, 3), severity)
    offset, *passes = glitch.RELEASED[severity - 1]
    bands = np.asarray(params["bands"])
    assert [tuple(band) for band in bands[bands[:, 2] > 0].tolist()] == passes
    assert int(params["channel"]) == 0 and tuple(np.asarray(params["offset"]).tolist()) == offset
    assert np.abs(bands[:, 0]).max() <= {1: 7, 2: 35, 3: 56, 4: 143, 5: 224}[severity]


def test_lines_on_white_are_straight_and_on_black_black():
    for severity, (count, step) in enumerate(lines.ROWS, 1):
        white = np.asarray(laion_c.vertical_lines(jax.random.key(0), np.ones((224, 224, 3), np.float32), severity))
        last = (224 - 1) // step * step
        assert last == (223, 222, 220, 222, 216)[severity - 1] and not white[last + 1 :].any()
        columns = np.isin(np.arange(224), (np.arange(count) / count * 224).astype(int))
        np.testing.assert_array_equal(white[: last + 1], np.broadcast_to(columns[None, :, None], (last + 1, 224, 3)))
        assert not np.any(laion_c.vertical_lines(jax.random.key(0), np.zeros((48, 40, 3), np.float32), severity))


def test_no_shapes_leave_the_image_alone():
    image = photograph(32, 48) / np.float32(255)
    params = dict(laion_c.geometric_shapes.sample(jax.random.key(0), image.shape, 3))
    np.testing.assert_array_equal(laion_c.geometric_shapes.apply(image, params | {"count": np.int32(0)}), image)


@pytest.mark.parametrize("mode", ["release", "random"])
def test_glitches_blacken_even_rows_and_roll_the_others(mode):
    image = photograph(32, 64, 1)
    for severity in (1, 2, 4):
        params = laion_c.glitched.sample(jax.random.key(3), image.shape, severity, mode=mode)
        found = np.asarray(
            corruptions.corrupt(jax.random.key(3), image[None], "laion_c/glitched", severity, mode=mode)
        )[0]
        assert not found[::2].any()
        if mode == "release":  # red is not displaced, but for row 0
            np.testing.assert_array_equal(found[1::2, :, 0], image[1::2, :, 0])
            for row in range(1, 32, 2):
                rolls = [np.roll(image[row, :, 1:], roll, axis=0) for roll in range(64)]
                assert any(np.array_equal(found[row, :, 1:], rolled) for rolled in rolls)
        grey = laion_c.glitched.apply(np.full(image.shape, 0.6, np.float32), params)
        np.testing.assert_array_equal(grey[1::2], np.float32(0.6))


def test_neighbouring_blocks_have_opposite_signs():
    image = np.full((224, 224, 3), 0.5, np.float32)
    params = laion_c.luminance_checkerboard.sample(jax.random.key(0), image.shape, 2)
    found = np.asarray(laion_c.luminance_checkerboard.apply(image, params)) * 255 - 127.5
    means = found.reshape(16, 14, 16, 14, 3).mean((1, 3, 4))
    np.testing.assert_allclose(np.abs(means), params["amplitude"], atol=1e-3)
    assert np.sign(means).sum() == 0 and means[0, 0] > 0
    assert (means[:, 1:] * means[:, :-1] < 0).all() and (means[1:] * means[:-1] < 0).all()
