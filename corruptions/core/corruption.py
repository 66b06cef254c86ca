"""The record of a corruption: two halves, `sample` and `apply`, and all that is known about them.

`sample` draws everything random, `apply` draws nothing. Both take one image: `float32[H, W, 3]` in [0, 1] in, the
same shape and dtype out, values in [0, 1]. They are pure, `jit`- and `vmap`-able, and compile once for all severities,
because a severity may be a traced scalar. Grey images, alpha and other floats are converted before and after them.

Given concrete arrays, each half runs as one compiled program: operation by operation XLA rounds products and sums apart
that it fuses in a program, which shows where a result is floored. Batches live in `corruptions.core.batch`.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from corruptions.core import checks, clips, dispatch, forks, one_image, severity_tables
from corruptions.core.errors import Refused, RefusedType
from corruptions.core.severity import Fraction, Levels
from corruptions.primitives import padded
from corruptions.primitives.padded import Padding

Array = dispatch.Array
Key = jax.Array
Image = jax.Array
Severity = jax.Array
Shape = tuple[int, ...]
Params = padded.Params
Positions = tuple[jax.Array, jax.Array]
Sampler = Callable[..., Params]
Applier = Callable[[Any, Any], jax.Array]
Mapper = Callable[[Sequence[int], Any], Positions]

STRAIGHT_THROUGH = "straight_through"


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One parameter of a corruption: its name, its unit and the source of its values."""

    name: str
    unit: str
    source: str


