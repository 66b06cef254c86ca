"""Images of many sizes in a process of its own: CPU and wall seconds and memory beside a peer's, and
by how much padded images differ from exact ones.

    python -m benchmarks.many_sizes --peer_python=PATH/TO/python --out=benchmarks/results/many_sizes.md
    python -m benchmarks.many_sizes --number=1000 --low=420 --high=640 --peer_python=PATH/TO/python \
        --peer_number=30 --nofilled --out=benchmarks/results/many_sizes_coco.md
    python -m benchmarks.many_sizes --differences --out=benchmarks/results/many_sizes_differences.md

These measure whole processes, imports included: the 15 corruptions of ImageNet-C at severity 3
on each image by `corrupt_each`, with an empty and with a filled cache of programs on disk, and by
imagecorruptions-imaug, which runs on one core and takes as long for each image after its first: with
`--peer_number` it has that many of them, and its CPU seconds for all follow from these and the first.
`--differences` compares `sizes="bucket"` with `sizes="exact"`.
"""

from runtime import command  # isort: skip

import os
import platform
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import jax
import numpy as np
from absl import flags

import corruptions
from benchmarks import many_sizes_peer
from corruptions.levels import Levels
from runtime.files import write_atomically
from tests.reference.photographs import photograph

_NUMBER = flags.DEFINE_integer("number", 50, "Images.", lower_bound=1)
_LOW = flags.DEFINE_integer("low", 150, "Smallest side.", lower_bound=32)
_HIGH = flags.DEFINE_integer("high", 499, "Largest side.", lower_bound=32)
_PEER = flags.DEFINE_string("peer_python", "", "Python that has imagecorruptions-imaug; empty leaves the peer out.")
_PEER_NUMBER = flags.DEFINE_integer(
    "peer_number", None, "Images that the peer has, at least two; by default all.", lower_bound=2
)
_FILLED = flags.DEFINE_bool("filled", True, "Measure with a filled cache of programs on disk, too.")
_DIFFERENCES = flags.DEFINE_bool("differences", False, "Compare padded with exact results instead.")
_SHAPES = ((151, 240), (333, 287), (470, 499))
_LEVEL, _FRACTION = 3, 0.5
_CHILD = flags.DEFINE_bool("child", False, "Only corrupt: what the timed process does.")
_OUT = flags.DEFINE_string("out", "", "Markdown file for the table; empty prints only.")


class Spent(NamedTuple):
    """What a process took: seconds (on the clock none that were not waited for), and the most memory
    at a time in MiB.
    """

    cpu: float
    wall: float | None
    memory: float


def corrupt_all():
    for name in corruptions.names("imagenet_c"):
        images = many_sizes_peer.pictures(_NUMBER.value, _LOW.value, _HIGH.value)
        for _ in corruptions.corrupt_each(jax.random.key(0), images, name, 3):
            pass


def timed(arguments, **environment):
    started = time.perf_counter()
    process = subprocess.Popen(arguments, env=os.environ | environment)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, arguments)
    return Spent(used.ru_utime + used.ru_stime, time.perf_counter() - started, used.ru_maxrss / 1024)


def peer():
    """What the peer takes for all images: as it did, or from its first and some of the images."""

    def spent(number):
        script = [_PEER.value, many_sizes_peer.__file__, *map(str, (number, _LOW.value, _HIGH.value))]
        return timed(script, OMP_NUM_THREADS="1")

    few = _PEER_NUMBER.value
    if few is None:
        return "imagecorruptions-imaug", spent(_NUMBER.value)
    first, part = spent(1), spent(few)
    cpu = first.cpu + (part.cpu - first.cpu) * (_NUMBER.value - 1) / (few - 1)
    what = f"imagecorruptions-imaug, from {few} of the images: {part.cpu:.1f} CPU s, {first.cpu:.1f} for the first"
    return what, Spent(cpu, None, part.memory)


def times():
    numbers = [f"--{flag.name}={flag.value}" for flag in (_NUMBER, _LOW, _HIGH)]
    ours = [sys.executable, "-m", "benchmarks.many_sizes", "--child", *numbers]
    # The peer first: what it takes for each image is then known early in a long run.
    rows = [peer()] if _PEER.value else []
    with tempfile.TemporaryDirectory() as folder:
        cache = {"JAX_COMPILATION_CACHE_DIR": folder, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        for disk in ("empty", "filled")[: 1 + _FILLED.value]:
            rows.append((f"corrupt_each, {disk} cache on disk", timed(ours, **cache)))
            print(*rows[-1], flush=True)
    lines = ["| what | CPU s | wall s | CPU s an image | CPU, of the first row's | memory at most, MiB |"]
    lines.append("|---|---|---|---|---|---|")
    for what, spent in rows:
        part = f"{spent.cpu / _NUMBER.value:.3f} | {spent.cpu / rows[0][1].cpu:.2f}"
        wall = "" if spent.wall is None else f"{spent.wall:.1f}"
        lines.append(f"| {what} | {spent.cpu:.1f} | {wall} | {part} | {spent.memory:.0f} |")
    title = f"15 corruptions, {_NUMBER.value} images with sides {_LOW.value} to {_HIGH.value}"
    return f"# Images of many sizes: {title}", lines


def differences():
    key = jax.random.key(0)
    images = [photograph(*shape, seed) for seed, shape in enumerate(_SHAPES)]
    lines = ["| corruption | values that differ, % | largest difference, levels | draws |", "|---|---|---|---|"]
    for name in corruptions.names():
        padding = corruptions.get(name).padding
        if padding is None:
            continue
        severity = _LEVEL if isinstance(corruptions.get(name).scale, Levels) else _FRACTION
        exact, padded = (
            np.concatenate([x.ravel() for x in corruptions.corrupt_each(key, images, name, severity, sizes)])
            for sizes in ("exact", "bucket")
        )
        off = np.abs(exact.astype(int) - padded)
        lines.append(
            f"| {name} | {100 * (off > 0).mean():.4f} | {off.max()} | {'the same' if padding.draws else 'others'} |"
        )
        print(lines[-1], flush=True)
    shapes = ", ".join(f"{h}x{w}" for h, w in _SHAPES)
    return f"# Padded and exact images: severity {_LEVEL}, or {_FRACTION} of a range, uint8, {shapes}", lines


def main(argv):
    command.refuse_positional(argv)
    if _CHILD.value:
        return corrupt_all()
    load = os.getloadavg()[0]
    title, lines = differences() if _DIFFERENCES.value else times()
    machine = (
        f"{platform.machine()}, {os.cpu_count()} cores (load {load:.1f} from others before the run), "
        f"JAX {jax.__version__} on {jax.default_backend()}, Python {platform.python_version()}"
    )
    text = "\n".join([title, "", machine, "", *lines]) + "\n"
    if _OUT.value:
        write_atomically(_OUT.value, text)
    sys.stdout.write(text)


if __name__ == "__main__":
    command.run(main)
