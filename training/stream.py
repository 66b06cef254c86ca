"""Images that are not on the device: training blocks read ahead by Grain, test sets read in pieces.

Splits that fit stay in device memory (`place_splits`). Others are memory maps on the host: a `Stream` gathers the views
of each step in background threads and puts whole blocks on the devices while earlier steps run. Batches are equal, bit
for bit, to batches of images on the device.
"""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
from jax.sharding import Mesh

from data.dataset import Dataset, Split
from runtime import distributed, meshes
from runtime.log import log
from training.batches import Plan

_FRACTION = 0.5  # share of free memory that a split may take; batches, networks and corrupted copies want the rest
_THREADS = 16  # they wait for the disk; copying itself is bound by memory
_PIECE_BYTES = 2**30


def place_splits(
    dataset: Dataset, placement: str, mesh: Mesh, placed: Collection[str] = ("train", "test")
) -> tuple[Split, Split]:
    """Puts (train, test) of a dataset on the devices, replicated, or leaves them to be streamed.

    Args:
      dataset: data.Dataset.
      placement: `device`, `stream`, or `auto`: on the device if a split takes at most half of its free
        memory, training images first. On a CPU the machine's memory counts; each device holds a copy.
      mesh: devices.
      placed: names of the splits to place; the others are returned as they are.

    Raises:
      ValueError: another placement.
    """
    if placement not in ("auto", "device", "stream"):
        raise ValueError(f"expected config.dataset.placement auto, device or stream, found {placement!r}")
    free = _free_bytes(mesh)
    splits = []
    for name in ("train", "test"):
        split = getattr(dataset, name)
        if name not in placed:
            splits.append(split)
            continue
        size = split.images.nbytes
        too_large = placement == "auto" and distributed.anyone(not fits(size, free))  # on any of many processes
        if placement == "device" or (placement == "auto" and not too_large):
            splits.append(split.to_device(meshes.replicated(mesh)))
            free -= size
        else:
            gigabytes = f"{size / 1e9:.1f} GB, {free / 1e9:.1f} GB free on the device"
            log.info("The %s images of %s are streamed from the host (%s).", name, dataset.name, gigabytes)
            splits.append(split)
    return tuple(splits)


def fits(size: float, free: float) -> bool:
    """Returns True if a split of `size` bytes is put on devices with `free` bytes."""
    return size <= _FRACTION * free


def free_bytes(mesh: Mesh) -> int | None:
    """Measures the free bytes of a device of this process; None where devices do not tell (CPUs)."""
    device = next(d for d in mesh.devices.flat if d.process_index == jax.process_index())
    stats = device.memory_stats() or {}
    return stats["bytes_limit"] - stats.get("bytes_in_use", 0) if "bytes_limit" in stats else None


def _free_bytes(mesh):
    """Measures the bytes that an array replicated over the mesh may take, on each device."""
    free = free_bytes(mesh)
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / len(mesh.local_devices) if free is None else free


def on_device(split: Split) -> bool:
    """Returns True if a split's images are in device memory."""
    return isinstance(split.images, jax.Array)


@contextlib.contextmanager
def source(
    split: Split, plan: Plan, orders: Callable[[int], jax.Array], begin: int, mesh: Mesh
) -> "Iterator[Split | Stream]":
    """Yields the source of `batches.block`: the split if it is on the device, else a `Stream` with these arguments."""
    if on_device(split):
        yield split
        return
    with contextlib.closing(Stream(split, plan, orders, begin, mesh)) as views:
        yield views


class Stream:
    """The views of a run's blocks, in order, on the devices ahead of time.

    No checkpoint stores any of it: it starts at any step, and its blocks are a function of the orders.

    Args:
      split: data.Split on the host, images as anything indexed by an integer array.
      plan: plan of the run.
      orders: epoch -> order of its views, int32 [plan.views]; called in other threads.
      begin: first step.
      mesh: blocks lie split over its 'data' axis.
    """

    def __init__(self, split: Split, plan: Plan, orders: Callable[[int], jax.Array], begin: int, mesh: Mesh):
        # The import takes half a second, and most runs do without.
        import grain
        from grain.experimental import ThreadPrefetchIterDataset

        self._next, self._steps = begin, plan.block_steps
        sharding = meshes.batch_sharding(mesh)
        threads = min(_THREADS, plan.block_steps)
        steps = grain.MapDataset.source(_Steps(split, plan, orders))[begin:]
        steps = steps.to_iter_dataset(grain.ReadOptions(num_threads=threads, prefetch_buffer_size=plan.block_steps))
        blocks = steps.batch(plan.block_steps).map(lambda block: tuple(_put(part, sharding) for part in block))
        # One block waits on the device, another is on its way while that one is handed over.
        self._blocks = iter(ThreadPrefetchIterDataset(blocks, prefetch_buffer_size=1))

    def take(self, step: int) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Takes the block of steps that begins at `step`.

        Returns:
          (images uint8 [M, H, W, 3], labels int32 [M], doubled bool [M]); `doubled` says which
          views are the corrupted copies of the code reading.

        Raises:
          ValueError: another block comes next.
        """
        if step != self._next:
            raise ValueError(f"expected the block at step {self._next}, which comes next, found {step}")
        self._next += self._steps
        return next(self._blocks)

    def close(self) -> None:
        """Ends the reading threads."""
        self._blocks.close()


class _Steps:
    """Random access to the views of every step of a run, for Grain."""

    def __init__(self, split, plan, orders):
        self._split, self._plan = split, plan
        self._cached = functools.lru_cache(maxsize=2)(lambda epoch: np.asarray(orders(epoch)))
        self._lock = threading.Lock()  # threads that wait for an order need not all compute it

    def __len__(self):
        return self._plan.total_steps

    def __getitem__(self, step):
        epoch, offset = self._plan.place(step)
        with self._lock:
            order = self._cached(epoch)
        size = self._plan.batch_size
        views = order[offset * size : (offset + 1) * size]
        number = len(self._split)
        image_number = views % number
        return self._split.images[image_number], np.asarray(self._split.labels)[image_number], views >= number


def _put(part, sharding):
    """Puts a part [K, B, ...] of a block on the devices of all processes, as [K B, ...]."""
    part = part.reshape(-1, *part.shape[2:])
    return jax.make_array_from_callback(part.shape, sharding, lambda index: part[index])


def piece_size(batch_size: int, image_bytes: int) -> int:
    """Counts the images of one of `pieces`."""
    return batch_size * max(1, _PIECE_BYTES // (batch_size * image_bytes))


def pieces(split: Split, batch_size: int, mesh: Mesh) -> Iterator[Split]:
    """Yields a split in parts on the devices: whole batches, at most a GiB each.

    Images on the host are read while the caller works on the part before.
    """
    size = piece_size(min(batch_size, len(split)), split.images.nbytes // len(split))
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
