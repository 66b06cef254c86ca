"""A plain network for 32x32 images that learns in few steps, in the form of airbench (Jordan 2024).

The first layer is no parameter: 2x2 filters that whiten patches of the training images, and their
negatives (filled in by `training.states.whitened`). Each stage halves height and width between its two
convolutions, which start as the identity on as many channels as they can.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from models.layers import Buffer, convolve, max_pool, path_of
from models.norms import channels_last

WHITENING_SIZE = 2  # side of the whitened patches, in pixels


class FastCifar(nnx.Module):
    """Whitening, three stages of two convolutions with BatchNorm and GELU, max over pixels, linear.

    With the defaults and 32x32 images: 31x31x24 -> 15x15x64 -> 7x7x256 -> 3x3x256; 1,972,514 parameters for 10 classes.

    Args:
      widths: channels of the stages.
      scale: factor of the logits; below 1 it keeps them small in the first steps at large learning rates.
      init: `he`, `xavier` or `goyal`, for all but the layers that start as the identity; see layers.py.
    """

    def __init__(self, num_classes, options, *, widths=(64, 256, 256), scale=1 / 9):
        self.normalize = options.normalize("cifar")
        filters = 2 * 3 * WHITENING_SIZE**2
        self.whitening = Buffer(jax.device_put(np.zeros((WHITENING_SIZE, WHITENING_SIZE, 3, filters), np.float32)))
        self.whitening_bias = nnx.Param(jax.device_put(np.zeros(filters, np.float32)))
        c_in, stages = filters, []
        for width in widths:
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
        x = convolve(x, self.whitening[...].astype(self.dtype), (1, 1), ((0, 0), (0, 0)), self.conv)
        bias = channels_last(self.whitening_bias[...], x.ndim)
        x = nnx.gelu(x + bias.astype(self.dtype))
        features = {}
        for i, stage in enumerate(self.stages, 1):
            x = features[f"stage{i}"] = stage(x, train)
        features["penultimate"] = x.max((1, 2)).astype(jnp.float32)
        return self.scale * self.head(features["penultimate"]), features


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


FAMILY = {"fast_cifar": FastCifar}
