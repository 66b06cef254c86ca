"""Images a second of EfficientNet-Lite0, whose convolutions are mostly depthwise, and of PyTorch in the same run.

    python -m benchmarks.depthwise --threads=2 --peer_python=PEER --out=benchmarks/results/depthwise_cpu.md

PEER is a Python with torch and efficientnet-lite-pytorch. Random uint8 images in memory, to classes; ours in both paths of
`models.layers.path_of`, PyTorch in both memory layouts, in turn.
"""

from runtime import command  # isort: skip

import jax
import numpy as np
from absl import flags
from flax import nnx

from benchmarks import timing
from evaluation import packaged
from models import efficientnet, torchvision
from runtime.files import write_atomically


def work(name, path, images):
    """Makes the work of our network on a path of convolutions."""
    network = torchvision.load(packaged.NETWORKS[name], packaged.find(name), dtype="float32", conv=path)[0]
    graphdef, state = nnx.split(network)
    classes = jax.jit(lambda state, images: nnx.merge(graphdef, state)(images, train=False)[0].argmax(1))
    return lambda turn: classes(state, images)


def main(argv):
    given = command.given(argv)
    name, number, side = given.network, given.images, efficientnet.SIZES[packaged.NETWORKS[given.network]][-1]
    threads = given.threads or 2
    images = jax.device_put(np.random.default_rng(0).integers(0, 256, (number, side, side, 3), np.uint8))
    works = {f"ours, conv={path}": work(name, path, images) for path in given.paths}
    version = "none"
    if given.peer_python:
        peer = timing.Peer(given.peer_python, "lite.py", str(packaged.find(name)), name, f"--threads={threads}")
        version = peer.hello["version"]
        for layout in ("NCHW", "NHWC"):
            asked = {"images": number, "side": side, "channels_last": layout == "NHWC"}
            works[f"PyTorch, {layout}"] = lambda turn, asked=asked: peer.spend(**asked)
    times = timing.measure(works, given.rounds)
    ours = times[f"ours, conv={given.paths[0]}"].median
    rows = [
        (key, *(f"{1e3 * s / number:.1f}" for s in found.median), *(f"{o / s:.2f}" for o, s in zip(ours, found.median)))
        for key, found in times.items()
    ]
    header = ("work", "ms/image", "CPU ms/image", "our time / its", "our CPU time / its")
    top = (
        f"# Speed of depthwise convolutions\n\n{timing.title()}; {threads} threads; peer: {version}. {name}, {number} images of {side} "
        f"pixels; medians of {given.rounds} repetitions in turn. Where other work loads the machine, CPU time is the fairer column.\n\n"
    )
    if given.out:
        write_atomically(given.out, top + timing.markdown(header, rows))
    print(top + timing.markdown(header, rows))


if __name__ == "__main__":
    flags.DEFINE_enum("network", "efficientnet-lite0", list(packaged.NETWORKS), "The network.")
    flags.DEFINE_list("paths", ["cpu", "xla"], "Paths of our convolutions; the first one is compared with all.")
    flags.DEFINE_integer("images", 50, "Images of a repetition.", lower_bound=1)
    flags.DEFINE_integer("threads", 0, "Threads of the peer; 0 is 2.", lower_bound=0)
    flags.DEFINE_integer("rounds", 5, "Repetitions.", lower_bound=1)
    flags.DEFINE_string("peer_python", "", "Python with PyTorch; empty leaves it out.")
    flags.DEFINE_string("out", "", "Markdown file to write.")
    command.run(main)
