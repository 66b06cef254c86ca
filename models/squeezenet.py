"""SqueezeNet 1.0 and 1.1 (Iandola et al. 2016, arXiv:1602.07360) as in torchvision.

`stem` is torchvision's `features.0`, `fires` its Fire modules in order, `head` its `classifier.1`. The SqueezeNet of the
papers' tables (error 41.8 % on ImageNet's validation images) is `squeezenet1_1`.
"""

from functools import partial

import jax.numpy as jnp
from flax import nnx

from models.layers import Conv, Dropout, Normalize, max_pool


class Fire(nnx.Module):
    """1x1 convolution to few channels, then 1x1 and 3x3 convolutions side by side, with ReLU."""

    def __init__(self, c_in, squeezed, expanded, *, conv):
        self.squeeze = conv(c_in, squeezed, 1)
        self.expand1x1, self.expand3x3 = conv(squeezed, expanded, 1), conv(squeezed, expanded, 3)

    def __call__(self, x):
        x = nnx.relu(self.squeeze(x))
        return nnx.relu(jnp.concatenate([self.expand1x1(x), self.expand3x3(x)], -1))


class SqueezeNet(nnx.Module):
    """Convolution / 2, eight Fire modules, three 3x3 max-poolings / 2, 1x1 convolution, mean of pixels.

    Logits are means of ReLUs, so never negative.

    Args:
      stem: channels and side of the first convolution.
      pools: number of Fire modules before each pooling.
      dropout: probability of dropping an input of the last convolution in training, in [0, 1).
      init: `he` (uniform fan-in form; the last convolution N(0, 0.01^2), as torchvision), `xavier`
        or `goyal` (He fan-out; the last N(0, 0.01^2)); see layers.py.
    """

    def __init__(
        self, num_classes, *, stem, pools, rng, dtype, dropout=0.5, mean=None, std=None, init="he", conv="auto"
    ):
        make_conv = partial(Conv, bias=True, rng=rng, dtype=dtype, conv=conv)
        body = partial(make_conv, init="he_uniform" if init == "he" else init)
        self.normalize = Normalize(mean, std, "imagenet")
        c_in, size = stem
        self.stem = body(3, c_in, size, stride=2, padding=0)
        fires = []
        for squeezed, expanded in (
            (16, 64),
            (16, 64),
            (32, 128),
            (32, 128),
            (48, 192),
            (48, 192),
            (64, 256),
            (64, 256),
        ):
            fires.append(Fire(c_in, squeezed, expanded, conv=body))
            c_in = 2 * expanded
        self.fires = nnx.List(fires)
        self.pools = pools
        self.dropout = Dropout(dropout)
        self.head = make_conv(c_in, num_classes, 1, init=init if init == "xavier" else "small")

    def __call__(self, images, train, key=None):
        """Returns (logits, features), see `models.build`. Features: `stage1` ... `stage4` [N, h, w, C], the maps before
        each pooling and the last, and `penultimate` float32 [N, 512], the mean over pixels of the input of the last
        convolution.
        """
        x, features = nnx.relu(self.stem(self.normalize(images))), {}
        for i, fire in enumerate(self.fires):
            if i in self.pools:
                features[f"stage{len(features) + 1}"] = x
                x = max_pool(x, 3, 2, ceil=True)
            x = fire(x)
        features["stage4"] = x
        x = self.dropout(x, train, key)
        features["penultimate"] = x.astype(jnp.float32).mean((1, 2))
        return nnx.relu(self.head(x)).astype(jnp.float32).mean((1, 2)), features


FAMILY = {
    "squeezenet1_0": partial(SqueezeNet, stem=(96, 7), pools=(0, 3, 7)),
    "squeezenet1_1": partial(SqueezeNet, stem=(64, 3), pools=(0, 2, 4)),
}
SMALLEST = {"squeezenet1_0": 21, "squeezenet1_1": 17}
