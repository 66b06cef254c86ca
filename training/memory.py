"""Memory of devices: images that lie there or are read ahead from the host, and batches that fit.

Splits that fit stay in device memory (`place_splits`). Others are memory maps on the host: a `Stream` gathers the images
of each step in background threads and puts whole blocks on the devices while earlier steps run. Batches are equal, bit
for bit, to batches of images on the device.
"""

import contextlib
import functools
import math
import os
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
from jax.sharding import Mesh

from corruptions.core import machine
from data.dataset import Dataset, Split
from runtime import distributed, meshes
from runtime.log import log
from runtime.settings import SettingsError
from training.batches import Plan

_FRACTION = 0.5  # share of free memory that a split may take; batches, networks and corrupted copies need the rest
_AHEAD_BYTES = 2**31  # images of the steps that are read ahead
_THREADS = 16  # more than cores, because threads wait for the disk; memory bounds the copying
_PIECE_BYTES = 2**30
_NO_ROOM = "RESOURCE_EXHAUSTED"  # in the error of a TPU's compiler for a program that does not fit


def place_splits(
    dataset: Dataset, placement: str, mesh: Mesh, placed: Collection[str] = ("train", "test")
) -> tuple[Split, Split]:
    """Puts (train, test) of a dataset on the devices, replicated, or leaves them to be streamed.

    The placement is `device`, `stream`, or `auto`: on the device if a split takes at most half of the device's free
    memory, training images first. On a CPU the machine's memory counts; each device holds a copy. Only the splits
    `placed` are placed.
    """
    free = _free_bytes(mesh)
    splits = {"train": dataset.train, "test": dataset.test}
    for name, split in splits.items():
        if name not in placed:
            continue
        size = split.images.nbytes
        too_large = placement == "auto" and distributed.anyone(not fits(size, free))  # in any process
        if placement == "stream" or too_large:
            gigabytes = f"{size / 1e9:.1f} GB, {free / 1e9:.1f} GB free on the device"
            log.info("The %s images of %s are streamed from the host (%s).", name, dataset.name, gigabytes)
        else:
            splits[name] = split.to_device(meshes.replicated(mesh))
            free -= size
    return tuple(splits.values())


def fits(size: float, free: float) -> bool:
    """Returns True if a split of `size` bytes is put on devices with `free` bytes."""
    return size <= _FRACTION * free


def free_bytes(mesh: Mesh) -> int | None:
    """Measures the free bytes of a device of this process; of a CPU its share of the machine's (`machine.free_memory`).

    None where neither tells.
    """
    free = _of_device(mesh)
    if free is not None:
        return free
    left = machine.free_memory()
    return None if left is None else left // len(mesh.local_devices)


def _of_device(mesh):
    """Measures the free bytes of a device of this process; None of a CPU."""
    device = next(d for d in mesh.devices.flat if d.process_index == jax.process_index())
    stats = device.memory_stats() or {}
    return stats["bytes_limit"] - stats.get("bytes_in_use", 0) if "bytes_limit" in stats else None


def _free_bytes(mesh):
    """Measures the bytes that an array replicated over the mesh may take, on each device."""
    free = _of_device(mesh)
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / len(mesh.local_devices) if free is None else free


def on_device(split: Split) -> bool:
    """Returns True if a split's images are in device memory."""
    return isinstance(split.images, jax.Array)


def source(
    split: Split, plan: Plan, orders: Callable[[int], jax.Array], begin: int, mesh: Mesh
) -> "contextlib.AbstractContextManager[Split | Stream]":
    """Holds the source of `batches.block`: the split if it is on the device, else a `Stream` with these arguments."""
    if on_device(split):
        return contextlib.nullcontext(split)
    return contextlib.closing(Stream(split, plan, orders, begin, mesh))


