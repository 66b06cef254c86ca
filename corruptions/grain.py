"""Corruptions in Grain's pipelines: of records in its workers, on the CPU, or of batches in the process that trains, on
its device.

`import corruptions` leaves this module out: it needs the package grain.
"""

import os
import secrets
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax.typing import ArrayLike

from corruptions import batch, contract, devices, keys, one_image, registry
from corruptions.record import Corruption

try:
    from grain import transforms  # type: ignore[import-untyped]
except ImportError as error:
    raise ImportError(
        f"expected the package grain, which corruptions.grain needs, found none that can be imported ({error}); "
        "pip install grain"
    ) from error


class CorruptRecord(transforms.RandomMap):
    """Corrupts the image of each record on the CPU; for `random_map`, in workers or threads.

    The key comes from Grain's seed and the record's index, its position in the dataset that `random_map` is called on:
    the draws do not depend on workers, on what was read before or on a restart. Behind `shuffle` and `repeat` each
    epoch has draws of its own; straight behind the source a record keeps its draws.

    Workers leave accelerators to the process that trains: JAX starts on their CPU alone. Each compiles for itself, once
    for a size of image; with `jax_compilation_cache_dir` they share. Workers lack the photographs that this process
    read with `use_photographs`: use `CorruptBatch`.

    Args:
      name: a name (see `corruptions.names`), or a `Corruption`.
      severity: a level, a fraction, or `None` to draw one for each record.
      image: key of the image in a record, a dictionary. The image is as `corrupt_image` takes it, and comes back as
        NumPy.
      **options: static options of the corruption (`get(name).options`).

    Raises:
      ValueError, TypeError: at once a wrong name, severity or option; with the record a wrong image, or a record
        without one.
    """

    def __init__(
        self, name: str | Corruption, severity: ArrayLike | None = None, *, image: str = "image", **options: Any
    ):
        self._corruption, self._severity = _checked(name, severity, options)
        self._image, self._options, self._made_in = image, options, os.getpid()

    def random_map(self, element: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Corrupts the image of one record; its other fields stay as they are."""
        image = one_image.as_array(_field(element, self._image))
        seed = int(rng.integers(2**64, dtype=np.uint64))
        with jax.default_device(_cpu(self._made_in)):
            corrupted = one_image.corrupt_image(image, self._corruption, self._severity, seed, **self._options)
        return {**element, self._image: corrupted}


class CorruptBatch(transforms.Map):
    """Corrupts the images of each batch on the default device; for `map` behind `batch`, in the process that trains.

    Image i of a batch has the key `fold_in(key(seed), index[i])`, whatever batch it is in. Give records their index
    with `map_with_index`: behind the source it is the record's identity, and with a seed its corruption is the same in
    each epoch; behind `shuffle` and `repeat` each epoch has its own.

    Args:
      name: a name (see `corruptions.names`), or a `Corruption`.
      severity: a level, a fraction, or `None` to draw one for each image.
      seed: of all draws, from 0 to 2^64 - 1, for a test set that stays the same; None draws each batch anew, so that no
        two epochs have the same noise.
      image: key of the images in a batch, a dictionary: [N, H, W, C] as `corrupt` takes them.
      index: key of the images' indices, integers [N].
      **options: static options of the corruption (`get(name).options`).

    Raises:
      ValueError, TypeError: at once a wrong name, severity or option; with the batch wrong images, or a batch without
        images or index.
      RuntimeError: in a worker, which would take the accelerator.
    """

    def __init__(
        self,
        name: str | Corruption,
        severity: ArrayLike | None = None,
        *,
        seed: int | None,
        image: str = "image",
        index: str = "index",
        **options: Any,
    ):
        self._corruption, self._severity = _checked(name, severity, options)
        self._image, self._index, self._options = image, index, options
        self._seed, self._made_in = seed, os.getpid()

    def map(self, element: Mapping[str, Any]) -> dict[str, Any]:
        """Corrupts the images of one batch; its other fields stay as they are."""
        if os.getpid() != self._made_in:
            raise RuntimeError(
                "expected CorruptBatch in the process that made it, behind mp_prefetch, found a worker, which would "
                "take the accelerator; workers corrupt single records with random_map and CorruptRecord"
            )
        remedy = (
            f".map_with_index(lambda i, record: {{**record, {self._index!r}: i}}) before .batch(...) gives records one"
        )
        images, index = _field(element, self._image), _field(element, self._index, remedy)
        key = keys.seed_key(secrets.randbits(64) if self._seed is None else self._seed)
        corrupted = batch.corrupt(key, images, self._corruption, self._severity, index=index, **self._options)
        return {**element, self._image: corrupted}


def _checked(
    name: str | Corruption, severity: ArrayLike | None, options: Mapping[str, Any]
) -> tuple[Corruption, ArrayLike | None]:
    """Finds a corruption and checks its severity and options, without starting JAX."""
    corruption = registry.get(name)
    contract.options(corruption.qualified_name, corruption.options, options)
    return corruption, None if severity is None else corruption.scale.check(severity, options)


def _cpu(made_in: int) -> jax.Device:
    """Finds the CPU. In a worker, another process than the one that made the transform, JAX starts there alone."""
    if os.getpid() != made_in and not devices.jax_started():
        jax.config.update("jax_platforms", "cpu")
    return jax.local_devices(backend="cpu")[0]


def _field(element: Any, name: str, remedy: str = "") -> Any:
    if isinstance(element, Mapping) and name in element:
        return element[name]
    given = f"the keys {', '.join(map(repr, element))}" if isinstance(element, Mapping) else type(element).__name__
    raise ValueError(f"expected dictionaries with {name!r}, found {given}{remedy and f'; {remedy}'}")
