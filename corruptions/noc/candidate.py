"""The common parts of the ImageNet-NOC candidates: severities in a range, rounding to nearest, the source, draws."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from corruptions import registry
from corruptions.contract import Fraction
from corruptions.noc import severities
from corruptions.padded import Padding

Bounds = tuple[float, float] | None


def padding(scaled: str = "", **fields: Any) -> Padding:
    """Makes the `Padding` of a candidate; `scaled` is its name if its range depends on the image size."""
    if scaled:

        def tables(shape: Sequence[int], table: str | None) -> dict[str, Any]:
            return {"range": np.array(severities.resolve(scaled, shape), np.float32)}

        fields |= {"tables": tables, "axes": 0}
    return Padding(lambda shape, table, side: (None, np.int32(0)), **fields)


_SOURCE = "ImageNet-NOC (2021), appendix A, and the released code"
candidate = registry.registrar(
    "noc",
    Fraction(),
    "nearest",
    _SOURCE,
    padding(),
    by_size=lambda name, shape, options: {"range": severities.resolve(name, shape, options.get("range"))},
)


def integer(key: jax.Array, low: jax.Array | int, high: jax.Array | int, shape: Sequence[int] = ()) -> jax.Array:
    """Draws whole numbers uniform in low..high, both included, int32; the ends may be traced."""
    return jax.random.randint(key, shape, low, high + 1)


def sign(key: jax.Array) -> jax.Array:
    """Draws -1 or +1 with probability 1/2 each, float32."""
    return jnp.where(jax.random.bernoulli(key), 1.0, -1.0)


def grey_value(key: jax.Array, fixed: float | None) -> jax.Array:
    """Draws a grey uniform in [0, 1), or returns `fixed` if it is not None.

    Raises:
      ValueError: `fixed` is no number in [0, 1].
    """
    if fixed is None:
        return jax.random.uniform(key)
    if not isinstance(fixed, (int, float)) or not math.isfinite(fixed) or not 0 <= fixed <= 1:
        raise ValueError(f"expected grey=None (random) or a number in [0, 1], found {fixed!r}")
    return jnp.float32(fixed)
