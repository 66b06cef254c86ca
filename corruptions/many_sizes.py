"""Images of many sizes: a program for each size, or few programs for squares that images are padded
to.
"""

import contextlib
import functools
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
from jax.typing import ArrayLike

from corruptions import batch, checks, forks, keys, one_image, padded, programs, registry
from corruptions.record import Array, Corruption

# Images read ahead and worked on at the same time, at most, and their values together.
_WINDOW = 64
_VALUES = 2**26
_END: Any = object()


class _Task(NamedTuple):
    """One image: the program it goes through, its first call apart, and how it goes through."""

    program: Hashable
    run: Callable[[], np.ndarray]
    values: int


def corrupt_each(
    key: jax.Array,
    images: Iterable[Array | list[Any] | tuple[Any, ...] | one_image.PilImage],
    name: str | Corruption,
    severity: ArrayLike | None = None,
    sizes: Literal["bucket", "exact"] = "bucket",
    *,
    index: Iterable[int] | None = None,
    **options: Any,
) -> Iterator[np.ndarray]:
    """Corrupts images of any sizes, one after another, with few compiled programs.

    Image i is corrupted with the key `fold_in(key, i)`, whatever images are beside it:
    `sizes="exact"` gives what `corrupt(key, image[None], name, severity, index=[i])[0]` gives, and
    compiles a program for each size (in threads, as many as there are cores). With
    `sizes="bucket"`, images are padded at their lower and right border to squares with sides 32,
    64, 128, 256, 512, 640, 768, 1024, ..., one program each; statistics are taken over the image's
    own pixels, draws are its own too, and results are cropped. They are the exact ones but for
    rounding and for frost, which has other draws (benchmarks/results/many_sizes_differences.md).
    Corruptions without `get(name).padding` (docs/howto.md says which, and why), and options
    other than `table` and `levels`, go the exact way in any case.

    Programs are kept on disk where `jax_compilation_cache_dir` is set. Those in memory are bounded
    (see `corruptions.programs`), and so are the images read ahead: 64, or 2^26 values.

    Args:
      key: a typed PRNG key (`jax.random.key(seed)`).
      images: a list or iterator of images as `corrupt_image` takes them, H and W at least 16.
      name: a name (see `corruptions.names`), or a `Corruption`.
      severity: `None` (each image draws its own) or a scalar, a level or a fraction of the range.
      sizes: "bucket" or "exact".
      index: the identity of each image, integers of up to 64 bits, none negative; by default 0, 1,
        2, ...
      **options: static options of the corruption (`get(name).options`).

    Returns:
      An iterator of new NumPy arrays, in the order of the images, of their shapes and dtypes.

    Raises:
      ValueError, TypeError: wrong name, severity, sizes or option at once; a wrong image when it is
        its turn, with its place in `images`.
      OSError: a file behind an image that cannot be read, likewise.
    """
    forks.refuse()
    corruption = registry.get(name)
    checks.options(corruption.qualified_name, corruption.options, options)
    if sizes not in ("bucket", "exact"):
        raise ValueError(f"expected sizes='bucket' or 'exact', found {sizes!r}")
    if severity is not None:
        severity = corruption.scale.check(severity, options)
        if severity.shape != ():
            raise ValueError(f"expected a scalar severity, found one of shape {severity.shape}")
    if sizes == "exact" or corruption.padding is None or set(options) - {"table", "levels"}:
        prepare = functools.partial(_exact, key, corruption, severity, checks.static_options(options))
    else:
        prepare = functools.partial(_padded, key, corruption, severity, options)
    return _in_order(_tasks(images, index, prepare))


def side_of(shape: tuple[int, ...], reach: int = 0) -> int:
    """Picks the side of the square that an image is padded to: it depends on its own size alone.

    Args:
      shape: (H, W, ...).
      reach: pixels of padding needed, unless a side is that of the square.
    """
    return next(s for s in _ladder() if all(n == s or n + reach <= s for n in shape[:2]))


def _ladder() -> Iterator[int]:
    """Powers of two; from 512 on two more between, where work costs more than compilation."""
    yield from (32, 64, 128, 256)
    for power in itertools.count(9):
        yield from (2**power, 5 * 2 ** (power - 2), 3 * 2 ** (power - 1))


