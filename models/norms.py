"""Normalisations with a learned scale and bias: over a batch, over the channels of a place, over groups of an image."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax


def channels_last(values, rank):
    """float [C] as [1, ..., 1, C] with `rank` axes."""
    return values.reshape((1,) * (rank - 1) + (-1,))


def wide(x):
    """`x` in float32, or in float64 as it is."""
    return x if x.dtype == jnp.float64 else x.astype(jnp.float32)


def moments(x, means, spread, *, apart=False):
    """Computes mean and biased variance of a batch, in float32 or float64.

    One pass over the batch gives E[x^2] - E[x]^2, whose sums compilers join with the convolution before it and take over
    devices at once. Where this is below E[x^2] / 1000 (a mean above 32 deviations), rounding has taken most of its
    digits, and a second pass gives E[(x - E[x])^2]. The gradient, 2 (x - E[x]) / N, is that of the first pass.

    Args:
      x: float [N, ..., channels].
      means: averages such an array to [..., channels].
      spread: reshapes averages so that they broadcast to `x`.
      apart: whether parts of the batch lie on devices of their own, which cannot agree on a second pass without
        communication: it is always taken.

    Returns:
      (mean, variance), each as `means` returns it.
    """
    mean, square = means(wide(x)), means(jnp.square(wide(x)))
    var = square - mean * mean

    def second_pass(x, mean, var):
        return means(jnp.square(wide(x) - spread(mean)))

    operands = lax.stop_gradient((x, mean, var))
    if apart:
        exact = second_pass(*operands)
    else:
        exact = lax.cond((var < 1e-3 * square).any(), second_pass, lambda x, mean, var: var, *operands)
    return mean, jnp.maximum(var + lax.stop_gradient(exact - var), 0)


class _Norm(nnx.Module):
    """Scale gamma and bias beta, float32.

    Args:
      channels: size of the last axis.
      rng: np.random.Generator, used by `xavier` only.
      init: `he`, `goyal`: gamma 1, beta 0; `xavier`: gamma ~ N(1, 0.02^2), beta 0.
      last: last BatchNorm of a residual branch; its gamma starts at 0 with `goyal` (Goyal et al. 2017, section 5.1).
      dtype: type of the output.
    """

    def __init__(self, channels, *, rng, init="he", last=False, dtype=jnp.float32):
        gamma = np.ones(channels, np.float32)
        if init == "xavier":
            gamma = gamma + np.float32(0.02) * rng.standard_normal(channels, np.float32)
        if init == "goyal" and last:
            gamma[:] = 0
        self.scale = nnx.Param(jax.device_put(gamma))
        # device_put: jnp.zeros and jnp.asarray compile a program for each shape.
        self.bias = nnx.Param(jax.device_put(np.zeros(channels, np.float32)))
        self.dtype = dtype

    def _scaled(self, x):
        return (x * channels_last(self.scale[...], x.ndim) + channels_last(self.bias[...], x.ndim)).astype(self.dtype)


class BatchNorm(_Norm):
    """y = gamma (x - mean) / sqrt(var + 1e-5) + beta over all axes but the last (Ioffe, Szegedy 2015).

    Training uses the batch's mean and biased variance and moves the running ones by 0.1 towards the batch's mean and
    unbiased variance, as PyTorch does (momentum 0.1 there, 0.9 in Flax's terms). Statistics are float32. After
    `group_batch_norm` equal parts of the batch are normalised each by its own statistics, or all by the running ones.
    """

    momentum = 0.9
    epsilon = 1e-5
    groups = 1

    def __init__(self, channels, **options):
        super().__init__(channels, **options)
        self.mean = nnx.BatchStat(jax.device_put(np.zeros(channels, np.float32)))
        self.var = nnx.BatchStat(jax.device_put(np.ones(channels, np.float32)))

    def __call__(self, x, train):
        """Normalises float[..., channels], in `dtype`; `train` moves the running statistics, unless there are no parts."""
        keep = self.momentum
        if train and self.groups:
            if len(x) % self.groups:
                raise ValueError(f"expected a batch that splits into {self.groups} equal parts, found {len(x)} images")
            number = x.size // (self.groups * x.shape[-1])
            mean, var = moments(x, self._means, lambda values: self._of_images(values, x), apart=self.groups > 1)
            unbiased = var * (number / max(1, number - 1))
            for running, found in ((self.mean, mean), (self.var, unbiased)):
                running[...] = keep * running[...] + (1 - keep) * lax.stop_gradient(found.mean(0))
        else:
            mean, var = channels_last(self.mean[...], 2), channels_last(self.var[...], 2)
        factor = channels_last(self.scale[...], 2) * lax.rsqrt(var + self.epsilon)
        shift = channels_last(self.bias[...], 2) - mean * factor
        return (x.astype(jnp.float32) * self._of_images(factor, x) + self._of_images(shift, x)).astype(self.dtype)

    def _means(self, x):
        """Means over the parts of a batch, float32 [groups, channels].

        Maps keep their shape: a TPU's compiler reads them once more for each sum of a reshaped one.
        """
        if self.groups == 1:
            return x.mean(tuple(range(x.ndim - 1)))[None]
        images = x.mean(tuple(range(1, x.ndim - 1)))
        return images.reshape(self.groups, -1, x.shape[-1]).mean(1)

    def _of_images(self, values, x):
        """float [1 or groups, channels] so that it broadcasts to the batch `x`."""
        images = values if len(values) == 1 else jnp.repeat(values, len(x) // self.groups, axis=0)
        return images.reshape(len(images), *(1,) * (x.ndim - 2), -1)


def group_batch_norm(model, groups):
    """Makes every `BatchNorm` of a model take its training statistics over `groups` parts of a batch.

    Part g of a batch of B images are those from g B / groups to (g + 1) B / groups. The running
    statistics move towards the mean over parts of their means and unbiased variances. With 0 parts
    they stay, and training normalises by them as evaluation does.
    """
    for _, module in nnx.iter_graph(model):
        if isinstance(module, BatchNorm):
            module.groups = groups


class LayerNorm(_Norm):
    """y = gamma (x - mean) / sqrt(var + 1e-6) + beta over the last axis (Ba, Kiros, Hinton 2016, arXiv:1607.06450)."""

    epsilon = 1e-6

    def __call__(self, x, train=False):
        """Normalises float[..., channels], in training and evaluation alike; float32 inside, `dtype` out."""
        del train
        x = x.astype(jnp.float32)
        x = x - x.mean(-1, keepdims=True)
        return self._scaled(x * lax.rsqrt((x * x).mean(-1, keepdims=True) + self.epsilon))


class GroupNorm(_Norm):
    """The same over all pixels of an image and each of 32 runs of channels, epsilon 1e-5 (Wu, He 2018, arXiv:1803.08494).

    `channels` is a multiple of 32.
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
