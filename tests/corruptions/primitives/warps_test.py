"""Look-ups: bilinear interpolation equals SciPy's, border rules included; coordinates of OpenCV's affine warp; copies in
raster order equal the original's double loop; rotations.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.ndimage

from corruptions.primitives import copies, spline, warps
from tests.corruptions.comparing import as_on
from tests.reference.imagenet_c.blur import scrambled
from tests.reference.imagenet_c.elastic import folded, reference_anchors, reference_coordinates
from tests.refusing import refuses


@pytest.mark.parametrize(("function", "mode"), [(warps.zero_padded, "grid-constant"), (warps.clamped, "nearest")])
def test_equals_scipy(function, mode):
    rng = np.random.default_rng(0)
    image = rng.random((9, 7, 3)).astype(np.float32)
    y, x = rng.uniform(-4, 13, (40, 50)).astype(np.float32), rng.uniform(-4, 11, 50).astype(np.float32)
    y[0, :5] = -1, 0, 8, 9, 8.5
    places = np.broadcast_arrays(y, x)
    planes = np.moveaxis(image, 2, 0).astype(np.float64)
    expected = [scipy.ndimage.map_coordinates(plane, places, order=1, mode=mode) for plane in planes]
    assert np.allclose(jax.jit(function)(image, y, x), np.stack(expected, -1), atol=2e-6)


def test_equal_pixels_stay_to_the_bit():
    x = np.random.default_rng(1).uniform(0, 6, (30, 30)).astype(np.float32)
    for level in (1 / 255, 77 / 255, 1):
        found = jax.jit(warps.zero_padded)(np.full((7, 7, 3), level, np.float32), x.T, x)
        assert np.all(found == np.float32(level))


@pytest.mark.parametrize("platform", ["tpu", "cuda"])
def test_others_look_up_without_a_loop_the_same(platform, monkeypatch):
    image = np.random.default_rng(2).random((7, 7, 3)).astype(np.float32)
    y, x = np.random.default_rng(3).uniform(-2, 8, (2, 5, 6)).astype(np.float32)
    looked_up = jax.jit(warps.zero_padded)
    assert "stablehlo.while" not in looked_up.trace(image, y, x).lower(lowering_platforms=(platform,)).as_text()
    expected = looked_up(image, y, x)
    through = jax.jit(jax.grad(lambda image: warps.zero_padded(image, y, x).sum())).trace(image)
    assert through.lower(lowering_platforms=(platform,)).as_text()  # whole numbers take no gradient along
    as_on(platform, monkeypatch)
    found = jax.jit(lambda *places: warps.zero_padded(*places))(image, y, x)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    flat = jax.jit(lambda *places: warps.clamped(*places))(np.full_like(image, 0.3), y, x)
    np.testing.assert_array_equal(flat, np.float32(0.3))


SCIPY_MODES = {"symmetric": "reflect", "reflect": "mirror"}


@pytest.mark.parametrize("mode", warps.MODES)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_fold_continues_an_axis_as_numpy_pads_it(mode, size):
    index = np.arange(-13, 14)
    expected = np.pad(np.arange(size), (13, 14 - size), "reflect" if mode == "reflect" else "symmetric")
    np.testing.assert_array_equal(warps.fold(jnp.asarray(index), size, mode), expected)


@pytest.mark.parametrize("shape", [(9, 14), (2, 3)])
@pytest.mark.parametrize("mode", SCIPY_MODES)
def test_neighbours_interpolate_as_scipy(mode, shape):
    rng = np.random.default_rng(0)
    image = rng.random((*shape, 3)).astype(np.float32)
    y, x = rng.uniform(-25, 35, (2, 40, 30)).astype(np.float32)
    y[0], x[1] = np.arange(30) - 10, np.arange(30) - 8  # on pixel centres
    top, left = np.floor(y), np.floor(x)
    found = jax.jit(warps.mirrored, static_argnums=(5, 6))(
        image, top.astype(np.int32), left.astype(np.int32), y - top, x - left, shape, mode
    )
    planes = [scipy.ndimage.map_coordinates(image[..., k], (y, x), order=1, mode=SCIPY_MODES[mode]) for k in range(3)]
    np.testing.assert_allclose(found, np.stack(planes, -1), atol=2e-6)


def test_scipy_below_1_6_reads_the_strip_beyond_a_border_otherwise():
    """At -.25 it gives x[0] + .75 (x[1] - x[0]); places in between follow the published coordinate rule."""
    size, channel = 5, np.random.default_rng(0).random(5).astype(np.float32)
    places = np.r_[np.random.default_rng(1).uniform(-3 * size, 4 * size, 500), np.arange(-8, 13), -0.25, size - 0.75]
    places = places.astype(np.float32)
    left, image = np.floor(places), jnp.asarray(np.tile(channel, (2, 1))[..., None])
    still = np.zeros((1, len(places)), np.int32)
    found = np.asarray(
        jax.jit(warps.mirrored, static_argnums=(5, 6))(
            image,
            still,
            left.astype(np.int32)[None],
            still.astype(np.float32),
            (places - left)[None],
            (2, 5),
            "scipy_1_5",
        )
    ).ravel()
    np.testing.assert_allclose(found, np.interp(folded(np.float64(places), size), np.arange(size), channel), atol=2e-6)
    np.testing.assert_allclose(found[-2:], [channel[:2] @ (0.25, 0.75), channel[-2:] @ (0.25, 0.75)], atol=1e-6)


def test_displaced_keeps_the_fraction_of_small_displacements():
    image = np.random.default_rng(0).random((300, 16, 1)).astype(np.float32)
    shift = np.full((300, 16), 1e-6, np.float32)
    row, column, down, right = warps.displaced(shift, -shift)
    np.testing.assert_array_equal(down, shift)
    np.testing.assert_allclose(1 - right, shift, rtol=0, atol=1e-7)
    found = warps.mirrored(jnp.asarray(image), row, column, down, right, (300, 16), "symmetric")
    np.testing.assert_allclose(found, image, atol=3e-6)


def test_unknown_mode_is_named():
    refuses(lambda: warps.fold(jnp.arange(3), 3, "wrap"), "boundary mode among", "'wrap'")


@pytest.mark.parametrize("shape", [(32, 32), (64, 50), (48, 97), (224, 224)])
def test_affine_coordinates_are_those_of_the_fixed_point_warp(shape):
    rng = np.random.default_rng(0)
    anchors = reference_anchors(*shape)
    coordinates = jax.jit(lambda points: warps.affine_coordinates(points, anchors, shape))
    wrong = total = 0
    for jitter in (0.02, 0.1, 0.2):
        for _ in range(10):
            points = anchors + rng.uniform(-jitter, jitter, (3, 2)) * min(shape)
            points = points.astype(np.float32)
            for found, expected in zip(coordinates(points), reference_coordinates(points, *shape), strict=True):
                difference = np.abs(np.asarray(found) - expected)
                assert difference.max() <= 1
                wrong, total = wrong + np.count_nonzero(difference), total + difference.size
    assert wrong <= 2e-5 * total


copied_from = jax.jit(lambda shifts, reach: copies.copied_from(shifts, reach, shifts.shape[1:]))


@pytest.mark.parametrize("shape", [(16, 16), (23, 37), (40, 29)])
@pytest.mark.parametrize("reach", [1, 2, 3, 4, 5])
def test_one_pass_is_the_double_loop(reach, shape):
    rng = np.random.default_rng(reach)
    for _ in range(3):
        shifts = rng.integers(-reach, reach, (2, *shape))
        pixels = rng.integers(0, 256, (*shape, 3), dtype=np.uint8)
        source = np.asarray(copied_from(jnp.asarray(shifts, jnp.int32), reach))
        np.testing.assert_array_equal(pixels.reshape(-1, 3)[source], scrambled(pixels, shifts, reach))


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_long_chains_of_copies(platform, monkeypatch):
    # Every pixel of 60 in a row takes its right neighbour's new value: one value runs through all of them.
    as_on(platform, monkeypatch)
    copied_from = jax.jit(lambda shifts: copies.copied_from(shifts, 2, shifts.shape[1:]))
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (16, 64, 3), dtype=np.uint8)
    row = np.stack([np.zeros((16, 64), int), np.ones((16, 64), int)])
    for shifts in (row, rng.integers(-2, 2, row.shape)):
        source = np.asarray(copied_from(jnp.asarray(shifts, jnp.int32)))
        np.testing.assert_array_equal(pixels.reshape(-1, 3)[source], scrambled(pixels, shifts, 2))


def test_passes_that_none_needs_are_left_out(monkeypatch):
    """Fewer passes and doublings: the same for each image of a batch, whatever the others need, and on a GPU."""
    rng = np.random.default_rng(0)
    shifts = np.stack([rng.integers(-reach, reach, (3, 2, 16, 23)) for reach in (1, 4, 2)])
    shifts[2, 1] = [[[0]], [[1]]]  # each row's pixels hand one value on to the left
    drawn = jnp.asarray(shifts, jnp.int32), jnp.array([1, 2, 3]), jnp.array([1, 4, 2])
    pixels = rng.integers(0, 256, (16, 23, 3), dtype=np.uint8)
    expected = []
    for of_image, passes, reach in zip(shifts, (1, 2, 3), (1, 4, 2)):
        found = pixels
        for number in range(passes):
            found = scrambled(found, of_image[number], reach)
        expected.append(found)

    def sources():
        return jax.jit(jax.vmap(lambda *drawn: copies.sources(*drawn, (16, 23))))

    for platform in ("cpu", "cuda"):
        if platform == "cuda":
            as_on("cuda", monkeypatch)
        for some in ([0, 1, 2], [0, 0, 0], [0, 1, 0]):
            found = sources()(*(x[np.array(some)] for x in drawn))
            np.testing.assert_array_equal(pixels.reshape(-1, 3)[found], np.stack(expected).reshape(3, -1, 3)[some])


@pytest.mark.parametrize("shape", [(7, 8), (8, 7)])
def test_a_gpu_sums_the_same_rotations_without_a_table(shape, monkeypatch):
    image = np.random.default_rng(0).random((*shape, 3)).astype(np.float32)
    angles, weights = np.float32([-0.3, -0.1, 0, 0.1, 0.3]), np.float32([0.1, 0.2, 0.4, 0.2, 0.1])
    sums = []
    for platform in ("cpu", "cuda"):
        as_on(platform, monkeypatch)
        sums.append(
            jax.jit(lambda image: spline.sum_of_rotations(image, jnp.asarray(angles), jnp.asarray(weights)))(image)
        )
    np.testing.assert_allclose(*sums, rtol=0, atol=1e-6)
