"""A 1x1 convolution whose groups of outputs learn which inputs they need.

With G groups output o is of group o mod G. Training begins with all inputs; at G - 1 moments in its
first half every group drops C_in // G of them, those with the smallest sum of absolute weights, so
that C_in // G are left. Until then a group lasso draws the weights of an input to a group to 0
together.

Source: G. Huang, S. Liu, L. van der Maaten, K. Weinberger, "CondenseNet", 2018, section 4, with as
many groups as the condensation factor.
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax

from models.layers import Buffer, convolve

LASSO = 1e-5
"""Weight of the group lasso in the loss."""
_SMALLEST = 1e-6  # of a squared norm, where the gradient of its root is cut off


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

        self.mask.set_value(lax.cond(self.inputs > kept, largest, lambda: mask))

    @property
    def inputs(self):
        """How many inputs each group still reads."""
        return (self.mask[...] > 0).sum(0)[0]

    def lasso(self):
        """Sums the norms of the weights of each input to each group; 0 once all was dropped."""
        norms = jnp.sqrt(jnp.maximum(self._by_group(self.conv.kernel[...] ** 2), _SMALLEST))
        return jnp.where(self.inputs > self.dropped_at_once, (norms * self.mask[...]).sum(), 0)

    def _per_output(self):
        """The mask as a kernel, [1, 1, C_in, C_out]."""
        return jnp.tile(self.mask[...], (1, self.conv.kernel.shape[-1] // self.mask.shape[1]))[None, None]

    def _by_group(self, kernel):
        """Sums over the outputs of each group: [C_in, G]."""
        c_in, groups = self.mask.shape
        return kernel.reshape(c_in, -1, groups).sum(1)


def learned_convs(model):
    """Lists the convolutions of a model that learn their groups."""
    return [module for _, module in nnx.iter_modules(model) if isinstance(module, LearnedConv)]


def condense(model, step, steps):
    """Drops what is due of every learned convolution of a model.

    Moment i of G - 1 comes when 2 step / steps reaches i / (G - 1).

    Args:
      model: any; changed in place.
      step: of the training, an int or int32 array.
      steps: of the whole training.
    """
    for module in learned_convs(model):
        moments = module.mask.shape[1] - 1
        module.condense(jnp.minimum(moments, 2 * moments * step // steps))


def group_lasso(model):
    """Sums the group lasso of every learned convolution of a model."""
    return sum(module.lasso() for module in learned_convs(model))


def has_masks(state):
    """Tells whether a state is that of a network with learned convolutions."""
    return any(isinstance(variable, Mask) for _, variable in nnx.to_flat_state(state))
