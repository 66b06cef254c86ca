"""DenseNets (Huang et al. 2017, arXiv:1608.06993), BC form, with the ImageNet or the CIFAR stem.

Every layer reads the concatenation of all maps before it in its block. Kept for the backward pass, these
concatenations and their normalised copies grow with the square of the depth; so they are made again there (Pleiss et
al. 2017, arXiv:1707.06990). Convolutions are not repeated: only their results are kept.
"""

from functools import partial

import jax.numpy as jnp
from flax import nnx

from models.layers import max_pool, mean_pool


def activate_and_convolve(norm, conv, maps, train):
    """conv(relu(norm(maps side by side)))."""
    return conv(nnx.relu(norm(jnp.concatenate(maps, -1), train)))


recomputed = nnx.remat(activate_and_convolve, static_argnums=3)


class DenseLayer(nnx.Module):
    """BatchNorm, ReLU, 1x1 convolution to 4 growth channels; the same, 3x3, to `growth` channels."""

    def __init__(self, c_in, growth, *, conv, norm, memory_efficient):
        self.norm1, self.conv1 = norm(c_in), conv(c_in, 4 * growth, 1)
        self.norm2, self.conv2 = norm(4 * growth), conv(4 * growth, growth, 3)
        self.memory_efficient = memory_efficient

    def __call__(self, maps, train):
        """Tuple of float[N, H, W, C_i] -> float[N, H, W, growth]."""
        # Flax cannot recompute modules of an outer trace, such as a loop over batches.
        apply = recomputed if self.memory_efficient and train else activate_and_convolve
        return apply(self.norm2, self.conv2, (apply(self.norm1, self.conv1, maps, train),), train)


class Transition(nnx.Module):
    """BatchNorm, ReLU, 1x1 convolution to half the channels, mean over 2x2 pixels.

    The mean is taken before the convolution: the two commute, and a quarter of the work is left.
    """

    def __init__(self, c_in, *, conv, norm):
        self.norm, self.conv = norm(c_in), conv(c_in, c_in // 2, 1)

    def __call__(self, x, train):
        return self.conv(mean_pool(nnx.relu(self.norm(x, train))))


class DenseNet(nnx.Module):
    """Stem, four blocks of dense layers with transitions, BatchNorm, ReLU, mean over pixels, linear.

    Args:
      growth: maps that each layer adds; the stem has twice as many.
      block_sizes: layers in each block.
      stem: `imagenet` (7x7 convolution / 2, BatchNorm, ReLU, 3x3 max-pooling / 2) or `cifar` (3x3
        convolution, BatchNorm, ReLU).
      init: `he` (the convolutions in fan-in form, as torchvision), `xavier` or `goyal`, see layers.py.
      memory_efficient: make concatenations and activations again in the backward pass of training
        instead of keeping them.
    """

    def __init__(self, num_classes, options, *, growth, block_sizes, stem, memory_efficient=True):
        if stem not in ("imagenet", "cifar"):
            raise ValueError(f"expected stem 'imagenet' or 'cifar', found {stem!r}")
        make_conv, norm = options.convs("he_in" if options.init == "he" else None), options.norms()
        self.normalize = options.normalize(stem)
        self.pools = stem == "imagenet"
        channels = 2 * growth
        self.stem = make_conv(3, channels, 7, stride=2) if self.pools else make_conv(3, channels, 3)
        self.stem_norm = norm(channels)
        blocks, transitions = [], []
        for i, size in enumerate(block_sizes):
            if i:
                transitions.append(Transition(channels, conv=make_conv, norm=norm))
                channels //= 2
            layers = [
                DenseLayer(channels + j * growth, growth, conv=make_conv, norm=norm, memory_efficient=memory_efficient)
                for j in range(size)
            ]
            blocks.append(nnx.List(layers))
            channels += size * growth
        self.blocks, self.transitions = nnx.List(blocks), nnx.List(transitions)
        self.norm = norm(channels)
        self.head = options.linears()(channels, num_classes)

    def __call__(self, images, train, key=None):
        """Returns (logits, features), see `models.build`. Features: `stage1` ... `stage4` [N, h, w, C], the blocks'
        concatenated maps, and `penultimate` float32 [N, C] after the last BatchNorm, ReLU and the mean over pixels.
        """
        del key
        x = nnx.relu(self.stem_norm(self.stem(self.normalize(images)), train))
        if self.pools:
            x = max_pool(x, 3, 2, 1)
        features = {}
        for i, layers in enumerate(self.blocks):
            if i:
                x = self.transitions[i - 1](x, train)
            maps = (x,)
            for layer in layers:
                maps += (layer(maps, train),)
            features[f"stage{i + 1}"] = x = jnp.concatenate(maps, -1)
        x = nnx.relu(self.norm(x, train))
        features["penultimate"] = x.astype(jnp.float32).mean((1, 2))
        return self.head(features["penultimate"]), features


DENSENETS = {  # name: (growth, layers of each block)
    "densenet121": (32, (6, 12, 24, 16)),
    "densenet161": (48, (6, 12, 36, 24)),
    "densenet169": (32, (6, 12, 32, 32)),
    "densenet201": (32, (6, 12, 48, 32)),
    "densenet264_k48": (48, (6, 12, 64, 48)),  # published as DenseNet-cosine-264
}
FAMILY = {
    prefix + name: partial(DenseNet, growth=growth, block_sizes=sizes, stem=stem)
    for prefix, stem in (("", "imagenet"), ("cifar_", "cifar"))
    for name, (growth, sizes) in DENSENETS.items()
}
SMALLEST = {name: 29 for name in FAMILY if not name.startswith("cifar_")}
