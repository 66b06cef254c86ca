"""Corrupted datasets of TensorFlow Datasets."""

import json
import sys

import numpy as np
import pytest
import tensorflow_datasets as tfds

from data.corrupted import open_corrupted
from tests.data import records
from tests.data.corrupted.pictures import LABELS, NUMBER, pixels, whole


@pytest.fixture(scope="module")
def tfds_root(tmp_path_factory):
    """cifar10_corrupted with three of its 95 configurations, written by tfds itself without TensorFlow."""
    root, configs = tmp_path_factory.mktemp("tfds"), ("elastic_5", "fog_2", "fog_1")

    def splits(config):
        name, _, severity = config.rpartition("_")
        pairs = zip(pixels(name, int(severity)), LABELS)
        return {"test": [{"image": image, "label": int(label)} for image, label in pairs]}

    label = tfds.features.ClassLabel(num_classes=4)
    for config in configs:
        records.write(root, "cifar10_corrupted", splits, configs=configs, config=config, label=label)
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
    single = open_corrupted("cifar10_corrupted/fog_2")
    assert single.conditions() == (("imagenet_c/fog", 2),)
    assert np.array_equal(whole(single, "fog", 2)[0], pixels("fog", 2))
    assert "tensorflow" not in sys.modules


def test_tfds_that_is_not_there(tfds_root, tmp_path):
    folder = tmp_path / "cifar10_corrupted/fog_1/1.0.0"
    folder.mkdir(parents=True)
    (folder / "dataset_info.json").write_text(json.dumps({"name": "cifar10_corrupted"}))
    for name, root, message in (
        (
            "cifar10_corrupted/snow_1",
            tfds_root,
            r"no prepared cifar10_corrupted/snow_1 .*\n.*tfds build cifar10_corrup",
        ),
        ("imagenet2012_corrupted", tmp_path, "no prepared imagenet2012_corrupted/<corruption>_<severity>"),
        ("cifar10_corrupted", tmp_path, "stored as tfrecord, expected array_record"),
    ):
        with pytest.raises(FileNotFoundError, match=message):
            open_corrupted(name, data_dir=root)
