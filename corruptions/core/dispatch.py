"""Runs a compiled function over a batch: on which devices, in which chunks, in which threads."""

import concurrent.futures
import functools
import math
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from corruptions.core import program_cache
from corruptions.core.errors import Refused

Array = jax.Array | np.ndarray

# Values in one call on a CPU, where the working set should stay in the caches. Pieces are separate calls of one
# program: XLA runs a loop's body on one core, without splitting it over the others.
_CPU_PIECE = 2**20


def is_traced(x: Any) -> bool:
    """Tells whether `x` has no value yet, inside a jit."""
    return isinstance(x, jax.core.Tracer)


def any_traced(tree: Any) -> bool:
    """Tells whether any leaf of a tree of arrays is traced."""
    return any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(tree))


def held(tree: Any) -> Any:
    """Copies the NumPy arrays of a tree. JAX reads an array after the call that takes it has returned, when the caller may
    have overwritten it; the copy of `jnp.array` is made as late.
    """
    return jax.tree.map(_held, tree)


def _held(x: Any) -> Any:
    return np.array(unmasked(x)) if isinstance(x, np.ndarray) else x


def unmasked(array: Any) -> Any:
    """Returns what it is given, an array in this machine's byte order: files of FITS and TIFF hold another, which JAX does
    not take. ValueError for an array with masked values, of which NumPy and JAX take what lies below the mask.
    """
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise Refused(
            "array", "an array whose values all count", "masked ones", "array.filled(VALUE) gives them a value"
        )
    if isinstance(array, np.ndarray) and not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="))
    return array


def dispatched(
    call: Callable[..., jax.Array], program: Hashable, key: jax.Array | None, images: Array, *rows: Array | None
) -> jax.Array:
    """Calls a compiled function of a batch: on the devices of its images, and on a CPU in pieces; inside another
    program as a part of it.

    Args:
      call: `(key, images, *rows)` to an array [N, ...]; also takes the same rows of each array.
      program: identifies the compiled program, apart from its arrays; its first call runs alone.
      key: a typed key, or None where the function draws nothing.
      images, *rows: [N, ...] each; a row of None is passed on as it is.

    Returns an array [N, ...]; if the images are split over devices, it is split alike.
    """
    if any_traced((key, images, rows)):
        key, images, rows = held((key, images, rows))
        return call(key, jnp.asarray(images), *rows)
    program_cache.bound_programs()
    if key is not None:
        key, images, *moved = together(key, images, *rows)
        rows = tuple(moved)
    if is_split(images):
        return jax.device_put(call(*held((key, images, *rows))), images.sharding)
    arrays, number, piece = (images, *rows), images.shape[0], cpu_piece(images.shape)
    program = program, images.shape[1:], str(images.dtype), tuple(x is None for x in arrays)
    if number <= piece or platform(key, images) != "cpu":
        with program_cache.first_call((program, number)):
            return call(*map(_held, (key, *arrays)))

    def run(start: int) -> jax.Array:
        # The last piece begins earlier, so that all have one shape, and gives only its tail.
        begin = min(start, number - piece)
        part = (None if x is None else _rows(x, begin, piece) for x in arrays)
        with program_cache.first_call((program, piece)):
            corrupted = jax.block_until_ready(call(key, *part))  # so that the part was read, without a copy
        return corrupted[start - begin :] if start > begin else corrupted

    return jnp.concatenate(list(in_threads(run, range(0, number, piece))))


def _rows(array: Array, begin: int, number: int) -> Array:
    """Reads rows of an array on a CPU as a view in NumPy: a slice in JAX costs as much as a cheap corruption."""
    part = np.asarray(array)[begin : begin + number]
    return jax.device_put(part, array.sharding) if _is_put(array) else part


def in_threads(function: Callable[[Any], Any], values: Iterable[Any]) -> Iterator[Any]:
    """Maps a function in threads, where compiled programs run at the same time on a CPU, under this thread's settings."""
    config: Any = jax.config  # whose attributes are made at import, unknown to type checkers
    words, wide, device = config.jax_threefry_partitionable, config.jax_enable_x64, config.jax_default_device

    def call(value: Any) -> Any:
        with jax.threefry_partitionable(words), jax.enable_x64(wide), jax.default_device(device):
            return function(value)

    return _threads().map(call, values)


@functools.cache
def _threads() -> concurrent.futures.ThreadPoolExecutor:
    # A thread for each core: a call of a compiled program keeps one core busy, seldom more.
    return concurrent.futures.ThreadPoolExecutor(cpu_count(), thread_name_prefix="corrupt")