@dataclasses.dataclass(frozen=True, eq=False)
class Corruption:
    """A corruption and all that is known about it. Calling it corrupts one image.

    Attributes:
      name: unqualified name, e.g. `fog`.
      benchmark: the prefix of the qualified name: `imagenet_c`, `noc` or `cbar`.
      family: its kind: `noise`, `blur`, `weather`, `digital`, `geometry`, `occlusion`, ...
      sampler: `(key, shape, severity, **options) -> params`; severity is a float32 scalar, possibly traced.
      applier: `(image, params) -> image`, deterministic.
      scale: the meaning of a severity, `Levels` or `Fraction`.
      rounding: how a uint8 batch comes back: `truncate` (floor, as ImageNet-C and C-bar do) or `nearest`.
      parameters: its random parameters, all that `sample` returns, with units and sources; `random_parameters` too.
      aliases: other spellings under which the registry finds it.
      mixes: why channels are not independent, in words that follow "which"; empty where each channel of the result
        depends only on that channel (see `per_channel`).
      padding: how `corrupt_each` pads images for it; None if each size has its own program.
      straight_through: the same images, with the gradient of the formula without its roundings; None where it does not
        round.
      moves: how it displaces the content of the image, in words that follow "which"; empty where everything stays in
        its place, apart from a blur to all sides or a mosaic.
      mapper: `(shape, params) -> (rows, columns)` that broadcast to [H, W]: the positions in the image at which
        `applier` looks up each pixel of the result; None where nothing moves, or where a pixel shows more than one
        place.
      reflects: `(shape, params) -> bool [H, W]`: the pixels at which `mapper` finds a mirror image of the content, beyond a
        reflecting border; None where there is no such border.
      fixed: options that its benchmark fixes: a value, or a function of the shape (H, W, ...).
      by_size: `(shape, options) -> {option: value}`: the options that the image size decides, such as the severity
        table; for `describe`.
      members: the corruptions that it is made of (`random_choice`, `compose`).
      remade: makes it of other members, in their order.
      severity_parameters: what a severity stands for, the columns of its table or its range; empty where not listed.
      version: a number that is raised when its pixels change, from 1 on; manifests hold it.
      value_range: (low, high) of the float images that it takes, where that is not [0, 1] (`get(name, value_range=...)`).
      of_unit: the same corruption of images in [0, 1], where `value_range` is given.
      loads: `(options) -> bool`: called in place of a trace, when a program of the library is to come from disk; says what
        a trace would say, and is False where programs hold files of the user's.
      alone: how a CPU compiles the program of one uint8 image: "" as that of a batch of one; "traced" without the axis of
        a batch; "quick" so and quickly, where programs run nearly as fast. Pixels are those of a batch, except below 1
        value in 100,000 that differs by one level.
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
    reflects: Callable[[Any, Any], jax.Array] | None = None
    fixed: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    by_size: Callable[[Sequence[int], Mapping[str, Any]], Mapping[str, Any]] | None = None
    members: tuple["Corruption", ...] = ()
    remade: Callable[[tuple["Corruption", ...]], "Corruption"] | None = None
    severity_parameters: tuple[Parameter, ...] = ()
    version: int = 1
    value_range: tuple[float, float] | None = None
    of_unit: "Corruption | None" = None
    loads: Callable[[Mapping[str, Any]], bool] | None = None
    alone: Literal["", "traced", "quick"] = ""

    def __post_init__(self) -> None:
        check_kind(self.scale, self.rounding)
        if any(c.isspace() for c in self.qualified_name):
            raise Refused("name", "a name without spaces", repr(self.qualified_name))
        if isinstance(self.version, bool) or not isinstance(self.version, int) or self.version < 1:
            raise Refused("version", "a version 1, 2, ...", repr(self.version))
        docs = (inspect.getdoc(self.applier), inspect.getdoc(self.sampler))
        object.__setattr__(self, "__doc__", "\n\n".join(filter(None, docs)))

    @property
    def qualified_name(self) -> str:
        """The corruption's name in the registry, `benchmark/name`."""
        return f"{self.benchmark}/{self.name}"

    @property
    def random_parameters(self) -> tuple[Parameter, ...]:
        """What `sample` returns, with units and sources."""
        return self.parameters

    @property
    def per_channel(self) -> bool:
        """Whether the corruption treats each channel separately, and so takes any number of channels."""
        return not self.mixes

    @functools.cached_property
    def _defaults(self) -> Mapping[str, Any]:
        """The sampler's keyword-only arguments, and the options of every corruption with levels."""
        signature = inspect.signature(self.sampler)
        defaults = {p.name: p.default for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY}
        return defaults | (
            {"interpolate": False, "range": None, "levels": None} if isinstance(self.scale, Levels) else {}
        )

    @functools.cached_property
    def options(self) -> Mapping[str, Any]:
        """Static options and their defaults; options that the benchmark fixes have the benchmark's values."""
        return {**self._defaults, **self.fixed}

    def may_be_loaded(self, options: Mapping[str, Any]) -> bool:
        """Whether a program with static options may come from disk (`loads`)."""
        own = self.loads is None or self.loads({**self.fixed, **options})
        return own and all(member.may_be_loaded({}) for member in self.members)

    def options_for(self, shape: Sequence[int], options: Mapping[str, Any]) -> dict[str, Any]:
        """Adds to `options` those that its benchmark fixes, for images of a shape."""
        return {n: value(shape) if callable(value) else value for n, value in self.fixed.items()} | dict(options)

    def describe(self, shape: Sequence[int], options: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Lists the options with which it corrupts images of a shape, for records of results.

        Args:
          shape: (H, W, ...) of the images.
          options: static options as passed to `corrupt`.

        Returns:
          {option: value}, JSON-ready: those passed or fixed by its benchmark that differ from their default, and those
          that the image size decides (the severity table, a range in pixels).
        """
        used = self.options_for(shape, dict(checks.static_options(options or {})))
        used = {option: value for option, value in used.items() if value != self._defaults.get(option)}
        if self.by_size is not None:
            used |= {o: value for o, value in self.by_size(shape, used).items() if o in self._defaults}
        return {option: list(value) if isinstance(value, tuple) else value for option, value in used.items()}

    @functools.cached_property
    def for_many_sizes(self) -> "Corruption":
        """The corruption with one severity table for images of all sizes, `severity_tables.OF_MANY_SIZES`, where it has that
        table and its benchmark fixes none; itself otherwise.
        """
        if self.remade is not None:
            members = tuple(member.for_many_sizes for member in self.members)
            return self if members == self.members else self.remade(members)
        table = {"table": severity_tables.OF_MANY_SIZES}
        if self.by_size is None or "table" in self.fixed or "table" not in self._defaults:
            return self
        try:
            self.by_size((224, 224, 3), table)
        except ValueError:  # its tables have other names
            return self
        return dataclasses.replace(self, fixed={**self.fixed, **table})

    def differs_by_size(self, shape: Sequence[int]) -> bool:
        """Whether images of a shape (H, W, ...) have by their size another table than `for_many_sizes` takes."""
        if self.remade is not None:
            return any(member.differs_by_size(shape) for member in self.members)
        by_size = self.by_size(shape, {}) if self.by_size is not None else {}
        return by_size.get("table", severity_tables.OF_MANY_SIZES) != severity_tables.OF_MANY_SIZES

    def check_severity(self, severity: ArrayLike, options: Mapping[str, Any]) -> jax.Array | np.ndarray:
        """Returns a severity as `scale.check` does; its ValueError names the corruption."""
        try:
            return self.scale.check(severity, options)
        except Refused as error:
            raise error.at(self.qualified_name) from None

    def check_request(self, channels: int, options: Iterable[str]) -> None:
        """Refuses, by a ValueError, more than four channels where it mixes them, or an unknown option."""
        if channels > 4 and not self.per_channel:
            raise Refused("images", f"1 to 4 channels for {self.qualified_name}, which {self.mixes}", channels)
        checks.options(self.qualified_name, self.options, options)

    def with_gradient(self, gradient: str | None) -> "Corruption":
        """Returns the record that makes the same images and has the derivative `gradient`, None or `straight_through`.

        None is the derivative of the computation, zero where it rounds; `straight_through` the derivative of the same
        formula without rounding, by the image alone.
        """
        if gradient is None:
            return self
        if gradient != STRAIGHT_THROUGH:
            raise Refused("gradient", f"gradient=None or {STRAIGHT_THROUGH!r}", repr(gradient))
        if self.of_unit is not None:
            return self.of_unit.with_gradient(gradient).with_value_range(self.value_range)
        return self if self.straight_through is None else self._with_straight_through

    def with_value_range(self, value_range: Any) -> "Corruption":
        """Returns the record that takes and gives float images in (low, high); ValueError for no such range."""
        return _in_range(self.of_unit or self, *clips.ends(value_range))

    @functools.cached_property
    def _with_straight_through(self) -> "Corruption":
        assert self.straight_through is not None
        return dataclasses.replace(self, applier=self.straight_through)

    def sample(self, key: jax.Array, shape: Sequence[int], severity: ArrayLike | None = None, **options: Any) -> Params:
        """Draws every random choice for one image.

        Args:
          key: a typed PRNG key. The other draws do not depend on whether a severity is given.
          shape: (H, W, C), H and W at least 16, C as `corrupt` takes it. Grey is drawn for as three channels, of which
            `apply` returns one.
          severity: a level or fraction (see `scale`), a traced scalar, or `None` to draw it.
          **options: static options of this corruption, see `options`.

        Returns:
          A dictionary of arrays, everything `apply` needs.

        Raises:
          ValueError, TypeError: a key, shape, severity or option that is not as described.
        """
        forks.refuse_forked()
        checks.key(key)
        checks.image_shape(shape, any_kind=True)
        self.check_request(shape[-1], options)
        options = self.options_for(shape, options)
        level = None if severity is None else self.check_severity(severity, options)
        if level is not None and level.shape:
            hint = "corrupt(key, images, name, severity) takes one for each image of a batch"
            raise Refused("severity", "a scalar severity for one image", f"one of shape {level.shape}", hint)
        seen = one_image.seen_shape(shape if isinstance(shape, tuple) else tuple(shape))
        return _sample(key, level, corruption=self, shape=seen, options=checks.static_options(options))

    def apply(self, image: Array, params: Params, *, gradient: str | None = None) -> jax.Array:
        """Applies drawn `params` to one image.

        Args:
          image: float32, float16, bfloat16 or float64 [H, W, C] in [0, 1], computed in float32; C as `corrupt` takes
            it.
          params: from `sample`, for the image's shape.
          gradient: see `corrupt`.

        Returns:
          The corrupted image, same shape, range and dtype (float32 for NumPy's float64, as in JAX).

        Raises:
          ValueError, TypeError: an image that is not as described.
        """
        forks.refuse_forked()
        image = dispatch.unmasked(image)
        checks.one_image(image, any_kind=True)
        self.check_request(image.shape[-1], ())
        if (unit := self.of_unit) is not None:
            again = functools.partial(unit.apply, params=params, gradient=gradient)
            return clips.in_unit_range(again, image, self.value_range, validate=False)
        return _apply(image, params, corruption=self.with_gradient(gradient))

    def coordinates(self, shape: Sequence[int], params: Params) -> jax.Array:
        """Finds where in the image each pixel of the result comes from, for labels to follow.

        Args:
          shape: (H, W, ...), of the image.
          params: from `sample`, for that shape.

        Returns:
          float32 [H, W, 2], row and column in pixels, pixel centres at whole numbers: the positions that `apply` looks
          up, outside of the image where the pixel is black. After several look-ups the mean position of a pixel's
          parts; where nothing moves the pixel's own position.

        Raises:
          ValueError: a corruption that displaces content without such a map, because a pixel shows several places, or
            another place in each channel.
        """
        forks.refuse_forked()
        if self.moves and self.mapper is None:
            found = f"{self.qualified_name}, which {self.moves}"
            raise Refused("name", "a corruption with a map of coordinates", found)
        return _find(params, corruption=self, sides=tuple(shape[:2]))

    def reflected(self, shape: Sequence[int], params: Params) -> jax.Array:
        """Finds which pixels of the result show a mirror image, beyond a reflecting border: bool [H, W].

        Their `coordinates` lie inside of the image, and an object would count twice. Arguments as of `coordinates`.
        """
        forks.refuse_forked()
        return _find_reflected(params, corruption=self, sides=tuple(shape[:2]))

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

        `corrupt(key, images, ...)` gives image i the key `fold_in(key, i)`, in another program: for the same image
        and key its values are within .05 of a level, except for 1 in 1,000.

        Raises:
          ValueError, TypeError: as `sample` and `apply`.
        """
        checks.key(key)
        image = dispatch.unmasked(image)
        checks.one_image(image, any_kind=True)
        return self.apply(image, self.sample(key, image.shape, severity, **options), gradient=gradient)

    def __repr__(self) -> str:
        of_range = "" if self.value_range is None else f", value_range={self.value_range}"
        return f"<Corruption {self.qualified_name}: {self.family}{of_range}>"


@functools.lru_cache(maxsize=256)  # one record, so that equal ones compile once
def _in_range(unit: Corruption, low: float, high: float) -> Corruption:
    return dataclasses.replace(unit, value_range=(low, high), of_unit=unit)


def check_kind(scale: Any, rounding: Any) -> None:
    """Requires the `scale` and `rounding` of a `Corruption` to be some that exist."""
    if not isinstance(scale, Levels | Fraction):
        raise RefusedType("scale", "scale=Levels(number) or Fraction()", repr(scale))
    if rounding not in ("truncate", "nearest"):
        raise Refused("rounding", "rounding='truncate' or 'nearest'", repr(rounding))


def straight_through_estimator(exact: Applier, unrounded: Applier) -> Applier:
    """Makes a function with the values of `exact` and the derivative of `unrounded` by the image."""

    @jax.custom_jvp
    @functools.wraps(exact)
    def apply(image: jax.Array, params: Any) -> jax.Array:
        return exact(image, params)

    @apply.defjvp
    def derive(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
        image, params = primals
        return apply(image, params), jax.jvp(lambda x: unrounded(x, params), (image,), tangents[:1])[1]

    return apply


def _coordinates(params: Params, corruption: Corruption, sides: tuple[int, ...]) -> jax.Array:
    rows, columns = np.ogrid[: sides[0], : sides[1]] if corruption.mapper is None else corruption.mapper(sides, params)
    places = (jnp.broadcast_to(jnp.asarray(place, jnp.float32), sides) for place in (rows, columns))
    return jnp.stack(list(places), axis=-1)


def _reflected(params: Params, corruption: Corruption, sides: tuple[int, ...]) -> jax.Array:
    return jnp.zeros(sides, bool) if corruption.reflects is None else corruption.reflects(sides, params)


_sample = dispatch.program(one_image.sample, "corruption", "shape", "options")
_apply = dispatch.program(one_image.apply, "corruption")
_find = dispatch.program(_coordinates, "corruption", "sides")
_find_reflected = dispatch.program(_reflected, "corruption", "sides")