def _in_order(tasks: Iterator[_Task]) -> Iterator[np.ndarray]:
    """Yields the results of tasks, worked on in threads a window at a time; then, where the tasks
    ended with an error, raises it.
    """
    failed = None
    while failed is None:
        window, failed = _window(tasks)
        if not window:
            break
        programs.bound()
        # The first call of a program goes alone: threads that start together would each compile it.
        new = {task.program: task for task in window if (task.program, 1) not in batch.COMPILED}
        done = dict(zip(map(id, new.values()), batch.threads().map(_run, new.values())))
        batch.COMPILED.update((program, 1) for program in new)
        rest = [task for task in window if id(task) not in done]
        done |= zip(map(id, rest), batch.threads().map(_run, rest))
        yield from (done[id(task)] for task in window)
    if failed is not None:
        raise failed


def _run(task: _Task) -> np.ndarray:
    return task.run()


def _window(tasks: Iterator[_Task]) -> tuple[list[_Task], Exception | None]:
    """Reads the next tasks, as many as are worked on at the same time, and the error that ends them."""
    found: list[_Task] = []
    try:
        for task in tasks:
            found.append(task)
            if len(found) == _WINDOW or sum(task.values for task in found) > _VALUES:
                break
    except Exception as error:  # noqa: BLE001 - of reading anything; raised when it is the image's turn
        return found, error
    return found, None


def _tasks(
    images: Iterable[Any], index: Iterable[int] | None, prepare: Callable[[np.ndarray, Array], _Task]
) -> Iterator[_Task]:
    """Prepares images, each when it is read."""
    positions = itertools.count() if index is None else iter(index)
    read = iter(images)
    for place in itertools.count():
        with _placed(place):
            image = next(read, _END)
        if image is _END:
            break
        position = next(positions, _END)
        if position is _END:
            raise ValueError(f"expected as many positions in index as images, found {place} and more images")
        with _placed(place):
            task = prepare(one_image.as_array(image), keys.image_index([position], 1))
        yield task
    if index is not None and next(positions, _END) is not _END:
        raise ValueError(f"expected as many positions in index as images, found {place} images and more positions")


@contextlib.contextmanager
def _placed(place: int) -> Iterator[None]:
    """Puts the place of an image into its errors, a wrong one's or those of reading its file."""
    try:
        yield
    except (OSError, TypeError, ValueError) as error:
        # Not the error's own type, such as UnicodeDecodeError: that may take other arguments.
        kind = next(kind for kind in (OSError, TypeError, ValueError) if isinstance(error, kind))
        raise kind(f"image {place}: {error}") from error


def _exact(
    key: jax.Array, corruption: Corruption, severity: Any, options: tuple, image: np.ndarray, index: Array
) -> _Task:
    """The program of `corrupt` for a batch of one."""
    shown = one_image.as_shown(image)

    def run() -> np.ndarray:
        found = batch.corrupt(key, shown[None], corruption, severity, index=index, validate=False, **dict(options))
        return one_image.given_back(found[0], image)

    program = "exact", corruption, options, shown.shape, str(shown.dtype), severity is None, index.shape
    return _Task(program, run, shown.size)


def _padded(
    key: jax.Array, corruption: Corruption, severity: Any, options: Mapping[str, Any], image: np.ndarray, index: Array
) -> _Task:
    """The program of a square, and of severity tables that are alike."""
    shown = one_image.as_shown(image)
    padding = corruption.padding
    assert padding is not None
    side = side_of(shown.shape, padding.reach)
    name, number = padding.table_of(shown.shape, options.get("table"), side)
    static = checks.static_options({**options, "table": name} if name else options)

    def run() -> np.ndarray:
        height, width = shown.shape[:2]
        square = np.pad(shown, ((0, side - height), (0, side - width), (0, 0)), padding.mode)
        tables = {"table": number, **padding.tables_of(shown.shape, options.get("table"), side)}
        size = np.array([height, width], np.int32)
        found = _corrupt_padded(key, square, size, tables, severity, index[0], corruption, static)
        return one_image.given_back(np.asarray(found)[:height, :width], image)

    program = "padded", corruption, static, side, str(shown.dtype), severity is None, index.shape
    return _Task(program, run, side * side * 3)


@functools.partial(jax.jit, static_argnames=("corruption", "options"))
def _corrupt_padded(
    key: jax.Array,
    image: jax.Array,
    size: jax.Array,
    tables: Mapping[str, jax.Array],
    severity: jax.Array | None,
    position: jax.Array,
    corruption: Corruption,
    options: tuple,
) -> jax.Array:
    given = batch.sample_options(corruption, severity, options)
    shape = padded.Shape(image.shape, (size[0], size[1], image.shape[2]), tables)
    params = corruption.sample(keys.image_key(key, position), shape, severity, **given)
    return batch.from_float(corruption.apply(batch.to_float(image), params), image.dtype, corruption.rounding)


programs.on_drop(_corrupt_padded.clear_cache)  # type: ignore[attr-defined]  # the stubs of jit lack it
