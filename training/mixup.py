"""Mixup: a network is trained on mixtures of two images of a batch, and of their two losses.

    x' = t x + (1 - t) x[order],   loss = mean(t CE(p(x'), y)) + mean((1 - t) CE(p(x'), y[order]))

with t drawn from U(0, 1) for each image, as the code of Hendrycks's and Dietterich's draft on
structural robustness has it. H. Zhang et al., "mixup: Beyond Empirical Risk Minimization", ICLR
2018, draw one t from Beta(a, a) for a batch; U(0, 1) is a = 1.
"""

import jax

from corruptions.batch import to_float

_MIXTURE = 2**31 - 2  # purpose of the key: layers of dropout count from 0, stability has the one above


def draw(key: jax.Array, number: int) -> tuple[jax.Array, jax.Array]:
    """Draws the mixtures of a batch.

    Args:
      key: of the step.
      number: of images, B.

    Returns:
      (share, order): t, float32 [B], and the partner of each image, int32 [B].
    """
    of_share, of_order = jax.random.split(jax.random.fold_in(key, _MIXTURE))
    return jax.random.uniform(of_share, (number,)), jax.random.permutation(of_order, number)


def mixed(images: jax.Array, share: jax.Array, order: jax.Array) -> jax.Array:
    """Mixes images, uint8 or float32 in [0, 1], [B, H, W, 3], with their partners: float32."""
    clean, t = to_float(images), share[:, None, None, None]
    return t * clean + (1 - t) * clean[order]
