"""A corruption drawn for each image beside its members: CPU time of a batch.

    python -m benchmarks.choice --out=benchmarks/results/choice_cpu.md

`random_choice(benchmark)` and each member of the benchmark corrupt the same uint8 batch, levels drawn for
each image, in turn; the shortest of the repeats counts. Compilation comes before and is not in it.
"""

from runtime import command  # isort: skip

import os
import platform
import sys
import time

import jax
import numpy as np
from absl import flags

import corruptions
from runtime.files import write_atomically
from tests.reference.photographs import photographs

_BENCHMARK = flags.DEFINE_string("benchmark", "imagenet_c", "Whose members are drawn.")
_SIZE = flags.DEFINE_integer("size", 32, "Side of the images.", lower_bound=16)
_BATCH = flags.DEFINE_integer("batch", 1024, "Images.", lower_bound=1)
_REPEATS = flags.DEFINE_integer("repeats", 5, "Of each, in turn.", lower_bound=1)
_OUT = flags.DEFINE_string("out", "", "Markdown file for the table; empty prints only.")


def seconds(key, images, corruption):
    started = time.process_time()
    jax.block_until_ready(corruptions.corrupt(key, images, corruption))
    return time.process_time() - started


def main(argv):
    command.refuse_positional(argv)
    key, load = jax.random.key(0), os.getloadavg()[0]
    few = photographs(16, _SIZE.value, _SIZE.value)
    images = jax.device_put(np.resize(few, (_BATCH.value, *few.shape[1:])))
    chosen = corruptions.random_choice(_BENCHMARK.value)
    tried = {"random_choice": chosen} | {name: name for name in corruptions.names(_BENCHMARK.value)}
    compiled = {name: seconds(key, images, corruption) for name, corruption in tried.items()}
    best = dict.fromkeys(tried, np.inf)
    for _ in range(_REPEATS.value):
        for name, corruption in tried.items():
            best[name] = min(best[name], seconds(key, images, corruption))
    mean = np.mean([time for name, time in best.items() if name != "random_choice"])
    lines = [
        f"# A corruption for each image: {_BATCH.value} images of {_SIZE.value}x{_SIZE.value}",
        "",
        f"{platform.machine()}, {os.cpu_count()} cores (load {load:.1f} from others before the run), JAX {jax.__version__} on "
        f"{jax.default_backend()}, Python {platform.python_version()}",
        "",
        f"`random_choice` of {_BENCHMARK.value} takes {best['random_choice'] / mean:.2f} times the CPU time of its members' mean.",
        "",
        "| corruption | CPU ms a batch, best | first call, CPU s |",
        "|---|---|---|",
        *(f"| {name} | {1000 * best[name]:.0f} | {compiled[name]:.1f} |" for name in tried),
        f"| mean of the members | {1000 * mean:.0f} | |",
    ]
    text = "\n".join(lines) + "\n"
    if _OUT.value:
        write_atomically(_OUT.value, text)
    sys.stdout.write(text)


if __name__ == "__main__":
    command.run(main)
