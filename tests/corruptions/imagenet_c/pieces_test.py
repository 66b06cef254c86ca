"""Pieces of ImageNet-C's definitions: disk kernels, ImageMagick's motion blur, streaks of snow, blocks, relief."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from corruptions.imagenet_c import blur, elastic_transform, motion
from corruptions.imagenet_c.pixelate import _LONGEST, _by_products, _by_shifts, _rounded_means, _taps, pixelate
from corruptions.imagenet_c.snow import flake_levels, snow, streak_levels
from corruptions.imagenet_c.spatter import relief
from tests.corruptions.comparing import as_on
from tests.reference.imagenet_c.blur import DEFOCUS, MOTION, imagemagick
from tests.reference.imagenet_c.pillow import SCALES
from tests.reference.imagenet_c.snow import LEVELS, reference_flakes
from tests.reference.photographs import photograph

# Degrees, in the ranges of motion_blur and of snow. At multiples of 30 offsets are exact halves,
# decided by the last bit of the sine, so the test stays beside them.
ANGLES = (0.0, 0.3, 13.7, 44.9, 45.0, -17.2, -45.0, -60.7, -90.0, -91.3, -133.3)


def test_disk_kernels_keep_the_originals_sums():
    sums = {row: blur.disk_kernel(*row).sum() for row in DEFOCUS["imagenet"]}
    assert abs(sums[8, 0.5] - 1.01298) < 1e-5 and abs(sums[10, 0.5] - 1.01079) < 1e-5
    assert all(abs(s - 1) < 1e-12 for row, s in sums.items() if row[0] < 8)
    pixels = {0.5: 1, 1: 5, 1.5: 9, 2.5: 21, 3: 29, 4: 49, 6: 113, 8: 197, 10: 317}
    for radius, count in pixels.items():
        assert np.sum(blur.disk_kernel(radius, 0.01) > 1e-9) == count


@pytest.mark.parametrize("table", MOTION)
def test_is_imagemagicks_motion_blur(table):
    rows = MOTION[table]
    largest = max(radius for radius, _ in rows)

    @jax.jit
    def blur(image, radius, sigma, angle):
        return motion.motion_blur_levels(image, motion.taps(radius, sigma, largest), angle)

    image = photograph(33, 40)
    image[5:9, 5:20] = np.random.default_rng(0).integers(0, 256, (4, 15, 3))
    wrong = []
    for radius, sigma in rows:
        for degrees in ANGLES:
            found = np.asarray(blur(image, float(radius), float(sigma), np.float32(np.deg2rad(degrees))))
            difference = np.abs(found - imagemagick(image, radius, sigma, degrees))
            assert difference.max() <= 1
            wrong.append((difference > 0).mean())
    # The exact sums lie on the 16-bit border of two levels with probability about 1e-4 of float32 rounding.
    assert np.mean(wrong) < 2e-4


def test_constant_images_stay_exactly_constant():
    blur = jax.jit(lambda image, r, s, a: motion.motion_blur_levels(image, motion.taps(r, s, 20), a))
    for level in (0, 1, 77, 254, 255):
        image = np.full((16, 24, 3), level, np.uint8)
        for (radius, sigma), angle in zip(MOTION["imagenet"], (0.0, 0.2, -0.7, 0.5, 0.1), strict=True):
            np.testing.assert_array_equal(blur(image, float(radius), float(sigma), angle), image)


def test_the_form_for_tpus_is_the_same_blur(monkeypatch):
    image = photograph(24, 28)
    image[5:9, 5:20] = np.random.default_rng(0).integers(0, 256, (4, 15, 3))
    even, weights = np.full((24, 28, 3), 77, np.uint8), motion.taps(20.0, 15.0, 20)
    blurs = []
    for platform in ("cpu", "tpu"):
        with monkeypatch.context() as patch:
            as_on(platform, patch)
            blur = jax.jit(lambda x, angle: motion.motion_blur_levels(x, weights, angle))
            blurs.append([np.asarray(blur(image, np.float32(a))) for a in np.deg2rad(ANGLES)])
            np.testing.assert_array_equal(blur(even, np.float32(0.3)), even)
    difference = np.abs(np.subtract(*blurs))
    assert difference.max() <= 1 and (difference > 0).mean() < 2e-4  # sums on the border of two levels


def test_on_a_tpu_nothing_is_looked_up_at_a_place_of_each_images_own():
    blur = jax.vmap(lambda image, angle: motion.motion_blur_levels(image, motion.taps(6.0, 1.0, 6), angle))
    shapes = jax.ShapeDtypeStruct((2, 16, 20, 3), np.uint8), jax.ShapeDtypeStruct((2,), np.float32)
    lowered = {p: jax.jit(blur).trace(*shapes).lower(lowering_platforms=(p,)).as_text() for p in ("cpu", "tpu")}
    # jax 0.8 writes x[:, 1] as a gather, too, with one index for all images.
    own = {p: [s for s in t.splitlines() if "gather" in s and "tensor<1xi32>) ->" not in s] for p, t in lowered.items()}
    assert own["cpu"] and not own["tpu"]


@pytest.mark.parametrize(
    "shape",
    [(32, 32), (299, 299), (40, 57), *(pytest.param((side, side), marks=pytest.mark.slow) for side in (64, 224))],
)
def test_flakes_and_streaks_are_the_originals(shape):
    sample = jax.jit(snow.sample, static_argnums=1)
    flakes_of = jax.jit(lambda p: flake_levels(p["zoom_rows"] @ p["noise"] @ p["zoom_columns"].T, p["threshold"]))
    for severity, (_, _, factor, threshold, radius, sigma, _) in enumerate(LEVELS.get(shape[0], LEVELS[32]), 1):
        params = sample(jax.random.key(severity), (*shape, 3), severity)
        found = np.asarray(flakes_of(params))
        # A level or the threshold may fall the other way in float32, for a few pixels in a million.
        flakes = reference_flakes(np.asarray(params["noise"], np.float64), factor, threshold)
        assert (found != flakes).mean() <= 5e-5 + 1 / found.size
        streaks = imagemagick(found, radius, sigma, float(params["angle"]))
        blurred = np.asarray(jax.jit(streak_levels)(jnp.asarray(found), params["weights"], params["angle"]))
        assert abs(blurred - streaks).max() <= 1 and (blurred != streaks).mean() < 1e-4


def test_taps_are_pillows_at_all_sizes():
    for source in range(16, 300, 3):  # 19 among them
        row = np.random.default_rng(source).integers(0, 256, (1, source), dtype=np.uint8)
        for target in {int(source * scale) for scales in SCALES.values() for scale in scales}:
            start, stop = _taps(source, target)
            assert (stop - start).max() <= _LONGEST and (np.diff(start) > 0).all()
            small = np.asarray(Image.fromarray(row).resize((target, 1), Image.BOX))[0]
            means = [row[0, a:b].mean() for a, b in zip(start, stop, strict=True)]
            # Within 1/2 of a mean, and 2**-20 for the fixed point of the weights.
            np.testing.assert_allclose(small, means, rtol=0, atol=0.5 + 1e-4)
            shown, _ = _taps(target, source)
            large = np.asarray(Image.fromarray(small[None]).resize((source, 1), Image.BOX))[0]
            np.testing.assert_array_equal(large, small[shown])


@pytest.mark.parametrize("table", ["cifar", "inception"])
def test_products_and_shifts_give_the_same_bits(table):
    image = photograph(33, 40)
    params = pixelate.sample(jax.random.key(0), image.shape, 5, table=table)
    means = [jax.jit(lambda x, p, form=form: form(_rounded_means, x, p)) for form in (_by_products, _by_shifts)]
    expected, found = (form(image, params) for form in means)
    assert expected.dtype == np.uint8 and np.ptp(expected) > 100
    np.testing.assert_array_equal(found, expected)


def test_relief_of_a_batch_looks_up_along_one_axis_in_a_table_of_each_image():
    # A TPU's compiler takes twelve seconds of CPU time for any other look-up.
    traced = jax.jit(jax.vmap(relief)).trace(jnp.zeros((2, 16, 20), jnp.int32))
    lowered, text = traced.lower(lowering_platforms=("tpu",)).as_text(), str(traced.jaxpr)
    assert lowered.count('"stablehlo.gather"') == 2
    assert text.count("[2,320] = gather") == text.count("operand_batching_dims=(0,)") == 2


@pytest.mark.parametrize("platform", ["tpu", "cuda"])
def test_other_platforms_warp_the_same_without_a_loop(platform, monkeypatch):
    image = photograph(32, 32, 4).astype(np.float32) / 255
    sample = jax.jit(elastic_transform.sample, static_argnums=1, static_argnames="table")
    params = sample(jax.random.key(4), image.shape, 4, table="cifar")
    traced = jax.jit(elastic_transform.apply).trace(image, params)
    assert "stablehlo.while" not in traced.lower(lowering_platforms=(platform,)).as_text()
    expected = jax.jit(elastic_transform.apply)(image, params)
    as_on(platform, monkeypatch)
    drawn = jax.jit(lambda: elastic_transform.sample(jax.random.key(4), image.shape, 4, table="cifar"))()
    for name, values in params.items():
        np.testing.assert_allclose(drawn[name], values, rtol=0, atol=1e-5, err_msg=name)  # pixels
    found = jax.jit(lambda image, params: elastic_transform.apply(image, params))(image, params)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
