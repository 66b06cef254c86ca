"""Checks of arguments: each error names what was expected and what was found."""

import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from corruptions import files
from corruptions.core.dispatch import is_traced, unmasked
from corruptions.core.errors import Refused, RefusedType
from corruptions.core.severity import Levels

MIN_SIDE = 16
FOR_BATCHES = "use corruptions.corrupt(key, images, name, severity) for batches"
_KEY = "a key as the first argument"
FLOATS = tuple(jnp.dtype(t) for t in (np.float16, jnp.bfloat16, np.float32, np.float64))


def key(given: Any) -> None:
    """Requires a PRNG key, typed or legacy words."""
    kind = type(given).__name__
    if isinstance(given, jax.Array | np.ndarray):
        typed, kind = jnp.issubdtype(given.dtype, jax.dtypes.prng_key), f"an array of shape {given.shape}"
        if given.ndim == 0 if typed else given.dtype == np.uint32 and given.shape in ((2,), (4,)):
            return
    if isinstance(given, int | np.integer):
        raise RefusedType("key", _KEY, f"the number {given}", f"jax.random.key({given})")
    calls = "corrupt(jax.random.key(0), images, name, severity) for a batch, corrupt_image(image, name, severity) for one image"
    raise RefusedType("key", _KEY, kind, f"{calls} without a key")


def image_shape(shape: Sequence[int], any_kind: bool = False) -> None:
    """Requires (H, W, 3), or (H, W, C) of `any_kind`, with both sides at least 16 pixels."""
    shape = tuple(shape)
    if len(shape) != 3 or (shape[-1] < 1 if any_kind else shape[-1] != 3):
        raise Refused("image", f"an image of shape (height, width, {'channels' if any_kind else 3})", shape)
    _sides(shape)


def _sides(shape: Sequence[int]) -> None:
    """Requires both sides of (..., H, W, C) to be at least 16 pixels."""
    height, width = shape[-3:-1]
    if min(height, width) < MIN_SIDE:
        hint = "channels come last: np.moveaxis(images, -3, -1)" if height <= 4 < width else ""
        found = f"{height}x{width} in shape {tuple(shape)}"
        raise Refused("images", f"images of at least {MIN_SIDE}x{MIN_SIDE} pixels", found, hint)


def one_image(image: Any, any_kind: bool = False) -> None:
    """Requires float32[H, W, 3], or floats [H, W, C] of `any_kind`. The range of values is checked by `image_batch`."""
    refuse_torch(image)
    if not hasattr(image, "shape") or not hasattr(image, "dtype"):
        raise RefusedType("image", "an array", type(image).__name__)
    if len(image.shape) == 4:
        found = f"a batch of shape {tuple(image.shape)}"
        raise Refused("image", "one image of shape (height, width, channels)", found, FOR_BATCHES)
    image_shape(image.shape, any_kind)
    if image.dtype not in (FLOATS if any_kind else (np.float32,)):
        kind = "an image of floats" if any_kind else "a float32 image"
        hint = "image / 255, or corrupt_image(image, name, severity), which takes uint8" if any_kind else ""
        raise RefusedType("image", f"{kind} with values in [0, 1]", image.dtype, hint)


def image_batch(images: Any, validate: bool | str, any_kind: bool = False) -> None:
    """Requires uint8 or float32 [N, H, W, 3], or [N, H, W, C] of uint8 or floats of `any_kind`; if `validate`, finite
    floats in [0, 1].
    """
    refuse_torch(images)
    unmasked(images)
    if not hasattr(images, "shape") or not hasattr(images, "dtype"):
        hint = "numpy.stack(images) where all have one size, else corrupt_each(key, images, name)"
        hint *= isinstance(images, list | tuple)
        raise RefusedType("images", "an array of images", type(images).__name__, hint)
    if len(images.shape) != 4 or (images.shape[-1] < 1 if any_kind else images.shape[-1] != 3):
        expected = f"a batch of shape (number, height, width, {'channels' if any_kind else 3})"
        hint = {3: "give one image as image[None]"}.get(len(images.shape), "")
        hint = "clips go with axis='time'" if any_kind and len(images.shape) == 5 else hint
        raise Refused("images", expected, tuple(images.shape), hint)
    _sides(images.shape)
    if images.dtype not in (np.uint8, *(FLOATS if any_kind else (np.float32,))):
        kind = "images of floats" if any_kind else "float32 images"
        whole = "levels from 0 to 255 go as images.astype(numpy.uint8)"
        hint = {"f": "images.astype(numpy.float32)", "i": whole, "u": whole}.get(np.dtype(images.dtype).kind, "")
        raise RefusedType("images", f"uint8 images or {kind} in [0, 1]", images.dtype, hint)
    if validate and images.dtype != np.uint8 and not is_traced(images) and images.shape[0]:
        low, high = extremes(images)
        if not (low >= 0.0 and high <= 1.0):
            hint = "divide by 255 or pass uint8" if high > 1.5 else ""
            hint = "corrupt takes other ranges as value_range=(-1, 1)" if low < 0 and high <= 1.5 else hint
            found = f"values from {low:g} to {high:g}"
            raise Refused("images", f"{images.dtype} values in [0, 1]", found, hint)


