"""The device mesh, axes ('model', 'data'), and how arrays lie on it.

A batch is split over 'data', parameters are replicated along it. Each model of a study trains on a row of the mesh, the
devices with one place on 'model', and shares nothing with others. Evaluation takes one model at a time and splits its
batches over all devices.
"""

import collections
import contextlib
import functools
import os
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding

from corruptions.core.dispatch import cpu_count
from corruptions.files import cache_folder
from runtime.log import log


def use_all_cores() -> None:
    """Makes each core of a CPU a JAX device: XLA runs most of a small network's step on one core only.

    Call it before JAX starts. It does nothing when the user chose a number of CPU devices.
    """
    chosen_by_user = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if not chosen_by_user and jax.config.jax_num_cpu_devices < 1:
        jax.config.update("jax_num_cpu_devices", cpu_count())


def data_mesh(batch_size: int | None = None) -> Mesh:
    """Returns a mesh (1, D) of all devices; on a CPU of the most cores of each process that divide `batch_size`."""
    devices = np.asarray(jax.devices())
    if batch_size and devices[0].platform == "cpu":
        devices = devices.reshape(jax.process_count(), -1)  # each process contributes equally many
        counts = [d for d in range(1, devices.shape[1] + 1) if batch_size % (d * len(devices)) == 0]
        devices = devices[:, : max(counts, default=None)]
    return Mesh(devices.reshape(1, -1), ("model", "data"))


def place_array(array: np.ndarray, sharding: Sharding | None) -> jax.Array:
    """Puts an array, which every process holds whole, onto devices; None is the default device.

    Over many processes jax.device_put would compare the arrays of all, and copy each to all hosts.
    """
    if sharding is None or sharding.is_fully_addressable:
        return jax.device_put(array, sharding)
    return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])


def place_tree(tree: Any, sharding: Sharding) -> Any:
    """Puts a pytree onto devices as `place_array` does; leaves may be random keys and arrays over all processes."""
    if sharding.is_fully_addressable:
        return jax.device_put(tree, sharding)

    def place_leaf(leaf):
        spans = isinstance(leaf, jax.Array) and not leaf.is_fully_addressable
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(place_leaf(jax.random.key_data(leaf)), impl=jax.random.key_impl(leaf))
        return jax.device_put(leaf, sharding) if spans else place_array(np.asarray(leaf), sharding)

    return jax.tree.map(place_leaf, tree)


def study_mesh(batch_size: int, parallel: int) -> Mesh:
    """Returns the mesh (1, D) of a study: `data_mesh`, but all devices where several models may train at once."""
    return data_mesh(batch_size if parallel <= 1 else None)


def training_mesh(mesh: Mesh, parallel: int, models: int, batch_size: int) -> Mesh:
    """Returns the mesh (M, D / M) on which M models train at once, of the devices of a mesh (1, D).

    It depends on the settings, the devices and the number of all models of the study, so that a stopped study continues
    on the same mesh. D / M is rounded down, on a CPU to a divisor of the batch size; devices left over are idle.

    Args:
      mesh: devices in one row.
      parallel: models at a time; 0 is one for each device on accelerators, and one on a CPU, whose cores share 'data'.
      models: number of all models to train; M is at most this.
      batch_size: images of a step of one model.

    Raises:
      ValueError: `parallel` is negative or more than the devices, or several processes share the mesh.
    """
    devices = mesh.devices.reshape(-1)
    if not 0 <= parallel <= devices.size:
        raise ValueError(f"expected config.study.parallel from 0 to the {devices.size} devices, found {parallel}")
    if jax.process_count() > 1:
        if parallel > 1:
            raise ValueError(f"expected config.study.parallel 1 with {jax.process_count()} processes, found {parallel}")
        return mesh
    on_cpu = devices[0].platform == "cpu"
    rows = max(1, min(parallel or (1 if on_cpu else devices.size), models))
    columns = devices.size // rows
    if on_cpu and batch_size > 0:
        columns = max(d for d in range(1, columns + 1) if batch_size % d == 0)
    return Mesh(devices[: rows * columns].reshape(rows, columns), ("model", "data"))


def rows(mesh: Mesh) -> list[Mesh]:
    """Returns the mesh (1, D / M) of each model of a mesh (M, D / M)."""
    return [Mesh(row[None], ("model", "data")) for row in mesh.devices]


def replicated(mesh: Mesh) -> NamedSharding:
    """Returns the sharding of an array that every device of the mesh holds as a whole."""
    return NamedSharding(mesh, PartitionSpec())


def by_model(mesh: Mesh, *axes: str | None) -> NamedSharding:
    """Returns the sharding of an array whose first axis is the model and whose other axes are as named."""
    return NamedSharding(mesh, PartitionSpec("model" if mesh.shape["model"] > 1 else None, *axes))


def local_copy(tree: Any, mesh: Mesh) -> Any:
    """Returns arrays, replicated over the devices of `mesh` and others, as replicated over only `mesh`, without a copy."""

    def view(array):
        if not isinstance(array, jax.Array) or array.sharding.device_set == set(mesh.devices.flat):
            return array
        pieces = {shard.device: shard.data for shard in array.addressable_shards}
        if not array.is_fully_replicated or not pieces.keys() >= set(mesh.devices.flat):
            return jax.device_put(array, replicated(mesh))
        pieces = [pieces[device] for device in mesh.devices.flat]
        return jax.make_array_from_single_device_arrays(array.shape, replicated(mesh), pieces)

    return jax.tree.map(view, tree)


def batch_sharding(mesh: Mesh, axis: int = 0) -> NamedSharding:
    """Returns the sharding of an array whose dimension `axis` is the batch."""
    return NamedSharding(mesh, PartitionSpec(*[None] * axis, "data"))


def check_batch_size(mesh: Mesh, batch_size: int, name: str) -> None:
    """Raises ValueError unless `batch_size` splits evenly over the mesh."""
    devices = mesh.shape["data"]
    if batch_size <= 0 or batch_size % devices:
        raise ValueError(f"expected {name} to be a positive multiple of the {devices} devices, found {batch_size}")


# Compiled programs.

_EVENT = "/jax/core/compile/backend_compile_duration"
_counters: dict[int, collections.Counter[str]] = {}


@contextlib.contextmanager
def counting_compiles() -> Iterator[collections.Counter[str]]:
    """Yields a growing Counter: JAX's name of a jitted function -> times it was compiled, or read from the disk's cache."""
    counts = collections.Counter()
    _listen()
    _counters[id(counts)] = counts
    try:
        yield counts
    finally:
        del _counters[id(counts)]


@functools.cache
def _listen():
    """Counts from now on: jax 0.8 cannot take a listener back."""

    def count(event, duration, **details):
        del duration
        if event == _EVENT:
            for counts in _counters.values():
                counts[details["fun_name"].removeprefix("jit(").removesuffix(")")] += 1

    jax.monitoring.register_event_duration_secs_listener(count)


def enable_compilation_cache() -> None:
    """Keeps compiled programs between processes, unless the user configured JAX's cache or there is no folder for it.

    A study runs some eighty small programs of a few kB each, which JAX by itself would compile again.
    """
    if jax.config.jax_compilation_cache_dir is not None:
        return
    try:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "xla"))
    except FileNotFoundError as error:
        log.info("Programs are compiled again by each command: %s.", error)
        return
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
