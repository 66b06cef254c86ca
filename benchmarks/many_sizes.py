"""Images of many sizes in a process of its own: CPU and wall seconds beside a peer's, and by how much
padded images differ from exact ones.

    python -m benchmarks.many_sizes --peer_python=PATH/TO/python --out=benchmarks/results/many_sizes.md
    python -m benchmarks.many_sizes --differences --out=benchmarks/results/many_sizes_differences.md

The first measures whole processes, imports included: the 15 corruptions of ImageNet-C at severity 3
on each image by `corrupt_each`, with an empty and with a filled cache of programs on disk, and by
imagecorruptions-imaug, which runs on one core. The second compares `sizes="bucket"` with
`sizes="exact"`.
"""

from runtime import command  # isort: skip

import os
import platform
import resource
import subprocess
import sys
import tempfile
import time

import jax
import numpy as np
from absl import flags

import corruptions
from benchmarks import many_sizes_peer
from benchmarks.reference.photographs import photograph
from corruptions.scales import Levels
from runtime.files import write_atomically

_NUMBER = flags.DEFINE_integer("number", 50, "Images.", lower_bound=1)
_LOW = flags.DEFINE_integer("low", 150, "Smallest side.", lower_bound=32)
_HIGH = flags.DEFINE_integer("high", 499, "Largest side.", lower_bound=32)
_PEER = flags.DEFINE_string("peer_python", "", "Python that has imagecorruptions-imaug; empty leaves the peer out.")
_DIFFERENCES = flags.DEFINE_bool("differences", False, "Compare padded with exact results instead.")
_SHAPES = ((151, 240), (333, 287), (470, 499))
_LEVEL, _FRACTION = 3, 0.5
_CHILD = flags.DEFINE_bool("child", False, "Only corrupt: what the timed process does.")
_OUT = flags.DEFINE_string("out", "", "Markdown file for the table; empty prints only.")


def corrupt_all():
    images = many_sizes_peer.pictures(_NUMBER.value, _LOW.value, _HIGH.value)
    for name in corruptions.names("imagenet_c"):
        for _ in corruptions.corrupt_each(jax.random.key(0), images, name, 3):
            pass


def timed(arguments, **environment):
    """CPU and wall seconds of a process."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(arguments, check=True, env=os.environ | environment)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def times():
    numbers = [f"--{flag.name}={flag.value}" for flag in (_NUMBER, _LOW, _HIGH)]
    ours = [sys.executable, "-m", "benchmarks.many_sizes", "--child", *numbers]
    with tempfile.TemporaryDirectory() as folder:
        cache = {"JAX_COMPILATION_CACHE_DIR": folder, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        rows = [(f"corrupt_each, {disk} cache on disk", timed(ours, **cache)) for disk in ("empty", "filled")]
    if _PEER.value:
        script = [_PEER.value, many_sizes_peer.__file__, *(str(flag.value) for flag in (_NUMBER, _LOW, _HIGH))]
        rows.append(("imagecorruptions-imaug", timed(script, OMP_NUM_THREADS="1")))
    last = rows[-1][1]
    lines = ["| what | CPU s | wall s | CPU, of the last row's |", "|---|---|---|---|"]
    lines += [f"| {what} | {cpu:.1f} | {wall:.1f} | {cpu / last[0]:.2f} |" for what, (cpu, wall) in rows]
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
