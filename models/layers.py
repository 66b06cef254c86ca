"""The layers that the families share: convolution, linear, dropout, normalisation of the input; pooling.

Parameters and BatchNorm statistics are float32 always; `dtype` is the type of the computation. Initial
values are drawn by a NumPy generator handed from layer to layer: the same on every device, and no
compilation before the first step. `init` of a layer is a rule:

fan_in = K_h K_w C_in / groups inputs feed one output; fan_out = K_h K_w C_out as PyTorch counts it
(not divided by the groups). N is normal, U uniform in [-b, b].

| rule | kernel | bias | source |
|---|---|---|---|
| he | N(0, 2 / fan_out) | 0 | He et al. 2015, arXiv:1502.01852, fan-out form |
| he_in | N(0, 2 / fan_in) | 0 | the same, fan-in form |
| he_uniform | U, b = sqrt(6 / fan_in) | 0 | the same, uniform |
| lecun | U, b = 1 / sqrt(fan_in) | 0 | LeCun et al. 1998 |
| pytorch | U, b = 1 / sqrt(fan_in) | U, same b | PyTorch's default |
| xavier | U, b = sqrt(6 / (fan_in + fan_out)) | 0.01 | Glorot and Bengio 2010 |
| small | N(0, 0.01^2) | 0 | Krizhevsky et al. 2012 |
| token | N(0, 0.02^2) | 0 | Dosovitskiy et al. 2021, timm |
"""

import dataclasses
import os
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax

from models.conv_cpu import conv2d, grouped_conv2d
from models.norms import BatchNorm, channels_last

INITS = ("he", "xavier", "goyal")  # rules of a model; each family maps them to rules of its layers
MEAN_STD = {  # mean and standard deviation of the training images, on the scale of [0, 1]
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "efficientnet_lite": ((127 / 255,) * 3, (128 / 255,) * 3),
    "cifar": ((125.3 / 255, 123.0 / 255, 113.9 / 255), (63.0 / 255, 62.1 / 255, 66.7 / 255)),
}


class Buffer(nnx.Variable):
    """Stored and restored with the model, not trained."""