def extremes(images: Any) -> tuple[float, float]:
    """Reads the least and the largest value of an array that is not traced, inside a jit that closes over it too; a NaN
    anywhere makes both NaN.
    """
    with jax.ensure_compile_time_eval():
        return float(images.min()), float(images.max())


def checked_in_program(images: Any, levels: Any, scale: Any = None, low: float = 0.0, high: float = 1.0) -> None:
    """Adds errors of `jax.experimental.checkify` to the traced program: for values outside of [low, high], and for
    severities outside of the scale. Untraced values were checked before.
    """
    from jax.experimental import checkify  # most users do not need it

    if is_traced(images) and images.dtype != np.uint8 and images.size:
        message = f"expected values in [{low:g}, {high:g}], found "
        checkify.check(~jnp.isnan(images).any(), message + "NaN")
        inside = ~((images < low) | (images > high)).any()  # minimum and maximum are used without NaN alone
        checkify.check(inside, message + "values from {least} to {most}", least=images.min(), most=images.max())
    if is_traced(levels):
        bounds = (1, scale.count) if isinstance(scale, Levels) else (0, 1)
        message = f"expected severities from {bounds[0]} to {bounds[1]}, found from {{least}} to {{most}}"
        least, most = levels.min(), levels.max()
        checkify.check((least >= bounds[0]) & (most <= bounds[1]), message, least=least, most=most)


def refuse_torch(images: Any) -> None:
    """Refuses PyTorch's tensors, recognised by the name of their package, which is not imported here."""
    if any(kind.__module__.partition(".")[0] == "torch" for kind in type(images).__mro__):
        found = f"a PyTorch tensor of shape {tuple(images.shape)}"
        hint = "hand its memory over, channels last: jax.numpy.from_dlpack(tensor.contiguous()); torch.from_dlpack(result) takes it back"
        raise RefusedType("images", "an array of JAX or NumPy", found, hint)


def one_of(argument: str, what: str, given: Any, known: Collection[str]) -> None:
    """Requires what was `given` for an argument to be one of the `known` names; the error suggests the nearest."""
    if given not in known:
        raise Refused(argument, f"{what} among {', '.join(known) or 'none'}", repr(given), suggest(given, known))


def array(values: Any, what: str, kinds: str) -> Any:
    """Makes an array of numbers of `kinds` (NumPy's letters); TypeError for others, ValueError for masked ones."""
    refuse_torch(values)
    if not hasattr(values, "dtype"):
        try:
            values = np.asarray(values)
        except ValueError:  # lists of different lengths
            raise Refused(what, f"{what} as an array", "lists of different lengths") from None
    values = unmasked(values)
    known = values.dtype.kind in kinds or jnp.issubdtype(values.dtype, jnp.floating)
    if not known or (values.dtype.kind in "fc" and values.dtype.itemsize > (16 if values.dtype.kind == "c" else 8)):
        raise RefusedType(what, f"{what} of numbers", f"dtype {values.dtype}", f"{what}.astype(numpy.float32)")
    return values


def options(owner: str, known: Collection[str], given: Iterable[str]) -> None:
    """Requires every option `given` to the corruption or scheme called `owner` to be `known`."""
    for name in given:
        one_of(name, f"an option of {owner}", name, known)


def folded(name: str) -> str:
    """Spells a name as a file system does that ignores capitals and how letters are composed, as those of macOS and Windows."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def merged(names: Iterable[str]) -> list[tuple[str, str]]:
    """Lists the pairs of different names that such a file system takes for one."""
    first: dict[str, str] = {}
    pairs = ((first.setdefault(folded(name), name), name) for name in names)
    return [(one, other) for one, other in pairs if one != other]


def refuse_merged(name: str, others: Iterable[str]) -> None:
    """Refuses the name of a corruption whose files a file system without capitals takes for those of another."""
    file = folded(name.replace("/", "."))
    if twin := next((one for one in others if one != name and folded(one.replace("/", ".")) == file), None):
        hint = "give it other letters, not only other capitals or dots"
        raise Refused("name", f"a name that every file system tells from {twin!r}", repr(name), hint)


def suggest(name: object, known: Collection[str]) -> str:
    """Returns 'did you mean ...?' for a misspelt name, or ''."""
    close = files.similar(str(name), known, 3, 0.5)
    close = close or [one for one in dict.fromkeys(known) if str(name) and str(name) in str(one)][:3]
    return f"did you mean {' or '.join(map(repr, close))}?" if close else ""


def static_options(options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Makes hashable pairs, sorted by name, of options; lists and arrays, nested ones too, become tuples."""
    return tuple(sorted((name, _hashable(value)) for name, value in options.items()))


def _hashable(value: Any) -> Any:
    value = value.tolist() if isinstance(value, np.ndarray | np.generic | jax.Array) else value
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value
