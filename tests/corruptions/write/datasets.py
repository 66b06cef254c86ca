"""Small sources of written datasets, and what a dataset is defined to hold."""

import json
import zlib

import jax
import numpy as np

import corruptions
from corruptions import Levels, registrar

IMAGES = np.random.default_rng(3).integers(0, 256, (12, 32, 32, 3), np.uint8)
LABELS = np.arange(12) % 3


def expected(images, name, severity, seed, **options):
    """Computes the defined content of the dataset, by one call per image."""
    key = jax.random.fold_in(jax.random.key(seed), zlib.crc32(name.encode()))
    corrupted = [
        corruptions.corrupt(key, image[None], name, severity, index=np.array([i]), **options)[0]
        for i, image in enumerate(images)
    ]
    return np.stack(corrupted)


def expected_at_once(images, name, severity, seed):
    """The same from one call on all images: one program for those who write or show them so."""
    key = jax.random.fold_in(jax.random.key(seed), zlib.crc32(name.encode()))
    return np.asarray(corruptions.corrupt(key, images, name, severity))


def contents(folder, manifest=False):
    """{name: bytes} of a dataset's files; with `manifest` also its fields, but for the runs, which have times."""
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return comparable(found, manifest)


def comparable(files, manifest=False):
    about = json.loads(files.pop("manifest.json"))
    found = {name: content for name, content in files.items() if name not in (".lock", ".checks.json")}
    fields = {key: value for key, value in about.items() if key not in ("runs", "sha256")}
    return found | ({"manifest": fields} if manifest else {})


def register_mine(by, unused=0, name="darker", **known):
    """Registers a corruption that takes `by` levels away from each value; `unused` changes its code alone."""

    def sample(key, shape, severity):
        return {"by": by * severity / 255, "unused": unused * severity}

    def darker(image, params):
        return image - params["by"]

    known["name"] = name
    registrar("mine", Levels(3), "nearest", "a test", replace=True)("color", sample, {"by": "unit"}, **known)(darker)


def register_of_file(path, by):
    """Registers `register_mine(by)`, whose code is the same whatever `by`: it reads it from a file."""
    np.save(path, by)

    def sample(key, shape, severity):
        return {"by": np.load(path).astype(np.float32) * severity / 255}

    def darker(image, params):
        return image - params["by"]

    registrar("mine", Levels(3), "nearest", "a test", replace=True)("color", sample, {"by": "unit"})(darker)
