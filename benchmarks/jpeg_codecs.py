"""Compares the two JPEG libraries: what storing images as JPEG of quality 85 costs in pixels and in error, and their speed.

    python -m benchmarks.jpeg_codecs --images=DIR --network=efficientnet-lite0 --out=benchmarks/results/jpeg_codecs.md

DIR is laid out as for tools.real. The photographs become 224x224, and are corrupted at severity 3. A cell of the first
table is the mean difference between stored and corrupted images in 8-bit levels / the share of values that differ, in per cent; then
the same between two ways of storing. The second, with --network, has the top-1 error of the network on the corrupted images in memory,
and by how much it is higher on stored ones, with the 95 % interval over the photographs, which are the same. The third is the speed of
jpeg_compression.
"""

from runtime import command  # isort: skip

import platform

import jax
import numpy as np
import PIL
from absl import flags

import corruptions
import data
from benchmarks import real, timing
from corruptions.imagenet_c.jpeg import STORAGE_QUALITY
from corruptions.primitives import jpeg
from data.decode import RESIZE
from evaluation import packaged
from runtime.files import write_atomically

CORRUPTIONS = (
    "clean",
    "gaussian_noise",
    "shot_noise",
    "impulse_noise",
    "contrast",
    "fog",
    "pixelate",
    "jpeg_compression",
)
WAYS = (("libjpeg9", "libjpeg9"), ("libjpeg9", "libjpeg-turbo"), ("libjpeg-turbo", "libjpeg-turbo"))
PAIRS = ((0, 2), (1, 2), (0, 1))  # of WAYS


def _stored(images, writer, reader):
    def one(image):
        return jpeg.round_trip(image, STORAGE_QUALITY, encoder=writer, decoder=reader)

    return jax.jit(jax.vmap(one))(np.asarray(images, np.int32))


def _apart(one, other):
    off = np.abs(np.asarray(one, int) - np.asarray(other, int))
    return f"{off.mean():.2f} / {100 * (off > 0).mean():.1f}"


def corrupted(images, name):
    """Corrupts images at severity 3; `clean` leaves them."""
    if name == "clean":
        return images
    # The original's jpeg_compression was made by the library that stored it.
    options = {"codec": "libjpeg9"} if name == "jpeg_compression" else {}
    return np.asarray(corruptions.corrupt(jax.random.key(0), images, f"imagenet_c/{name}", 3, **options))


def storage(images, labels, network, names):
    """Makes head and rows of the first table, and of the second; that has no rows without a network."""
    titles = [f"written by {writer}, read by {reader}" for writer, reader in WAYS]
    pairs = [f"{'/'.join(WAYS[i])} against {'/'.join(WAYS[j])}" for i, j in PAIRS]
    predict = packaged.predictor(network)[0] if network else None
    rows, of_errors = [], []
    for name in names:
        shown = corrupted(images, name)
        ways = [_stored(shown, *way) for way in WAYS]
        rows.append((name, *(_apart(way, shown) for way in ways), *(_apart(ways[i], ways[j]) for i, j in PAIRS)))
        if predict:
            memory, *stored = [real.errors(predict, np.asarray(one), labels) for one in (shown, *ways)]
            cells = [real.difference(one.astype(float), memory) for one in stored]
            of_errors.append((name, f"{100 * memory.mean():.1f}", *cells))
    return (("stored", *titles, *pairs), rows), (("error, %", "in memory", *titles), of_errors)


def speed(images, rounds):
    """Makes the head and the rows of the second table; the two take turns."""
    rows = []
    small = images[:, :224, :224].reshape(len(images), 7, 32, 7, 32, 3).swapaxes(2, 3).reshape(-1, 32, 32, 3)[:512]
    for batch in (images[:24], small):

        def work(turn, codec, batch=batch):
            severities = np.arange(len(batch)) % 5 + 1
            return corruptions.corrupt(
                jax.random.key(turn), batch, "imagenet_c/jpeg_compression", severities, codec=codec
            )

        works = {codec: lambda turn, codec=codec: work(turn, codec) for codec in jpeg.CODECS}
        for each in works.values():
            jax.block_until_ready(each(0))
        spent = timing.measure(works, rounds)
        cpu = [1e3 * spent[codec].median.cpu / len(batch) for codec in jpeg.CODECS]
        size = f"{batch.shape[1]}x{batch.shape[2]}"
        rows.append((size, len(batch), *(f"{ms:.4f}" for ms in cpu), f"{cpu[1] / cpu[0]:.2f}"))
    return ("size", "batch", *(f"{codec}, CPU ms/image" for codec in jpeg.CODECS), "ratio of the medians"), rows


def main(argv):
    given = command.given(argv, {"images": "DIR", "out": "FILE.md"})
    loaded = data.load(
        "photographs", data_dir=given.images, image_size=224, resize=given.resize, test_limit=given.limit
    )
    images, labels = np.asarray(loaded.test.images), np.asarray(loaded.test.labels)
    pixels, errors = storage(images, labels, given.network, given.corruptions)
    text = f"# The two JPEG libraries, {len(images)} photographs of 224x224\n\n{timing.markdown(*pixels)}\n"
    if errors[1]:
        text += f"Top-1 error of {given.network}, %, and how much higher it is on stored images:\n\n{timing.markdown(*errors)}\n"
    text += timing.markdown(*speed(images, given.rounds))
    asked = f"python -m benchmarks.jpeg_codecs --images=DIR --limit={given.limit} --resize={given.resize}"
    asked += f" --network={given.network}" if given.network else ""
    asked += f" --corruptions={','.join(given.corruptions)}" if tuple(given.corruptions) != CORRUPTIONS else ""
    text += f"\n`{asked}`; {timing.title()}, numpy {np.__version__}, pillow {PIL.__version__}, {platform.machine()}, {platform.system()}\n"
    write_atomically(given.out, text)
    print(text)


if __name__ == "__main__":
    flags.DEFINE_string("images", None, "Folder of photographs in folders of ImageNet's classes (required).")
    flags.DEFINE_string("out", None, "File of the tables (required).")
    flags.DEFINE_enum("network", "", ["", *packaged.NETWORKS], "The network of the second table; empty makes none.")
    flags.DEFINE_list(
        "corruptions", list(CORRUPTIONS), "Corruptions of ImageNet-C that are stored; clean stores the photographs."
    )
    flags.DEFINE_enum("resize", "crop", RESIZE, "How photographs become square.")
    flags.DEFINE_integer("limit", 100, "Photographs to take.")
    flags.DEFINE_integer("rounds", 11, "Repetitions of the timing.")
    command.run(main)
