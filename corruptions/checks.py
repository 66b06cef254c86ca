"""Clear errors for bad input: each names what was expected and what was found."""

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

MIN_SIDE = 16


def is_traced(x: Any) -> bool:
    """Tells whether `x` has no value yet, inside a jit."""
    return isinstance(x, jax.core.Tracer)


def any_traced(tree: Any) -> bool:
    """Tells whether any leaf of a tree of arrays is traced."""
    return any(map(is_traced, jax.tree.leaves(tree)))


def static_options(options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Makes hashable pairs, sorted by name, of options; lists and arrays become tuples."""
    sequences = list | np.ndarray
    return tuple(sorted((name, tuple(v) if isinstance(v, sequences) else v) for name, v in options.items()))


def image_shape(shape: Sequence[int]) -> None:
    """Requires (H, W, 3) with both sides at least 16 pixels."""
    shape = tuple(shape)
    if len(shape) != 3 or shape[-1] != 3:
        raise ValueError(f"expected an image of shape (height, width, 3), found shape {shape}")
    if min(shape[:2]) < MIN_SIDE:
        raise ValueError(f"expected images of at least {MIN_SIDE}x{MIN_SIDE} pixels, found {shape[0]}x{shape[1]}")


def one_image(image: Any) -> None:
    """Requires float32[H, W, 3]. The range of values is checked by `image_batch`."""
    if not hasattr(image, "shape") or not hasattr(image, "dtype"):
        raise TypeError(f"expected an array, found {type(image).__name__}")
    if len(image.shape) == 4:
        raise ValueError(
            f"expected one image of shape (height, width, 3), found a batch of shape {tuple(image.shape)}; "
            "use corruptions.corrupt(key, images, name, severity) for batches"
        )
    image_shape(image.shape)
    if image.dtype != np.float32:
        raise TypeError(f"expected a float32 image with values in [0, 1], found dtype {image.dtype}")


def image_batch(images: Any, validate: bool) -> None:
    """Requires uint8 or float32 [N, H, W, 3]; if `validate`, finite floats in [0, 1]."""
    if not hasattr(images, "shape") or not hasattr(images, "dtype"):
        raise TypeError(f"expected an array of images, found {type(images).__name__}")
    if len(images.shape) != 4 or images.shape[-1] != 3:
        raise ValueError(f"expected a batch of shape (number, height, width, 3), found shape {tuple(images.shape)}")
    image_shape(images.shape[1:])
    if images.dtype not in (np.uint8, np.float32):
        raise TypeError(f"expected uint8 images or float32 images in [0, 1], found dtype {images.dtype}")
    if validate and images.dtype == np.float32 and not is_traced(images) and images.shape[0]:
        low, high = float(images.min()), float(images.max())  # a NaN anywhere makes both NaN
        if not (low >= 0.0 and high <= 1.0):
            hint = "; divide by 255 or pass uint8" if high > 1.5 else ""
            raise ValueError(f"expected float32 values in [0, 1], found values from {low:g} to {high:g}{hint}")


def severity_level(severity: Any, count: int, interpolate: bool) -> None:
    """Requires levels 1..count, whole unless `interpolate`; of traced ones checks the kind."""
    kind = np.dtype(getattr(severity, "dtype", type(severity))).kind
    if kind not in "iuf":
        raise ValueError(f"expected a severity level 1..{count} or None, found {severity!r}")
    if is_traced(severity):
        if kind == "f" and not interpolate:
            raise ValueError(
                f"expected a traced integer severity, found dtype {severity.dtype}; "
                "pass interpolate=True for real severities between two levels"
            )
        return
    values = np.asarray(severity)
    if not np.all((values >= 1) & (values <= count)):
        raise ValueError(f"expected a severity level 1..{count}, found {severity}")
    if not interpolate and not np.all(values == np.round(values)):
        raise ValueError(
            f"expected a whole severity level 1..{count}, found {severity}; pass interpolate=True to interpolate "
            "the parameters between two levels (our extension, not part of the benchmark)"
        )


def level_range(given: Any, count: int) -> tuple[float, float] | None:
    """Returns a range of levels, 1 <= mild <= severe <= count, as floats; None for None."""
    if given is None:
        return None
    try:
        mild, severe = (float(v) for v in given)
    except (TypeError, ValueError):
        raise ValueError(f"expected range=(mild, severe), two severities in 1..{count}, found {given!r}") from None
    if not 1 <= mild <= severe <= count:
        raise ValueError(f"expected range=(mild, severe) with 1 <= mild <= severe <= {count}, found {given!r}")
    return mild, severe


def levels(given: Any, count: int) -> tuple[int, ...] | None:
    """Returns the whole levels in 1..count to draw from; None for None."""
    if given is None:
        return None
    if not isinstance(given, tuple | list) or not given or any(v not in range(1, count + 1) for v in given):
        raise ValueError(f"expected levels=(1, 3, ...), whole numbers in 1..{count}, found {given!r}")
    return tuple(given)


def severity_fraction(severity: Any) -> None:
    """Requires fractions in [0, 1]; checks a traced severity's kind only."""
    if np.dtype(getattr(severity, "dtype", type(severity))).kind not in "iuf":
        raise ValueError(f"expected a severity fraction in [0, 1] or None, found {severity!r}")
    if is_traced(severity):
        return
    values = np.asarray(severity)
    if not np.all((values >= 0) & (values <= 1)):
        raise ValueError(f"expected a severity in [0, 1], a fraction of the range, found {severity}")


def options(owner: str, known: Collection[str], given: Iterable[str]) -> None:
    """Requires every option `given` to the corruption or scheme called `owner` to be `known`."""
    for name in given:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise ValueError(f"{owner} has no option {name!r}{suggest(name, known)}; options: {listed}")


def suggest(name: object, known: Collection[str]) -> str:
    """Returns '; did you mean ...?' for a misspelt name, or nothing."""
    close = difflib.get_close_matches(str(name), list(known), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
