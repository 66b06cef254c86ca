"""Images one at a time, returned as NumPy: one image for code without JAX, or many images of any sizes.

Images of many sizes take a program for each size, or few programs for squares that images are padded to.
"""

import contextlib
import functools
import itertools
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, Protocol

import jax
import numpy as np
from jax.typing import ArrayLike

from corruptions.core import batch, checks, dispatch, forks, keys, one_image, program_cache, registry, severity_tables
from corruptions.core.corruption import Array, Corruption
from corruptions.core.errors import Refused, RefusedType
from corruptions.primitives import padded

_MODES = ("L", "LA", "RGB", "RGBA")
# Largest number of images that are read ahead and processed together, and of their values.
_WINDOW = 64
_VALUES = 2**26
_END: Any = object()
_AS_MANY = "as many positions in index as images"
# Squares up to this side are compiled quickly, where the bits stay (`Padding.quick`).
_QUICK_SIDE = 640
_QUICK: Any = program_cache.QUICK_TO_COMPILE


class PilImage(Protocol):
    """The part of a Pillow image that is used here; Pillow itself is not imported."""

    @property
    def mode(self) -> str: ...

    @property
    def __array_interface__(self) -> Any: ...


def corrupt_image(
    image: Array | list[Any] | tuple[Any, ...] | PilImage,
    name: str | Corruption,
    severity: ArrayLike | None = None,
    seed: int | None = None,
    sizes: Literal["bucket", "exact"] = "bucket",
    **options: Any,
) -> np.ndarray:
    """Corrupts one image, for code without JAX: returns NumPy for every kind of input.

    A corruption with severity tables takes the one that is nearest to the image's shorter side, as `corrupt` does. An RGB
    image gives `next(corrupt_each(jax.random.key(seed), [image], name, severity, sizes, table="by_size"))`. With
    `sizes="exact"` it gives `corrupt(jax.random.key(seed), image[None], name, severity)[0]`, and compiles once for each
    size. uint8 and floats have separate programs; another severity or seed, grey or alpha compile nothing.

    A grey image is shown to the corruption as three equal channels and comes back as the green one of the result, whose
    noise is as strong as in colour and whose tint is nearest to the luminance. A corruption that changes hue or the
    balance of colours alone leaves it as it is; repeat the channel yourself to keep colours that frost or spatter add.

    Args:
      image: [H, W] or [H, W, C], H and W at least 16; C is 1 (grey), 3 (RGB), 2 or 4 (with alpha, which is returned as
        it is). uint8, or float16, bfloat16, float32 or float64 in [0, 1]. An array, nested lists (integers are uint8
        levels, floats float64), or a Pillow image of mode L, LA, RGB or RGBA.
      name: a name (see `corruptions.names`), or a `Corruption`. A name without its benchmark is ImageNet-C's where
        ImageNet-C has it: `contrast` is `imagenet_c/contrast`.
      severity: a level or a fraction of the range, whichever the corruption has, or `None` to draw one.
      seed: seed of all draws, from 0 to 2^64 - 1, or None for fresh draws in each call. One seed gives one noise: give each
        image of a test set its own, such as its position.
      sizes: "bucket" or "exact", see `corrupt_each`.
      **options: static options of the corruption (`get(name).options`).

    Returns:
      A new array of the image's shape and dtype. Floats are computed in float32.

    Raises:
      ValueError, TypeError: wrong shape, dtype, range, name, severity, seed, sizes or option; the message names the
        expected and the found value.
      MemoryError: the image, or the square that it is padded to, is too large.
    """
    corruption = registry.get(name)
    key = keys.seed_key(secrets.randbits(64) if seed is None else seed)
    task = _preparation(key, corruption, severity, sizes, options)(as_array(image), keys.image_index([0], 1))
    program_cache.bound_programs()
    return task.call()


