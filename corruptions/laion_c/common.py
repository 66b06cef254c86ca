"""The common parts of LAION-C: five severities, truncation to 8 bits, lengths that scale with the image, the source."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from corruptions.core import registry
from corruptions.core.severity import Levels, lookup
from corruptions.primitives import padded

PUBLISHED_SIDE = 224
SEVERITIES = 5
register = registry.registrar(
    "laion_c", Levels(SEVERITIES), "truncate", "Li et al., LAION-C (ICML 2025), released code"
)


def scale(shape: Sequence[int]) -> float:
    """Computes min(H, W) / 224, the factor on lengths in pixels."""
    return min(shape[:2]) / PUBLISHED_SIDE


def rows(shape: Sequence[int], tables: padded.Tables, severity: ArrayLike) -> dict[str, jax.Array]:
    """Reads from each of a member's `tables`, arrays [5, ...], the row of the whole level nearest to a severity: between
    these rows there is nothing.
    """
    level = jnp.round(jnp.clip(severity, 1, SEVERITIES)).astype(jnp.int32) - 1
    found = padded.tables(shape, None, tables)
    return {name: jnp.asarray(array)[level] for name, array in found.items() if name != "table"}


def padding(tables: padded.Tables, axes: int = 0) -> padded.Padding:
    """Makes the `Padding` of a member whose `tables` follow from an image's own sides."""
    return padded.Padding(tables=tables, axes=axes)


def largest_count(counts: Sequence[int], shape: Sequence[int]) -> int:
    """Computes the largest result of `count`."""
    return round(max(counts) * _squares(shape))


def count(counts: Sequence[int], shape: Sequence[int], severity: ArrayLike) -> jax.Array:
    """Reads the number of shapes or stickers, int32: `counts` on a square, and in proportion to the area on other images."""
    return jnp.round(lookup([c * _squares(shape) for c in counts], severity)).astype(jnp.int32)


def _squares(shape):
    return shape[0] * shape[1] / min(shape[:2]) ** 2