class Conv(nnx.Module):
    """Convolution, NHWC.

    Args:
      c_in, c_out: channels.
      size, stride: side of the kernel and step of the output, in pixels.
      rng: np.random.Generator.
      padding: zeros on each side, in pixels; None is size // 2, as residual networks have it; `same` is TensorFlow's, ceil(H / stride)
        outputs, as many zeros on either side, an odd one at the end.
      groups: runs of channels convolved apart from each other; divides c_in and c_out.
      bias: add one number per output channel.
      init: rule of the initial values; `goyal` is `he`.
      dtype: type of the computation.
      conv: `auto`, `cpu` or `xla`, see `path_of`.
    """

    def __init__(
        self,
        c_in,
        c_out,
        size,
        *,
        rng,
        stride=1,
        padding=None,
        groups=1,
        bias=False,
        init="he",
        dtype=jnp.float32,
        conv="auto",
    ):
        shape, rule = (size, size, c_in // groups, c_out), "he" if init == "goyal" else init
        self.kernel = nnx.Param(jax.device_put(initial_kernel(rng, shape, rule)))
        self.bias = nnx.Param(jax.device_put(initial_bias(rng, shape, rule))) if bias else None
        self.stride, self.padding, self.groups = stride, size // 2 if padding is None else padding, groups
        self.dtype, self.conv = dtype, path_of(conv, dtype)

    def __call__(self, x):
        """Convolves float[N, H, W, c_in] to float[N, H', W', c_out].

        H' = (H + 2 padding - size) // stride + 1.
        """
        kernel, strides = self.kernel[...].astype(self.dtype), (self.stride, self.stride)
        if self.padding == "same":
            pads = tuple(lax.padtype_to_pads(x.shape[1:3], kernel.shape[:2], strides, "SAME"))
        else:
            pads = ((self.padding, self.padding),) * 2
        y = convolve(x.astype(self.dtype), kernel, strides, pads, self.conv, self.groups)
        return y if self.bias is None else y + channels_last(self.bias[...], y.ndim).astype(self.dtype)


def path_of(conv, dtype):
    """Chooses the path of convolutions when a model is built; it may be compiled for another platform.

    `cpu` (conv_cpu.py), `xla` (`lax.conv_general_dilated`), or `auto`: the environment variable JAXC_CONV if set, else
    `cpu` for float32 on the CPU backend and `xla` elsewhere. ValueError: another path.
    """
    if conv == "auto":
        fast = jax.default_backend() == "cpu" and dtype == jnp.float32
        conv = os.environ.get("JAXC_CONV") or ("cpu" if fast else "xla")
    if conv not in ("cpu", "xla"):
        raise ValueError(f"expected conv 'auto', 'cpu' or 'xla', found {conv!r}")
    return conv


def convolve(x, kernel, strides, padding, path, groups=1):
    """NHWC, HWIO convolution on the path that `path_of` gives."""
    if path == "xla":
        return lax.conv_general_dilated(
            x, kernel, strides, padding, dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups
        )
    if groups == 1:
        return conv2d(x, kernel, strides, padding)
    return grouped_conv2d(x, kernel, strides, padding, groups)


class Linear(nnx.Module):
    """y = x W + b, float32 out.

    Args:
      c_in, c_out: features.
      rng: np.random.Generator.
      init: rule of the initial values; `he` is `lecun` and `goyal` is `small` here, as usual before a softmax.
      dtype: type of the factors of the product; it is summed in float32.
    """

    def __init__(self, c_in, c_out, *, rng, init="he", dtype=jnp.float32):
        rule = {"he": "lecun", "goyal": "small"}.get(init, init)
        self.kernel = nnx.Param(jax.device_put(initial_kernel(rng, (c_in, c_out), rule)))
        self.bias = nnx.Param(jax.device_put(initial_bias(rng, (c_in, c_out), rule)))
        self.dtype = dtype

    def __call__(self, x):
        kernel = self.kernel[...].astype(self.dtype)
        y = jnp.matmul(x.astype(self.dtype), kernel, preferred_element_type=jnp.float32)
        return y + channels_last(self.bias[...], y.ndim)


class Dropout(nnx.Module):
    """Sets values to 0 with probability `rate` in training, others to x / (1 - rate).

    Srivastava et al. 2014.

    Args:
      rate: in [0, 1).
      number: number of this layer among the layers that share a key.
    """

    def __init__(self, rate, number=0):
        if not 0 <= rate < 1:
            raise ValueError(f"expected dropout in [0, 1), found {rate}")
        self.rate, self.number = rate, number

    def require_key(self, train, key):
        """Refuses a missing `key` (ValueError), before any running statistics are moved."""
        if train and self.rate and key is None:
            raise ValueError(f"expected key= when training with dropout {self.rate}, found None")

    def __call__(self, x, train, key):
        self.require_key(train, key)
        if not train or not self.rate:
            return x
        keep = jax.random.bernoulli(jax.random.fold_in(key, self.number), 1 - self.rate, x.shape)
        return jnp.where(keep, x / (1 - self.rate), 0).astype(x.dtype)


class Normalize(nnx.Module):
    """(x - mean) / std per channel, float32 [N, H, W, 3]; uint8 images are divided by 255 first.

    Args:
      mean, std: three floats each, on the scale of [0, 1]; (0, 0, 0) and (1, 1, 1) leave the images
        unchanged. None takes the numbers of `default`.
      default: `imagenet` or `cifar`.
    """

    def __init__(self, mean, std, default):
        mean, std = mean or MEAN_STD[default][0], std or MEAN_STD[default][1]
        if len(mean) != 3 or len(std) != 3 or min(std) <= 0:
            raise ValueError(f"expected three means and three positive stds, found {mean!r} and {std!r}")
        self.mean = Buffer(jnp.asarray(mean, jnp.float32))
        self.std = Buffer(jnp.asarray(std, jnp.float32))

    def __call__(self, images):
        if images.ndim != 4 or images.shape[-1] != 3:
            raise ValueError(f"expected images [N, H, W, 3], found {images.shape}")
        x = images.astype(jnp.float32) / 255 if images.dtype == jnp.uint8 else images.astype(jnp.float32)
        return (x - channels_last(self.mean[...], 4)) / channels_last(self.std[...], 4)


def max_pool(x, size, stride, padding=0, *, ceil=False):
    """Maximum over windows of size x size pixels, [N, H, W, C] -> [N, H', W', C].

    H' = floor((H + 2 padding - size) / stride) + 1. With `ceil` it is rounded up, so that the last
    window may reach over the edge; a window that would start in the upper padding or beyond is left
    out. What lies outside the image never is the maximum.

    Raises:
      ValueError: the maps are too small for one window.
    """
    smallest = size - 2 * padding - (stride - 1 if ceil else 0)
    if min(x.shape[1:3]) < smallest:
        raise ValueError(f"expected maps of at least {smallest} pixels to pool, found {x.shape[1:3]}")
    pads = [(padding, padding + (_overhang(full, size, stride, padding) if ceil else 0)) for full in x.shape[1:3]]
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1), [(0, 0), *pads, (0, 0)])


