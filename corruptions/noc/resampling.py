"""Resizing to and from traced sizes, as matrices along one axis."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike


def triangle_matrix(
    outputs: ArrayLike, inputs: ArrayLike, output_size: int, input_size: int, first: ArrayLike = 0
) -> jax.Array:
    """Makes the matrix that resizes by the antialiased triangle filter (PIL's BILINEAR).

    With q = inputs / outputs, output i is the mean of the inputs weighted by
    max(0, 1 - |j + 1/2 - (i + 1/2) q| / max(q, 1)): linear interpolation when enlarging, a filter
    as wide as the reduction when shrinking, cut at the ends.

    Args:
      outputs, inputs: numbers of samples, may be traced.
      output_size, input_size: static sizes of the matrix, at least those numbers.
      first: index of the first input sample, may be traced.

    Returns:
      float32 [output_size, input_size]. Columns outside first..first + inputs - 1 are zero, rows
      0..outputs - 1 sum to one; rows from `outputs` on are to be ignored.
    """
    inputs, outputs, first = (jnp.asarray(v, jnp.float32) for v in (inputs, outputs, first))
    ratio = inputs / outputs
    centre = (jnp.arange(output_size, dtype=jnp.float32)[:, None] + 0.5) * ratio
    sample = jnp.arange(input_size, dtype=jnp.float32)[None, :] - first
    weight = jnp.maximum(0.0, 1 - jnp.abs(sample + 0.5 - centre) / jnp.maximum(ratio, 1.0))
    weight = jnp.where((sample >= 0) & (sample < inputs), weight, 0.0)
    return weight / jnp.maximum(weight.sum(axis=1, keepdims=True), 1e-6)
