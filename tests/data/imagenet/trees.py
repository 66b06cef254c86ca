"""A small ImageNet: 100 class folders of files such as the real one holds, and what a store of it must contain."""

import os
import subprocess
import sys

import numpy as np
from PIL import Image

from tests.processes import ROOT

CLASSES = [f"n{i:08d}" for i in range(100)]
SIZES = [(40, 30), (24, 24), (19, 50), (12, 15), (33, 61)]  # (width, height), some smaller than what is stored
TRUNCATED, NO_IMAGE = 37, 121  # places among the 200 training images, in sorted order
SMALL = {"image_size": 16, "workers": 1, "shard_images": 8}


def photograph(rng, number):
    """A smooth image of one of the kinds found in ImageNet, and the format to save it in."""
    size = SIZES[number % len(SIZES)]
    image = Image.fromarray(rng.integers(0, 256, (5, 5, 3), np.uint8)).resize(size, Image.Resampling.BICUBIC)
    kinds = [("RGB", "JPEG"), ("L", "JPEG"), ("CMYK", "JPEG"), ("P", "PNG"), ("RGB", "PNG"), ("RGBA", "PNG")]
    mode, form = kinds[number % len(kinds)]
    return image.convert(mode), form


def write(root, classes=CLASSES):
    """root/{train,val}/class/*.JPEG, two training images and a test image each; the names lie about
    PNG, as in ImageNet.
    """
    rng = np.random.default_rng(3)
    number = 0
    for split, each in (("train", 2), ("val", 1)):
        for name in classes:
            folder = root / split / name
            folder.mkdir(parents=True)
            for i in range(each):
                image, form = photograph(rng, number)
                image.save(folder / f"{name}_{i}.JPEG", form)
                number += 1
    files = paths(root, "train")
    whole = files[TRUNCATED].read_bytes()
    files[TRUNCATED].write_bytes(whole[: len(whole) // 2])
    files[NO_IMAGE].write_text("not an image")
    return root


def paths(root, split):
    return sorted((root / split).glob("*/*.JPEG"))


def reference(image, size, short):
    """Pillow's steps for an image or its file: uint8 [size, size, 3]."""
    image = (image if isinstance(image, Image.Image) else Image.open(image)).convert("RGB")
    width, height = image.size
    scaled = (short, height * short // width) if width <= height else (width * short // height, short)
    resized = np.asarray(image.resize(scaled, Image.Resampling.BILINEAR))
    top, left = (round((side - size) / 2) for side in resized.shape[:2])
    return resized[top : top + size, left : left + size]


def shards(out):
    return sorted((out / "imagenet100" / "16" / "shards").glob("*.npy"))


def content(out):
    """{file: bytes} of all that a store consists of."""
    folder = out / "imagenet100" / "16"
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def command(source, out, *more):
    given = ["--dataset=imagenet100", f"--source={source}", f"--data_dir={out}", "--image_size=16", "--shard_images=8"]
    return [sys.executable, "-m", "data.prepare", *given, *more]


def run(source, out, *more):
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    return subprocess.run(command(source, out, *more), cwd=ROOT, env=environment, capture_output=True, text=True)
