"""VGG, AlexNet and SqueezeNet, networks of convolutions and poolings without shortcuts, as in torchvision.

The papers' tables have VGG-19 twice: `vgg19` without BatchNorm, `vgg19_bn` with it. Their SqueezeNet (error 41.8 % on
ImageNet's validation images) is `squeezenet1_1`.

The layers have torchvision's order: `stages` or `convs`, `stem` and `fires` are its `features`; `hidden` and `head` are its
`classifier`. VGG and AlexNet flatten maps channels first, as there, so that the kernel of a linear layer is the transpose of
torchvision's.

`init` of both VGGs: `he` and `goyal` draw convolutions by He's rule (fan-out) and linear layers
from N(0, 0.01^2), as torchvision; `xavier` as everywhere.
"""

from functools import partial

import jax.numpy as jnp
from flax import nnx

from models.layers import Dropout, adaptive_mean_pool, make_stages, max_pool, run_stages

HIDDEN = 4096


class ConvLayer(nnx.Module):
    """3x3 convolution with bias, BatchNorm where the network has it, ReLU."""

    def __init__(self, c_in, c_out, options, batch_norm):
        self.conv = options.convs(bias=True)(c_in, c_out, 3)
        self.norm = options.norms()(c_out) if batch_norm else None

    def __call__(self, x, train):
        y = self.conv(x)
        return nnx.relu(y if self.norm is None else self.norm(y, train))


def layers_of(sizes, options, batch_norm):
    """Makes five stages of `sizes` layers of 64, 128, 256, 512 and 512 channels."""
    widths = (64, 128, 256, 512, 512)
    return make_stages(3, widths, sizes, lambda c_in, c_out, _: ConvLayer(c_in, c_out, options, batch_norm))


pool = partial(max_pool, size=2, stride=2)


class VGG(nnx.Module):
    """VGG (Simonyan and Zisserman 2015, arXiv:1409.1556).

    Convolutions, mean over 7x7 windows, two hidden layers of 4096 with ReLU and dropout, linear.

    Args:
      stage_sizes: convolutions in each of the five stages.
      batch_norm: BatchNorm follows each convolution.
      dropout: probability of dropping a hidden value in training, in [0, 1).
    """

    def __init__(self, num_classes, options, *, stage_sizes, batch_norm, dropout=0.5):
        self.normalize = options.normalize("imagenet")
        self.stages = layers_of(stage_sizes, options, batch_norm)
        rule = "small" if options.init == "he" else None
        hidden = options.linears(rule, dtype=options.dtype)
        self.hidden = nnx.List([hidden(512 * 49, HIDDEN), hidden(HIDDEN, HIDDEN)])
        self.dropouts = nnx.List([Dropout(dropout, i) for i in range(2)])
        self.head = options.linears(rule)(HIDDEN, num_classes)

    def __call__(self, images, train, key=None):
        """Returns (logits, features), see `models.build`. Features: `stage1` ... `stage5` [N, h, w, C] and
        `penultimate` float32 [N, 4096], the input of the last layer (after dropout).
        """
        self.dropouts[0].require_key(train, key)
        x, features = run_stages(self.stages, self.normalize(images), train, after=pool)
        x = adaptive_mean_pool(x, 7).transpose(0, 3, 1, 2).reshape(images.shape[0], -1)
        for linear, dropout in zip(self.hidden, self.dropouts):
            x = dropout(nnx.relu(linear(x)), train, key)
        features["penultimate"] = x
        return self.head(x), features


class CifarVGG(nnx.Module):
    """The usual form for 32x32 images: one pixel is left (else the mean is taken), then one linear layer.

    Arguments as of `VGG`, without dropout; the input normalisation is CIFAR-10's by default.
    """

    def __init__(self, num_classes, options, *, stage_sizes, batch_norm):
        self.normalize = options.normalize("cifar")
        self.stages = layers_of(stage_sizes, options, batch_norm)
        self.head = options.linears("small" if options.init == "he" else None)(512, num_classes)

    def __call__(self, images, train, key=None):
        """As `VGG`; `penultimate` is float32 [N, 512]. `key` is not used."""
        del key
        x, features = run_stages(self.stages, self.normalize(images), train, after=pool)
        features["penultimate"] = x.astype(jnp.float32).mean((1, 2))
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


