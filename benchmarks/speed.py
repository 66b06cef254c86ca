"""Images per second of corruptions, schemes, enhancements and networks, beside a peer in the same run.

    python -m benchmarks.speed --size=224 --alone --peer_python=PEER --out=benchmarks/results/corruptions_224.md
    python -m benchmarks.speed --works=cbar_candidates --numpy --out=benchmarks/results/cbar_224.md
    python -m benchmarks.speed --works=laion_c --numpy --out=benchmarks/results/laion_c_224.md
    python -m benchmarks.speed --works=optics,optics_release,cameras --numpy --out=benchmarks/results/cameras_optics_224.md
    python -m benchmarks.speed --works=choice=imagenet_c,imagenet_c --size=32 --batch=1024 --out=benchmarks/results/choice_cpu.md
    python -m benchmarks.speed --works=every --size=1024x2048 --batch=1 --out=benchmarks/results/large_cpu.md
    python -m benchmarks.speed --works=clahe_channel,clahe,clahe_skimage,nlm --batch=16 --peer_python=PEER
    python -m benchmarks.speed --works=augmix,autoaugment_cifar,patch_gaussian,training=small_resnet --size=32 --batch=128
    python -m benchmarks.speed --works=noc_candidates,answers=small_resnet --size=32 --batch=10000

PEER is a Python of an environment with the extra `peers`; it works with a process on each core, on the same images at the
same severities, in turn with ours. Where it has torch-uncertainty, columns `torch` compare with that on two threads: its transforms
of ImageNet-C's names, some of them other formulas. `--numpy` compares C-bar, LAION-C, lenses and `cameras` (RoboDepth's, RoboBEV's and LIBERO-Plus' own)
with the NumPy definitions of benchmarks/peers, one image at a time, on one core: the released code needs a NumPy below 1.24. Images are uint8; their severities are mixed, or
the middle one for a single image. A row is written when it is measured, and the same command measures the missing ones.
"""

from runtime import command  # isort: skip

import functools
import os
import pathlib
import tempfile
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax
from absl import flags

import corruptions
from benchmarks import timing
from benchmarks.device import works
from benchmarks.peers.definitions import definition
from corruptions import augment, enhance
from corruptions.enhance import clahe
from evaluation import correctness
from runtime import meshes
from tests.reference.photographs import crops, photographs

HEADER = ("work", "compile CPU s", "ms/image", "CPU ms/image", "images/s", "MiB")
_SCRIPTS = {"peer": "images.py", "torch": "tensors.py"}
_channel = jax.jit(lambda images: jax.lax.map(clahe.clahe, images[..., 1]))


def names_of(asked: list[str]) -> list[str]:
    """Replaces benchmarks, `cameras` and `every` by their corruptions."""
    cameras = tuple(name for name in corruptions.names() if name.startswith("camera/"))
    groups = {"every": corruptions.names(), "cameras": cameras} | {
        name: corruptions.names(name) for name in corruptions.benchmarks()
    }
    return list(dict.fromkeys(name for group in asked for name in groups.get(group, (group,))))


def work_of(name: str, images: jax.Array) -> Callable[[int], object]:
    """Makes the work of a row: takes the number of the repetition, which is the seed of its draws.

    Raises:
      ValueError: an unknown name.
    """
    number, side = len(images), images.shape[1]
    kind, _, argument = name.partition("=")
    if kind == "training":
        # Compiles in the first call.
        block = functools.cache(lambda: works.Training(argument, side, number, 1, "float32"))
        return lambda turn: block()(turn)
    if kind == "answers":
        mesh, labels = meshes.data_mesh(), jnp.zeros(number, int)
        model = works.network_on(mesh, argument, side, "float32", optax.identity())
        return lambda turn: correctness.of_model(model, images, labels, min(number, 500), mesh)
    if name == "clahe_channel":
        return lambda turn: _channel(images)
    if name in enhance.names():
        return lambda turn: enhance.enhance(images, name)
    if augment.known(name):
        return lambda turn: augment.augment(jax.random.key(turn), images, name, dtype=jnp.float32)
    corruption = corruptions.random_choice(argument) if kind == "choice" else corruptions.get(name)
    severity = None if kind == "choice" else levels(name, number)
    return lambda turn: corruptions.corrupt(jax.random.key(turn), images, corruption, severity)


