"""Residual networks (He et al. 2016, arXiv:1512.03385) with the ImageNet or the CIFAR stem.

ResNet-18, 34, 50, 101, 152; Wide-ResNet-50-2 (Zagoruyko and Komodakis 2016, arXiv:1605.07146, section 3.4); ResNeXts
(Xie et al. 2017, arXiv:1611.05431), whose 3x3 convolutions have many groups: `resnext50` is the 32x4d, `resnext101`
the 32x8d, as in torchvision. `resnet50_gn` has GroupNorm in place of BatchNorm, as in timm.
"""

from functools import partial

import jax.numpy as jnp
from flax import nnx

from models.layers import BatchNorm, Conv, Linear, Normalize, max_pool
from models.norms import GroupNorm


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
    groups, group_width = 1, 64

    def __init__(self, c_in, width, stride, *, conv, norm):
        inner = self.groups * (width * self.group_width // 64)
        self.conv1, self.norm1 = conv(c_in, inner, 1), norm(inner)
        self.conv2, self.norm2 = conv(inner, inner, 3, stride=stride, groups=self.groups), norm(inner)
        self.conv3, self.norm3 = conv(inner, 4 * width, 1), norm(4 * width, last=True)
        self.shortcut = Shortcut(c_in, 4 * width, stride, conv=conv, norm=norm)

    def __call__(self, x, train):
        y = nnx.relu(self.norm1(self.conv1(x), train))
        y = nnx.relu(self.norm2(self.conv2(y), train))
        y = self.norm3(self.conv3(y), train)
        return nnx.relu(self.shortcut(x, train) + y)


class WideBottleneck(Bottleneck):
    """Twice as many channels in the 3x3 convolution."""

    group_width = 128


class Shortcut(nnx.Module):
    """Identity, or 1x1 convolution with BatchNorm where the shape changes (the paper's option B)."""

    def __init__(self, c_in, c_out, stride, *, conv, norm):
        self.projects = stride != 1 or c_in != c_out
        if self.projects:
            self.conv, self.norm = conv(c_in, c_out, 1, stride=stride), norm(c_out)

    def __call__(self, x, train):
        return self.norm(self.conv(x), train) if self.projects else x


class Bottleneck32x4d(Bottleneck):
    """32 groups of 4 channels in the first stage, twice as many in each following one."""

    groups, group_width = 32, 4


class Bottleneck32x8d(Bottleneck):
    """32 groups of 8 channels in the first stage."""

    groups, group_width = 32, 8


class Bottleneck64x4d(Bottleneck):
    """64 groups of 4 channels in the first stage."""

    groups, group_width = 64, 4


class ResNet(nnx.Module):
    """Stem, four stages of blocks of width 64, 128, 256, 512, mean over pixels, linear.

    Args:
      block: BasicBlock, Bottleneck or a kind of it.
      stage_sizes: blocks in each stage.
      stem: `imagenet` (7x7 convolution / 2, 3x3 max-pooling / 2) or `cifar` (3x3 convolution).
      norm: BatchNorm or GroupNorm.
    """

    def __init__(
        self,
        num_classes,
        *,
        block,
        stage_sizes,
        stem,
        rng,
        dtype,
        mean=None,
        std=None,
        init="he",
        conv="auto",
        norm=BatchNorm,
    ):
        if stem not in ("imagenet", "cifar"):
            raise ValueError(f"expected stem 'imagenet' or 'cifar', found {stem!r}")
        make_conv = partial(Conv, rng=rng, init=init, dtype=dtype, conv=conv)
        norm = partial(norm, rng=rng, init=init, dtype=dtype)
        self.normalize = Normalize(mean, std, stem)
        self.pools = stem == "imagenet"
        self.stem = make_conv(3, 64, 7, stride=2) if self.pools else make_conv(3, 64, 3)
        self.stem_norm = norm(64)
        c_in, stages = 64, []
        for i, size in enumerate(stage_sizes):
            blocks = []
            for j in range(size):
                blocks.append(block(c_in, 64 * 2**i, 2 if i and not j else 1, conv=make_conv, norm=norm))
                c_in = 64 * 2**i * block.expansion
            stages.append(nnx.List(blocks))
        self.stages = nnx.List(stages)
        self.head = Linear(c_in, num_classes, rng=rng, init=init)

    def __call__(self, images, train, key=None):
        """Returns (logits, features), see `models.build`. Features: `stage1` ... `stage4` [N, h, w, C] and
        `penultimate` float32 [N, C].
        """
        del key
        x = nnx.relu(self.stem_norm(self.stem(self.normalize(images)), train))
        if self.pools:
            x = max_pool(x, 3, 2, 1)
        features = {}
        for i, blocks in enumerate(self.stages, 1):
            for block in blocks:
                x = block(x, train)
            features[f"stage{i}"] = x
        features["penultimate"] = x.astype(jnp.float32).mean((1, 2))
        return self.head(features["penultimate"]), features


def family(variants, norm=BatchNorm):
    """Makes registry entries of {name: (block, stage sizes)}, each also as `cifar_` with its stem."""
    return {
        prefix + name: partial(ResNet, block=block, stage_sizes=sizes, stem=stem, norm=norm)
        for prefix, stem in (("", "imagenet"), ("cifar_", "cifar"))
        for name, (block, sizes) in variants.items()
    }


FAMILY = family(
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
