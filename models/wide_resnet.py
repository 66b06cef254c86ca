"""Wide residual networks (Zagoruyko, Komodakis 2016, arXiv:1605.07146) for 32x32 images."""

from functools import partial

import jax.numpy as jnp
from flax import nnx

from models.layers import BatchNorm, Conv, Dropout, Linear, Normalize


class WideBlock(nnx.Module):
    """x + conv(dropout(relu(bn(conv(relu(bn(x)))))); a shortcut to other channels convolves relu(bn(x))."""

    def __init__(self, c_in, c_out, stride, *, dropout, conv, norm):
        self.norm1, self.conv1 = norm(c_in), conv(c_in, c_out, 3, stride=stride)
        self.norm2, self.conv2 = norm(c_out), conv(c_out, c_out, 3)
        self.projects = c_in != c_out
        if self.projects:
            self.shortcut = conv(c_in, c_out, 1, stride=stride)
        self.dropout = dropout

    def __call__(self, x, train, key):
        active = nnx.relu(self.norm1(x, train))
        y = self.dropout(nnx.relu(self.norm2(self.conv1(active), train)), train, key)
        return (self.shortcut(active) if self.projects else x) + self.conv2(y)


class WideResNet(nnx.Module):
    """WRN-depth-widen: 3x3 stem, three stages of (depth - 4) / 6 blocks of 16, 32, 64 times widen.

    Args:
      depth: 6 n + 4.
      widen: factor of the channels.
      dropout: probability of dropping an activation between the convolutions of a block, in [0, 1).
    """

    def __init__(
        self, num_classes, *, depth, widen, rng, dtype, dropout=0.0, mean=None, std=None, init="he", conv="auto"
    ):
        if (depth - 4) % 6:
            raise ValueError(f"expected a depth of 6 n + 4, found {depth}")
        make_conv = partial(Conv, rng=rng, init=init, dtype=dtype, conv=conv)
        norm = partial(BatchNorm, rng=rng, init=init, dtype=dtype)
        self.normalize = Normalize(mean, std, "cifar")
        self.stem = make_conv(3, 16, 3)
        c_in, stages, number = 16, [], 0
        for i in range(3):
            blocks = []
            for j in range((depth - 4) // 6):
                width = 16 * 2**i * widen
                stride = 2 if i and not j else 1
                layer = Dropout(dropout, number)
                blocks.append(WideBlock(c_in, width, stride, dropout=layer, conv=make_conv, norm=norm))
                c_in, number = width, number + 1
            stages.append(nnx.List(blocks))
        self.stages = nnx.List(stages)
        self.norm = norm(c_in)
        self.head = Linear(c_in, num_classes, rng=rng, init=init)

    def __call__(self, images, train, key=None):
        """Returns (logits, features), see `models.build`. Features: `stage1` ... `stage3` [N, h, w, C] before the final
        BatchNorm, `penultimate` float32 [N, C] after it, ReLU and the mean over pixels.
        """
        self.stages[0][0].dropout.require_key(train, key)
        x, features = self.stem(self.normalize(images)), {}
        for i, blocks in enumerate(self.stages, 1):
            for block in blocks:
                x = block(x, train, key)
            features[f"stage{i}"] = x
        x = nnx.relu(self.norm(x, train))
        features["penultimate"] = x.astype(jnp.float32).mean((1, 2))
        return self.head(features["penultimate"]), features


FAMILY = {
    "wrn_40_2": partial(WideResNet, depth=40, widen=2),
    "wrn_16_4": partial(WideResNet, depth=16, widen=4),
    "wrn_28_10": partial(WideResNet, depth=28, widen=10),
}
