"""Refuses a batch whose steps do not fit a device's memory, by its compiler, before the first step.

Without this check the allocator fails minutes after the start and names neither the setting nor a size that fits.
"""

import math
from collections.abc import Callable

import jax
from jax.sharding import Mesh

from runtime import distributed
from runtime.schema import SettingsError

_NO_ROOM = "RESOURCE_EXHAUSTED"  # a TPU's compiler says so of a program that does not fit


def free_bytes(mesh: Mesh) -> int | None:
    """Measures the free bytes of a device of this process; None where devices do not tell (CPUs)."""
    device = next(d for d in mesh.devices.flat if d.process_index == jax.process_index())
    stats = device.memory_stats() or {}
    return stats["bytes_limit"] - stats.get("bytes_in_use", 0) if "bytes_limit" in stats else None


def beyond_arguments(program: jax.stages.Compiled) -> int:
    """Counts a program's bytes on a device beside its arguments: temporaries, code, results in new places."""
    sizes = program.memory_analysis()
    results = sizes.output_size_in_bytes - sizes.alias_size_in_bytes
    return sizes.temp_size_in_bytes + results + sizes.generated_code_size_in_bytes


def check(
    mesh: Mesh,
    lower: Callable[[jax.Array, jax.Array], jax.stages.Lowered],
    images: jax.Array,
    labels: jax.Array,
    parts: int,
) -> None:
    """Refuses a block of steps that does not fit; does nothing where devices do not tell their free memory.

    The arguments of the block, and a dataset, are in place when free memory is measured. Beside the steps there must
    be room for the images of the next block, which are made meanwhile.

    Args:
      mesh: (M, devices for each model).
      lower: lowers the block for images and labels; JAX compiles it once, for this and the first call.
      images, labels: the first block, [M K, B, ...].
      parts: batches are multiples of this number.

    Raises:
      SettingsError: it does not fit; names the largest batch that does.
    """
    free = free_bytes(mesh)
    if free is None:
        return
    batch = images.shape[1]
    needed = _needed(lower, images, labels, batch)
    if not distributed.anyone(needed > free):
        return
    too_large = smaller = batch
    while smaller := smaller // 2 // parts * parts:
        of_smaller = _needed(lower, images, labels, smaller)
        if not distributed.anyone(of_smaller > free):  # all compile the same sizes
            break
        too_large = smaller
    found = "which its compiler has no room for" if needed == math.inf else f"whose steps need {gib(needed)}"
    raise SettingsError(
        f"config.train.batch_size: expected a batch whose steps fit the {gib(free)} free on {_kind(mesh)}, found "
        f"{batch}, {found}; {_advice(smaller, of_smaller, free, too_large, parts) if smaller else 'no batch fits'}. Fewer "
        "models at once (config.study.parallel) leave more devices to each"
    )


def _advice(fitting, needed, free, too_large, parts):
    """Estimates the largest batch that fits from the needs of a smaller one."""
    largest = min(int(fitting * free / needed), too_large - 1) // parts * parts
    return f"the largest that fits is about {largest} ({fitting} need {gib(needed)})"


def _needed(lower, images, labels, batch):
    """Counts bytes beside the arguments for batches of another size; infinite where the compiler refuses."""
    sized = [
        jax.ShapeDtypeStruct((array.shape[0], batch, *array.shape[2:]), array.dtype, sharding=array.sharding)
        for array in (images, labels)
    ]
    local = math.prod(images.sharding.shard_shape(sized[0].shape)) * images.dtype.itemsize
    try:
        return beyond_arguments(lower(*sized).compile()) + local
    except jax.errors.JaxRuntimeError as error:
        if _NO_ROOM not in str(error):
            raise
        return math.inf


def _kind(mesh):
    return mesh.devices.flat[0].device_kind


def gib(number: float) -> str:
    """Writes bytes as GiB."""
    return f"{number / 2**30:.3g} GiB"
