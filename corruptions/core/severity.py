"""The meaning of a severity: `Levels` and `Fraction` say which severities a corruption takes and which it draws; `lookup`
reads a published table (`corruptions.core.severity_tables`).
"""

import contextvars
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from corruptions.core.dispatch import is_traced, unmasked
from corruptions.core.errors import Refused

DRAWING: contextvars.ContextVar[Any] = contextvars.ContextVar("drawing", default=None)
"""The corruption with levels whose sampler is running."""


@dataclasses.dataclass(frozen=True)
class Levels:
    """Severities 1..count, each a row of a published table; `None` draws a level uniformly.

    Every corruption with levels has three options that no paper defines. `interpolate=True` also admits real severities
    between two levels, whose parameters are interpolated linearly. `range=(mild, severe)` is a calibrated range of such
    severities: `None` then draws uniformly from it. `levels=(1, 5, 8)` are the levels that a benchmark selects: `None`
    then draws one of them.
    """

    count: int = 5

    def __post_init__(self) -> None:
        if not isinstance(self.count, int) or self.count < 1:
            raise Refused("count", "a number of levels of at least 1", repr(self.count))

    def draw(self, key: jax.Array, options: Mapping[str, Any]) -> jax.Array:
        """Draws a severity: uniform over all levels, over the levels `levels`, or over the interval `range`; ValueError
        where one of these is malformed, or both are given.
        """
        bounds, levels = self._drawn_from(options)
        if bounds:
            return jax.random.uniform(key, (), minval=bounds[0], maxval=bounds[1])
        if levels:
            return jnp.asarray(levels, jnp.float32)[jax.random.randint(key, (), 0, len(levels))]
        return jax.random.randint(key, (), 1, self.count + 1).astype(jnp.float32)

    def _drawn_from(self, options: Mapping[str, Any]) -> tuple[tuple[float, float] | None, tuple[int, ...] | None]:
        bounds, levels = level_range(options.get("range"), self.count), selected(options.get("levels"), self.count)
        if bounds and levels:
            raise Refused("range", "one of the options range and levels", f"range={bounds} and levels={levels}")
        return bounds, levels

    def check(self, severity: ArrayLike, options: Mapping[str, Any]) -> jax.Array | np.ndarray:
        """Returns the severity as float32, so that any kind of number compiles one program; as NumPy where it has a
        value.

        Raises:
          ValueError: it is not in 1..count, or not whole without the option `interpolate`. A traced severity has to be
            an integer then. Also a malformed `range` or `levels`.
        """
        self._drawn_from(options)
        unmasked(severity)
        kind, interpolate = _dtype(severity).kind, options.get("interpolate", False)
        if kind not in "iuf":
            raise Refused("severity", f"a severity level 1..{self.count} or None", _shown(severity))
        if is_traced(severity):
            if kind == "f" and not interpolate:
                hint = "pass interpolate=True for real severities between two levels"
                raise Refused("severity", "a traced integer severity", f"dtype {_dtype(severity)}", hint)
            return jnp.asarray(severity, jnp.float32)
        values = np.asarray(severity)
        if not np.all((values >= 1) & (values <= self.count)):
            raise Refused("severity", f"a severity level 1..{self.count}", _shown(severity))
        if not interpolate and not np.all(values == np.round(values)):
            hint = "pass interpolate=True to interpolate the parameters between two levels (our extension, not part of the benchmark)"
            raise Refused("severity", f"a whole severity level 1..{self.count}", _shown(severity), hint)
        return values.astype(np.float32)


@dataclasses.dataclass(frozen=True)
class Fraction:
    """Severities in [0, 1], 0 mild and 1 severe, a fraction of a range; `None` draws one uniformly.

    An integer-valued parameter with range lo..hi takes the value lo + floor(f (hi - lo + 1)) at fraction f, capped at
    hi, so that a uniform f draws the integers uniformly, both ends included.

    Attributes:
      members: severities of the members of a mixture that count differently, for messages.
    """

    members: str = dataclasses.field(default="", compare=False, repr=False)

    def draw(self, key: jax.Array, options: Mapping[str, Any]) -> jax.Array:
        """Draws a fraction uniform in [0, 1)."""
        del options
        return jax.random.uniform(key)

    def check(self, severity: ArrayLike, options: Mapping[str, Any]) -> jax.Array | np.ndarray:
        """Returns the fraction as `Levels.check` does; raises ValueError where it is outside [0, 1]."""
        del options
        unmasked(severity)
        if _dtype(severity).kind not in "iuf":
            raise Refused("severity", "a severity fraction in [0, 1] or None", _shown(severity))
        if is_traced(severity):
            return jnp.asarray(severity, jnp.float32)
        values = np.asarray(severity)
        if not np.all((values >= 0) & (values <= 1)):
            why = self.members and f" (its members count differently: {self.members})"
            raise Refused("severity", f"a severity in [0, 1], a fraction of the range{why}", _shown(severity))
        return values.astype(np.float32)


def _shown(severity: Any) -> Any:
    """Shows a severity in one line; NumPy breaks those of many images."""
    return (
        severity
        if isinstance(severity, int | float)
        else repr(severity)
        if isinstance(severity, str)
        else " ".join(str(severity).split())
    )


def _dtype(severity: Any) -> np.dtype:
    return np.dtype(getattr(severity, "dtype", type(severity)))


def level_range(bounds: Any, count: int) -> tuple[float, float] | None:
    """Returns a range of levels, 1 <= mild <= severe <= count, as floats; None for None, ValueError for another."""
    if bounds is None:
        return None
    try:
        mild, severe = (float(v) for v in bounds)
    except (TypeError, ValueError):
        raise Refused("range", f"range=(mild, severe), two severities in 1..{count}", repr(bounds)) from None
    if not 1 <= mild <= severe <= count:
        raise Refused("range", f"range=(mild, severe) with 1 <= mild <= severe <= {count}", bounds)
    return mild, severe


def selected(levels: Any, count: int) -> tuple[int, ...] | None:
    """Returns the levels to draw from, whole numbers in 1..count, as a tuple; None for None, ValueError for others."""
    if levels is None:
        return None
    if not isinstance(levels, tuple | list) or not levels or any(v not in range(1, count + 1) for v in levels):
        raise Refused("levels", f"levels=(1, 3, ...), whole numbers in 1..{count}", repr(levels))
    return tuple(levels)


def lookup(table: ArrayLike | Sequence, severity: ArrayLike) -> jax.Array:
    """Reads the row of a table at a severity, linear between rows, exactly where it is whole: float32 [...].

    Args:
      table: array-like [L, ...], the rows of severities 1..L; ValueError in the sampler of a corruption with another
        number of levels.
      severity: scalar in [1, L], possibly traced; out-of-range traced values are clipped.
    """
    rows = jnp.asarray(table if isinstance(table, jax.Array) else np.asarray(table, np.float32))
    drawing = DRAWING.get()
    if drawing is not None and rows.shape[0] != drawing.scale.count:
        expected = f"a table of {drawing.scale.count} rows, one for each level of {drawing.qualified_name}"
        raise Refused("table", expected, rows.shape[0])
    position = jnp.clip(severity - 1.0, 0.0, rows.shape[0] - 1.0)
    low = jnp.floor(position).astype(jnp.int32)
    high = jnp.minimum(low + 1, rows.shape[0] - 1)
    fraction = position - low.astype(jnp.float32)
    return rows[low] * (1 - fraction) + rows[high] * fraction
