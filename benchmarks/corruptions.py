"""Images per second of every corruption, with compile seconds, beside a peer package.

    python -m benchmarks.corruptions --size=224 --out=benchmarks/results/corruptions_224.md
    python -m benchmarks.corruptions --size=32 --peer_python=PATH/TO/python    # a Python with imagecorruptions-imaug

The floor of a corruption is reading and writing each image once as uint8, at the copy bandwidth
that the same run measures. The peer works on the same images with as many processes as there are
CPU cores. Means of alternating rounds, a severity each; a ratio above 1 means that we are faster. On a CPU, `alone`
is the CPU time of an image by itself over that of one in the batch.
"""

import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags

import corruptions
from runtime.files import write_atomically
from tests.reference.photographs import photographs

_SIZE = flags.DEFINE_integer("size", 224, "Side of the square test images.", lower_bound=16)
_BATCH = flags.DEFINE_integer("batch", 0, "Images per call; 0 chooses by size and device.", lower_bound=0)
_ROUNDS = flags.DEFINE_integer("rounds", 5, "Timed rounds per corruption.", lower_bound=1)
_NAMES = flags.DEFINE_list("names", ["imagenet_c", "imagenet_c_extra"], "Corruptions or benchmarks.")
_PEER = flags.DEFINE_string("peer_python", "", "Python that has imagecorruptions-imaug; empty leaves the peer out.")
_OUT = flags.DEFINE_string("out", "", "Markdown file for the table; empty prints only.")


def seconds_of(function, *args):
    started = time.perf_counter()
    jax.block_until_ready(function(*args))
    return time.perf_counter() - started


def copy_bandwidth():
    """Bytes per second of reading plus writing in a large elementwise copy."""
    array = jnp.zeros(2**27, jnp.uint8)
    copy = jax.jit(lambda x: x + np.uint8(1))
    copy(array).block_until_ready()
    return 2 * array.size / min(seconds_of(copy, array) for _ in range(5))


def cost_alone(images, name, rounds):
    """CPU time of one image by itself, over that of one in the batch: medians over the severities."""

    def cpu_seconds(images):
        def call(turn):
            started = time.process_time()
            jax.block_until_ready(corruptions.corrupt(jax.random.key(turn), images, name, _severity(name, turn)))
            return time.process_time() - started

        call(0)  # compiles
        return statistics.median(call(turn) for turn in range(rounds)) / len(images)

    return cpu_seconds(images[:1]) / cpu_seconds(images)


class Peer:
    """The peer package in a process of its own, asked over a pipe."""

    def __init__(self, python, images):
        script = pathlib.Path(__file__).with_name("corruptions_peer.py")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "images.npy"
            np.save(file, images)
            self._process = subprocess.Popen(
                [python, str(script), str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            self.version = self._process.stdout.readline().strip()  # it has read the images

    def seconds(self, name, level):
        """Seconds for one batch, or None when the peer lacks the corruption."""
        print(name, level, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().strip()
        return float(answer) if answer and answer != "none" else None


def main(argv):
    del argv
    size, device = _SIZE.value, jax.devices()[0]
    cpu = device.platform == "cpu"
    batch = _BATCH.value or (
        max(24, min(1024, 2**22 // (size * size * 3) // 8 * 8))
        if cpu
        else max(8, min(1024, 2**27 // (size * size * 3)))
    )
    images = jnp.asarray(photographs(batch, size, size))
    bandwidth = copy_bandwidth()
    floor = 2 * size * size * 3 / bandwidth * 1e3
    peer = Peer(_PEER.value, np.asarray(images)) if _PEER.value else None
    names = [
        n
        for group in _NAMES.value
        for n in (corruptions.names(group) if group in corruptions.benchmarks() else [group])
    ]
    rows, sums = [], [0.0, 0.0]
    for name in names:
        key = jax.random.key(0)
        compile_seconds = seconds_of(corruptions.corrupt, key, images, name, _severity(name, 0))
        ours, theirs = [], []
        for turn in range(_ROUNDS.value):
            # Every severity in turn: their costs differ.
            ours.append(seconds_of(corruptions.corrupt, jax.random.key(turn), images, name, _severity(name, turn)))
            if peer:
                theirs.append(peer.seconds(name.split("/")[1], turn % 5 + 1))
        run = statistics.mean(ours)
        row = [name, f"{compile_seconds - run:.1f}", f"{run / batch * 1e3:.3f}", f"{batch / run:,.0f}", f"{floor:.4f}"]
        if peer:
            timed = [t for t in theirs if t is not None]
            mean = statistics.mean(timed) if timed else None
            row += [f"{mean / batch * 1e3:.3f}", f"{mean / run:.2f}"] if timed else ["-", "-"]
            if timed:
                sums[0] += run / batch * 1e3
                sums[1] += mean / batch * 1e3
        if cpu:
            row.append(f"{cost_alone(images, name, _ROUNDS.value):.2f}")
        rows.append(row)
        print(" | ".join(row), flush=True)
    header = (
        ["corruption", "compile s", "ms/image", "images/s", "floor ms"]
        + (["peer ms/image", "ratio"] if peer else [])
        + ["alone"] * cpu
    )
    if peer:
        rows.append(["sum", "", f"{sums[0]:.2f}", "", "", f"{sums[1]:.2f}", f"{sums[1] / sums[0]:.2f}"] + [""] * cpu)
    title = (
        f"{size}x{size}, batch {batch}, {device.device_kind} ({device.platform}), {platform.machine()}, "
        f"JAX {jax.__version__}, Python {platform.python_version()}, copy bandwidth {bandwidth / 1e9:.1f} GB/s"
        + (f"; peer: {peer.version}" if peer else "")
    )
    lines = [f"# Corruptions: {title}", "", "| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    text = "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"
    if _OUT.value:
        write_atomically(_OUT.value, text)
    else:
        sys.stdout.write(text)


def _severity(name, turn):
    levels = isinstance(corruptions.get(name).scale, corruptions.Levels)
    return turn % 5 + 1 if levels else (turn % 5) / 4


if __name__ == "__main__":
    app.run(main)
