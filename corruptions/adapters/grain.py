"""Corruptions in Grain's pipelines: of records in its workers, on the CPU, or of batches in the process that trains, on
its device.

`import corruptions` leaves this module out: it needs the package grain.
"""

import dataclasses
import os
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Literal

import jax
import numpy as np
from jax.typing import ArrayLike

from corruptions.core import batch, checks, forks, keys, many_sizes, registry
from corruptions.core.corruption import Corruption

try:
    from grain import transforms  # type: ignore[import-untyped]
except ImportError as error:
    raise ImportError(
        f"expected the package grain, which corruptions.adapters.grain needs, found none that can be imported ({error}); "
        "pip install grain"
    ) from error


@dataclasses.dataclass(frozen=True)
class _Transform:
    """What both transforms are told; the fields are those of their docstrings."""

    name: str | Corruption
    severity: ArrayLike | None = None
    _: dataclasses.KW_ONLY
    image: str | tuple[str, ...] = "image"
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)
    _made_in: int = dataclasses.field(default_factory=lambda: os.getpid(), init=False, repr=False, compare=False)
    _corruption: Corruption = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Finds the corruption and checks its severity and options, without starting JAX."""
        corruption = registry.get(self.name)
        checks.options(corruption.qualified_name, corruption.options, self.options)
        if self.severity is not None:
            corruption.check_severity(self.severity, self.options)
        object.__setattr__(self, "_corruption", corruption)

    def _each(self, element: Any, corrupt: Callable[[Any], Any]) -> dict[str, Any]:
        """Copies an element with every image corrupted."""
        for path in (self.image,) if isinstance(self.image, str) else self.image:
            element = _changed(element, path, corrupt)
        return element


@dataclasses.dataclass(frozen=True)
class CorruptRecord(_Transform, transforms.RandomMap):
    """Corrupts the images of each record on the CPU; for `random_map`, in workers or threads.

    The key comes from Grain's seed and the record's index, its position in the dataset that `random_map` is called on:
    the draws do not depend on workers, on what was read before or on a restart. Each epoch has draws of its own, whether
    `repeat` comes before or behind `random_map`; with `.random_map(...).repeat(reseed_each_epoch=False)` a record keeps its
    draws. All images of a record have one draw, that of `corrupt_image` with one seed: the same severity, and in images of
    one size the same noise.

    Workers leave accelerators to the process that trains: JAX starts on their CPU alone. Each compiles for itself, once
    for a size of image; with `jax_compilation_cache_dir` they share. Workers lack the photographs that this process
    read with `use_photographs`: use `CorruptBatch`.

    Args:
      name: a name (see `corruptions.names`), or a `Corruption`.
      severity: a level, a fraction, or `None` to draw one for each record.
      image: key of the image in a record, a dictionary, or keys of several; `"camera/left"` is the key "left" of the
        dictionary "camera", unless a key has that name itself. An image is as `corrupt_image` takes it, or has leading
        axes [..., H, W, C] for frames or cameras, and comes back as NumPy.
      options: static options of the corruption (`get(name).options`). Where it has severity tables, each image takes the
        one nearest to its shorter side; for images of many sizes give `{"table": "imagenet"}`.

    Raises:
      ValueError, TypeError: at once a wrong name, severity or option; with the record a wrong image, or a record
        without one.
    """

    def random_map(self, element: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Corrupts the images of one record; its other fields stay as they are."""
        seed = int(rng.integers(2**64, dtype=np.uint64))

        def corrupted(image: Any) -> np.ndarray:
            if getattr(image, "ndim", 0) > 3 and len(image):
                return np.stack([corrupted(frame) for frame in image])
            array = many_sizes.as_array(image)
            return many_sizes.corrupt_image(array, self._corruption, self.severity, seed, **self.options)

        with jax.default_device(_cpu(self._made_in)):
            return self._each(element, corrupted)


@dataclasses.dataclass(frozen=True)
class CorruptBatch(_Transform, transforms.Map):
    """Corrupts the images of each batch on the default device; for `map` behind `batch`, in the process that trains.

    Image i of a batch has the key `fold_in(key(seed), index[i])`, whatever batch it is in. Give records their index
    with `map_with_index`: behind the source it is the record's identity, and with a seed its corruption is the same in
    each epoch; behind `shuffle` and `repeat` each epoch has its own. All images of a record have one draw.

    Args:
      name: a name (see `corruptions.names`), or a `Corruption`.
      severity: a level, a fraction, or `None` to draw one for each record.
      seed: seed of all draws, from 0 to 2^64 - 1, for a test set that stays the same; None draws each batch anew, so that no
        two epochs have the same noise.
      image: key of the images in a batch, a dictionary, or keys of several, as `CorruptRecord` has it. Images are
        [N, H, W, C] as `corrupt` takes them, or [N, ..., H, W, C] for frames or cameras.
      index: key of the records' indices, integers [N].
      options: static options of the corruption (`get(name).options`).

    Raises:
      ValueError, TypeError: at once a wrong name, severity or option; with the batch wrong images, or a batch without
        images or index.
      RuntimeError: in a worker, which would take the accelerator.
    """

    _: dataclasses.KW_ONLY
    seed: int | None
    index: str = "index"

    def map(self, element: Mapping[str, Any]) -> dict[str, Any]:
        """Corrupts the images of one batch; its other fields stay as they are."""
        if os.getpid() != self._made_in:
            raise RuntimeError(
                "expected CorruptBatch in the process that made it, behind mp_prefetch, found a worker, which would "
                "take the accelerator; workers corrupt single records with random_map and CorruptRecord"
            )
        remedy = (
            f".map_with_index(lambda i, record: {{**record, {self.index!r}: i}}) before .batch(...) gives records one"
        )
        index = _field(element, self.index, remedy)
        key = keys.seed_key(secrets.randbits(64) if self.seed is None else self.seed)

        def corrupted(images: Any) -> jax.Array:
            axes = getattr(images, "ndim", 4)
            if axes > 5:
                frames = images.reshape(len(images), -1, *images.shape[-3:])
                return corrupted(frames).reshape(images.shape)
            axis: Literal["time"] | None = "time" if axes == 5 else None  # frames have the draw of their record
            return batch.corrupt(key, images, self._corruption, self.severity, index=index, axis=axis, **self.options)

        return self._each(element, corrupted)


def _cpu(made_in: int) -> jax.Device:
    """Finds the CPU. In a worker, another process than the one that made the transform, JAX starts there alone."""
    if os.getpid() != made_in and not forks.jax_started():
        jax.config.update("jax_platforms", "cpu")
    return jax.local_devices(backend="cpu")[0]


def _changed(element: Any, path: str, change: Callable[[Any], Any]) -> dict[str, Any]:
    """Copies an element with the value at a path changed: at the key of that name, else at a key for each part."""
    first, slash, rest = path.partition("/")
    if slash and isinstance(element, Mapping) and first in element and path not in element:
        return {**element, first: _changed(element[first], rest, change)}
    changed = change(_field(element, path))  # before the element is unpacked: it may be no dictionary
    return {**element, path: changed}


def _field(element: Any, name: str, remedy: str = "") -> Any:
    if isinstance(element, Mapping) and name in element:
        return element[name]
    given = f"the keys {', '.join(map(repr, element))}" if isinstance(element, Mapping) else type(element).__name__
    raise ValueError(f"expected dictionaries with {name!r}, found {given}{remedy and f'; {remedy}'}")
