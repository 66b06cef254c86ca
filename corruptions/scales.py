"""What a severity means: a row of a published table, or a fraction of a range."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from corruptions import checks


@dataclasses.dataclass(frozen=True)
class Levels:
    """Severities 1..count, each a row of a published table; `None` draws a level uniformly.

    Every corruption with levels has three options that no paper defines. `interpolate=True` also
    admits real severities between two levels, whose parameters are interpolated linearly.
    `range=(mild, severe)`, a calibrated range of such severities, is what `None` then draws from
    uniformly. `levels=(1, 5, 8)`, the levels a benchmark selects, is what `None` draws from instead
    of all.
    """

    count: int = 5

    def draw(self, key: jax.Array, options: Mapping[str, Any]) -> jax.Array:
        """Draws a severity: uniform over the levels, those of `levels`, or the interval `range`.

        Raises:
          ValueError: a malformed `range` or `levels`, or both.
        """
        bounds = checks.level_range(options.get("range"), self.count)
        levels = checks.levels(options.get("levels"), self.count)
        if bounds and levels:
            raise ValueError(f"expected one of the options range and levels, found range={bounds} and levels={levels}")
        if bounds:
            return jax.random.uniform(key, (), minval=bounds[0], maxval=bounds[1])
        if levels:
            return jnp.asarray(levels, jnp.float32)[jax.random.randint(key, (), 0, len(levels))]
        return jax.random.randint(key, (), 1, self.count + 1).astype(jnp.float32)

    def check(self, severity: ArrayLike, options: Mapping[str, Any]) -> jax.Array | np.ndarray:
        """Returns the severity as float32, as NumPy where it has a value: so any kind of number
        compiles one program. Raises ValueError where it is no level.
        """
        checks.severity_level(severity, self.count, options.get("interpolate", False))
        return _float32(severity)


@dataclasses.dataclass(frozen=True)
class Fraction:
    """Severities in [0, 1], 0 mild and 1 severe, a fraction of a range; `None` draws one uniformly.

    An integer-valued parameter with range lo..hi takes the value lo + floor(f (hi - lo + 1)) at
    fraction f, capped at hi, so that a uniform f draws the integers uniformly, both ends included.
    """

    def draw(self, key: jax.Array, options: Mapping[str, Any]) -> jax.Array:
        """Draws a fraction uniform in [0, 1)."""
        del options
        return jax.random.uniform(key)

    def check(self, severity: ArrayLike, options: Mapping[str, Any]) -> jax.Array | np.ndarray:
        """Returns the fraction as `Levels.check` does; raises ValueError where it is outside [0, 1]."""
        del options
        checks.severity_fraction(severity)
        return _float32(severity)


def _float32(severity: ArrayLike) -> jax.Array | np.ndarray:
    return jnp.asarray(severity, jnp.float32) if checks.is_traced(severity) else np.asarray(severity, np.float32)
