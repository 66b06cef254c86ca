"""The layers the families share: convolution, BatchNorm, linear, input normalisation, and how they start.

Parameters and BatchNorm statistics are float32 always; `dtype` is that of the computation. Initial values are drawn
by a NumPy generator handed from layer to layer: the same on every device, and no compilation before the first step.
"""

import os

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax

from models.conv_cpu import conv2d

INITS = ("he", "xavier", "goyal")


class Buffer(nnx.Variable):
    """Stored and restored with the model, not trained."""


class Conv(nnx.Module):
    """Convolution without bias, NHWC, zero padding of size // 2 on each side as in PyTorch.

    Args:
      c_in, c_out: channels.
      size: side of the kernel, in pixels.
      rng: np.random.Generator.
      stride: step of the output, in pixels.
      init: `he`, `goyal`: N(0, 2 / fan_out) (He et al. 2015, fan-out form); `xavier`: U(-b, b) with
        b = sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010).
      dtype: of the computation.
      conv: `auto`, `cpu` or `xla`, see `convolve`.
    """

    def __init__(self, c_in, c_out, size, *, rng, stride=1, init="he", dtype=jnp.float32, conv="auto"):
        shape = (size, size, c_in, c_out)
        fan_in, fan_out = size * size * c_in, size * size * c_out
        if init == "xavier":
            kernel = _uniform(rng, shape, np.sqrt(6 / (fan_in + fan_out)))
        else:
            kernel = rng.standard_normal(shape, np.float32) * np.float32(np.sqrt(2 / fan_out))
        self.kernel = nnx.Param(jnp.asarray(kernel))
        self.stride, self.padding, self.dtype, self.conv = stride, size // 2, dtype, conv

    def __call__(self, x):
        """float[N, H, W, c_in] -> float[N, ceil(H / stride), ceil(W / stride), c_out] (odd sizes of kernel)."""
        kernel = self.kernel[...].astype(self.dtype)
        pads = ((self.padding, self.padding),) * 2
        return convolve(x.astype(self.dtype), kernel, (self.stride, self.stride), pads, self.conv)


def convolve(x, kernel, strides, padding, path="auto"):
    """NHWC, HWIO convolution by `lax.conv_general_dilated` (`xla`) or `conv_cpu.conv2d` (`cpu`).

    `auto` is the environment variable JAXC_CONV if set, else `cpu` for float32 on the CPU backend and `xla` elsewhere.
    """
    if path == "auto":
        path = os.environ.get("JAXC_CONV") or ("cpu" if use_cpu_path(x.dtype) else "xla")
    if path == "cpu":
        return conv2d(x, kernel, strides, padding)
    if path == "xla":
        return lax.conv_general_dilated(x, kernel, strides, padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))
    raise ValueError(f"expected conv 'auto', 'cpu' or 'xla', found {path!r}")


def use_cpu_path(dtype):
    return jax.default_backend() == "cpu" and dtype == jnp.float32


