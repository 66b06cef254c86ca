"""Images a second of EfficientNet-Lite0, whose convolutions are mostly depthwise, and of PyTorch in the same run.

    python -m benchmarks.depthwise --threads=2 --peer_python=PEER --out=benchmarks/results/depthwise_cpu.md

PEER is a Python with torch and efficientnet-lite-pytorch. Random uint8 images in memory, to classes; ours in both paths of
`models.layers.path_of`, PyTorch in both memory layouts, in turn. A second table has each shape of the network's depthwise convolutions
alone, on both paths in turn.
"""

from runtime import command  # isort: skip

import jax
import numpy as np
from absl import flags
from flax import nnx
from jax import lax

from benchmarks import timing
from evaluation import packaged
from models import efficientnet, torchvision
from models.layers import convolve
from runtime.files import write_atomically

PATHS = ("cpu", "xla")


def shapes(network, side):
    """Lists the distinct depthwise convolutions of a network: (side of the maps, channels, side of the kernel, stride)."""
    found, side = [], -(-side // network.stem.stride)
    for block in (block for stage in network.stages for block in stage):
        layer = block.depthwise
        found.append((side, layer.kernel.shape[-1], layer.kernel.shape[0], layer.stride))
        side = -(-side // layer.stride)
    return list(dict.fromkeys(found))


def layers(network, side, number, rounds):
    """Makes the rows of the second table: a convolution, its time on both paths, and their ratios."""
    rows = []
    for size, channels, kernel, stride in shapes(network, side):
        maps = jax.random.normal(jax.random.key(0), (number, size, size, channels))
        taps = jax.random.normal(jax.random.key(1), (kernel, kernel, 1, channels))
        pads = lax.padtype_to_pads((size, size), (kernel, kernel), (stride, stride), "SAME")

        def work(path, maps=maps, taps=taps, strides=(stride, stride), pads=pads, channels=channels):
            convolution = jax.jit(lambda maps, taps: convolve(maps, taps, strides, pads, path, channels))
            return lambda turn: convolution(maps, taps)

        spent = {path: found.median for path, found in timing.measure({p: work(p) for p in PATHS}, rounds).items()}
        cells = (f"{1e3 * getattr(spent[path], kind) / number:.2f}" for path in PATHS for kind in ("wall", "cpu"))
        ratios = (f"{x / c:.1f}" for c, x in zip(*(spent[path] for path in PATHS)))
        rows.append((f"{size}x{size}x{channels}, {kernel}x{kernel} / {stride}", *cells, *ratios))
    return rows


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
    text = top + timing.markdown(header, rows)
    network = torchvision.load(packaged.NETWORKS[name], packaged.find(name), dtype="float32")[0]
    titles = [f"{path}, {unit}/image" for path in PATHS for unit in ("ms", "CPU ms")]
    header = ("maps, kernel / stride", *titles, "xla's time / cpu's", "xla's CPU time / cpu's")
    text += f"\nDepthwise convolutions of the network, one at a time, {given.maps} images:\n\n"
    text += timing.markdown(header, layers(network, side, given.maps, given.rounds))
    if given.out:
        write_atomically(given.out, text)
    print(text)


if __name__ == "__main__":
    flags.DEFINE_enum("network", "efficientnet-lite0", list(packaged.NETWORKS), "The network.")
    flags.DEFINE_list("paths", list(PATHS), "Paths of our convolutions; the first one is compared with all.")
    flags.DEFINE_integer("images", 50, "Images of a repetition.", lower_bound=1)
    flags.DEFINE_integer("maps", 16, "Images of a repetition of the second table.", lower_bound=1)
    flags.DEFINE_integer("threads", 0, "Threads of the peer; 0 is 2.", lower_bound=0)
    flags.DEFINE_integer("rounds", 5, "Repetitions.", lower_bound=1)
    flags.DEFINE_string("peer_python", "", "Python with PyTorch; empty leaves it out.")
    flags.DEFINE_string("out", "", "Markdown file to write.")
    command.run(main)
