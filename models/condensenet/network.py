"""CondenseNet-74 in the form that is trained, and in the converted one that is used.

Both are DenseNets whose growth doubles where the maps are halved, with nothing but a mean over 2x2
pixels between the stages. The 1x1 convolutions learn their groups (`learned.LearnedConv`), or are
grouped and read what was learned by index; the 3x3 convolutions have groups from the start.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from models.condensenet.learned import LearnedConv
from models.layers import BatchNorm, Buffer, Conv, Linear, Normalize
from models.pooling import mean_pool

STAGES = ((4, 8), (6, 16), (8, 32), (10, 64), (8, 128))  # (layers, growth)
HEAD_SHARE = 0.5
"""Of the features, what the last layer of a converted network reads."""


class Read(nnx.Module):
    """Reads `number` channels of the last axis by an index, repeats allowed."""

    def __init__(self, number):
        self.index = Buffer(jax.device_put(np.arange(number, dtype=np.int32)))  # filled by a conversion

    def __call__(self, x):
        return x[..., self.index[...]]


class IndexedConv(nnx.Module):
    """Grouped 1x1 convolution of relu(bn(what it reads)), its outputs shuffled.

    Each of G groups reads C_in // G channels; output j of group g becomes channel j G + g.
    """

    def __init__(self, c_in, c_out, groups, *, conv, norm):
        number = c_in // groups * groups
        self.read = Read(number)
        self.norm, self.conv = norm(number), conv(number, c_out, 1, groups=groups)

    def __call__(self, x, train):
        y = self.conv(nnx.relu(self.norm(self.read(x), train)))
        groups = self.conv.groups
        return y.reshape(*y.shape[:-1], groups, -1).swapaxes(-1, -2).reshape(y.shape)


class DenseLayer(nnx.Module):
    """1x1 convolution to 4 growth channels, then 3x3 in groups to `growth`; BatchNorm and ReLU
    before each."""

    def __init__(self, c_in, growth, groups, *, first, conv, norm):
        self.conv1 = first(c_in, 4 * growth, groups, conv=conv, norm=norm)
        self.norm2, self.conv2 = norm(4 * growth), conv(4 * growth, growth, 3, groups=groups)

    def __call__(self, x, train):
        y = self.conv2(nnx.relu(self.norm2(self.conv1(x, train), train)))
        return jnp.concatenate((x, y), -1)


class CondenseNet(nnx.Module):
    """3x3 convolution / 2, stages of dense layers, BatchNorm, ReLU, mean over pixels, linear.

    Args:
      num_classes: number of logits.
      groups: of the 1x1 and of the 3x3 convolutions, and the factor by which inputs are condensed.
      converted: the form that is used, made by `conversion.convert` or from published weights.
      stages: (layers, growth) of each.
      head_share: of the features that the last layer reads; below 1 in the converted form alone.
      rng: np.random.Generator of the initial parameters.
      dtype: of the computation.
      mean, std: of the input normalisation; None takes ImageNet's.
      init: `he`, `xavier` or `goyal`, see layers.py.
      conv: path of the convolutions, see layers.path_of.
    """

    def __init__(
        self,
        num_classes,
        *,
        groups,
        converted,
        stages,
        head_share,
        rng,
        dtype,
        mean=None,
        std=None,
        init="he",
        conv="auto",
    ):
        make_conv = partial(Conv, rng=rng, init=init, dtype=dtype, conv=conv)
        norm = partial(BatchNorm, rng=rng, init=init, dtype=dtype)
        first = IndexedConv if converted else LearnedConv
        self.normalize = Normalize(mean, std, "imagenet")
        channels = 2 * stages[0][1]
        self.stem, blocks = make_conv(3, channels, 3, stride=2), []
        for layers, growth in stages:
            block = []
            for _ in range(layers):
                block.append(DenseLayer(channels, growth, groups, first=first, conv=make_conv, norm=norm))
                channels += growth
            blocks.append(nnx.List(block))
        self.blocks, self.norm = nnx.List(blocks), norm(channels)
        read = int(channels * head_share)
        self.head_read = Read(read) if converted else None
        self.head = Linear(read, num_classes, rng=rng, init=init)

    def __call__(self, images, train, key=None):
        """Maps images [N, H, W, 3] in [0, 1] or uint8 to (logits [N, num_classes], features).

        features: `stage1` ... `stage5` [N, h, w, C] and `penultimate` float32 [N, C], what the last
        layer reads. `key` is not used.
        """
        del key
        x, features = self.stem(self.normalize(images)), {}
        for i, block in enumerate(self.blocks, 1):
            x = mean_pool(x) if i > 1 else x
            for layer in block:
                x = layer(x, train)
            features[f"stage{i}"] = x
        x = nnx.relu(self.norm(x, train)).astype(jnp.float32).mean((1, 2))
        features["penultimate"] = x if self.head_read is None else self.head_read(x)
        return self.head(features["penultimate"]), features


FAMILY = {
    f"condensenet74_{groups}{suffix}": partial(
        CondenseNet, groups=groups, converted=converted, stages=STAGES, head_share=HEAD_SHARE if converted else 1
    )
    for groups in (4, 8)
    for suffix, converted in (("", False), ("_converted", True))
}
SMALLEST = dict.fromkeys(FAMILY, 31)