def cpu_count() -> int:
    """Counts the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_batch(shape: Sequence[int]) -> int:
    """Counts the images of a batch [N, H, W, 3] that fit the caches of all cores together."""
    return cpu_count() * max(1, _CPU_PIECE // math.prod(shape[1:]))


def cpu_piece(shape: Sequence[int]) -> int:
    """Counts the images of a batch [N, H, W, 3] in one call on a CPU, equally many per core."""
    rounds = -(-shape[0] // cpu_batch(shape))
    return max(1, -(-shape[0] // (rounds * cpu_count()))) if rounds else 1


def together(key: jax.Array, images: Array | None, *rows: Any) -> tuple[Any, ...]:
    """Brings the arrays of a call, none of them traced, to the devices that compute it: (key, images, *rows).

    Split images [N, ...] stay on their devices. Otherwise the call runs on the device that the key was put on
    (`jax.device_put`); else on the device that the images were put on, except the host's memory where an accelerator is
    the default device; else on the default device. The rows, [N] or [N, ...], are small; a None is passed on as it is.
    """
    if not any(_is_put(x) for x in (key, images, *rows)):
        return key, images, *rows
    if not is_split(images):
        if _is_put(key):
            images = jax.device_put(images, key.sharding) if _is_put(images) else images
        elif _is_put(images) and platform(images) == "cpu" != platform(key):
            images = np.asarray(images)
    lead = next((x for x in (images, key) if _is_put(x)), None)
    devices = lead.sharding.device_set if lead is not None else None
    if _is_put(key) and key.sharding.device_set != devices:
        words = jnp.asarray(np.asarray(jax.random.key_data(key)))
        key = jax.random.wrap_key_data(words, impl=jax.random.key_impl(key))
    found = (np.asarray(x) if _is_put(x) and x.sharding.device_set != devices else x for x in rows)
    return key, images, *found


def is_split(images: Any) -> TypeGuard[jax.Array]:
    """Whether a batch that is not traced lies on several devices."""
    return isinstance(images, jax.Array) and len(images.sharding.device_set) > 1


def platform(*arrays: Array | None) -> str:
    """Names the platform that computes with arrays, none traced: `cpu`, `gpu` or `tpu`."""
    on_device = sorted((x for x in arrays if isinstance(x, jax.Array)), key=_is_put)
    devices: Any = on_device[-1].sharding.device_set if on_device else jax.devices()
    return next(iter(devices)).platform


def _is_put(array: Any) -> TypeGuard[jax.Array]:
    return isinstance(array, jax.Array) and array.committed


def varying(array: Any) -> frozenset[Any]:
    """Returns the axes of `shard_map` over which an array differs between devices, as its type says: none outside of one,
    and with `check_vma=False`.
    """
    if not is_traced(array):
        return frozenset()
    kind: Any = jax.typeof(array)  # jax 0.8 names it vma
    return frozenset(kind.manual_axis_type.varying if hasattr(kind, "manual_axis_type") else kind.vma)


def refuse_counting(call: str, key: jax.Array, images: Any) -> None:
    """Refuses (ValueError), inside `shard_map`, a batch without an index: each device would count its images from 0."""
    if varying(images) - varying(key):
        hint = f"split the positions like the images and give {call}(..., index=positions)"
        raise Refused("index", "index inside shard_map, where each device counts its own images from 0", "none", hint)


def sharded(
    function: Callable[..., jax.Array], images: jax.Array, checkified: bool = False
) -> Callable[..., jax.Array]:
    """Makes `function(common, images, *rows)` run on each device's share of a batch, inside a jit.

    This concerns meshes with Explicit axes: there the type of an array says how it is split, and every operation must
    say so too. For other batches the function is returned unchanged.

    Args:
      function: treats each row by itself; `common` are arrays for all images, such as a key; returns an array of the
        shape of `images`.
      images: [N, ...]; if axes after the first are split too, each device gets whole images.
      checkified: whether `jax.experimental.checkify` transforms the program. It stacks errors over the devices of a
        `shard_map` and cannot read them there: the compiler splits the work instead.
    """
    sharding = jax.typeof(images).sharding
    mesh, spec = sharding.mesh, sharding.spec
    if not any(spec):
        return function
    split = PartitionSpec(spec[0])

    def run(common: Any, *rows: Array) -> jax.Array:
        rows = tuple(jax.sharding.reshard(x, NamedSharding(mesh, split)) for x in rows)
        if checkified:
            whole = jax.sharding.auto_axes(function, axes=mesh.explicit_axes, out_sharding=NamedSharding(mesh, spec))
            return whole(common, *rows)
        local = jax.shard_map(
            function,
            mesh=mesh,
            in_specs=(PartitionSpec(), *(split for _ in rows)),
            out_specs=split,
            axis_names=set(mesh.explicit_axes),
            check_vma=False,
        )
        return jax.sharding.reshard(local(common, *rows), NamedSharding(mesh, spec))

    return run


def program(function: Callable[..., Any], *static: str) -> Callable[..., Any]:
    """Makes `(*arrays, **static)`, which runs `function` as one compiled program, or as a part of another program where
    arrays are traced.
    """
    compiled = program_cache.jitted(function, static)

    def call(*arrays: Any, **settings: Any) -> Any:
        if any_traced(arrays):
            as_jax = lambda x: jnp.asarray(x) if isinstance(x, np.ndarray) else x  # noqa: E731 - traced ones may index it
            return function(*jax.tree.map(as_jax, held(arrays)), **settings)
        program_cache.bound_programs()
        return compiled(*held(arrays), **settings)

    return call
