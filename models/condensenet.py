"""CondenseNet-74 (Huang et al. 2018, arXiv:1711.09224): groups of 1x1 convolutions that training learns.

A network is trained in one form and used in another. Both are DenseNets whose growth doubles where the maps are
halved, with only a mean over 2x2 pixels between the stages. In the first form the 1x1 convolutions learn their groups
(`LearnedConv`); in the second they are grouped and read their inputs by index (`IndexedConv`). `convert` makes the
second form from the first. The 3x3 convolutions have groups from the start.

With G groups output o is of group o mod G. Training begins with all inputs; at G - 1 moments in its first half every
group drops C_in // G of them, those with the smallest sum of absolute weights, so that C_in // G are left. Until then a
group lasso draws the weights of an input to a group to 0 together (section 4, with as many groups as the condensation
factor).
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax

from models.layers import Buffer, Options, convolve, mean_pool

LASSO = 1e-5
"""Weight of the group lasso in the loss."""
STAGES = ((4, 8), (6, 16), (8, 32), (10, 64), (8, 128))  # (layers, growth)
HEAD_SHARE = 0.5
"""Share of the features that the last layer of a converted network reads."""
_SMALLEST_NORM = 1e-6  # squared norm below which the gradient of its root is cut off


class Mask(Buffer):
    """Inputs that each group of outputs reads: float32 [C_in, G] of 0 and 1."""


class LearnedConv(nnx.Module):
    """Convolution of relu(bn(x)) with a 1x1 kernel, 0 where a group dropped an input.

    Args:
      c_in, c_out: channels, multiples of `groups`.
      groups: G.
      conv, norm: make the convolution and the BatchNorm.
    """

    def __init__(self, c_in, c_out, groups, *, conv, norm):
        if c_in % groups or c_out % groups:
            raise ValueError(f"expected channels that {groups} divides, found {c_in} to {c_out}")
        self.norm, self.conv = norm(c_in), conv(c_in, c_out, 1)
        self.mask = Mask(jax.device_put(np.ones((c_in, groups), np.float32)))
        self.dropped_at_once = c_in // groups

    def __call__(self, x, train):
        """Convolves float[N, H, W, C_in] to float[N, H, W, C_out]."""
        x = nnx.relu(self.norm(x, train))
        kernel = (self.conv.kernel[...] * self._per_output()).astype(x.dtype)
        return convolve(x, kernel, (1, 1), ((0, 0),) * 2, self.conv.conv)

    def condense(self, stage):
        """Drops inputs until as many are left as after `stage` moments, 0 to G - 1."""
        mask, kernel = self.mask[...], lax.stop_gradient(self.conv.kernel[...])
        kept = mask.shape[0] - stage * self.dropped_at_once

        def largest():
            sums = self._by_group(jnp.abs(kernel))
            places = jnp.argsort(jnp.where(mask > 0, -sums, jnp.inf), axis=0).argsort(axis=0)
            return (places < kept).astype(mask.dtype)

        self.mask[...] = lax.cond(self.inputs > kept, largest, lambda: mask)

    @property
    def inputs(self):
        """Counts the inputs that each group still reads."""
        return (self.mask[...] > 0).sum(0)[0]

    def lasso(self):
        """Sums the norms of the weights of each input to each group; 0 once all was dropped."""
        norms = jnp.sqrt(jnp.maximum(self._by_group(self.conv.kernel[...] ** 2), _SMALLEST_NORM))
        return jnp.where(self.inputs > self.dropped_at_once, (norms * self.mask[...]).sum(), 0)

    def _per_output(self):
        """Writes the mask as a kernel, [1, 1, C_in, C_out]."""
        return jnp.tile(self.mask[...], (1, self.conv.kernel.shape[-1] // self.mask.shape[1]))[None, None]

    def _by_group(self, kernel):
        """Sums over the outputs of each group: [C_in, G]."""
        c_in, groups = self.mask.shape
        return kernel.reshape(c_in, -1, groups).sum(1)


def learned_convs(model):
    """Lists the convolutions of a model that learn their groups."""
    return [module for _, module in nnx.iter_graph(model) if isinstance(module, LearnedConv)]


def condense(model, step, steps):
    """Drops the inputs that are due in every learned convolution of a model.

    Moment i of G - 1 comes when 2 step / steps reaches i / (G - 1).

    Args:
      model: any model; changed in place.
      step: step of the training, an int or int32 array.
      steps: number of steps of the whole training.
    """
    for module in learned_convs(model):
        moments = module.mask.shape[1] - 1
        module.condense(jnp.minimum(moments, 2 * moments * step // steps))


def group_lasso(model):
    """Sums the group lasso of every learned convolution of a model."""
    return sum(module.lasso() for module in learned_convs(model))


def has_masks(state):
    """Returns True if a state belongs to a network with learned convolutions."""
    return any(isinstance(variable, Mask) for _, variable in nnx.to_flat_state(state))


class Read(nnx.Module):
    """Reads `number` channels of the last axis by an index, repeats allowed."""

    def __init__(self, number):
        self.index = Buffer(jax.device_put(np.arange(number, dtype=np.int32)))  # filled by a conversion

    def __call__(self, x):
        return x[..., self.index[...]]


class IndexedConv(nnx.Module):
    """Grouped 1x1 convolution of relu(bn(x)) of the channels x that it reads, its outputs shuffled.

    Each of G groups reads C_in // G channels; output j of group g becomes channel j G + g.
    """

    def __init__(self, c_in, c_out, groups, *, conv, norm):
        number = c_in // groups * groups
        self.read = Read(number)
        self.norm, self.conv = norm(number), conv(number, c_out, 1, groups=groups)

    def __call__(self, x, train):
        y = self.conv(nnx.relu(self.norm(self.read(x), train)))
        groups = self.conv.groups
        return y.reshape(*y.shape[:-1], groups, -1).swapaxes(-1, -2).reshape(y.shape)


class DenseLayer(nnx.Module):
    """1x1 convolution to 4 growth channels, then 3x3 in groups to `growth`; BatchNorm and ReLU before each."""

    def __init__(self, c_in, growth, groups, *, first, conv, norm):
        self.conv1 = first(c_in, 4 * growth, groups, conv=conv, norm=norm)
        self.norm2, self.conv2 = norm(4 * growth), conv(4 * growth, growth, 3, groups=groups)

    def __call__(self, x, train):
        y = self.conv2(nnx.relu(self.norm2(self.conv1(x, train), train)))
        return jnp.concatenate((x, y), -1)


class CondenseNet(nnx.Module):
    """3x3 convolution / 2, stages of dense layers, BatchNorm, ReLU, mean over pixels, linear.

    Args:
      groups: groups of the 1x1 and of the 3x3 convolutions, and the factor by which inputs are condensed.
      converted: the form that is used, made by `convert` or from published weights.
      stages: (layers, growth) of each stage.
      head_share: share of the features that the last layer reads; below 1 only in the converted form.
    """

    def __init__(self, num_classes, options, *, groups, converted, stages, head_share):
        make_conv, norm = options.convs(), options.norms()
        first = IndexedConv if converted else LearnedConv
        self.normalize = options.normalize("imagenet")
        channels = 2 * stages[0][1]
        self.stem, blocks = make_conv(3, channels, 3, stride=2), []
        for layers, growth in stages:
            block = []
            for _ in range(layers):
                block.append(DenseLayer(channels, growth, groups, first=first, conv=make_conv, norm=norm))
                channels += growth
            blocks.append(nnx.List(block))
        self.blocks, self.norm = nnx.List(blocks), norm(channels)
        read = int(channels * head_share)
        self.head_read = Read(read) if converted else None
        self.head = options.linears()(read, num_classes)

    def __call__(self, images, train, key=None):
        """Returns (logits, features), see `models.build`. Features: `stage1` ... `stage5` [N, h, w, C] and
        `penultimate` float32 [N, C], the input of the last layer.
        """
        del key
        x, features = self.stem(self.normalize(images)), {}
        for i, block in enumerate(self.blocks, 1):
            x = mean_pool(x) if i > 1 else x
            for layer in block:
                x = layer(x, train)
            features[f"stage{i}"] = x
        x = nnx.relu(self.norm(x, train)).astype(jnp.float32).mean((1, 2))
        features["penultimate"] = x if self.head_read is None else self.head_read(x)
        return self.head(features["penultimate"]), features


def convert(model, head_share=HEAD_SHARE):
    """Makes the converted form of a trained network: each group keeps the inputs that it still reads.

    Up to rounding the network computes the same, except in the last layer: it keeps the features with the largest sums
    of absolute weights.

    Args:
      model: CondenseNet in the form that is trained, with all inputs dropped that training drops.
      head_share: share of the features that the last layer keeps; with 1 the conversion is exact.

    Raises:
      ValueError: groups that read too many inputs: the training was not half done.
    """
    groups, head = model.blocks[0][0].conv2.groups, np.asarray(model.head.kernel[...])
    mean, std = (tuple(values[...].tolist()) for values in (model.normalize.mean, model.normalize.std))
    options = Options(np.random.default_rng(0), model.stem.dtype, mean=mean, std=std, conv=model.stem.conv)
    stages = [(len(block), block[0].conv2.kernel.shape[-1]) for block in model.blocks]
    form = {"groups": groups, "converted": True, "stages": stages, "head_share": head_share}
    new = CondenseNet(head.shape[1], options, **form)
    _copy(model.stem, new.stem)
    _copy(model.norm, new.norm)
    for block, new_block in zip(model.blocks, new.blocks, strict=True):
        for layer, new_layer in zip(block, new_block, strict=True):
            _convert_conv(layer.conv1, new_layer.conv1)
            _copy(layer.norm2, new_layer.norm2)
            _copy(layer.conv2, new_layer.conv2)
    largest = np.argsort(np.abs(head).sum(1), kind="stable")[head.shape[0] - new.head_read.index.shape[0] :]
    new.head_read.index[...] = jnp.asarray(largest, jnp.int32)
    new.head.kernel[...] = jnp.asarray(head[largest])
    new.head.bias[...] = model.head.bias[...]
    return new


def _copy(module, new):
    nnx.update(new, nnx.state(module))


def _convert_conv(learned, indexed):
    mask = np.asarray(learned.mask[...]) > 0
    groups, reads = mask.shape[1], indexed.read.index.shape[0] // mask.shape[1]
    if (found := mask.sum(0).max()) > reads:
        raise ValueError(
            f"expected groups of {groups} that read {reads} of {mask.shape[0]} inputs, found {found}; train the network "
            "to its end, or at least through the first half, before it is converted"
        )
    index = np.concatenate([np.flatnonzero(mask[:, group]) for group in range(groups)])
    indexed.read.index[...] = jnp.asarray(index, jnp.int32)
    state = jax.tree.map(lambda values: values[index], nnx.state(learned.norm))
    nnx.update(indexed.norm, state)
    kernel = np.asarray(learned.conv.kernel[0, 0])
    parts = [kernel[index[group * reads :][:reads], group::groups] for group in range(groups)]
    indexed.conv.kernel[...] = jnp.asarray(np.concatenate(parts, 1))[None, None]


FAMILY = {
    f"condensenet74_{groups}{suffix}": partial(
        CondenseNet, groups=groups, converted=converted, stages=STAGES, head_share=HEAD_SHARE if converted else 1
    )
    for groups in (4, 8)
    for suffix, converted in (("", False), ("_converted", True))
}
SMALLEST = dict.fromkeys(FAMILY, 31)
