import jax
import numpy as np
import pytest

from corruptions.primitives import borders
from tests.corruptions.elsewhere import as_on


@pytest.mark.parametrize("axes, mode", [((0,), "edge"), ((1,), "symmetric"), ((0, 1), "reflect")])
def test_what_lies_beyond_is_looked_up_or_padded(axes, mode, monkeypatch):
    image = np.random.default_rng(0).random((6, 7, 3)).astype(np.float32)
    expected = np.pad(image, [(4 * (i in axes),) * 2 for i in range(3)], mode=mode)
    for platform in ("cpu", "cuda"):
        as_on(platform, monkeypatch)
        found = jax.jit(lambda image: borders.extended(image, 4, axes, mode))(image)
        np.testing.assert_array_equal(found, expected)