def as_array(image: Any) -> np.ndarray:
    """Makes an array of an image; refuses types, shapes and dtypes that `corrupt_image` does not take, as it does."""
    if dispatch.is_traced(image):
        hint = "inside a jit use corruptions.corrupt"
        raise RefusedType("image", "an image with values", "a traced one", hint)
    if isinstance(image, list | tuple):
        array = _from_lists(image)
    elif hasattr(image, "shape") and hasattr(image, "dtype"):
        array = np.asarray(dispatch.unmasked(image))
    elif hasattr(image, "mode"):
        if image.mode not in _MODES:
            expected, hint = f"a Pillow image of mode {', '.join(_MODES)}", "convert it: corruptions.read_image(image)"
            raise Refused("image", expected, f"mode {image.mode}", hint)
        array = np.asarray(image)
    else:
        hint = "corruptions.read_image(path) reads one" if isinstance(image, str | os.PathLike) else ""
        raise RefusedType("image", "an array, nested lists or a Pillow image", type(image).__name__, hint)
    if array.ndim == 4:
        raise Refused("image", "one image", f"a batch of shape {array.shape}", checks.FOR_BATCHES)
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[-1] not in (1, 2, 3, 4)):
        hint = "channels come last: image.transpose(1, 2, 0)" if array.shape[:1] in ((1,), (3,), (4,)) else ""
        expected = "an image of shape (height, width) or (height, width, channels) with 1 to 4 channels"
        raise Refused("image", expected, array.shape, hint)
    if array.dtype != np.uint8 and array.dtype not in checks.FLOATS:
        hint = "corruptions.read_image(path) makes uint8 of 16 bits" if array.dtype in (np.uint16, np.int32) else ""
        raise RefusedType("image", "an image of uint8 or of floats in [0, 1]", array.dtype, hint)
    return array


def as_seen(image: np.ndarray) -> np.ndarray:
    """Converts an image of `as_array` to the pixels that corruptions see, uint8 or float32 [H, W, 3].

    Raises ValueError if it is too small, or its values are outside [0, 1].
    """
    pixels = one_image.seen(_with_channels(image))
    pixels = pixels if image.dtype == np.uint8 else pixels.astype(np.float32)
    checks.image_batch(pixels[None], True)
    return pixels


def _as_given(corrupted: Any, image: np.ndarray) -> np.ndarray:
    """Converts corrupted pixels of `as_seen(image)` to a new array of the image's shape and dtype."""
    pixels = np.asarray(corrupted).astype(image.dtype)
    return one_image.restored(pixels, _with_channels(image)).reshape(image.shape)


def _with_channels(image: np.ndarray) -> np.ndarray:
    return image[..., None] if image.ndim == 2 else image


def _from_lists(rows: list[Any] | tuple[Any, ...]) -> np.ndarray:
    try:
        array = np.asarray(rows)
    except ValueError:
        hint = "images of many sizes go through corrupt_each(key, images, name, severity)"
        raise Refused("image", "an image as lists of equal lengths", "lists of different lengths", hint) from None
    if array.dtype.kind != "i" or not array.size:
        return array
    if array.min() < 0 or array.max() > 255:
        raise Refused("image", "levels from 0 to 255", f"values from {array.min()} to {array.max()}")
    return array.astype(np.uint8)


class _Task(NamedTuple):
    """One image to corrupt: the call, and its number of values."""

    call: Callable[[], np.ndarray]
    values: int


