"""Stability training: predictions on an image and on a noisy copy of it shall agree.

    loss = CE(p(x), y) + a H(p(x), p(x')),   x' = x + U(-u, u) for each pixel and channel,
    H(p, q) = -sum_j p_j log q_j

S. Zheng et al., "Improving the Robustness of Deep Neural Networks via Stability Training", CVPR
2016, with the uniform noise of Hendrycks's and Dietterich's draft on structural robustness, which
fine-tunes for 5 epochs with a and u of .01, .05 and .1. x is in [0, 1], x' is not cut off, and
gradients flow through both predictions: H holds the entropy of p(x), which is lowered too.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from corruptions.batch import to_float

_NOISE = 2**31 - 1  # purpose of the key: layers of dropout count from 0


class Stability(NamedTuple):
    """Settings of the loss.

    Attributes:
      weight: a; 0 is no stability training.
      noise: u, of pixels in [0, 1].
    """

    weight: float
    noise: float


OFF = Stability(0.0, 0.0)
IN_STUDIES = Stability(0.05, 0.05)
"""The middle of the draft's nine settings: what `train=stability` of a study of enhancements is."""


def with_noise(images: jax.Array, key: jax.Array, noise: float) -> jax.Array:
    """Puts a noisy copy beside each image.

    Args:
      images: uint8, or float32 in [0, 1], [B, H, W, 3].
      key: of the step.
      noise: u.

    Returns:
      float32 [B, 2, H, W, 3].
    """
    clean = to_float(images)
    drawn = jax.random.uniform(jax.random.fold_in(key, _NOISE), images.shape, minval=-noise, maxval=noise)
    return jnp.stack([clean, clean + drawn], axis=1)


def disagreement(clean: jax.Array, noisy: jax.Array) -> jax.Array:
    """Computes the mean of H(p, q) over a batch, p and q the softmax of two logits [B, C]."""
    log_p, log_q = (jax.nn.log_softmax(logits.astype(jnp.float32)) for logits in (clean, noisy))
    return -(jnp.exp(log_p) * log_q).sum(-1).mean()
