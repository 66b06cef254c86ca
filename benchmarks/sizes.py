"""Images of many sizes: whole processes beside a peer's, and padded images beside exact ones.

    python -m benchmarks.sizes --peer_python=PEER --out=benchmarks/results/many_sizes.md
    python -m benchmarks.sizes --number=1000 --low=420 --high=640 --peer_python=PEER --peer_number=30 --nofilled
    python -m benchmarks.sizes --differences --out=benchmarks/results/many_sizes_differences.md
    python -m benchmarks.sizes --first --before=OLD --peer_python=PEER --out=benchmarks/results/first_call.md

Measures processes, imports included: the 15 corruptions of ImageNet-C at severity 3 on each image by `corrupt_each`, with no
and with programs on disk, and by imagecorruptions-imaug of the Python PEER, which runs on one core and
takes equally long for each image after its first. With `--peer_number` it gets that many images, and its CPU seconds for all
follow from them. `--differences` compares `sizes="bucket"` with `sizes="exact"`. `--first` measures the first calls of `corrupt` on one 224x224 image in
turn with the peer's and with those of OLD, a folder that holds an earlier revision: medians of `--turns` processes each.
"""

from runtime import command  # isort: skip

import functools
import os
import subprocess
import sys
import tempfile
import time

import jax
import numpy as np
from absl import flags

import corruptions
from benchmarks import timing
from benchmarks.peers import sizes as peer
from tests.reference.photographs import photograph

SHAPES = ((151, 240), (333, 287), (470, 499))


def process(arguments, **environment):
    """Runs a process: (CPU seconds, seconds by the clock, MiB that it held at most)."""
    started = time.perf_counter()
    running = subprocess.Popen(arguments, env=os.environ | environment)
    _, status, used = os.wait4(running.pid, 0)
    running.returncode = os.waitstatus_to_exitcode(status)
    if running.returncode:
        raise subprocess.CalledProcessError(running.returncode, arguments)
    return used.ru_utime + used.ru_stime, time.perf_counter() - started, used.ru_maxrss / 1024


def peer_process(given):
    """Measures the peer: on all images, or on its first and on some images."""

    def spent(number):
        script = [given.peer_python, peer.__file__, "imagecorruptions", *map(str, (number, given.low, given.high))]
        return process(script, OMP_NUM_THREADS="1")

    if not given.peer_number:
        return spent(given.number)
    first, some = spent(1), spent(given.peer_number)
    each = (some[0] - first[0]) / (given.peer_number - 1)
    return first[0] + each * (given.number - 1), float("nan"), some[2]


def times(given):
    """The rows of whole processes: their names, and a function that measures one."""
    ours = [sys.executable, peer.__file__, "ours", *map(str, (given.number, given.low, given.high))]
    from_some = f", from {given.peer_number} images" if given.peer_number else ""
    names = [f"imagecorruptions-imaug{from_some}"] if given.peer_python else []
    names += ["corrupt_each, no programs on disk", "corrupt_each, programs on disk"][: 1 + given.filled]
    folder = tempfile.TemporaryDirectory()
    cache = {"JAX_CORRUPTIONS_PROGRAMS": folder.name, "JAX_ENABLE_COMPILATION_CACHE": "0"}

    def measure(name):
        if name.endswith(", programs on disk") and not os.listdir(folder.name):
            process(ours, **cache)
        cpu, wall, memory = process(ours, **cache) if name.startswith("corrupt_each") else peer_process(given)
        return f"{cpu:.1f}", f"{wall:.1f}", f"{cpu / given.number:.3f}", f"{memory:.0f}"

    return names, ("process", "CPU s", "wall s", "CPU s an image", "memory at most, MiB"), measure


def first_calls(given):
    """The rows of first calls, one 224x224 image and a process each, all measured in turn, `--turns` times."""
    folder, one = tempfile.TemporaryDirectory(), ["1", "224", "224"]
    calls = {"import jax": ([sys.executable, "-c", "import jax; jax.random.key(0).block_until_ready()"], {})}
    if given.peer_python:
        calls["imagecorruptions-imaug"] = [given.peer_python, peer.__file__, "imagecorruptions", *one], {}
    ours = [sys.executable, peer.__file__, "first", *one]
    if given.before:
        calls["before"] = ours, {"PYTHONPATH": given.before}
    calls["no programs on disk"] = calls["programs on disk"] = ours, {"PYTHONPATH": os.getcwd()}
    spent = {name: [] for name in calls}
    for turn in range(given.turns):
        own = f"{folder.name}/{turn}"
        kept = {"JAX_CORRUPTIONS_PROGRAMS": own, "JAX_ENABLE_COMPILATION_CACHE": "0"}
        for name, (call, environment) in calls.items():
            spent[name].append(process(call, **{**kept, **environment})[:2])

    def measure(name):
        return [f"{value:.1f}" for value in np.median(spent[name], axis=0)]

    return list(calls), ("process", "CPU s", "wall s"), measure


def differences(given):
    """The rows of padded beside exact images, for the corruptions that can be padded."""
    images = [photograph(*shape, seed) for seed, shape in enumerate(SHAPES)]

    def measure(name):
        known = corruptions.severities(name)
        severity = known[len(known) // 2]
        call = functools.partial(corruptions.corrupt_each, jax.random.key(0), images, name, severity)
        exact, padded = (np.concatenate([image.ravel() for image in call(way)]) for way in ("exact", "bucket"))
        off = np.abs(exact.astype(int) - padded)
        return f"{100 * (off > 0).mean():.4f}", off.max()

    names = [name for name in corruptions.names() if corruptions.get(name).padding is not None]
    return names, ("corruption", "values that differ, %", "largest difference, levels"), measure


def main(argv):
    given = command.given(argv)
    if given.peer_number == 1:
        raise ValueError("expected a --peer_number of at least 2, or 0, found 1")
    names, header, measure = (differences if given.differences else first_calls if given.first else times)(given)
    shapes = ", ".join(f"{height}x{width}" for height, width in SHAPES)
    title = f"15 corruptions, {given.number} images with sides {given.low} to {given.high}"
    title = f"padded and exact, middle severity, uint8, {shapes}" if given.differences else title
    title = "first calls of 15 corruptions in a process, one 224x224 image" if given.first else title
    title += f", medians of {given.turns}" if given.first and given.turns > 1 else ""
    timing.continued(given.out, f"# Images of many sizes: {title}\n\n{timing.title()}\n", header, names, measure)


if __name__ == "__main__":
    flags.DEFINE_integer("number", 50, "Images.", lower_bound=1)
    flags.DEFINE_integer("low", 150, "Smallest side.", lower_bound=32)
    flags.DEFINE_integer("high", 499, "Largest side.", lower_bound=32)
    flags.DEFINE_string("peer_python", "", "Python with imagecorruptions-imaug; empty leaves the peer out.")
    flags.DEFINE_integer("peer_number", 0, "Images of the peer, at least two; 0 for all.", lower_bound=0)
    flags.DEFINE_bool("filled", True, "Measure with programs on disk, too.")
    flags.DEFINE_bool("differences", False, "Compare padded with exact results.")
    flags.DEFINE_bool("first", False, "Measure first calls; see the module.")
    flags.DEFINE_integer("turns", 3, "Processes of each kind, for --first.", lower_bound=1)
    flags.DEFINE_string("before", "", "Folder of an earlier revision, for --first.")
    flags.DEFINE_string("out", "", "Markdown file to write, or to continue; empty prints only.")
    command.run(main)
