"""The contract of every corruption: `sample` draws all that is random, `apply` draws nothing.

One image at a time: `float32[H, W, 3]` in [0, 1] in, the same shape and dtype out, values in
[0, 1]. Grey, alpha and other floats are led past the two halves as the user wrote them, which see
float32 of three channels, or of five and more where each is treated alone (see `channels`).

Both halves are pure, `jit`- and `vmap`-able, and compile once for all severities because severity
may be a traced scalar. Given concrete arrays each half runs as one compiled program: operation by
operation XLA rounds products and sums apart that it fuses in a program, which shows where a result
is floored. Batches live in `corruptions.batch`; nothing else in this package knows about them.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from corruptions import channels, checks, forks, gradients, padded, programs
from corruptions.levels import Fraction, Levels
from corruptions.padded import Padding, with_own_size

Array = jax.Array | np.ndarray
Key = jax.Array
Image = jax.Array
Severity = jax.Array
Shape = tuple[int, ...]
Params = padded.Params
Positions = tuple[jax.Array, jax.Array]
Sampler = Callable[..., Params]
Applier = Callable[[Any, Any], jax.Array]
Mapper = Callable[[Sequence[int], Any], Positions]


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One parameter of a corruption: its name, unit and where its values come from."""

    name: str
    unit: str
    source: str


@dataclasses.dataclass(frozen=True, eq=False)
class Corruption:
    """A corruption and what is known about it. Calling it corrupts one image.

    Attributes:
      name: unqualified name, e.g. `fog`.
      benchmark: the prefix of the qualified name: `imagenet_c`, `noc` or `cbar`.
      family: what kind it is: `noise`, `blur`, `weather`, `digital`, `geometry`, `occlusion`, ...
      sampler: `(key, shape, severity, **options) -> params`; severity is a float32 scalar, possibly
        traced.
      applier: `(image, params) -> image`, deterministic.
      scale: what a severity means, `Levels` or `Fraction`.
      rounding: how a uint8 batch comes back: `truncate` (floor, as ImageNet-C and C-bar do) or
        `nearest`.
      parameters: the parameters with units and sources.
      aliases: other spellings under which the registry finds it.
      mixes: how it mixes the channels of an image, in words that follow "which"; empty where the
        result of each channel depends on that channel alone, so that it takes any number of them.
      padding: how `corrupt_each` pads images for it; None where each size has a program of its own.
      straight_through: where roundings take the gradient of `applier`, the same function with another:
        that of `gradient="straight_through"`.
      moves: how it moves what is in the image, in words that follow "which"; empty where everything
        stays in its place, but for what a blur to all sides or a mosaic spreads.
      mapper: `(shape, params) -> (rows, columns)` that broadcast to [H, W]: the position in the image
        of what each pixel of the result shows, which `applier` looks up; None where nothing moves, or
        a pixel shows more than one place.
    """

    name: str
    benchmark: str
    family: str
    sampler: Sampler
    applier: Applier
    scale: Levels | Fraction
    rounding: str
    parameters: tuple[Parameter, ...]
    aliases: tuple[str, ...] = ()
    mixes: str = ""
    padding: Padding | None = None
    straight_through: Applier | None = None
    moves: str = ""
    mapper: Mapper | None = None

    def __post_init__(self) -> None:
        if self.rounding not in ("truncate", "nearest"):
            raise ValueError(f"rounding must be 'truncate' or 'nearest', found {self.rounding!r}")
        # What it does to an image, then what it draws.
        docs = (inspect.getdoc(self.applier), inspect.getdoc(self.sampler))
        object.__setattr__(self, "__doc__", "\n\n".join(filter(None, docs)))

    @property
    def qualified_name(self) -> str:
        """The name by which the registry knows it, `benchmark/name`."""
        return f"{self.benchmark}/{self.name}"

    @functools.cached_property
    def options(self) -> Mapping[str, Any]:
        """Static options and their defaults: the sampler's keyword-only arguments."""
        signature = inspect.signature(self.sampler)
        options = {p.name: p.default for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY}
        return options | (
            {"interpolate": False, "range": None, "levels": None} if isinstance(self.scale, Levels) else {}
        )

    def sample(self, key: jax.Array, shape: Sequence[int], severity: ArrayLike | None = None, **options: Any) -> Params:
        """Draws every random choice for one image.

        Args:
          key: a typed PRNG key. An explicit severity leaves the other draws what they were with
            `severity=None`.
          shape: (H, W, C), H and W at least 16, C as `corrupt` takes it. Grey is drawn for as three
            channels, of which `apply` gives one.
          severity: a level or fraction (see `scale`), a traced scalar, or `None` to draw it.
          **options: static options of this corruption, see `options`.

        Returns:
          A dictionary of arrays, everything `apply` needs.

        Raises:
          ValueError: a shape, severity or option that is not as described.
        """
        forks.refuse()
        checks.image_shape(shape, any_kind=True)
        channels.check(self.qualified_name, self.mixes, shape[-1])
        checks.options(self.qualified_name, self.options, options)
        level = None if severity is None else self.scale.check(severity, options)
        static = (
            self,
            channels.seen(shape if isinstance(shape, tuple) else tuple(shape)),
            checks.static_options(options),
        )
        if checks.any_traced((key, level)):
            return _sample(key, level, *static)
        programs.bound()
        return _compiled_sample(key, level, *static)

    def apply(self, image: Array, params: Params, *, gradient: str | None = None) -> jax.Array:
        """Applies drawn `params` to one image.

        Args:
          image: float32, float16, bfloat16 or float64 [H, W, C] in [0, 1], worked on in float32; C as
            `corrupt` takes it.
          params: from `sample`, for the image's shape.
          gradient: see `corrupt`.

        Returns:
          The corrupted image, same shape, range and dtype (of NumPy's float64 float32, as JAX has
          it).

        Raises:
          ValueError, TypeError: an image that is not as described.
        """
        forks.refuse()
        checks.one_image(image, any_kind=True)
        channels.check(self.qualified_name, self.mixes, image.shape[-1])
        corruption = gradients.chosen(self, gradient)
        if checks.any_traced((image, params)):
            return _apply(image, params, corruption)
        programs.bound()
        return _compiled_apply(image, params, corruption)

    def coordinates(self, shape: Sequence[int], params: Params) -> jax.Array:
        """Tells where in the image lies what each pixel of the result shows, for labels to follow.

        Args:
          shape: (H, W, ...), of the image.
          params: from `sample`, for that shape.

        Returns:
          float32 [H, W, 2], row and column in pixels, pixel centres at whole numbers: the positions
          that `apply` looks up, outside of the image where it shows something else (black). Of one
          look-up after another the mean of the positions that a pixel is made of; of what stays in
          its place the pixel's own.

        Raises:
          ValueError: a corruption that moves what is in the image, yet has no such map: a pixel shows
            several places, or another one in each channel.
        """
        if self.moves and self.mapper is None:
            raise ValueError(
                f"expected a corruption with a map of coordinates, found {self.qualified_name}, which {self.moves}"
            )
        sides = tuple(shape[:2])
        if checks.any_traced(params):
            return _coordinates(params, self, sides)
        programs.bound()
        return _compiled_coordinates(params, self, sides)

    def __call__(
        self,
        key: jax.Array,
        image: Array,
        severity: ArrayLike | None = None,
        *,
        gradient: str | None = None,
        **options: Any,
    ) -> jax.Array:
        """Corrupts one image: `apply(image, sample(key, image.shape, severity, **options))`.

        `corrupt(key, images, ...)` gives image i the key `fold_in(key, i)`, in a program of its
        own: of the same image and key its values are within .05 of a level, but for 1 in 1,000.

        Raises:
          ValueError, TypeError: as `sample` and `apply`.
        """
        checks.one_image(image, any_kind=True)
        return self.apply(image, self.sample(key, image.shape, severity, **options), gradient=gradient)

    def __repr__(self) -> str:
        return f"<Corruption {self.qualified_name}: {self.family}>"


