"""Differences of neighbouring pixels: sharpen and emboss, each a 3x3 filter."""

import jax
import jax.numpy as jnp

from corruptions.syn2nat.candidate import candidate


def _apply(image, params):
    """Correlates each channel with a 3x3 kernel, the image mirrored about its outermost pixels."""
    height, width, _ = image.shape
    padded = jnp.pad(image, ((1, 1), (1, 1), (0, 0)), mode="reflect")
    shifted = [[padded[i : i + height, j : j + width] for j in range(3)] for i in range(3)]
    total = sum(params["kernel"][i, j] * shifted[i][j] for i in range(3) for j in range(3))
    return jnp.clip(total, 0.0, 1.0)


def _sample_sharpen(key, shape, severity):
    """Makes a `kernel` that weights the image 1 - a + a (8 + b), and its eight neighbours -a each.

    a is drawn from U[0.3, 0.6), b from U[0.6, 1). Source: IAASharpen.
    """
    del shape, severity
    weight_key, light_key = jax.random.split(key)
    weight = jax.random.uniform(weight_key, minval=0.3, maxval=0.6)
    light = jax.random.uniform(light_key, minval=0.6, maxval=1.0)
    return {"kernel": jnp.full((3, 3), -weight).at[1, 1].set(1 - weight + weight * (8 + light))}


def _sample_emboss(key, shape, severity):
    """Makes a `kernel` of differences from the upper left to the lower right, plus the image.

    Its rows are (-1 - s, -s, 0), (-s, 1, s) and (0, s, 1 + s), s from U[0.2, 0.7).
    Source: IAAEmboss, of which nothing but the embossed image is left.
    """
    del shape, severity
    strength = jax.random.uniform(key, minval=0.2, maxval=0.7)
    constant = jnp.array([[-1.0, 0, 0], [0, 1, 0], [0, 0, 1]])
    slope = jnp.array([[-1.0, -1, 0], [-1, 0, 1], [0, 1, 1]])
    return {"kernel": constant + strength * slope}


sharpen = candidate("sharpen", "digital", _sample_sharpen, _apply, (("kernel", "1"),))
emboss = candidate("emboss", "digital", _sample_emboss, _apply, (("kernel", "1"),))