def corrupt_each(
    key: jax.Array,
    images: Iterable[Array | list[Any] | tuple[Any, ...] | PilImage],
    name: str | Corruption,
    severity: ArrayLike | None = None,
    sizes: Literal["bucket", "exact"] = "bucket",
    *,
    index: Iterable[int] | None = None,
    **options: Any,
) -> Iterator[np.ndarray]:
    """Corrupts images of any sizes, one after another, with few compiled programs.

    A severity means the same for all images: a corruption with severity tables takes that of ImageNet, `table="imagenet"`,
    whatever the sizes, as imagecorruptions does; one line says so. `table="by_size"` takes for each image the table that is
    nearest to its shorter side, as `corrupt` does: gaussian_noise 5 then has a deviation of 26 levels at 45 pixels, 46 at 46
    and 83 at 224.

    Image i is corrupted with the key `fold_in(key, i)`, whatever the other images: `sizes="exact"` gives `corrupt(key,
    image[None], name, severity, index=[i], table="imagenet")[0]`, and compiles a program for each size (in threads, one a
    core). With `sizes="bucket"`, images are padded at their lower and right border to squares with sides 32, 64, 128, 256,
    512, 640, 768, 1024, ..., one program each. Statistics are those of the image's own pixels, draws are its own, and
    results are cropped. They equal the exact ones except for rounding (benchmarks/results/many_sizes_differences.md).
    Corruptions without `get(name).padding` (docs/howto/corrupt.md lists them, with reasons), and options other than `table`,
    `levels` and `codec`, go the exact way in any case.

    Programs are kept on disk (`corruptions.core.program_store`). Their number in memory is bounded, and the images that are
    read ahead: 64, or 2^26 values.

    Args:
      key: a typed PRNG key (`jax.random.key(seed)`).
      images: a list or iterator of images as `corrupt_image` takes them, H and W at least 16.
      name: a name (see `corruptions.names`), or a `Corruption`.
      severity: `None` (each image draws its own) or a scalar, a level or a fraction of the range.
      sizes: "bucket" or "exact".
      index: identities of the images, integers of up to 64 bits, none negative; by default 0, 1, 2, ...
      **options: static options of the corruption (`get(name).options`).

    Returns:
      An iterator of new NumPy arrays, in the order of the images, of their shapes and dtypes.

    Raises:
      ValueError, TypeError: wrong name, severity, sizes or option at once; a wrong image at its turn, with its place in
        `images`.
      OSError: the file of an image cannot be read; also names its place.
    """
    if isinstance(images, str | os.PathLike):
        path = f"the path {str(images)!r}"
        raise RefusedType("images", "a list or iterator of images", path, "corruptions.read_image reads one")
    index = index.tolist() if isinstance(index, jax.Array | np.ndarray) else index
    found, options = registry.get(name), dict(checks.static_options(options))
    corruption = found.for_many_sizes
    prepare = _preparation(dispatch.held(key), corruption, severity, sizes, options)

    def with_a_line(image: np.ndarray, position: Array) -> _Task:
        if "table" not in options and corruption is not found and corruption.differs_by_size(image.shape):
            severity_tables.say_one_for_all("corrupt_each")
        return prepare(image, position)

    return _in_order(_tasks(images, index, with_a_line))


def _preparation(
    key: jax.Array, corruption: Corruption, severity: ArrayLike | None, sizes: str, options: Mapping[str, Any]
) -> Callable[[np.ndarray, Array], _Task]:
    """Checks a request, and makes `(image, index) -> task`, which pads images where this is possible and asked for."""
    forks.refuse_forked()
    checks.key(key)
    checks.options(corruption.qualified_name, corruption.options, options)
    if corruption.value_range is not None:
        raise Refused("name", "a corruption of images in [0, 1]", repr(corruption), "only corrupt takes it")
    if sizes not in ("bucket", "exact"):
        raise Refused("sizes", "sizes='bucket' or 'exact'", repr(sizes))
    if severity is not None:
        severity = corruption.check_severity(severity, {**corruption.fixed, **options})
        if severity.shape != ():
            raise Refused("severity", "a scalar severity", f"one of shape {severity.shape}")
    exact = (
        sizes == "exact" or corruption.padding is None or {*corruption.fixed, *options} - {"table", "levels", "codec"}
    )
    return functools.partial(_exact if exact else _padded, key, corruption, severity, options)


def _in_order(tasks: Iterator[_Task]) -> Iterator[np.ndarray]:
    """Yields the results of tasks, which threads compute a window at a time; then, where the tasks ended with an error,
    raises it.
    """
    failed = None
    while failed is None:
        window, failed = _window(tasks)
        if not window:
            break
        program_cache.bound_programs()
        yield from dispatch.in_threads(lambda task: task.call(), window)
    if failed is not None:
        raise failed


def _window(tasks: Iterator[_Task]) -> tuple[list[_Task], Exception | None]:
    """Reads the next tasks, as many as run at the same time, and the error that ends them."""
    found: list[_Task] = []
    try:
        for task in tasks:
            found.append(task)
            if len(found) == _WINDOW or sum(task.values for task in found) > _VALUES:
                break
    except Exception as error:  # noqa: BLE001 - reading an image may raise anything; raised at its turn
        return found, error
    return found, None


def _tasks(
    images: Iterable[Any], index: Iterable[int] | None, prepare: Callable[[np.ndarray, Array], _Task]
) -> Iterator[_Task]:
    positions = itertools.count() if index is None else iter(index)
    read = iter(images)
    for place in itertools.count():
        with _placed(place):
            image = next(read, _END)
        if image is _END:
            break
        position = next(positions, _END)
        if position is _END:
            raise Refused("index", _AS_MANY, f"{place} and more images")
        with _placed(place):
            task = prepare(np.array(as_array(image)), keys.image_index([position], 1))  # the next may take its memory
        yield task._replace(call=_placed(place)(task.call))
    if index is not None and next(positions, _END) is not _END:
        raise Refused("index", _AS_MANY, f"{place} images and more positions")