def split_key(key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Splits the key of `sample`: (of the severity that is drawn, of all else)."""
    of_severity, rest = jax.random.split(key)
    return of_severity, rest


def _sample(key: Any, severity: Any, corruption: Corruption, shape: tuple[int, ...], options: tuple) -> Params:
    """Draws for `Corruption.sample`, whose arguments are checked; `options` are pairs."""
    given, scale = dict(options), corruption.scale
    of_severity, key = split_key(key)
    if severity is None:
        severity = scale.draw(of_severity, given)
    if isinstance(scale, Levels):
        given = {name: value for name, value in given.items() if name not in ("interpolate", "range", "levels")}
    return with_own_size(corruption.sampler(key, shape, severity, **given), shape)


def _apply(image: Any, params: Params, corruption: Corruption) -> jax.Array:
    image = jnp.asarray(image)
    corrupted = corruption.applier(channels.shown(image).astype(jnp.float32), params)
    return channels.restored(corrupted.astype(image.dtype), image)


def _coordinates(params: Params, corruption: Corruption, sides: tuple[int, ...]) -> jax.Array:
    rows, columns = np.ogrid[: sides[0], : sides[1]] if corruption.mapper is None else corruption.mapper(sides, params)
    places = (jnp.broadcast_to(jnp.asarray(place, jnp.float32), sides) for place in (rows, columns))
    return jnp.stack(list(places), axis=-1)


_compiled_sample: Any = jax.jit(_sample, static_argnames=("corruption", "shape", "options"))
_compiled_apply: Any = jax.jit(_apply, static_argnames="corruption")
programs.on_drop(_compiled_sample.clear_cache)
programs.on_drop(_compiled_apply.clear_cache)
_compiled_coordinates: Any = jax.jit(_coordinates, static_argnames=("corruption", "sides"))
programs.on_drop(_compiled_coordinates.clear_cache)
