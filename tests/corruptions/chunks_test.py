"""Each image of a batch goes through its own function, in chunks of any size."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from corruptions import choice

NUMBER = 37
BRANCHES = (lambda key, severity, image: image + severity, lambda key, severity, image: severity * image[::-1])


def arguments():
    rng = np.random.default_rng(0)
    which = rng.integers(0, 3, NUMBER)
    severity, images = rng.uniform(1, 2, NUMBER), rng.uniform(0, 1, (NUMBER, 4, 3, 1))
    return which, jax.random.split(jax.random.key(0), NUMBER), severity.astype(np.float32), images.astype(np.float32)


def expected(which, key, severity, images):
    del key
    each = zip(which, severity, images, strict=True)
    return np.stack([x + s if w == 0 else s * x[::-1] if w == 1 else x for w, s, x in each])


@pytest.mark.parametrize("size", [1, 5, 8, 64])
def test_chunks_of_any_size_give_each_image_its_own(size):
    found = choice._by_chunks(BRANCHES, size, *map(jnp.asarray, arguments()))
    np.testing.assert_allclose(found, expected(*arguments()), rtol=1e-6)


def test_a_tpu_takes_eight_images_at_once():
    dealt = jax.jit(jax.vmap(choice.chosen(BRANCHES)))
    np.testing.assert_allclose(dealt(*arguments()), expected(*arguments()), rtol=1e-6)
    traced = dealt.trace(*arguments())
    cpu, tpu = (traced.lower(lowering_platforms=(platform,)).as_text() for platform in ("cpu", "tpu"))
    assert "tensor<4x4x3x1xf32>" in cpu and "tensor<8x4x3x1xf32>" not in cpu
    assert "tensor<8x4x3x1xf32>" in tpu and "tensor<4x4x3x1xf32>" not in tpu
