"""ImageNet prepared from tfds: a tiny imagenet2012 written by tfds itself."""

import json
import shutil

import numpy as np
import pytest
import tensorflow_datasets as tfds
from PIL import Image

import data
import data.prepare
from data.imagenet import prepare
from tests.data import records
from tests.data.imagenet import trees

NAMES = [f"n{i:08d}" for i in range(1000)]
LABELS = {"train": [10, 990, 15, 0, 11, 30, 20, 20, 9, 500, 500, 999], "validation": [0, 7, 70]}


def picture(split, number):
    return trees.photograph(np.random.default_rng([len(split), number]), number)[0].convert("RGB")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    rows = {
        split: [{"image": np.asarray(picture(split, number)), "label": label} for number, label in enumerate(labels)]
        for split, labels in LABELS.items()
    }
    root = tmp_path_factory.mktemp("tfds")
    return records.write(root, "imagenet2012", rows, version="5.1.0", label=tfds.features.ClassLabel(names=NAMES))


@pytest.mark.parametrize(("name", "stride"), [("imagenet100", 10), ("imagenet", 1)])
def test_wanted_records_are_stored(source, tmp_path, name, stride):
    # imagenet100 reads ten times as many records for a shard: 12 records of shards of 1 image are two shards.
    given = [source, source / "imagenet2012" / "5.1.0"][stride == 1]
    out = prepare.prepare(name, given, tmp_path, image_size=16, workers=1, shard_images=1)
    assert len(list((out / "shards").glob("train-*.npy"))) == (2 if stride == 10 else 12)
    loaded = data.load(name, data_dir=tmp_path, image_size=16)
    assert loaded.class_names == tuple(NAMES[::stride])
    for split, theirs in ((loaded.train, "train"), (loaded.test, "validation")):
        kept = [number for number, label in enumerate(LABELS[theirs]) if label % stride == 0]
        assert split.labels.tolist() == [LABELS[theirs][number] // stride for number in kept]
        assert split.index.tolist() == list(range(len(kept)))
        for image, number in zip(split.images[:], kept):
            np.testing.assert_array_equal(image, trees.reference(picture(theirs, number), 16, 18))


def test_other_file_formats_are_named(source, tmp_path, capsys):
    folder = shutil.copytree(source / "imagenet2012" / "5.1.0", tmp_path / "imagenet2012" / "5.1.0")
    info = json.loads((folder / "dataset_info.json").read_text())
    (folder / "dataset_info.json").write_text(json.dumps(info | {"fileFormat": "tfrecord"}))
    assert data.prepare.main(["--dataset=imagenet", f"--source={tmp_path}", f"--data_dir={tmp_path}"]) == 1
    assert "stored as tfrecord, expected array_record" in capsys.readouterr().err


def test_truncated_records_are_named(source, tmp_path, monkeypatch):
    opened, seen = Image.open, []

    def sometimes(file, *arguments):
        seen.append(file)
        if len(seen) == 4:
            file.truncate(len(file.getvalue()) // 2)
        return opened(file, *arguments)

    monkeypatch.setattr(Image, "open", sometimes)
    out = prepare.prepare("imagenet", source, tmp_path, image_size=16, workers=1, max_damaged=0.1)
    assert (out / "damaged.txt").read_text().startswith("train record 3 (")
    assert data.load("imagenet", data_dir=tmp_path, image_size=16).train.index.tolist() == [0, 1, 2, *range(4, 12)]
