"""Plain networks for 32x32 images that learn in few steps, in the form of airbench (Jordan 2024).

The first layer is no parameter: filters that whiten patches of the training images, and their negatives
(filled in by `training.states.whitened`). Each stage halves height and width and has two convolutions,
which start as the identity on as many channels as they can.

| name | first layer | 32x32 images become | parameters, 10 classes | for |
|---|---|---|---|---|
| fast_cifar | 2x2 patches at every pixel | 31x31x24, 15x15x64, 7x7x256, 3x3x256 | 1,972,514 | accelerators |
| fast_cifar_cpu | 4x4 patches at every second pixel | 16x16x24, 8x8x64, 4x4x128, 2x2x256 | 1,160,994 | two CPU cores |
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from models.layers import Buffer, convolve, max_pool, path_of
from models.norms import channels_last


class FastCifar(nnx.Module):
    """Whitening, stages of two convolutions with BatchNorm and GELU, max over pixels, linear.

    Args:
      widths: channels of the stages; None takes those of the table above.
      scale: factor of the logits; below 1 it keeps them small in the first steps at large learning rates.
      init: `he`, `xavier` or `goyal`, for all but the layers that start as the identity; see layers.py.
    """

    patch, stride, filters = 2, 1, 12  # side and distance of patches, in pixels; directions of largest variance kept
    widths = (64, 256, 256)

    def __init__(self, num_classes, options, *, widths=None, scale=1 / 9):
        patch, stride, channels = self.patch, self.stride, 2 * self.filters
        self.normalize = options.normalize("cifar")
        self.whitening = Buffer(jax.device_put(np.zeros((patch, patch, 3, channels), np.float32)))
        self.whitening_bias = nnx.Param(jax.device_put(np.zeros(channels, np.float32)))
        self.strides, self.padding = (stride, stride), (((patch - 1) // 2 * (stride - 1),) * 2,) * 2
        c_in, stages = channels, []
        for width in widths or self.widths:
            stages.append(Stage(c_in, width, conv=options.convs(), norm=options.norms()))
            c_in = width
        self.stages = nnx.List(stages)
        self.head = options.linears()(c_in, num_classes)
        self.scale, self.dtype, self.conv = scale, options.dtype, path_of(options.conv, options.dtype)

    def __call__(self, images, train, key=None):
        """Returns (logits, features), see `models.build`. Features: `stage1`, `stage2`, ... [N, h, w, C] and
        `penultimate` float32 [N, C].
        """
        del key
        x = self.normalize(images).astype(self.dtype)
        x = convolve(x, self.whitening[...].astype(self.dtype), self.strides, self.padding, self.conv)
        bias = channels_last(self.whitening_bias[...], x.ndim)
        x = nnx.gelu(x + bias.astype(self.dtype))
        features = {}
        for i, stage in enumerate(self.stages, 1):
            x = features[f"stage{i}"] = stage(x, train)
        features["penultimate"] = x.max((1, 2)).astype(jnp.float32)
        return self.scale * self.head(features["penultimate"]), features


class FastCifarCpu(FastCifar):
    """The same, narrower, with a first layer that halves height and width."""

    patch, stride, filters = 4, 2, 12
    widths = (64, 128, 256)


class Stage(nnx.Module):
    """gelu(bn(conv3x3(gelu(bn(maxpool2(conv3x3)))))); a single pixel is not pooled."""

    def __init__(self, c_in, width, *, conv, norm):
        self.conv1, self.norm1 = conv(c_in, width, 3), norm(width)
        self.conv2, self.norm2 = conv(width, width, 3), norm(width)
        for layer, channels in ((self.conv1, min(c_in, width)), (self.conv2, width)):
            layer.kernel[...] = as_identity(layer.kernel[...], channels)

    def __call__(self, x, train):
        x = self.conv1(x)
        x = max_pool(x, 2, 2) if min(x.shape[1:3]) > 1 else x
        x = nnx.gelu(self.norm1(x, train))
        return nnx.gelu(self.norm2(self.conv2(x), train))


@partial(jax.jit, static_argnums=1)
def as_identity(kernel, channels):
    """Gives a kernel [K, K, C_in, C_out] whose first `channels` outputs copy their input channels,
    the others unchanged.
    """
    middle, index = kernel.shape[0] // 2, jnp.arange(channels)
    return kernel.at[..., :channels].set(0).at[middle, middle, index, index].set(1)


FAMILY = {"fast_cifar": FastCifar, "fast_cifar_cpu": FastCifarCpu}