class Stream:
    """The images of a run's blocks, in order, on the devices ahead of time.

    No checkpoint stores any of it: it starts at any step, and its blocks are a function of the orders.

    Args:
      split: data.Split on the host, images as anything indexed by an integer array.
      plan, begin: plan of the run, and its first step.
      orders: epoch -> order of its images (`batches.epoch_order`); called in other threads.
      mesh: blocks lie split over its 'data' axis.
    """

    def __init__(self, split: Split, plan: Plan, orders: Callable[[int], jax.Array], begin: int, mesh: Mesh):
        # The import takes half a second, and most runs do not need it.
        import grain
        from grain.experimental import ThreadPrefetchIterDataset

        self._next, self._steps = begin, plan.block_steps
        sharding = meshes.batch_sharding(mesh)
        # A block has one step where the steps of an epoch are a prime number; reading is ahead by more all the same.
        ahead = max(plan.block_steps, min(_THREADS, plan.total_steps, _AHEAD_BYTES // plan.step_bytes))
        threads = min(_THREADS, ahead)
        local = _local(sharding, plan.block_steps * plan.batch_size).reshape(plan.block_steps, plan.batch_size)
        steps = grain.MapDataset.source(_Steps(split, plan, orders, local))[begin:]
        steps = steps.to_iter_dataset(grain.ReadOptions(num_threads=threads, prefetch_buffer_size=ahead))

        def put(part):  # [K, B, ...] on the devices of all processes, as [K B, ...]
            part = part.reshape(-1, *part.shape[2:])
            return jax.make_array_from_callback(part.shape, sharding, lambda index: part[index])

        blocks = steps.batch(plan.block_steps).map(lambda block: tuple(map(put, block)))
        # One block waits on the device, another is on its way while that one is handed over.
        self._blocks = iter(ThreadPrefetchIterDataset(blocks, prefetch_buffer_size=1))

    def take(self, step: int) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Takes the block of steps that begins at `step`: (images uint8 [M, H, W, 3], labels int32 [M], is_copy bool [M]).

        `is_copy` marks the images to corrupt with reading `code`. ValueError: another block comes next.
        """
        if step != self._next:
            raise ValueError(f"expected the block at step {self._next}, which comes next, found {step}")
        self._next += self._steps
        return next(self._blocks)

    def close(self) -> None:
        """Ends the reading threads."""
        self._blocks.close()


def _local(sharding, number):
    """Marks the rows that lie on devices of this process among `number` rows: bool [number]."""
    local = np.zeros(number, bool)
    for index in sharding.addressable_devices_indices_map((number,)).values():
        local[index] = True
    return local


class _Steps:
    """Random access to the images of every step of a run, for Grain; of images of other processes (`local` [K, B]: False)
    the pixels are not read, and 0.
    """

    def __init__(self, split, plan, orders, local):
        self._split, self._plan, self._local = split, plan, local
        self._cached = functools.lru_cache(maxsize=2)(lambda epoch: np.asarray(orders(epoch)))
        self._lock = threading.Lock()  # so that only one of the threads that wait for an order computes it

    def __len__(self):
        return self._plan.total_steps

    def __getitem__(self, step):
        epoch, offset = self._plan.place(step)
        with self._lock:
            order = self._cached(epoch)
        size = self._plan.batch_size
        places = order[offset * size : (offset + 1) * size]
        number = len(self._split)
        image_number, local = places % number, self._local[step % len(self._local)]
        images = self._split.images[image_number[local]]
        if not local.all():
            images, read = np.zeros((size, *images.shape[1:]), images.dtype), images
            images[local] = read
        return images, np.asarray(self._split.labels)[image_number], places >= number


def pieces(split: Split, batch_size: int, mesh: Mesh) -> Iterator[Split]:
    """Yields a split in parts on the devices: whole batches, at most a GiB each.

    Images on the host are read while the caller uses the part before.
    """
    size = min(batch_size, len(split))
    size *= max(1, _PIECE_BYTES // (size * (split.images.nbytes // len(split))))
    if on_device(split) and len(split) <= size:
        yield split
        return

    def cut(start):
        span = slice(start, start + size)
        return Split(split.images[span], split.labels[span], split.index[span])

    if on_device(split):  # by one thread: the processes of a pod launch programs in the same order
        yield from map(cut, range(0, len(split), size))
        return

    def part(start):
        return cut(start).to_device(meshes.replicated(mesh))

    with ThreadPoolExecutor(1) as thread:
        ahead = thread.submit(part, 0)
        for start in range(size, len(split) + size, size):
            current = ahead.result()
            if start < len(split):
                ahead = thread.submit(part, start)
            yield current


def beyond_arguments(program: jax.stages.Compiled) -> int:
    """Counts a program's bytes on a device beside its arguments: temporaries, code, results in new places."""
    sizes = program.memory_analysis()
    results = sizes.output_size_in_bytes - sizes.alias_size_in_bytes
    return sizes.temp_size_in_bytes + results + sizes.generated_code_size_in_bytes


def check_memory(
    mesh: Mesh,
    lower: Callable[[jax.Array, jax.Array], jax.stages.Lowered],
    images: jax.Array,
    labels: jax.Array,
    parts: int,
) -> None:
    """Refuses a block of steps that does not fit; does nothing where nothing tells how much is free.

    The arguments of the block, and a dataset, are in place when free memory is measured. Beside the steps there must
    be room for the images of the next block, which are made meanwhile. Without this check the allocator fails minutes
    after the start and names neither the setting nor a size that fits, and a CPU's process is killed.

    Args:
      mesh: (M, devices for each model).
      lower: lowers the block for images and labels; JAX compiles it once, for this and the first call.
      images, labels: the first block, [M K, B, ...].
      parts: batches are multiples of this number.

    Raises:
      SettingsError: it does not fit; names the largest batch that does.
    """
    expected, found = "config.train.batch_size: expected a batch whose steps fit", "{}, whose steps need"
    hint = ". Fewer models at once (config.study.parallel) leave more devices to each"
    _refuse_what_does_not_fit(mesh, lower, (images, labels), parts, (expected, found, hint))


def check_evaluation(mesh: Mesh, lower: Callable[[jax.Array], jax.stages.Lowered], batches: jax.Array) -> None:
    """Refuses batches [M, B, H, W, 3] of an evaluation whose classification does not fit; otherwise as `check_memory`.

    The need is a lower bound on a CPU, for a compiler does not count what its convolutions take while they run: a ResNet-18
    took 1.3 times as much on 1,000 images of 32x32 pixels, and a small network on 9,000 3.7 times.
    """
    expected, found = (
        "config.eval.batch_size: expected a batch that fits",
        "one of {} images, whose classification needs",
    )
    _refuse_what_does_not_fit(mesh, lower, (batches,), mesh.shape["data"], (expected, found, ""))


def check_images(number: int, shape: tuple[int, ...], mesh: Mesh) -> None:
    """Refuses (SettingsError) an evaluation's batch of so many images of a shape before they are read, if it does not fit.

    Each device holds them, and the devices together hold corrupted ones and those that are split over the devices.
    """
    free, of_one = free_bytes(mesh), math.prod(shape) * (1 + 2 / mesh.size)
    if free is not None and distributed.anyone(number * of_one > free):
        raise SettingsError(
            f"config.eval.batch_size: expected a batch whose images fit the {gib(free)} free on {_kind(mesh)}, found one of {number} "
            f"images, which take {gib(number * of_one)} with their copies; at most {int(free / of_one)} fit"
        )


def _refuse_what_does_not_fit(mesh, lower, arrays, parts, words):
    """Compiles a program for arrays [M, B, ...] and refuses it if it does not fit, with the largest B that does."""
    free, (expected, found, hint) = free_bytes(mesh), words
    if free is None:
        return
    batch = arrays[0].shape[1]
    needed = _needed(lower, arrays, batch)
    if not distributed.anyone(needed > free):
        return
    too_large = smaller = batch
    while smaller := smaller // 2 // parts * parts:
        of_smaller = _needed(lower, arrays, smaller)
        if not distributed.anyone(of_smaller > free):  # all processes compile the same sizes
            break
        too_large = smaller
    advice = "no batch fits"
    if smaller:  # estimates the largest that fits from a smaller batch's need
        largest = min(int(smaller * free / of_smaller), too_large - 1) // parts * parts
        advice = f"the largest that fits is about {largest} ({smaller} need {gib(of_smaller)})"
    if needed == math.inf:
        found = f"{found.partition(', ')[0].format(batch)}, which its compiler has no room for"
    else:
        found = f"{found.format(batch)} {gib(needed)}"
    raise SettingsError(f"{expected} the {gib(free)} free on {_kind(mesh)}, found {found}; {advice}{hint}")


def _kind(mesh):
    return mesh.devices.flat[0].device_kind


def _needed(lower, arrays, batch):
    """Counts bytes beside the arguments for batches of another size; infinite where the compiler refuses."""
    sized = [
        jax.ShapeDtypeStruct((array.shape[0], batch, *array.shape[2:]), array.dtype, sharding=array.sharding)
        for array in arrays
    ]
    images = sized[0]
    local = math.prod(images.sharding.shard_shape(images.shape)) * images.dtype.itemsize
    try:
        return beyond_arguments(lower(*sized).compile()) + local
    except jax.errors.JaxRuntimeError as error:
        if _NO_ROOM not in str(error):
            raise
        return math.inf


def gib(number: float) -> str:
    """Writes bytes as GiB."""
    return f"{number / 2**30:.3g} GiB"
