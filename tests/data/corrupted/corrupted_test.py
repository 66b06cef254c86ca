"""Readers of corrupted datasets, on small ones in the published layouts, and on what
`corruptions.write` wrote.
"""

import io
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from corruptions.write import from_arrays, write_dataset
from data.corrupted import open_corrupted

NUMBER = 7
LABELS = np.array([3, 1, 0, 1, 2, 3, 0])


def pixels(name, severity, shape=(NUMBER, 32, 32, 3)):
    """Noise that tells conditions apart."""
    return np.random.default_rng([severity, *name.encode()]).integers(0, 256, shape, np.uint8)


def whole(dataset, corruption, severity, batch_size=3):
    images, labels = zip(*dataset.batches(corruption, severity, batch_size))
    return np.concatenate(images), np.concatenate(labels)


# Arrays, as CIFAR-10-C and CIFAR-10-C-bar are published.


@pytest.fixture
def arrays(tmp_path):
    folder = tmp_path / "CIFAR-10-C"
    folder.mkdir()
    for name in ("fog", "gaussian_noise", "blue_noise_sample", "spatter"):
        np.save(folder / f"{name}.npy", np.concatenate([pixels(name, s) for s in range(1, 6)]))
    np.save(folder / "labels.npy", np.tile(LABELS, 5).astype(np.uint8))
    (folder / "README.txt").write_text("CIFAR-10-C")
    return folder


def test_arrays_as_published(arrays):
    dataset = open_corrupted(arrays)
    names = ["imagenet_c/gaussian_noise", "imagenet_c/fog", "imagenet_c/spatter", "cbar/blue_noise_sample"]
    assert dataset.conditions() == tuple((name, s) for name in names for s in range(1, 6))
    assert (dataset.number, dataset.image_shape, dataset.class_names) == (NUMBER, (32, 32, 3), None)
    for name, severity in dataset.conditions():
        batches = list(dataset.batches(name, severity, 3))
        assert [len(images) for images, _ in batches] == [3, 3, 1]
        images, labels = map(np.concatenate, zip(*batches))
        assert images.dtype == np.uint8 and labels.dtype == np.int32
        assert np.array_equal(images, pixels(name.split("/")[-1], severity)) and np.array_equal(labels, LABELS)
    assert np.array_equal(whole(dataset, "fog", "2")[0], pixels("fog", 2))