def levels(name: str, number: int) -> np.ndarray:
    """Gives the severities of a batch: all in turn, or the middle one for a single image."""
    known = corruptions.severities(name)
    return works.levels(name, number) if number > 1 else np.asarray([known[len(known) // 2]])


def numpy_peer(name: str, images: np.ndarray) -> Callable[[int], timing.Spent]:
    """Makes a work that measures the NumPy definition on one image a call, its severities in turn, for all images."""
    function, corruption, severities = definition(name), corruptions.get(name), levels(name, 10)

    def call(turn):
        severity = severities[3 * turn % 10]
        params = {
            k: v for k, v in corruption.sample(jax.random.key(turn), images.shape[1:], severity).items() if k != "tiles"
        }
        drawn = {k: np.float64(v) if v.dtype == np.float32 else np.asarray(v) for k, v in params.items()}
        spent = timing.spend(lambda _: function(images[turn % len(images)], drawn, int(severity)), turn)
        return timing.Spent(*(len(images) * seconds for seconds in spent))

    return call


def columns(peer: str) -> tuple[str, ...]:
    """Titles the columns of a peer."""
    return f"{peer} ms/image", f"{peer} CPU ms/image", f"{peer} / ours", f"CPU, {peer} / ours"


def cells(name, images, peers, given):
    """Measures a row: the cells after its name. `peers`: {title: peer}, none of them with `--numpy`."""
    jax.clear_caches()
    number, ours = len(images), work_of(name, images)
    compared = {"": ours}
    if given.numpy:
        compared["peer"] = numpy_peer(name, np.asarray(images))
    severities = levels(name, number).tolist() if peers and "/" in name else [0] * number
    for title, peer in peers.items():
        asked = functools.partial(peer.spend, name=name, levels=severities)
        compared |= {title: lambda turn, asked=asked: asked()} if asked() else {}
    first = []
    memory = timing.process_memory(lambda: first.append(timing.spend(ours, 0)))
    times = timing.measure(compared, given.rounds)
    spent = {title: timing.Spent(*(1e3 * seconds / number for seconds in times[title].median)) for title in times}
    own = spent[""]
    compiling = max(0.0, first[0].cpu - times[""].median.cpu)
    found = [f"{compiling:.1f}", f"{own.wall:.3f}", f"{own.cpu:.3f}", f"{1e3 / own.wall:,.0f}"]
    found.append("-" if memory is None else f"{memory / 2**20:,.0f}")
    for title in peers or ["peer"] * given.numpy:
        times_and_ratios = ["-"] * 4
        if other := spent.get(title):
            times_and_ratios = [f"{other.wall:.3f}", f"{other.cpu:.3f}"]
            times_and_ratios += [f"{other.wall / own.wall:.2f}", f"{other.cpu / own.cpu:.2f}"]
        found += times_and_ratios
    if given.alone:
        single = timing.measure({"": work_of(name, images[:1])}, given.rounds)[""].median.cpu
        found.append(f"{1e3 * single / own.cpu:.2f}")
    return [*found, f"{os.getloadavg()[0]:.1f}"]


def main(argv):
    given = command.given(argv)
    timing.keep_programs(False)
    names, shape = names_of(given.works), [int(side) for side in given.size.split("x")]
    height, width = shape if len(shape) == 2 else shape * 2
    batch = given.batch or max(24, min(1024, 2**22 // (height * width * 3) // 8 * 8))
    corruptions.laion_c.use_bank(crops(given.tiles))
    few = photographs(min(batch, 16), height, width)
    images = jax.device_put(np.resize(few, (batch, *few.shape[1:])))
    for name in names:
        if "=" not in name and not (name == "clahe_channel" or name in enhance.names() or augment.known(name)):
            corruptions.get(name)  # unknown names are refused before the first row
    copied = jnp.zeros(2**27, jnp.uint8)
    copy = jax.jit(lambda x: x + np.uint8(1))
    bandwidth = 2 * copied.size / timing.measure({"": lambda turn: copy(copied)}, 5)[""].wall.min()
    with tempfile.TemporaryDirectory() as folder:
        np.save(pathlib.Path(folder, "images.npy"), images)
        started = {
            title: timing.Peer(given.peer_python, script, f"{folder}/images.npy")
            for title, script in (_SCRIPTS.items() if given.peer_python else ())
        }
        peers = {title: peer for title, peer in started.items() if peer.hello["version"]}
        versions = {title: peer.hello["version"] for title, peer in peers.items()}
        versions |= {"peer": "NumPy definitions"} if given.numpy else {}
        listed = "; ".join(f"{title}: {version}" for title, version in versions.items()) or "peer: none"
        header = [*HEADER, *(cell for title in versions for cell in columns(title)), *["alone"] * given.alone, "load"]
        top = (
            f"# Speed: {batch} images of {height}x{width}\n\n{timing.title()}. {listed[0].upper()}{listed[1:]}. Medians of the repetitions; "
            "`CPU`: seconds of all threads; `MiB`: growth of the process in its first call, which compiles; `load`: load average, "
            "other work included.\n"
        )
        rows = timing.continued(given.out, top, header, names, lambda name: cells(name, images, peers, given))
    milliseconds = 2e3 * height * width * 3 / bandwidth
    print(f"reading and writing an image takes {milliseconds:.4f} ms ({bandwidth / 1e9:.1f} GB/s)")
    for title in versions:
        found = (row[header.index(columns(title)[3])] for row in rows)
        ratios = [float(cell) for cell in found if cell != "-"]
        if ratios:
            print(f"{title}: mean of {len(ratios)} ratios of CPU time {np.mean(ratios):.1f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    flags.DEFINE_list("works", ["imagenet_c", "imagenet_c_extra"], "Names, benchmarks, every; see the module.")
    flags.DEFINE_string("size", "224", "Side of the images, or HEIGHTxWIDTH.")
    flags.DEFINE_integer("batch", 0, "Images in a call; 0 chooses by size.", lower_bound=0)
    flags.DEFINE_integer("rounds", 0, "Repetitions; 0: 20, or fewer once they take a second.", lower_bound=0)
    flags.DEFINE_string(
        "peer_python", "", "Python with imagecorruptions-imaug, OpenCV and scikit-image; with torch-uncertainty, too."
    )
    flags.DEFINE_bool("numpy", False, "Compare with NumPy definitions; see the module.")
    flags.DEFINE_bool("alone", False, "Add the CPU time of one image by itself, over the time of one in the batch.")
    flags.DEFINE_integer("tiles", 5000, "Images in the bank of laion_c/mosaic and laion_c/stickers.", lower_bound=1)
    flags.DEFINE_string("out", "", "Markdown file to write, or to continue; empty prints only.")
    command.run(main)
