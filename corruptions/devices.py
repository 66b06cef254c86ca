"""Devices and processes: where the arrays of a call meet, how a compiled function runs over a batch, values that a
compiler computes once, and forked children in which JAX cannot compute.
"""

import concurrent.futures
import functools
import math
import os
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from corruptions import programs

Array = jax.Array | np.ndarray

# Values in one call on a CPU, where the working set should stay in the caches. Pieces are separate calls of one
# program: XLA runs a loop's body on one core, without splitting it over the others.
_CPU_PIECE = 2**20

_jax_had_started = False
_forked = False


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
    """Returns what it is given; ValueError for an array with masked values, of which NumPy and JAX take what lies below the
    mask without a word.
    """
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise ValueError(
            "expected an array whose values all count, found masked ones; array.filled(VALUE) gives them a value"
        )
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
    programs.bound_programs()
    if key is not None:
        key, images, *moved = together(key, images, *rows)
        rows = tuple(moved)
    if is_split(images):
        return jax.device_put(call(*held((key, images, *rows))), images.sharding)
    arrays, number, piece = (images, *rows), images.shape[0], cpu_piece(images.shape)
    program = program, images.shape[1:], str(images.dtype), tuple(x is None for x in arrays)
    if number <= piece or platform(key, images) != "cpu":
        with programs.first_call((program, number)):
            return call(*map(_held, (key, *arrays)))

    def run(start: int) -> jax.Array:
        # The last piece begins earlier, so that all have one shape, and gives only its tail.
        begin = min(start, number - piece)
        part = (None if x is None else _rows(x, begin, piece) for x in arrays)
        with programs.first_call((program, piece)):
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
        raise ValueError(
            "expected index inside shard_map, where each device counts its own images from 0: split the positions like the "
            f"images and give {call}(..., index=positions)"
        )


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


def stage(x: jax.Array) -> jax.Array:
    """Computes `x` once and keeps it in memory.

    XLA fuses an array into every array that reads it and then computes it again for each element read: many times
    over for a stencil after a stencil, or for a plane shared by three channels. TPUs and GPUs respect an optimization
    barrier. CPUs drop it before they fuse, but fuse nothing across the border of a loop: hence two rounds that change
    nothing, which the compiler cannot know.
    """

    def rounds(x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 2, lambda round_number, x: jnp.where(round_number > 1, jnp.zeros_like(x), x), x)

    return jax.lax.platform_dependent(x, cpu=rounds, default=jax.lax.optimization_barrier)


def stage_on_cpu(x: jax.Array) -> jax.Array:
    """Stages `x` on a CPU, and does nothing elsewhere."""
    return jax.lax.platform_dependent(x, cpu=stage, default=lambda x: x)


def by_channels(function: Callable[[slice], jax.Array]) -> jax.Array:
    """Computes `function(channels)`, [H, W, n], of red, green and blue.

    A CPU computes one channel after another: a single image takes half as long as with all at once. Others compute all
    at once: a TPU needs a quarter of the memory or less, by its compiler's model.
    """
    return jax.lax.platform_dependent(
        cpu=lambda: jnp.concatenate([function(slice(i, i + 1)) for i in range(3)], -1),
        default=lambda: function(slice(0, 3)),
    )


def varying_zeros(shape: Sequence[int], like: jax.Array) -> jax.Array:
    """Makes float32 zeros that differ between devices if `like` does, for the start of a loop.

    `jax.shard_map` requires a loop carry that varies over devices from the first iteration.
    """
    return jax.lax.full_like(like, 0, jnp.float32, tuple(shape))


@jax.custom_batching.custom_vmap
def largest(count: jax.Array) -> jax.Array:
    """Returns a count, int32 >= 0; under `vmap` the largest of the batch, elementwise for arrays.

    For bounds on work that changes nothing where an image needs less of it: a `lax.cond` or a loop on a bound shared
    by the batch skips the work. On a bound per image it would always be done.
    """
    return count


@largest.def_vmap
def _largest_of_batch(number: int, batched: Any, count: jax.Array) -> tuple[jax.Array, bool]:
    del number, batched
    return largest(jnp.max(count, axis=0, initial=0)), False


def look_up(table: jax.Array, index: jax.Array) -> jax.Array:
    """Reads `table` [n] at each index, int32 [...] in 0..n-1: entries [...].

    Indices are flattened: a TPU's compiler takes three times as long for two axes.
    """
    return jnp.take(table, index.ravel(), mode="clip").reshape(index.shape)


def jax_started() -> bool:
    """Whether JAX runs in this process, with the devices that it found."""
    started = getattr(sys.modules.get("jax._src.xla_bridge"), "backends_are_initialized", None)
    return started is not None and started()


def refuse_forked() -> None:
    """Raises RuntimeError in a child that was forked after JAX had started: JAX's threads are missing there, and the
    first computation would hang.

    Children that were spawned, that call exec, or whose parent never computed with JAX may go on.
    """
    if _forked:
        raise RuntimeError(
            "expected a process in which JAX can compute, found a child that was forked after JAX had started, where it "
            "hangs; start workers with multiprocessing.get_context('spawn') (PyTorch: DataLoader(..., "
            "multiprocessing_context='spawn')), or corrupt in the parent, batches that the workers have collated"
        )


def _before_fork() -> None:
    """Notes in the parent, where JAX's lock can be waited for, whether a backend is running."""
    global _jax_had_started
    _jax_had_started = jax_started()


def _after_fork_in_child() -> None:
    global _forked
    _forked = _forked or _jax_had_started


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