@contextlib.contextmanager
def _placed(place: int) -> Iterator[None]:
    """Puts the place of an image into the errors of checking it, of reading its file and of its memory."""
    kinds = (MemoryError, OSError, TypeError, ValueError)
    try:
        yield
    except Refused as error:
        raise error.at(f"image {place}") from error
    except kinds as error:
        # Not the error's own type: a type such as UnicodeDecodeError takes other arguments.
        kind = next(kind for kind in kinds if isinstance(error, kind))
        raise kind(f"image {place}: {error}") from error


@contextlib.contextmanager
def _memory_for(what: str, remedy: str = "") -> Iterator[None]:
    """Names the image for which the memory does not suffice."""
    try:
        yield
    except (MemoryError, jax.errors.JaxRuntimeError) as error:
        if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error) or "Out of memory" in str(error):
            raise MemoryError(f"expected memory for {what}, found too little{remedy}") from None
        raise


def _exact(
    key: jax.Array, corruption: Corruption, severity: Any, options: Mapping[str, Any], image: np.ndarray, index: Array
) -> _Task:
    """Makes the task that corrupts an image as a batch of one."""
    pixels = as_seen(image)

    @_memory_for(f"corrupting {pixels.shape[0]}x{pixels.shape[1]} pixels")
    def call() -> np.ndarray:
        found = batch.corrupt(key, pixels[None], corruption, severity, index=index, validate=False, **options)
        return _as_given(found[0], image)

    return _Task(call, pixels.size)


def _padded(
    key: jax.Array, corruption: Corruption, severity: Any, options: Mapping[str, Any], image: np.ndarray, index: Array
) -> _Task:
    """Makes the task that pads an image to a square; images of alike severity tables share a program."""
    pixels = as_seen(image)
    options = corruption.options_for(pixels.shape, options)
    padding = corruption.padding
    assert padding is not None
    side = padded.side_of(pixels.shape, padding.reach)
    name, number = padding.table_of(pixels.shape, options.get("table"), side)
    static = checks.static_options({**options, "table": name} if name else options)

    program = "padded", corruption, static, side, str(pixels.dtype), severity is None, index.shape
    platform = dispatch.platform(key)
    quick = (
        padding.quick
        and side <= _QUICK_SIDE
        and platform == "cpu"
        and program_cache.compiles_with(platform, *_QUICK.items())
    )
    program_of = _quick_to_compile if quick else _quick_to_run
    height, width = pixels.shape[:2]

    @_memory_for(f"the {side}x{side} pixels that {height}x{width} are padded to", "; sizes='exact' pads none")
    def call() -> np.ndarray:
        square = np.pad(pixels, ((0, side - height), (0, side - width), (0, 0)), padding.mode)
        tables = {"table": number, **padding.tables_of(pixels.shape, options.get("table"), side)}
        size = np.array([height, width], np.int32)
        with program_cache.first_call(program):
            found = program_of(
                _own_key(key, index[0]), square, size, tables, severity, corruption=corruption, options=static
            )
        return _as_given(np.asarray(found)[:height, :width], image)

    return _Task(call, side * side * 3)


def _corrupt_padded(
    key: jax.Array,
    image: jax.Array,
    size: jax.Array,
    tables: Mapping[str, jax.Array],
    severity: jax.Array | None,
    corruption: Corruption,
    options: tuple[tuple[str, Any], ...],
) -> jax.Array:
    shape = padded.Shape(image.shape, (size[0], size[1], image.shape[2]), tables)
    params = one_image.sample(key, severity, corruption, shape, options)
    params = padded.with_own_size(params, shape)
    corrupted = one_image.apply(batch.to_float(image), params, corruption)
    return batch.from_float(corrupted, image.dtype, corruption.rounding)


_compiled: Any = functools.partial(program_cache.jitted, _corrupt_padded, ("corruption", "options"))
_quick_to_run, _quick_to_compile = _compiled(), _compiled(compiler_options=_QUICK)
# A program for all corruptions, which takes as long to compile as some of them.
_own_key = program_cache.jitted(batch.image_key)
