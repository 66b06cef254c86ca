"""Normalisations of one image, which need no statistics of a batch or of the training images."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax

from models.layers import channels_last


class _OfImage(nnx.Module):
    """Scale and bias, float32; `rng`, `init` and `last` are those of `models.layers.BatchNorm`."""

    def __init__(self, channels, *, rng, init="he", last=False, dtype=jnp.float32):
        gamma = np.ones(channels, np.float32)
        if init == "xavier":
            gamma = gamma + np.float32(0.02) * rng.standard_normal(channels, np.float32)
        if init == "goyal" and last:
            gamma[:] = 0
        self.scale = nnx.Param(jax.device_put(gamma))
        self.bias = nnx.Param(jax.device_put(np.zeros(channels, np.float32)))
        self.dtype = dtype

    def _scaled(self, x):
        return (x * channels_last(self.scale[...], x.ndim) + channels_last(self.bias[...], x.ndim)).astype(self.dtype)


class LayerNorm(_OfImage):
    """y = gamma (x - mean) / sqrt(var + 1e-6) + beta over the last axis (Ba, Kiros, Hinton 2016, arXiv:1607.06450)."""

    epsilon = 1e-6

    def __call__(self, x, train=False):
        """Normalises float[..., channels], in training and evaluation alike; float32 inside, `dtype` out."""
        del train
        x = x.astype(jnp.float32)
        x = x - x.mean(-1, keepdims=True)
        return self._scaled(x * lax.rsqrt((x * x).mean(-1, keepdims=True) + self.epsilon))


class GroupNorm(_OfImage):
    """The same over all pixels of an image and each of 32 runs of channels, epsilon 1e-5 (Wu, He 2018, arXiv:1803.08494).

    Args:
      channels: size of the last axis, a multiple of 32.
      rng, init, last, dtype: see `models.layers.BatchNorm`.
    """

    epsilon = 1e-5
    groups = 32

    def __call__(self, x, train=False):
        """Normalises float[N, ..., channels], in training and evaluation alike; float32 inside, `dtype` out."""
        del train
        shape = x.shape
        x = x.astype(jnp.float32).reshape(shape[0], -1, self.groups, shape[-1] // self.groups)
        x = x - x.mean((1, 3), keepdims=True)
        return self._scaled((x * lax.rsqrt((x * x).mean((1, 3), keepdims=True) + self.epsilon)).reshape(shape))
