import jax
import jax.numpy as jnp
import numpy as np
import pytest

from corruptions.primitives import spline
from tests.corruptions.elsewhere import as_on


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
