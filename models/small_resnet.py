"""A small residual network for 32x32 images and CPUs: much accuracy in a second of training.

Work at full resolution brings little in the first minutes of training, so the network leaves it at once (2x2 pixels
become 12 channels) and spends its multiplications at 8x8 and 4x4 pixels, where convolutions are large matrix products.
Halving is by mean over 2x2 blocks: strided 3x3 convolutions are slower, their input gradients above all.
"""

from functools import partial

import jax.numpy as jnp
from flax import nnx

from models.layers import BatchNorm, Conv, Linear, Normalize, mean_pool
from models.resnet import BasicBlock


class SmallResNet(nnx.Module):
    """2x2 pixels to channels, 3x3 convolution; stages of 2x2 means and residual blocks; linear.

    With the defaults and 32x32 images: 16x16x12 -> 16x16x24 -> 8x8x48 -> 4x4x96; 165,754 parameters for 10 classes.

    Args:
      stem: channels of the first convolution.
      widths: channels of the stages; each halves height and width.
      depth: residual blocks in each stage.
    """

    def __init__(
        self, num_classes, *, rng, dtype, stem=24, widths=(48, 96), depth=1, mean=None, std=None, init="he", conv="auto"
    ):
        make_conv = partial(Conv, rng=rng, init=init, dtype=dtype, conv=conv)
        norm = partial(BatchNorm, rng=rng, init=init, dtype=dtype)
        self.normalize = Normalize(mean, std, "cifar")
        self.stem, self.stem_norm = make_conv(12, stem, 3), norm(stem)
        c_in, stages = stem, []
        for width in widths:
            blocks = []
            for _ in range(depth):
                blocks.append(BasicBlock(c_in, width, 1, conv=make_conv, norm=norm))
                c_in = width
            stages.append(nnx.List(blocks))
        self.stages = nnx.List(stages)
        self.head = Linear(c_in, num_classes, rng=rng, init=init)

    def __call__(self, images, train, key=None):
        """Returns (logits, features), see `models.build`. Features: `stage1`, `stage2`, ... [N, h, w, C] and
        `penultimate` float32 [N, C].
        """
        del key
        x = nnx.relu(self.stem_norm(self.stem(space_to_depth(self.normalize(images))), train))
        features = {}
        for i, blocks in enumerate(self.stages, 1):
            x = mean_pool(x)
            for block in blocks:
                x = block(x, train)
            features[f"stage{i}"] = x
        features["penultimate"] = x.astype(jnp.float32).mean((1, 2))
        return self.head(features["penultimate"]), features


def space_to_depth(x):
    """Makes each 2x2 block one pixel, [N, H // 2, W // 2, 4 C] of [N, H, W, C]; odd rests are cut."""
    n, h, w, c = x.shape
    blocks = x[:, : h // 2 * 2, : w // 2 * 2].reshape(n, h // 2, 2, w // 2, 2, c)
    return blocks.transpose(0, 1, 3, 2, 4, 5).reshape(n, h // 2, w // 2, 4 * c)


FAMILY = {"small_resnet": SmallResNet}