def _overhang(full, size, stride, padding):
    """Counts the pixels by which the last window of `ceil` reaches beyond the padded edge."""
    last = -(-(full + 2 * padding - size) // stride) * stride  # where it starts, in padded pixels
    if last >= full + padding:
        last -= stride
    return max(0, last + size - full - 2 * padding)


def mean_pool(x):
    """Mean of each 2x2 block, [N, H, W, C] -> [N, H // 2, W // 2, C]; odd rests are cut."""
    n, h, w, c = x.shape
    if min(h, w) < 2:
        raise ValueError(f"expected maps of at least 2 pixels to halve, found {(h, w)}")
    return x[:, : h // 2 * 2, : w // 2 * 2].reshape(n, h // 2, 2, w // 2, 2, c).mean((2, 4))


def adaptive_mean_pool(x, size):
    """Averages over size x size windows that cover any map: [N, H, W, C] -> [N, size, size, C].

    Window i has the rows floor(i H / size) ... ceil((i + 1) H / size) - 1; they overlap where size does not divide H,
    and repeat pixels where the map is smaller than `size`. PyTorch's AdaptiveAvgPool2d.
    """
    if x.shape[1:3] == (size, size):
        return x
    rows, columns = (jnp.asarray(_windows(full, size)) for full in x.shape[1:3])
    y = jnp.einsum("ph,nhwc,qw->npqc", rows, x.astype(jnp.float32), columns, precision="highest")
    return y.astype(x.dtype)


def _windows(full, size):
    """float32 [size, full]: row i weighs the pixels of window i equally."""
    i, pixel = np.arange(size)[:, None], np.arange(full)
    inside = (pixel >= i * full // size) & (pixel < -(-(i + 1) * full // size))
    return (inside / inside.sum(1, keepdims=True)).astype(np.float32)


def make_stages(c_in, widths, sizes, make):
    """Makes stages of layers, an nnx.List of nnx.Lists; each layer reads the channels of the layer before it.

    Args:
      c_in: channels of the input.
      widths: channels that the layers of each stage return.
      sizes: number of layers of each stage.
      make: (c_in, c_out, stride) -> layer; the stride is 2 in the first layer of each stage but the first, else 1.
    """
    stages = []
    for i, (width, size) in enumerate(zip(widths, sizes, strict=True)):
        layers = []
        for j in range(size):
            layers.append(make(c_in, width, 2 if i and not j else 1))
            c_in = width
        stages.append(nnx.List(layers))
    return nnx.List(stages)


def run_stages(stages, x, *args, before=None, after=None):
    """Runs stages of layers `layer(x, *args)`: (x, {"stage1": x after the first stage ...}).

    `before` and `after` are functions of x that come before and after the layers of each stage; None is none.
    """
    features = {}
    for i, layers in enumerate(stages, 1):
        x = before(x) if before else x
        for layer in layers:
            x = layer(x, *args)
        features[f"stage{i}"] = x = after(x) if after else x
    return x, features


@dataclasses.dataclass(frozen=True)
class Options:
    """The options that all layers of a network share; the methods make layers with them."""

    rng: Any  # np.random.Generator of the initial values
    dtype: Any  # type of the computation
    # mean, std: normalisation of the input; None takes the default of the network.
    mean: Sequence[float] | None = None
    std: Sequence[float] | None = None
    init: str = "he"  # `he`, `xavier` or `goyal`
    conv: str = "auto"  # path of the convolutions, see `path_of`

    def normalize(self, default):
        return Normalize(self.mean, self.std, default)

    def convs(self, init=None, **fixed):
        """Gives the maker of convolutions, with the rule `init` in place of the network's and further `fixed` options."""
        return partial(Conv, rng=self.rng, init=init or self.init, dtype=self.dtype, conv=self.conv, **fixed)

    def norms(self, kind=BatchNorm):
        """Gives the maker of normalisations."""
        return partial(kind, rng=self.rng, init=self.init, dtype=self.dtype)

    def linears(self, init=None, **fixed):
        """Gives the maker of linear layers: float32, unless `dtype` is among the fixed options."""
        return partial(Linear, rng=self.rng, init=init or self.init, **fixed)


def initial_kernel(rng, shape, rule):
    """Draws a float32 array of `shape` [..., C_in / groups, C_out] from an np.random.Generator."""
    fan_in = int(np.prod(shape[:-1]))
    fan_out = fan_in // shape[-2] * shape[-1]
    deviations = {"he": (2 / fan_out) ** 0.5, "he_in": (2 / fan_in) ** 0.5, "small": 0.01, "token": 0.02}
    if rule in deviations:
        return rng.standard_normal(shape, np.float32) * np.float32(deviations[rule])
    if rule == "xavier":
        return _uniform(rng, shape, (6 / (fan_in + fan_out)) ** 0.5)
    return _uniform(rng, shape, {"he_uniform": 6**0.5, "lecun": 1, "pytorch": 1}[rule] / fan_in**0.5)


def initial_bias(rng, kernel_shape, rule):
    """float32 [C_out] that goes with a kernel of that shape."""
    if rule == "pytorch":
        return _uniform(rng, kernel_shape[-1:], float(np.prod(kernel_shape[:-1])) ** -0.5)
    return np.full(kernel_shape[-1], 0.01 if rule == "xavier" else 0, np.float32)


class ShapesOnly:
    """Stands for the generator under `jax.eval_shape`: draws cost neither time nor memory."""

    def standard_normal(self, shape, dtype):
        return jnp.zeros(shape, dtype)

    random = standard_normal


def _uniform(rng, shape, bound):
    return ((2 * rng.random(shape, np.float32) - 1) * np.float32(bound)).astype(np.float32)