class BatchNorm(nnx.Module):
    """y = gamma (x - mean) / sqrt(var + 1e-5) + beta over all axes but the last (Ioffe and Szegedy 2015).

    Training uses the batch's mean and biased variance and moves the running ones by 0.1 towards the batch's mean and
    unbiased variance, as PyTorch does (momentum 0.1 there, 0.9 in Flax's terms). Statistics are float32. After
    `group_batch_norm` equal parts of the batch are normalised each by its own statistics.

    Args:
      channels: size of the last axis.
      rng: np.random.Generator, used by `xavier` only.
      init: `he`, `goyal`: gamma 1, beta 0; `xavier`: gamma ~ N(1, 0.02^2), beta 0.
      last: last BatchNorm of a residual branch; its gamma starts at 0 with `goyal` (Goyal et al. 2017, section 5.1).
      dtype: of the output.
    """

    momentum = 0.9
    epsilon = 1e-5
    groups = 1

    def __init__(self, channels, *, rng, init="he", last=False, dtype=jnp.float32):
        gamma = np.ones(channels, np.float32)
        if init == "xavier":
            gamma += np.float32(0.02) * rng.standard_normal(channels, np.float32)
        if init == "goyal" and last:
            gamma[:] = 0
        self.scale = nnx.Param(jnp.asarray(gamma))
        self.bias = nnx.Param(jnp.zeros(channels))
        self.mean = nnx.BatchStat(jnp.zeros(channels))
        self.var = nnx.BatchStat(jnp.ones(channels))
        self.dtype = dtype

    def __call__(self, x, train):
        """float[..., channels] -> the same shape in `dtype`; `train` moves the running statistics."""
        shape = x.shape
        x = x.astype(jnp.float32)
        if train:
            if shape[0] % self.groups:
                raise ValueError(
                    f"expected a batch that splits into {self.groups} equal parts, found {shape[0]} images"
                )
            x = x.reshape(self.groups, -1, *shape[1:])
            axes = tuple(range(1, x.ndim - 1))
            number = x.size // (self.groups * shape[-1])
            mean = x.mean(axes, keepdims=True)
            var = jnp.maximum((x * x).mean(axes, keepdims=True) - mean * mean, 0)
            keep = self.momentum
            unbiased = var * (number / max(1, number - 1))
            for running, found in ((self.mean, mean), (self.var, unbiased)):
                found = found.reshape(self.groups, -1).mean(0)
                running.set_value(keep * running[...] + (1 - keep) * lax.stop_gradient(found))
        else:
            mean, var = self.mean[...], self.var[...]
        factor = self.scale[...] * lax.rsqrt(var + self.epsilon)
        return (x * factor + (self.bias[...] - mean * factor)).reshape(shape).astype(self.dtype)


def group_batch_norm(model, groups):
    """From now on every `BatchNorm` of a model takes its training statistics over each of `groups` parts of a batch.

    Part g of a batch of B images are those from g B / groups to (g + 1) B / groups. The running statistics move towards
    the mean over parts of their means and unbiased variances.
    """
    for _, module in nnx.iter_modules(model):
        if isinstance(module, BatchNorm):
            module.groups = groups


class Linear(nnx.Module):
    """y = x W + b, computed and returned in float32.

    Args:
      c_in, c_out: features.
      rng: np.random.Generator.
      init: `he`: W ~ U(-1/sqrt(c_in), 1/sqrt(c_in)), b = 0; `xavier`: W Xavier-uniform, b = 0.01;
        `goyal`: W ~ N(0, 0.01^2), b = 0.
    """

    def __init__(self, c_in, c_out, *, rng, init="he"):
        if init == "goyal":
            kernel = np.float32(0.01) * rng.standard_normal((c_in, c_out), np.float32)
        else:
            bound = np.sqrt(6 / (c_in + c_out)) if init == "xavier" else np.sqrt(1 / c_in)
            kernel = _uniform(rng, (c_in, c_out), bound)
        self.kernel = nnx.Param(jnp.asarray(kernel))
        self.bias = nnx.Param(jnp.full(c_out, 0.01 if init == "xavier" else 0.0, jnp.float32))

    def __call__(self, x):
        return x.astype(jnp.float32) @ self.kernel[...] + self.bias[...]


class Normalize(nnx.Module):
    """(x - mean) / std per channel; uint8 images are divided by 255 first. float32 [N, H, W, 3] out.

    Args:
      mean, std: three floats each, on the scale of [0, 1]; (0, 0, 0) and (1, 1, 1) leave the images as they are.
    """

    def __init__(self, mean, std):
        if len(mean) != 3 or len(std) != 3 or min(std) <= 0:
            raise ValueError(f"expected three means and three positive stds, found {mean!r} and {std!r}")
        self.mean = Buffer(jnp.asarray(mean, jnp.float32))
        self.std = Buffer(jnp.asarray(std, jnp.float32))

    def __call__(self, images):
        if images.ndim != 4 or images.shape[-1] != 3:
            raise ValueError(f"expected images [N, H, W, 3], found {images.shape}")
        x = images.astype(jnp.float32) / 255 if images.dtype == jnp.uint8 else images.astype(jnp.float32)
        return (x - self.mean[...]) / self.std[...]


def _uniform(rng, shape, bound):
    return ((2 * rng.random(shape, np.float32) - 1) * np.float32(bound)).astype(np.float32)