class AlexNet(nnx.Module):
    """AlexNet (Krizhevsky 2014, arXiv:1404.5997, the one-column network).

    Five convolutions with ReLU, three 3x3 max-poolings / 2, two hidden layers of 4096, linear.

    Args:
      dropout: probability of dropping an input of a hidden layer in training, in [0, 1).
      init: `he` (here PyTorch's own rule for all layers, as torchvision), `xavier` or `goyal` (He
        fan-out, linear N(0, 0.01^2)); see layers.py.
    """

    def __init__(self, num_classes, options, *, dropout=0.5):
        rule = "pytorch" if options.init == "he" else None
        make_conv, hidden = options.convs(rule, bias=True), options.linears(rule, dtype=options.dtype)
        self.normalize = options.normalize("imagenet")
        later = ((64, 192, 5), (192, 384, 3), (384, 256, 3), (256, 256, 3))
        self.convs = nnx.List([make_conv(3, 64, 11, stride=4, padding=2), *(make_conv(*sizes) for sizes in later)])
        self.hidden = nnx.List([hidden(256 * 36, HIDDEN), hidden(HIDDEN, HIDDEN)])
        self.dropouts = nnx.List([Dropout(dropout, i) for i in range(2)])
        self.head = options.linears(rule)(HIDDEN, num_classes)

    def __call__(self, images, train, key=None):
        """Returns (logits, features), see `models.build`. Features: `stage1` ... `stage3` [N, h, w, C] after the
        poolings and `penultimate` float32 [N, 4096].
        """
        x, features = self.normalize(images), {}
        for i, conv in enumerate(self.convs):
            x = nnx.relu(conv(x))
            if i in (0, 1, 4):
                x = max_pool(x, 3, 2)
                features[f"stage{len(features) + 1}"] = x
        x = adaptive_mean_pool(x, 6).transpose(0, 3, 1, 2).reshape(x.shape[0], -1)
        for linear, dropout in zip(self.hidden, self.dropouts):
            x = nnx.relu(linear(dropout(x, train, key)))
        features["penultimate"] = x
        return self.head(x), features


FAMILY |= {"alexnet": AlexNet}
SMALLEST |= {"alexnet": 63}


class Fire(nnx.Module):
    """1x1 convolution to few channels, then 1x1 and 3x3 convolutions side by side, with ReLU."""

    def __init__(self, c_in, squeezed, expanded, *, conv):
        self.squeeze = conv(c_in, squeezed, 1)
        self.expand1x1, self.expand3x3 = conv(squeezed, expanded, 1), conv(squeezed, expanded, 3)

    def __call__(self, x):
        x = nnx.relu(self.squeeze(x))
        return nnx.relu(jnp.concatenate([self.expand1x1(x), self.expand3x3(x)], -1))


class SqueezeNet(nnx.Module):
    """SqueezeNet 1.0 and 1.1 (Iandola et al. 2016, arXiv:1602.07360).

    Convolution / 2, eight Fire modules, three 3x3 max-poolings / 2, 1x1 convolution, mean of pixels.

    Logits are means of ReLUs, so never negative.

    Args:
      stem: channels and side of the first convolution.
      pools: number of Fire modules before each pooling.
      dropout: probability of dropping an input of the last convolution in training, in [0, 1).
      init: `he` (uniform fan-in form; the last convolution N(0, 0.01^2), as torchvision), `xavier`
        or `goyal` (He fan-out; the last N(0, 0.01^2)); see layers.py.
    """

    def __init__(self, num_classes, options, *, stem, pools, dropout=0.5):
        body = options.convs("he_uniform" if options.init == "he" else None, bias=True)
        self.normalize = options.normalize("imagenet")
        c_in, size = stem
        self.stem = body(3, c_in, size, stride=2, padding=0)
        fires = []
        for squeezed in (16, 16, 32, 32, 48, 48, 64, 64):
            fires.append(Fire(c_in, squeezed, 4 * squeezed, conv=body))
            c_in = 8 * squeezed
        self.fires = nnx.List(fires)
        self.pools = pools
        self.dropout = Dropout(dropout)
        self.head = options.convs("xavier" if options.init == "xavier" else "small", bias=True)(c_in, num_classes, 1)

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


FAMILY |= {
    "squeezenet1_0": partial(SqueezeNet, stem=(96, 7), pools=(0, 3, 7)),
    "squeezenet1_1": partial(SqueezeNet, stem=(64, 3), pools=(0, 2, 4)),
}
SMALLEST |= {"squeezenet1_0": 21, "squeezenet1_1": 17}
