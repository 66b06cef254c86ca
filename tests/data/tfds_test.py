"""CIFAR through tfds: a tiny dataset written by tfds itself, the errors, and the real one if it exists."""

import json
import re
import sys
import types

import numpy as np
import pytest
import tensorflow_datasets as tfds

import data
from data import prepare, tfds_source
from tests import processes
from tests.data import records

IMAGES = np.random.default_rng(2).integers(0, 256, (40, 32, 32, 3), np.uint8)


def builder_class(name, num_classes):
    """A tfds builder of 30 training and 10 test images, the label of image i being 7 i modulo the classes."""
    rows = [{"id": f"noise_{i}", "image": image, "label": 7 * i % num_classes} for i, image in enumerate(IMAGES)]
    label = tfds.features.ClassLabel(names=[f"class_{i}" for i in range(num_classes)])
    splits = {"train": rows[:30], "test": rows[30:]}
    return records.builder_class(name, splits, "3.0.2", id=tfds.features.Text(), label=label)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    root = tmp_path_factory.mktemp("tfds")
    for name, num_classes in tfds_source.CIFAR.items():
        builder_class(name, num_classes)(data_dir=str(root), file_format="array_record").download_and_prepare()
    return root


@pytest.mark.parametrize(("name", "num_classes"), [("cifar10", 10), ("cifar100", 100)])
def test_every_image_and_label_arrives(tiny, name, num_classes):
    loaded = data.load(name, data_dir=tiny)
    np.testing.assert_array_equal(loaded.train.images, IMAGES[:30])
    np.testing.assert_array_equal(loaded.test.images, IMAGES[30:])
    np.testing.assert_array_equal(loaded.test.labels, 7 * np.arange(30, 40) % num_classes)
    assert loaded.class_names == tuple(f"class_{i}" for i in range(num_classes))
    assert loaded.provenance["version"] == "3.0.2" and loaded.provenance["source"] == str(tiny / name / "3.0.2")
    assert loaded.provenance["train"]["size"] == 30
    json.dumps(loaded.provenance)


def test_the_folder_may_come_from_the_environment_and_the_second_load_from_the_cache(tiny, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tiny))
    first = data.load("cifar10")
    monkeypatch.setattr(tfds_source, "_decode", lambda encoded: pytest.fail("decoded again"))
    second = data.load("cifar10", image_size=32)
    assert isinstance(second.train.images, np.memmap)
    assert first.provenance == second.provenance


def test_limits_are_balanced_and_keep_the_index(tiny):
    loaded = data.load("cifar10", data_dir=tiny, train_limit=20, test_limit=3)
    assert np.bincount(loaded.train.labels).tolist() == [2] * 10
    np.testing.assert_array_equal(loaded.train.images, IMAGES[loaded.train.index])
    assert loaded.provenance["test"]["size"] == 3


def test_reading_needs_no_tensorflow(tiny, cache_folder):
    code = (
        "import sys, data; d = data.load('cifar10', data_dir=sys.argv[1]); "
        "print(len(d.train), 'tensorflow_datasets' in sys.modules, 'tensorflow' in sys.modules)"
    )
    for with_tfds in ("True", "False"):  # once the images are cached not even tfds
        done = processes.run([sys.executable, "-c", code, str(tiny)])
        assert done.stdout.split() == ["30", with_tfds, "False"], done.stderr


def test_a_missing_dataset_and_another_file_format_are_named_with_the_command(tmp_path):
    folder = tmp_path / "cifar10" / "3.0.2"
    folder.mkdir(parents=True)
    (folder / "dataset_info.json").write_text(json.dumps({"fileFormat": "tfrecord"}))
    command = "(.|\n)*python -m data.prepare --dataset="
    for name, message in (
        ("cifar100", rf"{tmp_path}/cifar100{command}cifar100 --data_dir={tmp_path}$"),
        ("cifar10", f"stored as tfrecord, expected array_record{command}cifar10 --data_dir=OTHER_FOLDER"),
    ):
        with pytest.raises(FileNotFoundError, match=message):
            data.load(name, data_dir=tmp_path)


def test_the_newest_version_is_read(tmp_path):
    for version in ("3.0.2", "3.0.10", "2.9.9", "incomplete.3.1.0"):
        (tmp_path / "cifar10" / version).mkdir(parents=True)
        (tmp_path / "cifar10" / version / "dataset_info.json").write_text('{"fileFormat": "array_record"}')
    assert tfds_source.find("cifar10", tmp_path).name == "3.0.10"


def without(monkeypatch, *missing):
    find_spec = prepare.importlib.util.find_spec
    fake = types.SimpleNamespace(find_spec=lambda name: None if name in missing else find_spec("json"))
    monkeypatch.setattr(prepare.importlib, "util", fake)


def test_prepare_without_tensorflow_says_what_to_install(tmp_path, monkeypatch, capsys):
    without(monkeypatch, "tensorflow")
    assert prepare.main(["--dataset=cifar10", f"--data_dir={tmp_path}"]) == 1
    message = capsys.readouterr().err
    assert "needs tensorflow, which is not" in message and "pip install -e '.[prepare]'" in message


@pytest.mark.parametrize(
    ("flag", "found"), [("--verify", "--verify.*found True"), ("--image_size=64", "--image_size.*found 64")]
)
def test_prepare_refuses_flags_of_imagenet_for_cifar(flag, found, tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        prepare.main(["--dataset=cifar10", f"--data_dir={tmp_path}", flag])
    assert re.search(rf"expected {found} with cifar10", capsys.readouterr().err)


def test_prepare_writes_array_record(tmp_path, monkeypatch, capsys):
    without(monkeypatch)
    asked = []
    monkeypatch.setattr(tfds, "builder", lambda n, **options: asked.append(n) or builder_class(n, 10)(**options))
    for _ in range(2):  # the second time it exists already
        assert prepare.main(["--dataset=cifar10", f"--data_dir={tmp_path}"]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == str(tmp_path / "cifar10" / "3.0.2")
    assert asked == ["cifar10"]
    assert len(data.load("cifar10", data_dir=tmp_path).train) == 30


@pytest.mark.slow
def test_the_real_cifar10(shared, tmp_path):
    loaded = data.load("cifar10", data_dir=shared / "data" / "tfds", train_limit=100)
    assert np.bincount(loaded.train.labels).tolist() == [10] * 10
    assert loaded.test.images.shape == (10000, 32, 32, 3)
    assert np.bincount(loaded.test.labels).tolist() == [1000] * 10
    assert loaded.class_names[:3] == ("airplane", "automobile", "bird")
    # The published channel means of the CIFAR-10 training set, in [0, 1]; the test set's differ by less than 0.01.
    means = loaded.test.images.mean((0, 1, 2)) / 255
    np.testing.assert_allclose(means, [0.4914, 0.4822, 0.4465], atol=0.01)
    source = tfds.data_source("cifar10", split="test", data_dir=str(shared / "data" / "tfds"))
    for i in (0, 1234, 9999):
        assert loaded.test.labels[i] == source[i]["label"]
        np.testing.assert_array_equal(loaded.test.images[i], source[i]["image"])
