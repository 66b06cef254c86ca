"""Stored digests: none changes by one bit, so that workdirs, folders and written datasets of before are read."""

import json
import os

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from corruptions.augment.stored import Stored
from corruptions.core.origin import Origin
from corruptions.files import digest_of, digest_of_file
from corruptions.laion_c import use_bank
from corruptions.scoring.conditions import Condition
from corruptions.scoring.folder import Folder
from corruptions.write import from_arrays, from_folder, manifests
from corruptions.write.sources import safe_name
from data import blocks, cache, tree
from data.imagenet.prepare import open_source
from runtime import artifacts
from training import checkpoints

VALUE = {"z": [1, 2.5, None], "a": {"name": "é"}}
ARRAYS = {
    "b": np.arange(6, dtype=np.float32).reshape(2, 3).T,  # not contiguous
    "a": np.array(7, np.int16),  # without an axis
    "none": np.zeros((0, 3), np.int32),
}
IMAGES = np.arange(2 * 8 * 8 * 3).astype(np.uint8).reshape(2, 8, 8, 3)
PLACE = Condition("imagenet_c/fog", "3")


def stored_under(path, name):
    with np.load(path) as archive:
        return json.loads(str(archive[name]))


def artifact(folder):
    artifacts.write(folder / "artifact.npz", ARRAYS, VALUE)
    return stored_under(folder / "artifact.npz", "made_from")["sha256"]


def file(folder):
    (folder / "file").write_bytes(b"content")
    return digest_of_file(folder / "file")


def state(folder):
    return checkpoints.digest({"params": {name: jnp.asarray(array) for name, array in ARRAYS.items()}})


def streamed(folder):
    with open(folder / "images.npy", "wb") as aside:
        writer = blocks.Writer(aside)
        writer.append(IMAGES[:1, :, ::-1])
        writer.append(IMAGES[1:])
    return writer.sha256


def manifest(folder):
    made = VALUE | {"sha256": "before"}
    manifests.save(folder, made)
    return made["sha256"]


def answers(folder):
    """The digest of a classifier without a name, and that of the file of its answers."""
    kept = Folder(folder)
    kept.write(PLACE, np.array([True, False]), np.array([0.5, 1], np.float32), Origin())
    return (
        kept.network["answers"][:32] + stored_under(folder / "answers/imagenet_c.fog-3.npz", "made_from")["sha256"][:32]
    )


def listing(folder):
    """Digests the listing of a folder of images: name, size and time of each file."""
    from PIL import Image

    (folder / "cat").mkdir()
    Image.fromarray(IMAGES[0]).save(folder / "cat/one.bmp")
    os.utime(folder / "cat/one.bmp", ns=(10**18, 10**18))
    found = from_folder(folder).description
    return found["listing_sha256"][:32] + found["content_sha256"][:32]


def split(folder):
    """Splits a tree of images that has no split: the images for testing follow from digests of their names."""
    for name in (f"{i}.jpg" for i in range(30)):
        (folder / "cat").mkdir(exist_ok=True)
        (folder / "cat" / name).touch()
    _, splits = tree.scan(folder, 1, 0.2, 0)
    return " ".join(path.stem for path, *_ in splits["test"])


def classes(folder):
    """Digests the listing of a tree of ImageNet's folders."""
    for part in ("train", "val"):
        for number in range(1000):
            (folder / part / f"n{number:08}").mkdir(parents=True)
            (folder / part / f"n{number:08}" / "0.JPEG").write_bytes(b"1234")
    return open_source("imagenet", folder).identity["listing_sha256"]


CASES = [
    pytest.param(
        lambda _: artifacts.digest(VALUE), "c9445aee53cc7aabae957143373a27ccf1c005999f44c8da291d2e518f79b472", id="json"
    ),
    pytest.param(artifact, "42ea4cb8fd9f8c0a7dc6a8d473eb2da4f4cc65e395c0d703dd94698990792375", id="artifact"),
    pytest.param(file, "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73", id="file"),
    pytest.param(state, "85a09e63630eb3ebdf192c7ad1a789b2bcb27284f85393308b34f081a3c2f688", id="state"),
    pytest.param(
        lambda _: checkpoints.digest([np.arange(5, dtype=ml_dtypes.bfloat16)]),
        "38a51a06b6c9c2bd0acf4ca932ac87852d771e05946e0a3e15809d566f118666",
        id="state_of_bfloat16",
    ),
    pytest.param(
        lambda _: digest_of(ARRAYS["b"]),
        "0c9d0bb54e4f5a0121543129f106617549c7ff2b34c6842c5a2e19186c5a7914",
        id="array",
    ),
    pytest.param(
        lambda _: digest_of(ARRAYS["none"]),
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        id="array_of_nothing",
    ),
    pytest.param(
        lambda _: digest_of(np.array([b"ab", b"c"])),
        "dc1114cd074914bd872cc1f9a23ec910ea2203bc79779ab2e17da25782a624fc",
        id="array_of_text",
    ),
    pytest.param(lambda _: cache.fingerprint("shapes", VALUE, {1}), "f4ce94ce94af2bdb", id="cache_key"),
    pytest.param(streamed, "264c71f569561c816126ea35d08ab27fcd2edea03e19818eee5af4c73999c912", id="streamed_images"),
    pytest.param(
        lambda _: Stored("dbsr", (32, 32, 3), "label", ARRAYS, {}).digest,
        "956dcf3e34f0297f4f99a674c4f6c133167d75de0f88de317990552221a08fe7",
        id="transforms",
    ),
    pytest.param(manifest, "9aac982b30788babbf4aabf0eaa68da86b22abd6a317e4fa7f5e9c74a70dfb92", id="manifest"),
    pytest.param(answers, "0e793b7748de356863dfc0f73bbb9562f16207ab784ef8ccec842a217fa86164", id="answers"),
    pytest.param(
        lambda _: use_bank(IMAGES, side=8),
        "3b2e1460ec0aa5ff20b9ad60bd2bcbd47dac31943a88e7899fbc3c8e24adb5f7",
        id="bank",
    ),
    pytest.param(
        lambda _: from_arrays(IMAGES[:, ::-1], [1, 0]).description["images_sha256"],
        "fcd5b27d60d7cef7d3a5e901e8921e4d6d5be4075813e324462a45e88e8e5463",
        id="source_images",
    ),
    pytest.param(
        lambda _: from_arrays(IMAGES[:, ::-1], [1, 0]).description["labels_sha256"],
        "7c9fa136d4413fa6173637e883b6998d32e1d675f88cddff9dcbcf331820f4b8",
        id="source_labels",
    ),
    pytest.param(listing, "d252d5d67bcb894b01af76d1cf802e05230ab7b3b66e1d4c7e06d291a799d972", id="source_folder"),
    pytest.param(lambda _: safe_name("\udc80" + "é" * 200)[-16:], "c2bc70ee11047e33", id="long_name"),
    pytest.param(split, "1 16 26 27 5 6", id="split"),
    pytest.param(classes, "b8bd0078e23e31a3230d34abe0017a333f7fd767b2e5cde14353a55e7ffc1a5f", id="listing_of_imagenet"),
]


@pytest.mark.parametrize("of, digest", CASES)
def test_a_stored_digest_is_as_before(of, digest, tmp_path):
    assert of(tmp_path) == digest
