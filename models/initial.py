"""Initial values of convolutions and linear layers by named rules, or their shapes alone.

fan_in = K_h K_w C_in / groups inputs feed one output; fan_out = K_h K_w C_out as PyTorch counts it
(not divided by the groups). N is normal, U uniform in [-b, b].

| rule | kernel | bias | source |
|---|---|---|---|
| he | N(0, 2 / fan_out) | 0 | He et al. 2015, arXiv:1502.01852, fan-out form |
| he_in | N(0, 2 / fan_in) | 0 | the same, fan-in form |
| he_uniform | U, b = sqrt(6 / fan_in) | 0 | the same, uniform |
| lecun | U, b = 1 / sqrt(fan_in) | 0 | LeCun et al. 1998 |
| pytorch | U, b = 1 / sqrt(fan_in) | U, same b | what PyTorch does unless told otherwise |
| xavier | U, b = sqrt(6 / (fan_in + fan_out)) | 0.01 | Glorot and Bengio 2010 |
| small | N(0, 0.01^2) | 0 | Krizhevsky et al. 2012 |
"""

import jax.numpy as jnp
import numpy as np


def kernel(rng, shape, rule):
    """Draws a float32 array of `shape` [..., C_in / groups, C_out] from an np.random.Generator."""
    fan_in = int(np.prod(shape[:-1]))
    fan_out = fan_in // shape[-2] * shape[-1]
    deviations = {"he": (2 / fan_out) ** 0.5, "he_in": (2 / fan_in) ** 0.5, "small": 0.01}
    if rule in deviations:
        return rng.standard_normal(shape, np.float32) * np.float32(deviations[rule])
    if rule == "xavier":
        return _uniform(rng, shape, (6 / (fan_in + fan_out)) ** 0.5)
    return _uniform(rng, shape, {"he_uniform": 6**0.5, "lecun": 1, "pytorch": 1}[rule] / fan_in**0.5)


def bias(rng, kernel_shape, rule):
    """float32 [C_out] that goes with a kernel of that shape."""
    if rule == "pytorch":
        return _uniform(rng, kernel_shape[-1:], float(np.prod(kernel_shape[:-1])) ** -0.5)
    return np.full(kernel_shape[-1], 0.01 if rule == "xavier" else 0, np.float32)


class ShapesOnly:
    """Stands for the generator under `jax.eval_shape`: draws cost neither time nor memory."""

    def standard_normal(self, shape, dtype):
        return jnp.zeros(shape, dtype)

    random = standard_normal


def _uniform(rng, shape, bound):
    return ((2 * rng.random(shape, np.float32) - 1) * np.float32(bound)).astype(np.float32)
