"""The contract every corruption keeps: two visible halves, `sample` (all the randomness) and `apply` (none).

One image at a time: `float32[H, W, 3]` in [0, 1] in, the same shape and dtype out, values in [0, 1]. Both halves are
pure, `jit`- and `vmap`-able, and compile once for all severities because severity may be a traced scalar. Batches
live in `corruptions.batch`; nothing else in this package knows about them.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from corruptions import checks

Params = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One parameter of a corruption: its name, unit and where its values come from."""

    name: str
    unit: str
    source: str


@dataclasses.dataclass(frozen=True)
class Levels:
    """Severities 1..count, each a row of a published table; `None` draws a level uniformly.

    Three options of every corruption with levels are ours, no paper defines them: `interpolate=True` also admits real
    severities between two levels, the parameters are then interpolated linearly; `range=(mild, severe)`, a calibrated
    range of such severities, is what `None` then draws from uniformly; `levels=(1, 5, 8)`, those that a benchmark
    selects, are drawn from instead of all.
    """

    count: int = 5

    def draw(self, key, options):
        bounds = checks.level_range(options.get("range"), self.count)
        levels = checks.levels(options.get("levels"), self.count)
        if bounds and levels:
            raise ValueError(f"expected one of the options range and levels, found range={bounds} and levels={levels}")
        if bounds:
            return jax.random.uniform(key, (), minval=bounds[0], maxval=bounds[1])
        if levels:
            return jnp.asarray(levels, jnp.float32)[jax.random.randint(key, (), 0, len(levels))]
        return jax.random.randint(key, (), 1, self.count + 1).astype(jnp.float32)

    def check(self, severity, options):
        checks.severity_level(severity, self.count, options.get("interpolate", False))
        return jnp.asarray(severity, jnp.float32)


@dataclasses.dataclass(frozen=True)
class Fraction:
    """Severity is a fraction in [0, 1] of the corruption's range (0 mild, 1 severe); `None` draws it uniformly.

    An integer-valued parameter with range lo..hi takes the value lo + floor(fraction * (hi - lo + 1)), capped at hi,
    so that a uniform fraction draws the integers uniformly, both ends included.
    """

    def draw(self, key, options):
        del options
        return jax.random.uniform(key)

    def check(self, severity, options):
        del options
        checks.severity_fraction(severity)
        return jnp.asarray(severity, jnp.float32)


@dataclasses.dataclass(frozen=True, eq=False)
class Corruption:
    """A corruption and what is known about it. Calling it corrupts one image.

    Attributes:
      name: unqualified name, e.g. `fog`.
      benchmark: the prefix of the qualified name: `imagenet_c`, `noc` or `cbar`.
      family: `noise`, `blur`, `weather`, `digital`, `geometry`, `occlusion`, `lighting`, `colour` ...
      sampler: `(key, shape, severity, **options) -> params`; severity is a float32 scalar, possibly traced.
      applier: `(image, params) -> image`, deterministic.
      scale: what a severity means, `Levels` or `Fraction`.
      rounding: how a uint8 batch comes back: `truncate` (floor, as ImageNet-C and C-bar do) or `nearest`.
      parameters: the parameters with units and sources.
      coincides_with: qualified names of transforms that are the same operation elsewhere.
      aliases: other spellings under which the registry finds it.
    """

    name: str
    benchmark: str
    family: str
    sampler: Callable[..., Params]
    applier: Callable[[jax.Array, Params], jax.Array]
    scale: Levels | Fraction
    rounding: str
    parameters: tuple[Parameter, ...]
    coincides_with: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    def __post_init__(self):
        if self.rounding not in ("truncate", "nearest"):
            raise ValueError(f"rounding must be 'truncate' or 'nearest', found {self.rounding!r}")
        doc = inspect.getdoc(self.sampler) or ""
        object.__setattr__(self, "__doc__", "\n\n".join(filter(None, [doc, inspect.getdoc(self.applier)])))

    @property
    def qualified_name(self):
        return f"{self.benchmark}/{self.name}"

    @functools.cached_property
    def options(self) -> Mapping[str, Any]:
        """Static keyword options and their defaults, read from the sampler's keyword-only arguments."""
        signature = inspect.signature(self.sampler)
        options = {p.name: p.default for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY}
        return options | (
            {"interpolate": False, "range": None, "levels": None} if isinstance(self.scale, Levels) else {}
        )

    def sample(self, key, shape, severity=None, **options) -> Params:
        """Draws every random choice for one image.

        Args:
          key: a typed PRNG key. An explicit severity leaves the other draws what they were with `severity=None`.
          shape: (H, W, 3), both sides at least 16.
          severity: a level or fraction (see `scale`), a traced scalar, or `None` to draw it.
          **options: static options of this corruption, see `options`.

        Returns:
          A dictionary of arrays, everything `apply` needs.

        Raises:
          ValueError: a shape, severity or option that is not as described.
        """
        checks.image_shape(shape)
        checks.options(self.qualified_name, self.options, options)
        severity_key, key = jax.random.split(key)
        severity = self.scale.draw(severity_key, options) if severity is None else self.scale.check(severity, options)
        if isinstance(self.scale, Levels):
            options = {name: value for name, value in options.items() if name not in ("interpolate", "range", "levels")}
        return self.sampler(key, tuple(shape), severity, **options)

    def apply(self, image, params: Params):
        """Applies drawn `params` to `image`, float32[H, W, 3] in [0, 1]; the result has the same shape and range."""
        checks.one_image(image)
        return self.applier(image, params)

    def __call__(self, key, image, severity=None, **options):
        """Corrupts one image, float32[H, W, 3] in [0, 1]: `apply(image, sample(key, image.shape, severity))`."""
        checks.one_image(image)
        return self.apply(image, self.sample(key, image.shape, severity, **options))

    def __repr__(self):
        return f"<Corruption {self.qualified_name}: {self.family}>"
