"""Seconds and memory of every corruption on one large image.

    python -m benchmarks.large --out=benchmarks/results/large_cpu.md

One uint8 image through `corrupt`, at the middle severity, all in one process on Linux. A row is
written when it is measured, and the same command measures what is missing.
"""

from runtime import command  # isort: skip

import ctypes
import gc
import os
import pathlib
import platform
import time

import jax
from absl import flags
from tqdm import tqdm

import corruptions
from benchmarks.train_cpu import processor
from runtime.files import write_atomically
from tests.reference.photographs import photograph

_PROCESS = pathlib.Path("/proc/self")
_TOP = """\
# Corruptions of one image of {height}x{width}

{processor}, {cores} cores, JAX {jax} on {platform}, Python {python}. CPU seconds of all threads: compilation, and one image by a
program that is compiled. Memory is by how much the process grew at most above what it held before, compilation
and images included.

| corruption | compile, CPU s | an image, CPU s | memory, MiB |
|---|---|---|---|
"""


def define_flags():
    flags.DEFINE_string("out", None, "Markdown file to write, or to continue (required).")
    flags.DEFINE_integer("height", 1024, "Of the image.", lower_bound=16)
    flags.DEFINE_integer("width", 2048, "Of the image.", lower_bound=16)


def measure(name, image):
    """Compile and run seconds of all threads, and MiB, of a corruption that was not compiled."""
    severities = corruptions.severities(name)
    severity = severities[len(severities) // 2]

    def seconds(seed):
        start = time.process_time()
        jax.block_until_ready(corruptions.corrupt(jax.random.key(seed), image[None], name, severity))
        return time.process_time() - start

    jax.clear_caches()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what earlier programs left free would hide what this one needs
    (_PROCESS / "clear_refs").write_text("5")  # forgets the peak so far
    before = _kibibytes("VmRSS")
    first, again = seconds(0), seconds(1)
    return first - again, again, (_kibibytes("VmHWM") - before) / 1024


def _kibibytes(field):
    status = (_PROCESS / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith(f"{field}:"))


def main(argv):
    given = command.given(argv, {"out": "FILE.md"})
    top = _TOP.format(
        height=given.height,
        width=given.width,
        processor=processor(),
        cores=os.cpu_count(),
        jax=jax.__version__,
        platform=jax.default_backend(),
        python=platform.python_version(),
    )
    jax.config.update("jax_enable_compilation_cache", False)  # what is read from a disk is not compiled
    out = pathlib.Path(given.out)
    text = out.read_text() if out.exists() else top
    if not text.startswith(top):
        raise ValueError(
            f"expected measurements of this machine and size in {out}, found others: remove it, or give another --out"
        )
    rows = {line.split("|")[1].strip(): line for line in text.removeprefix(top).splitlines()}
    image = photograph(given.height, given.width)
    for name in tqdm([n for n in corruptions.names() if n not in rows], unit="corruption", dynamic_ncols=True):
        compiled, run, memory = measure(name, image)
        rows[name] = f"| {name} | {compiled:.1f} | {run:.2f} | {memory:,.0f} |"
        write_atomically(out, top + "".join(f"{rows[n]}\n" for n in corruptions.names() if n in rows))


if __name__ == "__main__":
    define_flags()
    command.run(main)
