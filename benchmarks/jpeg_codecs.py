"""Compares the two JPEG libraries: what storing images as JPEG of quality 85 costs in pixels, and the speed of jpeg_compression.

    python -m benchmarks.jpeg_codecs --images=DIR --out=benchmarks/results/jpeg_codecs.md

DIR holds photographs in folders of classes. They are cut to 224x224 as ImageNet-C's, and corrupted at severity 3. A cell of the first
table is the mean difference between stored and corrupted images in 8-bit levels / the share of values that differ, in per cent; then
the same between two ways of storing.
"""

from runtime import command  # isort: skip

import platform

import jax
import numpy as np
import PIL
from absl import flags

import corruptions
from benchmarks import timing
from corruptions.imagenet_c.jpeg import STORAGE_QUALITY
from corruptions.primitives import jpeg
from corruptions.write import sources
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


def storage(images):
    """Makes the head and the rows of the first table."""
    titles = [f"written by {writer}, read by {reader}" for writer, reader in WAYS]
    pairs = [f"{'/'.join(WAYS[i])} against {'/'.join(WAYS[j])}" for i, j in PAIRS]
    rows = []
    for name in CORRUPTIONS:
        shown = images
        if name != "clean":
            # The original's jpeg_compression was made by the library that stored it.
            options = {"codec": "libjpeg9"} if name == "jpeg_compression" else {}
            shown = np.asarray(corruptions.corrupt(jax.random.key(0), images, f"imagenet_c/{name}", 3, **options))
        ways = [_stored(shown, *way) for way in WAYS]
        rows.append((name, *(_apart(way, shown) for way in ways), *(_apart(ways[i], ways[j]) for i, j in PAIRS)))
    return ("stored", *titles, *pairs), rows


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
    source = sources.open_source(given.images, preprocess="imagenet", size=224, limit=given.limit)
    images = np.asarray(source.read(range(len(source))))
    text = f"# The two JPEG libraries, {len(images)} photographs of 224x224\n\n{timing.markdown(*storage(images))}\n"
    text += timing.markdown(*speed(images, given.rounds))
    made = f"jax {jax.__version__}, numpy {np.__version__}, pillow {PIL.__version__}, {platform.machine()}, {platform.system()}"
    write_atomically(
        given.out, f"{text}\n`python -m benchmarks.jpeg_codecs --images=DIR --limit={given.limit}`; {made}\n"
    )
    print(text)


if __name__ == "__main__":
    flags.DEFINE_string("images", None, "Folder of photographs in folders of classes (required).")
    flags.DEFINE_string("out", None, "File of the tables (required).")
    flags.DEFINE_integer("limit", 100, "Photographs to take.")
    flags.DEFINE_integer("rounds", 11, "Repetitions of the timing.")
    command.run(main)
