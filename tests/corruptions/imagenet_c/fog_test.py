import jax
import jax.numpy as jnp
import numpy as np
import pytest

from corruptions.imagenet_c.fog import fog
from corruptions.primitives.textures.diamond_square import diamond_square
from tests.reference.imagenet_c.fog import TABLES, reference_fog
from tests.reference.photographs import photograph


@pytest.mark.parametrize("table, side, map_side, strengths, decays", TABLES)
def test_matches_the_original_given_the_displacements(table, side, map_side, strengths, decays):
    image = photograph(side, side)
    for severity in range(1, 6):
        params = fog.sample(jax.random.key(severity), (side, side, 3), severity)
        assert params["displacements"].shape == (map_side**2 - 1,)
        out = 255 * np.asarray(fog.apply(jnp.asarray(image, jnp.float32) / 255, params), np.float64)
        uniforms = np.asarray(params["displacements"], np.float64)
        expected = reference_fog(image, strengths[severity - 1], decays[severity - 1], map_side, uniforms)
        np.testing.assert_allclose(out, expected, atol=2e-3)
        differences = abs(np.floor(out) - np.floor(expected))
        assert differences.max() <= 1 and (differences > 0).mean() < 1e-3


@pytest.mark.parametrize(
    "shape, table, map_side", [((20, 50), None, 64), ((300, 180), "imagenet", 512), ((16, 40), "tiny", 64)]
)
def test_larger_and_oblong_images_use_the_next_power_of_two(shape, table, map_side):
    params = fog.sample(jax.random.key(0), (*shape, 3), 3, table=table)
    assert params["displacements"].shape == (map_side**2 - 1,)
    image = photograph(*shape)
    out = fog.apply(jnp.asarray(image, jnp.float32) / 255, params)
    strength, decay = float(params["strength"]), float(params["decay"])
    expected = reference_fog(image, strength, decay, map_side, np.asarray(params["displacements"], np.float64))
    np.testing.assert_allclose(255 * np.asarray(out), expected, atol=2e-3)


def test_black_stays_black():
    assert not np.any(fog(jax.random.key(0), jnp.zeros((32, 32, 3)), 5))


# Published maps: mean, standard deviation inside a map, and mean step between neighbours along x
# (60 maps each).
@pytest.mark.parametrize(
    "side, decay, mean, std, step",
    [
        (256, 2, 0.51, 0.142, 0.0028),
        (256, 1.7, 0.51, 0.154, 0.0035),
        (256, 1.5, 0.51, 0.167, 0.0053),
        (256, 1.4, 0.51, 0.173, 0.0081),
        (32, 3, 0.52, 0.150, 0.021),
        (32, 1.75, 0.52, 0.171, 0.029),
        (64, 3, 0.49, 0.150, 0.010),
        (64, 2, 0.49, 0.164, 0.012),
    ],
)
def test_maps_look_as_measured_on_the_original(side, decay, mean, std, step):
    number = 60

    @jax.jit
    @jax.vmap
    def drawn(i):
        uniforms = fog.sample(jax.random.key(i), (side, side, 3), 1, table="cifar")["displacements"]
        return diamond_square(uniforms, jnp.float32(decay))

    maps = np.asarray(drawn(jnp.arange(number)))
    low, high = maps.min((1, 2), keepdims=True), maps.max((1, 2), keepdims=True)
    maps = (maps - low) / (high - low)
    assert abs(maps.mean() - mean) < 4 * 0.096 * np.sqrt(2 / number)
    assert abs(maps.std((1, 2)).mean() / std - 1) < 0.12
    assert abs(np.abs(np.diff(maps, axis=2)).mean() / step - 1) < 0.12


def test_displacements_are_uniform():
    from scipy import stats

    values = np.asarray(fog.sample(jax.random.key(1), (32, 32, 3), 1)["displacements"])
    assert stats.kstest(values, stats.uniform(-1, 2).cdf).pvalue > 1e-4
    other = np.asarray(fog.sample(jax.random.key(2), (32, 32, 3), 1)["displacements"])
    assert abs(np.corrcoef(values, other)[0, 1]) < 4 / np.sqrt(values.size)


def test_wrong_number_of_displacements_is_named():
    with pytest.raises(ValueError, match=r"4\^K - 1 uniforms"):
        diamond_square(jnp.zeros(100), 2.0)
