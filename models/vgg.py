"""VGG (Simonyan and Zisserman 2015, arXiv:1409.1556): 11 and 19 layers, with and without BatchNorm.

The papers' tables have VGG-19 twice: `vgg19` without BatchNorm, `vgg19_bn` with it.
The convolutions, in order, are torchvision's `features`; `hidden` and `head` are its `classifier`. Maps are flattened
channels first, as there, so that the kernel of a linear layer is the transpose of torchvision's.

`init` of both networks: `he` and `goyal` draw convolutions by He's rule (fan-out) and linear layers
from N(0, 0.01^2), as torchvision; `xavier` as everywhere.
"""

from functools import partial

import jax.numpy as jnp
from flax import nnx

from models.layers import BatchNorm, Conv, Dropout, Linear, Normalize, adaptive_mean_pool, max_pool

HIDDEN = 4096


class ConvLayer(nnx.Module):
    """3x3 convolution with bias, BatchNorm where the network has it, ReLU."""

    def __init__(self, c_in, c_out, *, batch_norm, rng, init, dtype, conv):
        self.conv = Conv(c_in, c_out, 3, bias=True, rng=rng, init=init, dtype=dtype, conv=conv)
        self.norm = BatchNorm(c_out, rng=rng, init=init, dtype=dtype) if batch_norm else None

    def __call__(self, x, train):
        y = self.conv(x)
        return nnx.relu(y if self.norm is None else self.norm(y, train))


def make_stages(sizes, **options):
    """Five stages of `sizes` layers of 64, 128, 256, 512 and 512 channels."""
    c_in, stages = 3, []
    for size, width in zip(sizes, (64, 128, 256, 512, 512), strict=True):
        layers = []
        for _ in range(size):
            layers.append(ConvLayer(c_in, width, **options))
            c_in = width
        stages.append(nnx.List(layers))
    return nnx.List(stages)


def run_stages(stages, x, train):
    """Makes {"stage1": ...}, maps after each stage and its 2x2 max-pooling, the last 1/32 in size."""
    features = {}
    for i, layers in enumerate(stages, 1):
        for layer in layers:
            x = layer(x, train)
        features[f"stage{i}"] = x = max_pool(x, 2, 2)
    return features


class VGG(nnx.Module):
    """Convolutions, mean over 7x7 windows, two hidden layers of 4096 with ReLU and dropout, linear.

    Args:
      stage_sizes: convolutions in each of the five stages.
      batch_norm: BatchNorm follows each convolution.
      dropout: probability of dropping a hidden value in training, in [0, 1).
    """

    def __init__(
        self,
        num_classes,
        *,
        stage_sizes,
        batch_norm,
        rng,
        dtype,
        dropout=0.5,
        mean=None,
        std=None,
        init="he",
        conv="auto",
    ):
        self.normalize = Normalize(mean, std, "imagenet")
        self.stages = make_stages(stage_sizes, batch_norm=batch_norm, rng=rng, init=init, dtype=dtype, conv=conv)
        linear = partial(Linear, rng=rng, init="small" if init == "he" else init)
        self.hidden = nnx.List([linear(512 * 49, HIDDEN, dtype=dtype), linear(HIDDEN, HIDDEN, dtype=dtype)])
        self.dropouts = nnx.List([Dropout(dropout, i) for i in range(2)])
        self.head = linear(HIDDEN, num_classes)

    def __call__(self, images, train, key=None):
        """Returns (logits, features), see `models.build`. Features: `stage1` ... `stage5` [N, h, w, C] and
        `penultimate` float32 [N, 4096], the input of the last layer (after dropout).
        """
        self.dropouts[0].require_key(train, key)
        features = run_stages(self.stages, self.normalize(images), train)
        x = adaptive_mean_pool(features["stage5"], 7).transpose(0, 3, 1, 2).reshape(images.shape[0], -1)
        for linear, dropout in zip(self.hidden, self.dropouts):
            x = dropout(nnx.relu(linear(x)), train, key)
        features["penultimate"] = x
        return self.head(x), features


class CifarVGG(nnx.Module):
    """The form usual for 32x32 images: one pixel is left (else the mean is taken), then one linear layer.

    Args: as of `VGG`, without dropout; the input normalisation is CIFAR-10's by default.
    """

    def __init__(
        self, num_classes, *, stage_sizes, batch_norm, rng, dtype, mean=None, std=None, init="he", conv="auto"
    ):
        self.normalize = Normalize(mean, std, "cifar")
        self.stages = make_stages(stage_sizes, batch_norm=batch_norm, rng=rng, init=init, dtype=dtype, conv=conv)
        self.head = Linear(512, num_classes, rng=rng, init="small" if init == "he" else init)

    def __call__(self, images, train, key=None):
        """As `VGG`; `penultimate` is float32 [N, 512]. `key` is not used."""
        del key
        features = run_stages(self.stages, self.normalize(images), train)
        features["penultimate"] = features["stage5"].astype(jnp.float32).mean((1, 2))
        return self.head(features["penultimate"]), features


VGG11, VGG19 = (1, 1, 2, 2, 2), (2, 2, 4, 4, 4)  # convolutions in each stage
FAMILY = {
    "vgg11": partial(VGG, stage_sizes=VGG11, batch_norm=False),
    "vgg11_bn": partial(VGG, stage_sizes=VGG11, batch_norm=True),
    "vgg19": partial(VGG, stage_sizes=VGG19, batch_norm=False),
    "vgg19_bn": partial(VGG, stage_sizes=VGG19, batch_norm=True),
    "cifar_vgg19_bn": partial(CifarVGG, stage_sizes=VGG19, batch_norm=True),
}
SMALLEST = dict.fromkeys(FAMILY, 32)
