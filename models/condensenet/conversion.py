"""From a trained CondenseNet to the grouped one that computes the same, with fewer multiplications."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from models.condensenet.network import HEAD_SHARE, CondenseNet


def convert(model, head_share=HEAD_SHARE):
    """Gathers what every group of a trained network still reads into grouped convolutions.

    Up to rounding the network computes what it did, but for the last layer: of the features that it
    reads, those with the largest sums of absolute weights are kept.

    Args:
      model: CondenseNet in the form that is trained, with all inputs dropped that training drops.
      head_share: of the features, what the last layer keeps; 1 keeps all, and the conversion is
        exact.

    Returns:
      CondenseNet in the converted form, on the CPU or the default device.

    Raises:
      ValueError: groups that read more inputs than they shall: the training was not half done.
    """
    groups = model.blocks[0][0].conv2.groups
    head = np.asarray(model.head.kernel[...])
    new = CondenseNet(
        head.shape[1],
        groups=groups,
        converted=True,
        stages=[(len(block), block[0].conv2.kernel.shape[-1]) for block in model.blocks],
        head_share=head_share,
        rng=np.random.default_rng(0),
        dtype=model.stem.dtype,
        mean=tuple(model.normalize.mean[...].tolist()),
        std=tuple(model.normalize.std[...].tolist()),
        conv=model.stem.conv,
    )
    _copy(model.stem, new.stem)
    _copy(model.norm, new.norm)
    for block, new_block in zip(model.blocks, new.blocks, strict=True):
        for layer, new_layer in zip(block, new_block, strict=True):
            _convert_conv(layer.conv1, new_layer.conv1)
            _copy(layer.norm2, new_layer.norm2)
            _copy(layer.conv2, new_layer.conv2)
    largest = np.argsort(np.abs(head).sum(1), kind="stable")[head.shape[0] - new.head_read.index.shape[0] :]
    new.head_read.index.set_value(jnp.asarray(largest, jnp.int32))
    new.head.kernel.set_value(jnp.asarray(head[largest]))
    new.head.bias.set_value(model.head.bias[...])
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
    indexed.read.index.set_value(jnp.asarray(index, jnp.int32))
    state = jax.tree.map(lambda values: values[index], nnx.state(learned.norm))
    nnx.update(indexed.norm, state)
    kernel = np.asarray(learned.conv.kernel[0, 0])
    parts = [kernel[index[group * reads :][:reads], group::groups] for group in range(groups)]
    indexed.conv.kernel.set_value(jnp.asarray(np.concatenate(parts, 1))[None, None])
