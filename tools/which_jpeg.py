"""Tells which JPEG library made jpeg_compression of a published dataset, and whether our pixels are its pixels.

    python -m tools.which_jpeg CIFAR-10-C
    python -m tools.which_jpeg CIFAR-10-C --clean=test_images.npy
    python -m tools.which_jpeg ImageNet-C --clean=imagenet/val --preprocess=imagenet --size=224

jpeg_compression draws nothing. So the clean test images, compressed here by the right library, are the dataset's images in every
value: for each severity the command prints the share of values that are equal with `codec="libjpeg-turbo"` and with
`codec="libjpeg9"`. One of the two should be 1; then it is named, and the exit status is 0. Else it is 1: the clean images are others,
or the library is.

Takes the first 100 images of each severity, 20 of images above 64x64. Small clean images may come in any order: each is found by its
likeness. Of larger ones the order must be the dataset's, class by class. Where the dataset's files are JPEGs, as ImageNet-C's of quality
85 are, ours are stored likewise, written by the same library and read by libjpeg-turbo, as this machine's Pillow reads the dataset. The
clean files of ImageNet-C were decoded by the library of 2018 and are decoded here by libjpeg-turbo: there no share need be 1, and the
larger one is the likelier.
"""

from runtime import command  # isort: skip

import os
import pathlib
import sys

import jax
import numpy as np
from absl import app, flags
from PIL import Image

import corruptions
from corruptions import imagenet_c
from corruptions.primitives.jpeg import CODECS, TURBO
from corruptions.reading.folders import SUFFIXES
from corruptions.write import sources
from data.corrupted import CorruptedDataset, open_corrupted

NAME = "imagenet_c/jpeg_compression"
SMALL = 64  # side in pixels
ALL_BUT = 1e-3  # share of values that may differ

flags.DEFINE_string(
    "clean",
    "tfds:cifar10",
    "The clean test images: FILE.npy uint8 [N, H, W, 3], FILE.npz, a folder root/class/*, tfds:NAME.",
)
flags.DEFINE_string("data_dir", None, "The folder of a tfds source.")
flags.DEFINE_string("preprocess", "none", "Preprocessing of a folder, as of corruptions.write.")
flags.DEFINE_integer("size", None, "Side of the images after --preprocess, in pixels.")


def clean_images(given: flags.FlagValues, shape: tuple[int, ...]) -> tuple[int, object]:
    """Opens the clean images: (how many, a function from positions to uint8 [n, H, W, 3])."""
    if given.clean.endswith(".npy"):
        images = np.load(given.clean, mmap_mode="r")
        number, read = len(images), lambda places: np.asarray(images[np.asarray(places)])
    else:
        source = sources.open_source(given.clean, data_dir=given.data_dir, preprocess=given.preprocess, size=given.size)
        number, read = len(source), lambda places: np.asarray(source.read(list(map(int, places))))
    first = read([0])
    if first.dtype != np.uint8 or first.shape[1:] != shape:
        raise ValueError(
            f"--clean: expected uint8 images {list(shape)} as the dataset has, found {first.dtype} {list(first.shape[1:])}; "
            "--preprocess=imagenet --size=224 makes ImageNet-C's of the validation files"
        )
    return number, read


