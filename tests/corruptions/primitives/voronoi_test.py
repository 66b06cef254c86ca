import jax
import numpy as np

from corruptions.primitives.textures import voronoi


def test_points_by_products_are_points_by_index():
    rng = np.random.default_rng(0)
    points = rng.uniform(0, 1, (14, 18, 2)).astype(np.float32)
    y, x = (np.arange(n, dtype=np.float32) / np.float32(1.7) + 1 for n in (20, 27))

    def nearest(*args):
        return [voronoi._nearest(look_up, *args) for look_up in (voronoi._taken, voronoi._products)]

    expected, found = jax.jit(nearest)(points, y, x)
    assert expected.shape == (20, 27) and np.ptp(expected) > 0.5
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_on_a_tpu_no_point_is_looked_up():
    distances = jax.vmap(lambda seed, scale: voronoi.voronoi_distance((16, 20, 3), seed, scale, 1.6))
    numbers = jax.ShapeDtypeStruct((2,), np.float32)
    traced = jax.jit(distances).trace(numbers, numbers)
    lowered = {p: traced.lower(lowering_platforms=(p,)).as_text() for p in ("cpu", "tpu")}
    assert "gather" in lowered["cpu"] and "gather" not in lowered["tpu"]
