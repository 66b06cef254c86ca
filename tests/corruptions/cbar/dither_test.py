import jax
import numpy as np

from corruptions.cbar.dither import color_dither
from tests.corruptions.elsewhere import as_on
from tests.reference.photographs import photograph


def test_several_columns_in_a_trip_are_the_same(monkeypatch):
    image, params = photograph(20, 18).astype(np.float32) / 255, {"levels": np.int32(5)}
    expected = jax.jit(lambda x: color_dither.apply(x, params))(image)
    program = str(jax.make_jaxpr(lambda x: color_dither.apply(x, params))(image))
    assert "unroll=4" in program and "unroll=1" in program
    as_on("tpu", monkeypatch)
    found = jax.jit(lambda x: color_dither.apply(x, params))(image)
    np.testing.assert_array_equal(found, expected)
