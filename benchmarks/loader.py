"""Speed of preparing ImageNet, of streaming it at 224 pixels, and of a network that consumes it.

    python -m benchmarks.loader [--photographs=TREE] > benchmarks/results/loader_cpu.md

Preparation reads photographs of ImageNet's usual size (500x375, about 110 kB of JPEG): drawn here,
or those of a tree. Streaming reads random places of a store of 2,000 images (page cache, not disk)
and puts whole blocks on the device. The network is ResNet-18 at 224 pixels, trained from device
memory and streamed.
"""

import argparse
import io
import json
import os
import pathlib
import tempfile
import time

import jax
import numpy as np
from PIL import Image

from configs import default
from data import tree
from data.dataset import Split
from data.imagenet import shard
from data.sharded import ShardedImages
from runtime import meshes
from runtime.provenance import provenance
from training import batches, loop, stream, study
from training.plan import Plan

_SIZE, _SHORT = 224, 256
_BATCH = 64


class Clock:
    """Wall seconds and CPU seconds of this process, all its threads together."""

    def __enter__(self):
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_):
        self.wall, self.cpu = (now - then for now, then in zip((time.perf_counter(), time.process_time()), self._start))


def drawn_photographs(number):
    """Draws [(name, label, JPEG file)]: noise whose amplitude grows with its scale as in
    photographs."""
    rng = np.random.default_rng(0)
    drawn = []
    for i in range(number):
        total = np.full((375, 500, 3), 128.0)
        for cells in (4, 12, 36, 108, 324):
            small = Image.fromarray(rng.integers(0, 256, (cells, cells, 3), np.uint8))
            total += (np.asarray(small.resize((500, 375), Image.Resampling.BICUBIC), float) - 128) * (3 / cells**0.5)
        file = io.BytesIO()
        Image.fromarray(total.clip(0, 255).astype(np.uint8)).save(file, "JPEG", quality=95)
        drawn.append((f"drawn {i}", 0, file))
    return drawn


def preparation(items, folder):
    """(images per second of one core, mean kilobytes of a file)."""
    sizes = [os.path.getsize(file) if isinstance(file, str) else file.getbuffer().nbytes for _, _, file in items]
    with Clock() as clock:
        record = shard.write(folder / "prepared.npy", items, _SIZE, _SHORT)
    if record["damaged"]:
        raise RuntimeError(f"expected whole images, found {record['damaged'][:3]}")
    return record["count"] / clock.cpu, np.mean(sizes) / 1000


def stored(folder, number, shards=8):
    """A split of random images in memory-mapped shards."""
    rng = np.random.default_rng(1)
    for i in range(shards):
        np.save(folder / f"{i}.npy", rng.integers(0, 256, (number // shards, _SIZE, _SIZE, 3), np.uint8))
    images = ShardedImages([np.load(folder / f"{i}.npy", mmap_mode="r") for i in range(shards)], (_SIZE, _SIZE, 3))
    count = len(images)
    return Split(images, rng.integers(0, 10, count).astype(np.int32), np.arange(count, dtype=np.int32))


def streaming(split, mesh, epochs=4):
    """(images per second, images per CPU second) of a `Stream` whose blocks nobody works on."""
    recipe = default.get_config().train
    recipe.batch_size, recipe.epochs = _BATCH, epochs + 1
    plan = Plan(recipe, split.images.shape)
    orders = lambda epoch: batches.epoch_order(jax.random.key(epoch), plan.views)  # noqa: E731
    source = stream.Stream(split, plan, orders, 0, mesh)
    warm = plan.steps_per_epoch  # compiles the order and fills the page cache
    for step in range(0, warm, plan.block_steps):
        source.take(step)[0].block_until_ready()
    with Clock() as clock:
        for step in range(warm, plan.total_steps, plan.block_steps):
            source.take(step)[0].block_until_ready()
    source.close()
    # What was read ahead before the clock started is at most two blocks.
    number = (plan.total_steps - warm) * _BATCH
    return number / clock.wall, number / clock.cpu


def consumption(split, mesh, folder, model):
    """Images per second of training `model`, the fastest epoch after the first (which compiles)."""
    config = default.get_config()
    config.model.name = model
    config.train.batch_size, config.train.epochs, config.train.checkpoint_epochs = 16, 3, 3
    folder.mkdir()
    loop.train(study.model_config(config, "standard", 0), split, 10, folder, mesh=mesh)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return max(line["images_per_second"] for line in lines[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photographs", type=pathlib.Path, help="tree of class folders with JPEG files")
    parser.add_argument("--model", default="resnet18")
    flags = parser.parse_args()
    mesh, load = meshes.data_mesh(16), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if flags.photographs:
            listed = tree.list_images(flags.photographs, tree.class_folders(flags.photographs))
            items = [(str(path), label, str(path)) for path, label, _ in listed]
        else:
            items = drawn_photographs(200)
        prepared, kilobytes = preparation(items, folder)
        split = stored(folder, 2000)
        streamed, per_core = streaming(split, mesh)
        part = Split(split.images[:32], split.labels[:32], split.index[:32])
        resident = consumption(part.to_device(meshes.replicated(mesh)), mesh, folder / "resident", flags.model)
        fed = consumption(part, mesh, folder / "streamed", flags.model)
    record = provenance()
    print(f"""# Preparing and streaming ImageNet

{record["device"]}, {os.cpu_count()} cores, load average {load:.1f} when it began, revision {record["git_revision"][:12]}.
Where the load average exceeds the cores the machine was shared, and rates by the wall clock are too low; those by CPU time hold.

| what | images per second |
|---|---|
| preparation, one core ({len(items)} files of {kilobytes:.0f} kB, to {_SIZE} pixels), by CPU time | {prepared:,.0f} |
| streaming blocks of {_BATCH} x {_SIZE} x {_SIZE} from the page cache to the device, nothing else running in the process | {streamed:,.0f} |
| the same, per CPU second (a core that does nothing else) | {per_core:,.0f} |
| training {flags.model} at {_SIZE}, images in device memory | {resident:,.1f} |
| training {flags.model} at {_SIZE}, streamed | {fed:,.1f} |

Streaming gives {streamed / resident:,.0f} times what the network consumes here.""")


if __name__ == "__main__":
    main()
