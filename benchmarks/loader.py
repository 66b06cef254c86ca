"""Speed of preparing ImageNet, of streaming it at 224 pixels, and of a network that consumes it.

    python -m benchmarks.loader [--photographs=TREE] --out=benchmarks/results/loader_cpu.md

Preparation reads photographs of ImageNet's usual size (500x375, about 110 kB of JPEG): drawn ones, or the files of a tree.
Streaming reads random places of a store of 2,000 images (from the page cache, not the disk) and puts whole blocks on the
device. The network is trained on images in device memory, then on streamed ones.
"""

from runtime import command  # isort: skip

import io
import os
import pathlib
import tempfile

import jax
import numpy as np
from absl import flags
from PIL import Image

from benchmarks import timing
from benchmarks.device import works
from configs import default
from data import tree
from data.dataset import ShardedImages, Split
from data.imagenet import store
from runtime import meshes
from tests.reference.photographs import photograph
from training import batches, memory
from training.batches import Plan

SIZE, SHORT, BATCH = 224, 256, 64


def photographs_of(folder):
    """Lists (name, label, JPEG file) of a tree of class folders; draws 200 where there is none."""
    if folder:
        listed = tree.list_images(pathlib.Path(folder), tree.class_folders(pathlib.Path(folder)))
        return [(str(path), label, str(path)) for path, label, _ in listed]
    drawn = [(f"drawn {i}", 0, io.BytesIO()) for i in range(200)]
    for seed, (_, _, file) in enumerate(drawn):
        Image.fromarray(photograph(375, 500, seed)).save(file, "JPEG", quality=98)
    return drawn


def stored(folder, number, shards=8):
    """A split of random images in memory-mapped shards."""
    rng = np.random.default_rng(1)
    for i in range(shards):
        np.save(folder / f"{i}.npy", rng.integers(0, 256, (number // shards, SIZE, SIZE, 3), np.uint8))
    images = ShardedImages([np.load(folder / f"{i}.npy", mmap_mode="r") for i in range(shards)], (SIZE, SIZE, 3))
    count = len(images)
    return Split(images, rng.integers(0, 10, count).astype(np.int32), np.arange(count, dtype=np.int32))


def streaming(split: Split, epochs: int = 4) -> tuple[int, timing.Spent]:
    """Measures a `Stream` whose blocks no program uses: (images, seconds)."""
    mesh, recipe = meshes.data_mesh(BATCH), default.get_config().train
    recipe.batch_size, recipe.epochs = BATCH, epochs + 1
    plan = Plan(recipe, split.images.shape)
    orders = lambda epoch: batches.epoch_order(jax.random.key(epoch), plan.images_per_epoch)  # noqa: E731
    source = memory.Stream(split, plan, orders, 0, mesh)
    warm = plan.steps_per_epoch  # compiles the order and fills the page cache

    def take(steps):
        for step in steps:
            source.take(step)[0].block_until_ready()

    take(range(0, warm, plan.block_steps))
    spent = timing.spend(lambda _: take(range(warm, plan.total_steps, plan.block_steps)), 0)
    source.close()
    return (plan.total_steps - warm) * BATCH, spent  # at most two blocks were read ahead before


def main(argv):
    given = command.given(argv)
    items = photographs_of(given.photographs)
    sizes = [os.path.getsize(file) if isinstance(file, str) else file.getbuffer().nbytes for _, _, file in items]
    prepared = f"preparation, one core: {len(items)} files of {np.mean(sizes) / 1000:.0f} kB, to {SIZE} pixels"
    streamed = f"streaming blocks of {BATCH} x {SIZE} x {SIZE} to the device"
    resident, fed = (f"training {given.model} at {SIZE}, {where}" for where in ("from device memory", "streamed"))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def measure(row):
            if row == prepared:
                record, path = [], folder / "prepared.npy"
                spent = timing.spend(lambda _: record.append(store.write_shard(path, items, SIZE, SHORT)), 0)
                if record[0]["damaged"]:
                    raise RuntimeError(f"expected whole images, found {record[0]['damaged'][:3]}")
                rates = [record[0]["count"] / seconds for seconds in spent]
            elif row == streamed:
                number, spent = streaming(stored(folder, 2000))
                rates = [number / seconds for seconds in spent]
            else:
                rates = [works.loop(given.model, SIZE, 16, 2, "", streamed=row == fed)["images_per_second"]]
            return [*(f"{rate:,.1f}" for rate in rates), *["-"] * (2 - len(rates)), f"{os.getloadavg()[0]:.1f}"]

        header = ("work", "images/s", "images per CPU second", "load")
        top = f"# Preparing and streaming ImageNet\n\n{timing.title()}. `load`: load average, other work included.\n"
        timing.continued(given.out, top, header, [prepared, streamed, resident, fed], measure)


if __name__ == "__main__":
    flags.DEFINE_string("photographs", "", "Tree of class folders with JPEG files; empty draws photographs.")
    flags.DEFINE_string("model", "resnet18", "Network.")
    flags.DEFINE_string("out", "", "Markdown file to write, or to continue; empty prints only.")
    command.run(main)
