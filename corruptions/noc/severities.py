"""The common parts of the NOC candidates: severity ranges, published, scaled to the image size, or custom; rounding to
nearest, the source, draws.

A severity is a fraction f in [0, 1] of a range (mild, severe). A real parameter is mild + f (severe - mild); an
integer parameter is mild + floor(f (severe - mild + 1)), capped at severe, so that a uniform f draws the integers
uniformly with both ends. Quantization is the one range that runs downwards (8 to 3).

The ranges come from the released code of "Increasing the Coverage and Balance of Robustness Benchmarks by Using
Non-Overlapping Corruptions" (2021), made for 224x224 images. They are *defined* by the robustness they leave a
standard model, so for another dataset or size the scaled values are only a start: calibrate, then pass `range=`.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.core import registry
from corruptions.core.corruption import Key, Params, Sampler, Severity, Shape
from corruptions.core.errors import Refused
from corruptions.core.severity import Fraction
from corruptions.noc import stamps
from corruptions.primitives import padded
from corruptions.primitives.padded import Padding

Bounds = tuple[float, float] | None

_PUBLISHED = (stamps.PUBLISHED_SIDE, stamps.PUBLISHED_SIDE, 3)


def _side(shape: Sequence[int]) -> int:
    return min(shape[:2])


def _unchanged(value: float, shape: Sequence[int]) -> float:
    return value


def _pixels(value: float, shape: Sequence[int]) -> int:
    return max(1, round(value * stamps.scale(shape)))


def _block(value: float, shape: Sequence[int]) -> int:
    return max(2, _pixels(value, shape))


def _counted(stamp_area: Callable[[Sequence[int]], float]) -> Callable[[float, Sequence[int]], int]:
    """Scales counts to n (area / 224^2) / (area' / HW): shapes that shrink less become fewer."""

    def rule(value: float, shape: Sequence[int]) -> int:
        published = stamp_area(_PUBLISHED) / stamps.PUBLISHED_SIDE**2
        return max(1, round(value * published / (stamp_area(shape) / (shape[0] * shape[1]))))

    return rule


_discs = _counted(lambda shape: stamps.area(stamps.disc(shape)))
_lozenges = _counted(lambda shape: stamps.area(stamps.lozenge(shape)))
_marks = _counted(stamps.mean_mark_area)
_upright_marks = _counted(lambda shape: stamps.mean_mark_area((shape[1], shape[0])))


@dataclasses.dataclass(frozen=True)
class Range:
    """A published severity range."""

    mild: float  # the end at fraction 0, for 224x224 images
    severe: float  # the end at fraction 1
    unit: str  # of the parameter
    domain: Callable[[Sequence[int]], tuple[float, float]]  # shape -> (least, greatest) meaningful value
    scale: Callable[[float, Sequence[int]], float] = _unchanged  # (value, shape) -> the value for images of that shape
    integer: bool = False  # whether the parameter is whole

    @property
    def descends(self) -> bool:
        """Whether less of the parameter is more severe."""
        return self.severe < self.mild


def _unit_interval(shape: Sequence[int]) -> tuple[float, float]:
    return 0.0, 1.0


def _count(shape: Sequence[int]) -> tuple[float, float]:
    return 0, 4095  # more would cost time and memory beyond any use


_RANGES = {
    "quantization": Range(8, 3, "steps (grey levels - 1)", lambda shape: (1, 255), integer=True),
    "gaussian": Range(0.05, 0.18, "standard deviation, intensity", _unit_interval),
    "salt_pepper": Range(0.003, 0.032, "probability per channel value", _unit_interval),
    "blur": Range(0.40, 0.95, "weight of the blurred image", _unit_interval),
    "thumbnail_resize": Range(1.1, 3.25, "ratio of sides", lambda shape: (1, _side(shape))),
    "pixelate": Range(2, 4, "pixels", lambda shape: (1, _side(shape)), _block, True),
    "artifacts": Range(14, 170, "marks", _count, _marks, True),
    "vertical_artifacts": Range(14, 180, "marks", _count, _upright_marks, True),
    "rhombus": Range(9, 76, "lozenges", _count, _lozenges, True),
    "rain": Range(12, 120, "discs", _count, _discs, True),
    "circle": Range(7, 50, "discs", _count, _discs, True),
    "obstruction": Range(47, 125, "pixels", lambda shape: (0, _side(shape)), _pixels, True),
    "border": Range(9, 46, "pixels", lambda shape: (0, (_side(shape) + 1) // 2), _pixels, True),
    "translation": Range(15, 62, "pixels", lambda shape: (0, _side(shape)), _pixels, True),
    "shear": Range(12, 39, "degrees", lambda shape: (0, 89), integer=True),
    "elastic": Range(44, 110, "pixels", lambda shape: (0, _side(shape) - 1), _pixels, True),
    "rotation": Range(7, 50, "degrees", lambda shape: (0, 180), integer=True),
    "backlight": Range(0.11, 0.44, "intensity", _unit_interval),
    "brightness": Range(0.16, 0.51, "intensity", _unit_interval),
    "contrast": Range(0.33, 0.74, "weight of the mean", _unit_interval),
    "color_distortion": Range(0.09, 0.40, "intensity", _unit_interval),
    "gray_scale": Range(0.49, 1.0, "weight of the luma", _unit_interval),
    "hue": Range(0.05, 0.5, "turns", lambda shape: (0.0, 0.5)),
    "arlequin": Range(3, 36, "lozenges", _count, _lozenges, True),
}

UNITS = {name: r.unit for name, r in _RANGES.items()}


def ranges(shape: Sequence[int]) -> dict[str, tuple[float, float]]:
    """Lists the severity ranges in use for images of a shape (H, W) or (H, W, 3); ValueError for another.

    {name: (mild, severe)} has the 23 candidates and arlequin, ints for whole parameters; units are in `UNITS`. Pixels
    scale with s = min(H, W) / 224 and stay >= 1, counts keep the expected painted area, degrees, weights, intensities
    and ratios are unchanged.
    """
    shape = tuple(shape)
    if len(shape) not in (2, 3) or min(shape[:2]) < 1:
        raise Refused("shape", "an image shape (height, width) or (height, width, 3)", shape)
    return {name: (r.scale(r.mild, shape), r.scale(r.severe, shape)) for name, r in _RANGES.items()}


def resolve(name: str, shape: Sequence[int], custom: Iterable[float] | None = None) -> tuple[float, float]:
    """Returns the range (mild, severe): `custom`, or the published one scaled to `shape`.

    Raises ValueError for a `custom` that is no pair of numbers in the meaningful domain, from mild to severe.
    """
    published = _RANGES[name]
    if custom is None:
        scaled = (published.scale(end, shape) for end in (published.mild, published.severe))
        mild, severe = shape.tables.get("range", scaled) if isinstance(shape, padded.Shape) else scaled
        return mild, severe
    kind = "whole numbers" if published.integer else "numbers"
    try:
        mild, severe = (float(v) for v in custom)
    except (TypeError, ValueError):
        raise Refused("range", f"range=(mild, severe), two {kind}", repr(custom), place=name) from None
    least, greatest = published.domain(shape)
    if not all(math.isfinite(v) and least <= v <= greatest for v in (mild, severe)):
        expected = f"a range within [{least}, {greatest}] ({published.unit}) for images of {shape[0]}x{shape[1]}"
        raise Refused("range", expected, repr(custom), place=name)
    if published.integer and not (mild.is_integer() and severe.is_integer()):
        raise Refused("range", f"a range of whole numbers ({published.unit})", repr(custom), place=name)
    down = published.descends
    if mild != severe and (severe < mild) != down:
        order = "from the greater (mild) to the smaller (severe)" if down else "from the smaller to the greater"
        raise Refused("range", f"a range {order} value", repr(custom), place=name)
    return (int(mild), int(severe)) if published.integer else (mild, severe)


def domain(name: str, shape: Sequence[int]) -> tuple[float, float]:
    """Returns the (mildest, most severe) values of a parameter between which calibration searches.

    They are meaningful for images of `shape` and change them. Counts end at eight times the published range, beyond
    which shapes cover most of the image.
    """
    published = _RANGES[name]
    least, greatest = published.domain(shape)
    if published.integer:
        least = max(least, 2 if name == "pixelate" else 1)
    if published.domain is _count:
        greatest = min(greatest, 8 * published.scale(published.severe, shape))
    return (greatest, least) if published.descends else (least, greatest)


def is_whole(name: str) -> bool:
    """Whether a candidate's parameter is a whole number."""
    return _RANGES[name].integer


def value(name: str, bounds: tuple[float, float], fraction: jax.Array) -> jax.Array:
    """Computes the parameter at a fraction of `bounds`: float32, int32 for whole parameters."""
    mild, severe = bounds
    if not _RANGES[name].integer:
        return mild + fraction * (severe - mild)
    sign = -1 if _RANGES[name].descends else 1
    steps = abs(severe - mild)
    return (mild + sign * jnp.clip(jnp.floor(fraction * (steps + 1)), 0, steps)).astype(jnp.int32)


def lookup(name: str, shape: Sequence[int], custom: Iterable[float] | None, fraction: jax.Array) -> jax.Array:
    """Computes the parameter at a fraction of the range that `resolve` returns."""
    return value(name, resolve(name, shape, custom), fraction)


def looked_up(name: str, parameter: str, signed: bool = False) -> Sampler:
    """Makes the sampler of a candidate with one parameter, which it looks up; of a `signed` one it draws the sign."""

    def sample(key: Key, shape: Shape, severity: Severity, *, range: Bounds = None) -> Params:
        found = lookup(name, shape, range, severity)
        return {parameter: found.astype(jnp.float32) * sign(key) if signed else found}

    published, draws = _RANGES[name], f"Draws the sign of `{parameter}`." if signed else f"Looks up `{parameter}`."
    ends = f"by default {published.mild:g} (mild) to {published.severe:g} (severe)"
    sample.__doc__ = f"{draws} Options: `range` ({published.unit}), {ends}."
    return sample


def padding(scaled: str = "", **fields: Any) -> Padding:
    """Makes the `Padding` of a candidate; `scaled` is its name if its range depends on the image size."""
    if scaled:

        def tables(shape: Sequence[int], table: str | None) -> dict[str, Any]:
            return {"range": np.array(resolve(scaled, shape), np.float32)}

        fields |= {"tables": tables, "axes": 0}
    return Padding(**fields)


_SOURCE = "ImageNet-NOC (2021), appendix A, and the released code"
register = registry.registrar(
    "noc",
    Fraction(),
    "nearest",
    _SOURCE,
    padding(),
    by_size=lambda name, shape, options: {"range": resolve(name, shape, options.get("range"))},
    severity_of=lambda name: {"value": _RANGES[name].unit},
)


def integer(key: jax.Array, low: jax.Array | int, high: jax.Array | int, shape: Sequence[int] = ()) -> jax.Array:
    """Draws whole numbers uniform in low..high, both included, int32; the ends may be traced."""
    return jax.random.randint(key, shape, low, high + 1)


def sign(key: jax.Array) -> jax.Array:
    """Draws -1 or +1 with probability 1/2 each, float32."""
    return jnp.where(jax.random.bernoulli(key), 1.0, -1.0)


def grey_value(key: jax.Array, fixed: float | None) -> jax.Array:
    """Draws a grey uniform in [0, 1), or returns `fixed`; ValueError where that is no number in [0, 1]."""
    if fixed is None:
        return jax.random.uniform(key)
    if not isinstance(fixed, (int, float)) or not math.isfinite(fixed) or not 0 <= fixed <= 1:
        raise Refused("grey", "grey=None (random) or a number in [0, 1]", repr(fixed))
    return jnp.float32(fixed)
