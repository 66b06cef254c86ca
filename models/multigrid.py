"""Multigrid networks (Ke, Maire, Yu 2017, arXiv:1611.07661): the residual R-MG-34.

Every layer holds a pyramid of maps, the finest first, each half the size of the one before it. A
convolution reads the maps of its own grid and of both neighbours, resized.
"""

from functools import partial

import jax.numpy as jnp
from flax import nnx

from models.layers import max_pool, mean_pool

STEM = (64, 32, 16)
STAGES = (  # (blocks, channels of each grid); a stage with one grid less merges two grids
    (3, (64, 32, 16)),
    (4, (128, 64, 32)),
    (6, (256, 128)),
    (3, (512,)),
)


def gather(grids):
    """Puts beside each grid its neighbours: the finer max-pooled, itself, the coarser doubled."""
    gathered = []
    for i, x in enumerate(grids):
        parts = [x]
        if i:
            parts.insert(0, halved(grids[i - 1], x.shape[1:3]))
        if i + 1 < len(grids):
            parts.append(doubled(grids[i + 1], x.shape[1:3]))
        gathered.append(jnp.concatenate(parts, -1))
    return gathered


def halved(x, size=None):
    """Maxima of 2x2 pixels, odd rests too; cut to `size`, which images whose side 32 does not divide make smaller."""
    y = max_pool(x, 2, 2, ceil=True)
    return y if size is None else y[:, : size[0], : size[1]]


def doubled(x, size):
    """Each pixel as 2x2, cut or continued to `size`."""
    y = jnp.repeat(jnp.repeat(x, 2, 1), 2, 2)
    missing = [(0, max(0, full - found)) for full, found in zip(size, y.shape[1:3], strict=True)]
    y = jnp.pad(y, [(0, 0), *missing, (0, 0)], mode="edge") if any(sum(missing, ())) else y
    return y[:, : size[0], : size[1]]


def merged(grids):
    """Pools every grid, but joins the second coarsest, unpooled, to the coarsest."""
    *finer, second, coarsest = grids
    return [*map(halved, finer), jnp.concatenate((halved(second, coarsest.shape[1:3]), coarsest), -1)]


class GridConv(nnx.Module):
    """bn(conv3x3(gathered)) of each grid."""

    def __init__(self, channels_in, channels, *, conv, norm):
        widths = [sum(channels_in[max(0, i - 1) : i + 2]) for i in range(len(channels))]
        self.convs = nnx.List([conv(c_in, c_out, 3) for c_in, c_out in zip(widths, channels, strict=True)])
        self.norms = nnx.List([norm(c_out) for c_out in channels])

    def __call__(self, grids, train):
        return [norm(conv(x), train) for norm, conv, x in zip(self.norms, self.convs, gather(grids), strict=True)]


class Block(nnx.Module):
    """relu(x + f(relu(f(x)))) with f a `GridConv`; a narrower x is filled up with zeros."""

    def __init__(self, channels_in, channels, *, conv, norm):
        self.first = GridConv(channels_in, channels, conv=conv, norm=norm)
        self.second = GridConv(channels, channels, conv=conv, norm=norm)

    def __call__(self, grids, train):
        changes = self.second([nnx.relu(y) for y in self.first(grids, train)], train)
        pads = [(*((0, 0),) * 3, (0, y.shape[-1] - x.shape[-1])) for x, y in zip(grids, changes, strict=True)]
        return [nnx.relu(jnp.pad(x, pad) + y) for x, pad, y in zip(grids, pads, changes, strict=True)]


class MultigridResNet(nnx.Module):
    """R-MG: a stem for each grid, four stages of residual blocks, mean over pixels, linear.

    Grid i reads the image averaged over 2^i x 2^i pixels. Convolutions have biases.

    Args:
      stages: (blocks, channels of each grid) of each stage, see `STAGES`.
    """

    def __init__(self, num_classes, options, *, stages):
        conv, norm = options.convs(bias=True), options.norms()
        self.normalize = options.normalize("imagenet")
        self.stems = nnx.List([conv(3, channels, 7, stride=2) for channels in STEM])
        self.stem_norms = nnx.List([norm(channels) for channels in STEM])
        before, made = STEM, []
        for blocks, channels in stages:
            if len(channels) < len(before):
                before = (*before[: len(channels) - 1], sum(before[-2:]))
            layers = []
            for _ in range(blocks):
                layers.append(Block(before, channels, conv=conv, norm=norm))
                before = channels
            made.append(nnx.List(layers))
        self.stages = nnx.List(made)
        self.head = options.linears()(sum(before), num_classes)

    def __call__(self, images, train, key=None):
        """Returns (logits, features), see `models.build`. Features: `stage1` ... `stage4` [N, h, w, C], the finest grid
        after each stage, and `penultimate` float32 [N, C].
        """
        del key
        x, grids = self.normalize(images), []
        for i, (conv, norm) in enumerate(zip(self.stems, self.stem_norms, strict=True)):
            x = mean_pool(x) if i else x
            grids.append(max_pool(nnx.relu(norm(conv(x), train)), 3, 2, 1))
        features = {}
        for i, layers in enumerate(self.stages, 1):
            if i > 1:
                grids = merged(grids) if len(layers[0].first.convs) < len(grids) else [halved(x) for x in grids]
            for block in layers:
                grids = block(grids, train)
            features[f"stage{i}"] = grids[0]
        features["penultimate"] = jnp.concatenate([g.astype(jnp.float32).mean((1, 2)) for g in grids], -1)
        return self.head(features["penultimate"]), features


FAMILY = {"multigrid34": partial(MultigridResNet, stages=STAGES)}
