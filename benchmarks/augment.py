"""What augmentation schemes add to a training step of small_resnet and of cifar_resnet18.

    python -m benchmarks.augment --out=benchmarks/results/augment_cpu.md
    python -m benchmarks.augment --batch=128 --steps=20 --out=benchmarks/results/augment_gpu.md      # on a GPU

Images of 32 x 32 pixels in memory, uint8 to float32 as in training; a step is forward, backward and
SGD with momentum and weight decay (`training.steps.train_block`). On a CPU the clock is CPU seconds
of all threads, which other work on the machine disturbs little; on an accelerator it is wall time.
The least of several rounds. The bar: AugMix adds less than 15 % to a ResNet-18 step on a GPU.
"""

import os
import platform
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags

from benchmarks.train_cpu import training_block
from corruptions import augment
from runtime.files import write_atomically

SCHEMES = ("augmix", "autoaugment_cifar", "patch_gaussian")
MODELS = ("small_resnet", "cifar_resnet18")

_BATCH = flags.DEFINE_integer("batch", 128, "Images in a batch.", lower_bound=1)
_STEPS = flags.DEFINE_integer("steps", 1, "Steps, and batches, in one timed call.", lower_bound=1)
_ROUNDS = flags.DEFINE_integer("rounds", 4, "Timed calls.", lower_bound=1)
_OUT = flags.DEFINE_string("out", "", "Markdown file for the table; empty prints only.")


def least_seconds(work, rounds):
    """Measures the least seconds of several calls after a first one, by the clock of the device."""
    clock = time.process_time if jax.default_backend() == "cpu" else time.perf_counter
    work()
    times = []
    for _ in range(rounds):
        started = clock()
        work()
        times.append(clock() - started)
    return min(times)


def scheme_seconds(name, images, rounds):
    """Seconds to augment the images, other transforms in every call."""
    keys = iter(jax.random.split(jax.random.key(0), rounds + 1))
    return least_seconds(
        lambda: jax.block_until_ready(augment.augment(next(keys), images, name, dtype=jnp.float32)), rounds
    )


def main(argv):
    del argv
    number = _BATCH.value * _STEPS.value
    images = jnp.asarray(np.random.default_rng(0).integers(0, 256, (number, 32, 32, 3)).astype(np.uint8))
    load, device = os.getloadavg()[0], jax.devices()[0]
    clock = "CPU" if device.platform == "cpu" else "wall"
    steps = {}
    for model in MODELS:
        block = training_block(model, _BATCH.value, _STEPS.value, "auto")
        steps[model] = least_seconds(block, _ROUNDS.value) / number
        print(f"{model}: {1e3 * steps[model]:.3f} ms/image", flush=True)
    rows = []
    for scheme in SCHEMES:
        cost = scheme_seconds(scheme, images, _ROUNDS.value) / number
        rows.append((scheme, f"{1e3 * cost:.3f}", *(f"{100 * cost / steps[model]:.1f} %" for model in MODELS)))
        print(" | ".join(rows[-1]), flush=True)
    lines = [
        f"# Augmentation beside a training step, {device.device_kind}, {os.cpu_count()} cores",
        "",
        f"Made by `python -m benchmarks.augment --batch={_BATCH.value} --steps={_STEPS.value}`: 32x32, {clock} ms, JAX "
        f"{jax.__version__}, Python {platform.python_version()}; load average {load:.1f} before the run. A step costs "
        + " and ".join(f"{1e3 * seconds:.3f} ms/image with {model}" for model, seconds in steps.items())
        + "; the shares are what each scheme adds to that.",
        "",
        "| scheme | ms/image | " + " | ".join(f"of a step of {model}" for model in MODELS) + " |",
        "|---|---|" + "---|" * len(MODELS),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    text = "\n".join(lines) + "\n"
    if _OUT.value:
        write_atomically(_OUT.value, text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    app.run(main)
