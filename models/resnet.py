"""Residual networks (He et al. 2016, arXiv:1512.03385) with the ImageNet or the CIFAR stem.

ResNet-18, 34, 50, 101, 152; Wide-ResNet-50-2 (Zagoruyko and Komodakis 2016, arXiv:1605.07146, section 3.4); ResNeXts
(Xie et al. 2017, arXiv:1611.05431), whose 3x3 convolutions have many groups: `resnext50` is the 32x4d, `resnext101`
the 32x8d, as in torchvision. `resnet50_gn` has GroupNorm in place of BatchNorm, as in timm. For 32x32 images: the small
residual network and wide residual networks.
"""

import itertools
from functools import partial

import jax.numpy as jnp
from flax import nnx

from models.layers import Dropout, make_stages, max_pool, mean_pool, run_stages
from models.norms import BatchNorm, GroupNorm


class SmallResNet(nnx.Module):
    """A small residual network for 32x32 images and CPUs: much accuracy in a second of training.

    2x2 pixels to channels, 3x3 convolution; stages of 2x2 means and residual blocks; linear. Full resolution brings little
    in the first minutes of training, so the network multiplies mostly at 8x8 and 4x4 pixels, where convolutions are large
    matrix products. Strided 3x3 convolutions are slower than means, their input gradients above all.

    With the defaults and 32x32 images: 16x16x12 -> 16x16x24 -> 8x8x48 -> 4x4x96; 165,754 parameters for 10 classes.

    Args:
      stem: channels of the first convolution.
      widths: channels of the stages; each halves height and width.
      depth: residual blocks in each stage.
    """

    def __init__(self, num_classes, options, *, stem=24, widths=(48, 96), depth=1):
        make_conv, norm = options.convs(), options.norms()
        self.normalize = options.normalize("cifar")
        self.stem, self.stem_norm = make_conv(12, stem, 3), norm(stem)
        block = partial(BasicBlock, conv=make_conv, norm=norm)
        self.stages = make_stages(stem, widths, [depth] * len(widths), lambda c_in, c_out, _: block(c_in, c_out, 1))
        self.head = options.linears()(widths[-1], num_classes)

    def __call__(self, images, train, key=None):
        """Returns (logits, features), see `models.build`. Features: `stage1`, `stage2`, ... [N, h, w, C] and
        `penultimate` float32 [N, C].
        """
        del key
        x = nnx.relu(self.stem_norm(self.stem(space_to_depth(self.normalize(images))), train))
        x, features = run_stages(self.stages, x, train, before=mean_pool)
        features["penultimate"] = x.astype(jnp.float32).mean((1, 2))
        return self.head(features["penultimate"]), features