def _features(images):
    """Means of 4x4 fields of a small image, [n, fields]."""
    number, height, width, _ = images.shape
    cut = images[:, : height // 4 * 4, : width // 4 * 4].reshape(number, height // 4, 4, width // 4, 4, 3)
    return cut.mean((2, 4), dtype=np.float32).reshape(number, -1)


def matched(stored: CorruptedDataset, given: flags.FlagValues) -> np.ndarray:
    """Reads the clean images of the first images of the dataset."""
    shape = tuple(stored.image_shape)
    number, read = clean_images(given, shape)
    small = max(shape[:2]) <= SMALL
    count = min(stored.number, 100 if small else 20)
    if not small:
        if number != stored.number:
            raise ValueError(f"--clean: expected {stored.number} images as the dataset has, found {number}")
        return read(range(count))
    compressed = _features(next(stored.batches(NAME, 1, count))[0])
    clean = np.concatenate([_features(read(range(i, min(i + 1000, number)))) for i in range(0, number, 1000)])
    apart = (clean**2).sum(1) - 2 * compressed @ clean.T  # squared distances, but for a constant of each row
    return read(apart.argmin(1))


def of_jpegs(stored: CorruptedDataset) -> bool:
    """Tells whether a dataset holds JPEG files: its manifest says so, or else its first file shows it."""
    manifest = stored.provenance.get("manifest")
    if manifest is not None:
        return manifest["jpeg_quality"] is not None
    if stored.provenance["format"] != "folders":
        # NumPy's files hold pixels; of TensorFlow Datasets ImageNet's are JPEGs.
        return stored.provenance["format"] != "npy" and max(stored.image_shape[:2]) > SMALL
    images = (
        pathlib.Path(folder) / name
        for folder, _, names in os.walk(stored.path)
        for name in sorted(names)
        if name.lower().endswith(SUFFIXES)
    )
    with Image.open(next(images)) as first:
        return first.format == "JPEG"


def expected(clean: np.ndarray, severity: int, codec: str, writer: str | None) -> np.ndarray:
    """Compresses clean images by `codec`, and once more where `writer` then stored them as JPEG files."""
    images = np.asarray(corruptions.corrupt(jax.random.key(0), clean, NAME, severity, codec=codec))
    if writer is None:
        return images
    read_back = [imagenet_c.store(image / np.float32(255), writer, TURBO) for image in images]
    return np.rint(np.stack(read_back) * 255).astype(np.uint8)


def shares(stored: CorruptedDataset, clean: np.ndarray) -> dict[int, dict[str, float]]:
    """Returns {severity: {codec: share of equal values}}."""
    if missing := [s for s in range(1, 6) if (NAME, s) not in stored.conditions()]:
        raise ValueError(f"{stored.path}: expected jpeg_compression at severities 1 to 5, found none at {missing[0]}")
    found, lossy, by_pillow = {}, of_jpegs(stored), stored.provenance.get("manifest") is not None  # corruptions.write
    writers = {codec: (TURBO if by_pillow else codec) if lossy else None for codec in CODECS}
    for severity in range(1, 6):
        theirs = next(stored.batches(NAME, severity, len(clean)))[0]
        found[severity] = {
            codec: float((expected(clean, severity, codec, writer) == theirs).mean())
            for codec, writer in writers.items()
        }
    return found


def run(path: pathlib.Path, given: flags.FlagValues) -> int:
    """Prints the shares and the library; returns the exit status."""
    stored = open_corrupted(path)
    if (NAME, 1) not in stored.conditions():
        raise ValueError(f"{path}: expected jpeg_compression in it, found {', '.join(dict(stored.conditions()))}")
    found = shares(stored, matched(stored, given))
    print("severity", *CODECS, sep="\t")
    for severity, by_codec in found.items():
        print(severity, *(f"{share:.4f}" for share in by_codec.values()), sep="\t")
    least = {codec: min(by_codec[codec] for by_codec in found.values()) for codec in CODECS}
    likelier = max(least, key=lambda codec: least[codec])
    if least[likelier] >= 1 - ALL_BUT:
        print(f'{path} was made by {likelier}: jpeg_compression has its pixels with codec="{likelier}"')
        return 0
    print(
        f"error: {path}: expected one share of 1, found {least[likelier]:.4f} of {likelier} at most: other clean images, another library, "
        "or clean files that another library decoded",
        file=sys.stderr,
    )
    return 1


def main(argv):
    if len(argv) != 2:
        raise app.UsageError("expected one folder, python -m tools.which_jpeg CIFAR-10-C")
    return run(pathlib.Path(argv[1]), flags.FLAGS)


if __name__ == "__main__":
    command.run(main)
