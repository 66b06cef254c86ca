"""Enhancements beside OpenCV and scikit-image: CPU milliseconds an image, in one run.

    python -m benchmarks.enhancements --peer=PEER/bin/python --out=benchmarks/results/enhancements_cpu.md

PEER is an environment with opencv-python-headless, scikit-image and PyWavelets (extra `peers`).
CPU time, of all threads, says what a core does on machines that are not idle, too: with as many
processes as cores each, rates are in the same ratio. Of repeated timings that alternate with the
peer's the least counts.
"""

from runtime import command  # isort: skip

import json
import pathlib
import subprocess
import tempfile
import time

import jax
import numpy as np
from absl import flags

from corruptions import enhance as enhancements
from corruptions.enhance import clahe
from runtime.files import write_atomically
from runtime.provenance import provenance

PEER = pathlib.Path(__file__).with_name("enhancements_peer.py")
_one_channel = jax.jit(lambda images: jax.lax.map(clahe.clahe, images[..., 1]))
WORK = {
    "clahe of one channel": _one_channel,
    **{
        name: lambda images, name=name: enhancements.enhance(images, name) for name in ("clahe", "clahe_skimage", "nlm")
    },
}


def define_flags():
    flags.DEFINE_string("peer", None, "Python of an environment with the peers (required).")
    flags.DEFINE_integer("size", 224, "Side of the images.")
    flags.DEFINE_integer("batch", 16, "Images.")
    flags.DEFINE_integer("repeats", 3, "Timings of each.")
    flags.DEFINE_string("out", None, "File of the table; without it it is printed alone.")


def pictures(number, size):
    """Patches, slopes and noise from a seed, uint8 [number, size, size, 3]."""
    rng = np.random.default_rng(0)
    patches = rng.integers(20, 236, (number, 8, 8, 3)).astype(float)
    images = np.kron(patches, np.ones((1, -(-size // 8), -(-size // 8), 1)))[:, :size, :size]
    slope = np.linspace(-25, 25, size)
    images += slope[None, :, None, None] + slope[None, None, :, None] + rng.normal(scale=4, size=images.shape)
    return images.clip(0, 255).astype(np.uint8)


def _milliseconds(work, images):
    start = time.process_time()
    jax.block_until_ready(work(images))
    return 1000 * (time.process_time() - start) / len(images)


def main(argv):
    given = command.given(argv, {"peer": "PYTHON"})
    images = pictures(given.batch, given.size)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with tempfile.TemporaryDirectory() as folder:
        np.save(pathlib.Path(folder, "images.npy"), images)
        peer = subprocess.Popen([given.peer, PEER, f"{folder}/images.npy"], **pipes)
        versions = peer.stdout.readline().strip()
    with peer:
        rows = []
        for name, work in WORK.items():
            _milliseconds(work, images)  # compiles
            ours, theirs = [], []
            for _ in range(given.repeats):
                ours.append(_milliseconds(work, images))
                print(name, file=peer.stdin, flush=True)
                theirs.append(json.loads(peer.stdout.readline()))
            rows.append((name, min(ours), min(theirs)))
    record = provenance()
    text = (
        f"# Enhancements beside OpenCV and scikit-image\n\n{given.batch} images of {given.size}x{given.size}, "
        f"{record['device']}, {versions}, {record['git_revision'][:12]}. CPU milliseconds an image, of all threads.\n\n"
        "| enhancement | ours | peer | peer / ours |\n|---|---|---|---|\n"
    )
    text += "".join(f"| {name} | {own:.2f} | {peer:.2f} | {peer / own:.2f} |\n" for name, own, peer in rows)
    print(text)
    if given.out:
        write_atomically(given.out, text)


if __name__ == "__main__":
    define_flags()
    command.run(main)