def space_to_depth(x):
    """Makes each 2x2 block one pixel, [N, H // 2, W // 2, 4 C] of [N, H, W, C]; odd rests are cut."""
    n, h, w, c = x.shape
    blocks = x[:, : h // 2 * 2, : w // 2 * 2].reshape(n, h // 2, 2, w // 2, 2, c)
    return blocks.transpose(0, 1, 3, 2, 4, 5).reshape(n, h // 2, w // 2, 4 * c)


FAMILY = {"small_resnet": SmallResNet}


class BasicBlock(nnx.Module):
    """relu(shortcut(x) + bn(conv3x3(relu(bn(conv3x3 / stride))))); channels out = width."""

    expansion = 1

    def __init__(self, c_in, width, stride, *, conv, norm):
        self.conv1 = conv(c_in, width, 3, stride=stride)
        self.norm1 = norm(width)
        self.conv2 = conv(width, width, 3)
        self.norm2 = norm(width, last=True)
        self.shortcut = Shortcut(c_in, width, stride, conv=conv, norm=norm)

    def __call__(self, x, train):
        y = nnx.relu(self.norm1(self.conv1(x), train))
        y = self.norm2(self.conv2(y), train)
        return nnx.relu(self.shortcut(x, train) + y)


class Bottleneck(nnx.Module):
    """1x1, 3x3 (with the stride, as in torchvision), 1x1 to 4 width channels, each with BatchNorm.

    The 3x3 convolution has `groups` groups of `width / 64 * group_width` channels.
    """

    expansion = 4

    def __init__(self, c_in, width, stride, *, conv, norm, groups=1, group_width=64):
        inner = groups * (width * group_width // 64)
        self.conv1, self.norm1 = conv(c_in, inner, 1), norm(inner)
        self.conv2, self.norm2 = conv(inner, inner, 3, stride=stride, groups=groups), norm(inner)
        self.conv3, self.norm3 = conv(inner, 4 * width, 1), norm(4 * width, last=True)
        self.shortcut = Shortcut(c_in, 4 * width, stride, conv=conv, norm=norm)

    def __call__(self, x, train):
        y = nnx.relu(self.norm1(self.conv1(x), train))
        y = nnx.relu(self.norm2(self.conv2(y), train))
        y = self.norm3(self.conv3(y), train)
        return nnx.relu(self.shortcut(x, train) + y)


# Groups have so many channels in the first stage, and twice as many in each later one.
WideBottleneck = partial(Bottleneck, group_width=128)
Bottleneck32x4d = partial(Bottleneck, groups=32, group_width=4)
Bottleneck32x8d = partial(Bottleneck, groups=32, group_width=8)
Bottleneck64x4d = partial(Bottleneck, groups=64, group_width=4)


class Shortcut(nnx.Module):
    """Identity, or 1x1 convolution with BatchNorm where the shape changes (the paper's option B)."""

    def __init__(self, c_in, c_out, stride, *, conv, norm):
        self.projects = stride != 1 or c_in != c_out
        if self.projects:
            self.conv, self.norm = conv(c_in, c_out, 1, stride=stride), norm(c_out)

    def __call__(self, x, train):
        return self.norm(self.conv(x), train) if self.projects else x


class ResNet(nnx.Module):
    """Stem, four stages of blocks of width 64, 128, 256, 512, mean over pixels, linear.

    Args:
      block: BasicBlock, Bottleneck or a partial of it.
      stage_sizes: blocks in each stage.
      stem: `imagenet` (7x7 convolution / 2, 3x3 max-pooling / 2) or `cifar` (3x3 convolution).
      norm: BatchNorm or GroupNorm.
    """

    def __init__(self, num_classes, options, *, block, stage_sizes, stem, norm=BatchNorm):
        if stem not in ("imagenet", "cifar"):
            raise ValueError(f"expected stem 'imagenet' or 'cifar', found {stem!r}")
        make_conv, norm = options.convs(), options.norms(norm)
        self.normalize = options.normalize(stem)
        self.pools = stem == "imagenet"
        self.stem = make_conv(3, 64, 7, stride=2) if self.pools else make_conv(3, 64, 3)
        self.stem_norm = norm(64)

        expansion = getattr(block, "func", block).expansion
        widths = [64 * 2**i * expansion for i in range(len(stage_sizes))]

        def make(c_in, c_out, stride):
            return block(c_in, c_out // expansion, stride, conv=make_conv, norm=norm)

        self.stages = make_stages(64, widths, stage_sizes, make)
        self.head = options.linears()(widths[-1], num_classes)

    def __call__(self, images, train, key=None):
        """Returns (logits, features), see `models.build`. Features: `stage1` ... `stage4` [N, h, w, C] and
        `penultimate` float32 [N, C].
        """
        del key
        x = nnx.relu(self.stem_norm(self.stem(self.normalize(images)), train))
        x, features = run_stages(self.stages, max_pool(x, 3, 2, 1) if self.pools else x, train)
        features["penultimate"] = x.astype(jnp.float32).mean((1, 2))
        return self.head(features["penultimate"]), features


def family(variants, norm=BatchNorm):
    """Makes registry entries of {name: (block, stage sizes)}, each also as `cifar_` with its stem."""
    return {
        prefix + name: partial(ResNet, block=block, stage_sizes=sizes, stem=stem, norm=norm)
        for prefix, stem in (("", "imagenet"), ("cifar_", "cifar"))
        for name, (block, sizes) in variants.items()
    }


FAMILY |= family(
    {
        "resnet18": (BasicBlock, (2, 2, 2, 2)),
        "resnet34": (BasicBlock, (3, 4, 6, 3)),
        "resnet50": (Bottleneck, (3, 4, 6, 3)),
        "resnet101": (Bottleneck, (3, 4, 23, 3)),
        "resnet152": (Bottleneck, (3, 8, 36, 3)),
        "wide_resnet50_2": (WideBottleneck, (3, 4, 6, 3)),
        "resnext50": (Bottleneck32x4d, (3, 4, 6, 3)),
        "resnext101": (Bottleneck32x8d, (3, 4, 23, 3)),
        "resnext101_32x4d": (Bottleneck32x4d, (3, 4, 23, 3)),
        "resnext101_64x4d": (Bottleneck64x4d, (3, 4, 23, 3)),
    }
) | family({"resnet50_gn": (Bottleneck, (3, 4, 6, 3))}, GroupNorm)


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
    """A wide residual network (Zagoruyko, Komodakis 2016, arXiv:1605.07146) for 32x32 images.

    WRN-depth-widen: 3x3 stem, three stages of (depth - 4) / 6 blocks of 16, 32, 64 times widen.

    Args:
      depth: 6 n + 4.
      widen: factor of the channels.
      dropout: probability of dropping an activation between the convolutions of a block, in [0, 1).
    """

    def __init__(self, num_classes, options, *, depth, widen, dropout=0.0):
        if (depth - 4) % 6:
            raise ValueError(f"expected a depth of 6 n + 4, found {depth}")
        make_conv, norm = options.convs(), options.norms()
        self.normalize = options.normalize("cifar")
        self.stem, number = make_conv(3, 16, 3), itertools.count()

        def make(c_in, c_out, stride):
            layer = Dropout(dropout, next(number))
            return WideBlock(c_in, c_out, stride, dropout=layer, conv=make_conv, norm=norm)

        widths = [16 * widen, 32 * widen, 64 * widen]
        self.stages = make_stages(16, widths, [(depth - 4) // 6] * 3, make)
        self.norm = norm(widths[-1])
        self.head = options.linears()(widths[-1], num_classes)

    def __call__(self, images, train, key=None):
        """Returns (logits, features), see `models.build`. Features: `stage1` ... `stage3` [N, h, w, C] before the final
        BatchNorm, `penultimate` float32 [N, C] after it, ReLU and the mean over pixels.
        """
        self.stages[0][0].dropout.require_key(train, key)
        x, features = run_stages(self.stages, self.stem(self.normalize(images)), train, key)
        x = nnx.relu(self.norm(x, train))
        features["penultimate"] = x.astype(jnp.float32).mean((1, 2))
        return self.head(features["penultimate"]), features


FAMILY |= {
    "wrn_40_2": partial(WideResNet, depth=40, widen=2),
    "wrn_16_4": partial(WideResNet, depth=16, widen=4),
    "wrn_28_10": partial(WideResNet, depth=28, widen=10),
}
