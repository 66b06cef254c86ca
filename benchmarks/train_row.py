"""Measures training of one network in its own process, for its own memory peak: JSON in, JSON out.

    python -m benchmarks.train_row '{"model": "small_resnet", "image_size": 32, "batch_size": 128}'

The step: the compiled block of steps of `training.loop`, run back to back on one block of images on
the device. The loop: `training.loop.train` on random images, from the times in its metrics.jsonl:
gathering, mirroring and the host's work between blocks come on top. Best block of each, so that
other work on the machine counts little.
"""

import json
import pathlib
import sys
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy as np

import corruptions
from benchmarks.timing import peak_flops, training_flops
from configs import default
from data.dataset import Split
from runtime import compiles, meshes
from training import augmentation, loop, rows, run, states, steps, study
from training.plan import Plan

CLASSES = {32: 10, 224: 100}  # of CIFAR-10 and ImageNet-100


def measure(model, image_size, batch_size, dtype="", steps=0, seconds=2.0, blocks=5, corruption_names=()):
    """Measures what one row of the table needs.

    Args:
      model: name of the network.
      image_size, batch_size: in pixels, and images of all devices together.
      dtype: of the computation; "" is the default of the device.
      steps: of a block; 0 takes as many as fill `seconds`.
      seconds: aimed at for a block.
      blocks: measured.
      corruption_names: corruptions tried for the overhead of the slowest; () is ImageNet-C's 15.

    Returns:
      dict of numbers; times in seconds for each step.
    """
    config = default.get_config()
    config.model.name, config.model.dtype = model, dtype
    config.train.update(batch_size=batch_size, epochs=blocks + 1, checkpoint_epochs=blocks + 1)
    classes = CLASSES.get(image_size, 10)
    mesh = meshes.data_mesh(batch_size)
    config = study.model_config(config, augmentation.STANDARD, 0, mesh.shape["data"])
    if not steps:
        trial = _step_seconds(config, _random_split(image_size, batch_size, classes), classes, mesh, 1)
        steps = int(min(64, max(1, seconds / trial)))
    split = _random_split(image_size, steps * batch_size, classes).to_device(meshes.replicated(mesh))
    measured = {"steps": steps, "step": _step_seconds(config, split, classes, mesh, blocks)}
    measured["loop"] = _loop_seconds(config, split, classes, mesh)
    costs = {
        name: _corruption_seconds(name, split, batch_size, mesh)
        for name in corruption_names or corruptions.names("imagenet_c")
    }
    measured["slowest"] = max(costs, key=costs.get)
    measured["corruption"] = costs[measured["slowest"]]
    config.train.corruption = measured["slowest"]
    measured["corrupted_loop"] = _loop_seconds(config, split, classes, mesh)
    peak, peak_text = peak_flops()
    stats = jax.devices()[0].memory_stats() or {}
    return measured | {
        "flops": training_flops(model, image_size, classes),
        "peak": peak,
        "peak_text": peak_text,
        "memory": stats.get("peak_bytes_in_use"),
        "dtype": str(jnp.dtype(dtype or ("float32" if jax.default_backend() == "cpu" else "bfloat16"))),
        "devices": len(jax.devices()),
        "kind": jax.devices()[0].device_kind,
        "platform": jax.devices()[0].platform,
    }


def _random_split(image_size, number, classes):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (number, image_size, image_size, 3), np.uint8)
    return Split(images, rng.integers(0, classes, number).astype(np.int32), np.arange(number, dtype=np.int32))


def _step_seconds(config, split, classes, mesh, repeats):
    """Measures seconds of a step, block after block with nothing between; the first call
    compiles."""
    plan = Plan(config.train, split.images.shape)
    optimizer = states.make_optimizer(config.train, plan.steps_per_epoch)
    graphdef, fresh = run.fresh(config, optimizer, classes, plan.image_size, mesh)
    stacked = rows.stack_states(mesh, fresh)
    keys = rows.stack_keys(mesh, [jax.random.key(0)])
    sharding = meshes.batch_sharding(mesh, axis=1)
    shape = (plan.block_steps, config.train.batch_size)
    images, labels = (
        rows.join_batches(mesh, [jax.device_put(np.asarray(part).reshape(*shape, *part.shape[1:]), sharding)])
        for part in (split.images, split.labels)
    )
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        stacked, _ = steps.train_models_block(mesh, graphdef, optimizer, stacked, images, labels, keys)
        jax.block_until_ready(stacked)
        times.append(time.perf_counter() - start)
    return min(times[1:]) / plan.block_steps


def _loop_seconds(config, split, classes, mesh):
    """Seconds of a step of a real training run, its first block (compilation) left out."""
    with tempfile.TemporaryDirectory() as folder:
        loop.train(config, split, classes, pathlib.Path(folder), mesh=mesh)
        lines = [json.loads(line) for line in (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines()]
    return config.train.batch_size / max(line["images_per_second"] for line in lines[1:])


def _corruption_seconds(name, split, batch_size, mesh):
    """Seconds for each step of corrupting half of every batch of a block."""
    number = len(split) // 2
    images, index = split.images[:number], jnp.arange(number)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        jax.block_until_ready(augmentation.augment(mesh, name, jax.random.key(0), images, index))
        times.append(time.perf_counter() - start)
    return min(times[1:]) * batch_size / len(split)


if __name__ == "__main__":
    meshes.use_all_cores()
    compiles.enable_compilation_cache()
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