def resident():
    """Bytes of memory this process holds, mapped files included."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the memory in use")
def test_arrays_are_not_read_before_they_are_asked_for(tmp_path):
    number = 600
    for name in ("fog", "snow"):  # 450 MB each, of holes
        np.lib.format.open_memmap(tmp_path / f"{name}.npy", "w+", np.uint8, (5 * number, 224, 224, 3))
    np.save(tmp_path / "labels.npy", np.zeros(5 * number, int))
    before = resident()
    images, _ = next(open_corrupted(tmp_path).batches("snow", 5, 4))
    assert images.shape == (4, 224, 224, 3) and images.flags.owndata
    assert resident() - before < 50e6
    touched = np.load(tmp_path / "snow.npy", mmap_mode="r")
    assert touched.max() == 0 and resident() - before > 400e6  # the measure would have seen it


@pytest.mark.parametrize(
    ("damage", "error", "message"),
    [
        (lambda f: (f / "labels.npy").unlink(), FileNotFoundError, r"expected the file .*labels\.npy"),
        (
            lambda f: os.truncate(f / "fog.npy", 5000),
            ValueError,
            r"fog\.npy: expected an \.npy file.*\(5000 bytes;.*copy it again",
        ),
        (lambda f: (f / "fog.npy").write_bytes(b""), ValueError, r"fog\.npy: expected an \.npy file.*\(0 bytes;"),
        (lambda f: (f / "fog.npy").write_text("<html>not found"), ValueError, r"fog\.npy: expected an \.npy file"),
        (lambda f: np.save(f / "fog.npy", np.zeros((35, 32, 32, 3))), ValueError, r"fog\.npy: expected uint8.*float64"),
        (
            lambda f: np.save(f / "fog.npy", np.zeros((30, 32, 32, 3), np.uint8)),
            ValueError,
            r"fog\.npy: expected the shape \[35, 32, 32, 3\] of gaussian_noise\.npy, found \[30, 32, 32, 3\]",
        ),
        (lambda f: np.save(f / "labels.npy", LABELS), ValueError, r"labels\.npy: expected whole labels \[35\]"),
        (lambda f: np.save(f / "labels.npy", np.arange(35)), ValueError, r"same 7 labels for every severity"),
    ],
)
def test_damaged_arrays_are_named(arrays, damage, error, message):
    damage(arrays)
    with pytest.raises(error, match=message):
        open_corrupted(arrays)


def test_arrays_without_five_severities_are_refused(tmp_path):
    np.save(tmp_path / "fog.npy", np.zeros((12, 32, 32, 3), np.uint8))
    np.save(tmp_path / "labels.npy", np.zeros(12, int))
    with pytest.raises(ValueError, match=r"fog\.npy: expected a multiple of 5 images.*found 12"):
        open_corrupted(tmp_path)


def test_what_is_not_there(arrays, tmp_path):
    dataset = open_corrupted(arrays)
    with pytest.raises(ValueError, match=r"no corruption 'fogg'; did you mean 'fog'.* found imagenet_c/gaussian_noise"):
        dataset.batches("fogg", 1, 2)
    with pytest.raises(ValueError, match="no severity 6 of imagenet_c/fog; found severities 1, 2, 3, 4, 5"):
        dataset.batches("fog", 6, 2)
    with pytest.raises(ValueError, match="batch_size of at least 1, found 0"):
        dataset.batches("fog", 1, 0)
    with pytest.raises(FileNotFoundError, match=r"expected a folder, or one of .* found no .*absent"):
        open_corrupted(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="found neither"):
        open_corrupted(tmp_path / "empty")
    np.save(tmp_path / "empty/labels.npy", LABELS)
    with pytest.raises(FileNotFoundError, match="found no corruption in it"):
        open_corrupted(tmp_path / "empty")


# Folders, as ImageNet-C is published.

CLASSES = ("n01440764", "n01443537", "n02077923", "n09288635")


def make_folders(root, conditions):
    for name, severity in conditions:
        for i, image in enumerate(pixels(name.split("/")[-1], severity, (NUMBER, 24, 40, 3))):
            path = root / f"{name}/{severity}/{CLASSES[LABELS[i]]}/ILSVRC2012_val_{i:08d}.JPEG"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(path, "JPEG", quality=85, optimize=True)


def decoded(name, severity):
    """Images as JPEG leaves them, by class and then by name."""
    images = []
    for image in pixels(name, severity, (NUMBER, 24, 40, 3)):
        file = io.BytesIO()
        Image.fromarray(image).save(file, "JPEG", quality=85, optimize=True)
        images.append(np.asarray(Image.open(file)))
    return np.stack(images)[np.argsort(LABELS, kind="stable")]


@pytest.mark.parametrize("prefix", ["", "weather/"])
def test_folders_as_published(tmp_path, prefix):
    make_folders(tmp_path, [(f"{prefix}{name}", s) for name in ("snow", "frost", "perlin_noise") for s in (1, 3)])
    (tmp_path / "README.md").write_text("")
    dataset = open_corrupted(tmp_path, threads=2)
    names = ("imagenet_c/snow", "imagenet_c/frost", "cbar/perlin_noise")
    assert dataset.conditions() == tuple((name, s) for name in names for s in (1, 3))
    assert (dataset.number, dataset.image_shape, dataset.class_names) == (NUMBER, (24, 40, 3), CLASSES)
    for name, severity in dataset.conditions():
        batches = list(dataset.batches(name, severity, 4))
        assert [len(images) for images, _ in batches] == [4, 3]
        images, labels = map(np.concatenate, zip(*batches))
        assert images.dtype == np.uint8 and labels.dtype == np.int32
        assert np.array_equal(images, decoded(name.split("/")[-1], severity))
        assert np.array_equal(labels, np.sort(LABELS))
    with pytest.raises(ValueError, match="no severity 2 of imagenet_c/snow; found severities 1, 3"):
        dataset.batches("snow", 2, 4)


@pytest.mark.parametrize("batch_size", [1, 2, 7, 100])
def test_every_batch_size_gives_every_image_once(tmp_path, batch_size):
    make_folders(tmp_path, [("fog", 1)])
    images, labels = whole(open_corrupted(tmp_path), "fog", 1, batch_size)
    assert np.array_equal(images, decoded("fog", 1)) and np.array_equal(labels, np.sort(LABELS))


def test_damaged_folders_are_named(tmp_path):
    make_folders(tmp_path, [("fog", s) for s in range(1, 6)])
    damaged = tmp_path / f"fog/2/{CLASSES[0]}/ILSVRC2012_val_00000006.JPEG"
    os.truncate(damaged, 300)
    Image.new("RGB", (30, 30)).save(tmp_path / f"fog/3/{CLASSES[0]}/ILSVRC2012_val_00000006.JPEG")
    (tmp_path / f"fog/4/{CLASSES[0]}/ILSVRC2012_val_00000006.JPEG").unlink()
    (tmp_path / "fog/5" / CLASSES[1]).rename(tmp_path / "fog/5/tench")
    dataset = open_corrupted(tmp_path)
    assert len(whole(dataset, "fog", 1)[0]) == NUMBER
    for severity, message in (
        (2, r"fog/2/n01440764/ILSVRC2012_val_00000006\.JPEG is damaged"),
        (3, r"fog/3/n01440764/ILSVRC2012_val_00000006\.JPEG: expected an image of 24x40, found 30x30"),
        (4, r"fog/4: expected 7 images as in the other conditions, found 6"),
        (5, r"fog/5: expected the 4 class folders .* they differ in n01443537, tench"),
    ):
        with pytest.raises(ValueError, match=message):
            whole(dataset, "fog", severity)


def test_folders_without_images_are_refused(tmp_path):
    (tmp_path / "fog/1/n01440764").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match=r"fog/1: expected class folders with images .* found none"):
        open_corrupted(tmp_path)


# TensorFlow Datasets.


@pytest.fixture(scope="module")
def tfds_root(tmp_path_factory):
    """cifar10_corrupted with three of its 95 configurations, written by tfds itself without
    TensorFlow.
    """
    import tensorflow_datasets as tfds

    root = tmp_path_factory.mktemp("tfds")

    def info(self):
        features = {"image": tfds.features.Image(shape=(32, 32, 3)), "label": tfds.features.ClassLabel(num_classes=4)}
        return tfds.core.DatasetInfo(
            builder=self, features=tfds.features.FeaturesDict(features), disable_shuffling=True
        )

    def examples(self):
        name, _, severity = self.builder_config.name.rpartition("_")
        for i, image in enumerate(pixels(name, int(severity))):
            file = io.BytesIO()
            Image.fromarray(image).save(file, "PNG")
            file.seek(0)
            yield i, {"image": file, "label": int(LABELS[i])}

    configs = [tfds.core.BuilderConfig(name=name, description=name) for name in ("elastic_5", "fog_2", "fog_1")]
    body = {
        "VERSION": tfds.core.Version("1.0.0"),
        "BUILDER_CONFIGS": configs,
        "name": "cifar10_corrupted",
        "pkg_dir_path": root,
        "_info": info,
        "_split_generators": lambda self, _: {"test": examples(self)},
        "_generate_examples": examples,
    }
    builder = type("Cifar10Corrupted", (tfds.core.GeneratorBasedBuilder,), body, skip_registration=True)
    for config in configs:
        builder(data_dir=str(root), config=config, file_format="array_record").download_and_prepare()
    return root


def test_tfds(tfds_root, monkeypatch):
    dataset = open_corrupted("cifar10_corrupted", data_dir=tfds_root, threads=2)
    # tfds calls it elastic; published order puts it after fog.
    assert dataset.conditions() == (("imagenet_c/fog", 1), ("imagenet_c/fog", 2), ("imagenet_c/elastic_transform", 5))
    assert (dataset.number, dataset.image_shape) == (NUMBER, (32, 32, 3)) and len(dataset.class_names) == 4
    for name, severity in dataset.conditions():
        batches = list(dataset.batches(name, severity, 4))
        assert [len(images) for images, _ in batches] == [4, 3]
        images, labels = map(np.concatenate, zip(*batches))
        stored = "elastic" if "elastic" in name else "fog"
        assert np.array_equal(images, pixels(stored, severity)) and np.array_equal(labels, LABELS)
        assert images.dtype == np.uint8 and labels.dtype == np.int32
    monkeypatch.setenv("TFDS_DATA_DIR", str(tfds_root))
    one = open_corrupted("cifar10_corrupted/fog_2")
    assert one.conditions() == (("imagenet_c/fog", 2),)
    assert np.array_equal(whole(one, "fog", 2)[0], pixels("fog", 2))
    assert "tensorflow" not in sys.modules


def test_tfds_that_is_not_there(tfds_root, tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"no prepared cifar10_corrupted/snow_1 .*\n.*tfds build cifar10_corrup"
    ):
        open_corrupted("cifar10_corrupted/snow_1", data_dir=tfds_root)
    with pytest.raises(FileNotFoundError, match=r"no prepared imagenet2012_corrupted/<corruption>_<severity>"):
        open_corrupted("imagenet2012_corrupted", data_dir=tmp_path)
    folder = tmp_path / "cifar10_corrupted/fog_1/1.0.0"
    folder.mkdir(parents=True)
    (folder / "dataset_info.json").write_text(json.dumps({"name": "cifar10_corrupted"}))
    with pytest.raises(ValueError, match="stored as tfrecord, expected array_record"):
        open_corrupted("cifar10_corrupted", data_dir=tmp_path)


# What our own writer wrote.


@pytest.mark.parametrize("layout", ["npy", "folders"])
def test_written_datasets_are_read_back(tmp_path, layout):
    images = pixels("clean", 0)
    source = from_arrays(images, LABELS, class_names=["zebra", "ant", "cat", "bee"])  # not in sorted order
    severities = {"noc/border": [0, 0.5], "noc/contrast": [1, "random"]}
    path = write_dataset(
        tmp_path, source, corruptions=list(severities), severities=severities, layout=layout, jpeg_quality=None
    )
    dataset = open_corrupted(tmp_path)
    assert dataset.conditions() == tuple((name, s) for name, some in severities.items() for s in some)
    assert dataset.number == NUMBER and dataset.class_names == ("zebra", "ant", "cat", "bee")
    assert dataset.provenance["manifest"] == json.loads(path.read_text())
    again = tmp_path / "again"
    write_dataset(again, source, corruptions=list(severities), severities=severities)
    order = np.arange(NUMBER) if layout == "npy" else np.argsort(LABELS, kind="stable")
    for name in ("border", "contrast"):
        both = np.load(again / f"{name}.npy").reshape(2, NUMBER, 32, 32, 3)
        for block, severity in enumerate(severities[f"noc/{name}"]):
            found, labels = whole(dataset, f"noc/{name}", severity)
            assert np.array_equal(found, both[block][order]) and np.array_equal(labels, LABELS[order])


@pytest.mark.parametrize("layout", ["npy", "folders"])
def test_unfinished_datasets_are_refused(tmp_path, layout):
    path = write_dataset(tmp_path, (pixels("clean", 0), LABELS), corruptions="noc/border", layout=layout)
    manifest = json.loads(path.read_text())
    manifest["corruptions"]["noc/border"]["written"].pop()
    path.write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match=r"is not written to its end \(noc/border\); run its command again"):
        open_corrupted(tmp_path)
    for text, message in (
        ("[]", r"manifest\.json: expected a JSON object, found list"),
        ("{", r"manifest\.json: expected valid JSON"),
        ("{}", r"manifest\.json is damaged: KeyError: 'corruptions'"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            open_corrupted(tmp_path)


def test_written_folders_that_were_removed_are_named(tmp_path):
    write_dataset(tmp_path, (pixels("clean", 0), LABELS), corruptions="noc/border", severities=[0, 1], layout="folders")
    (tmp_path / "border/1").rename(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=r"1 of its files are not what was written:\n.*border/1 is missing\nMend"):
        open_corrupted(tmp_path)
