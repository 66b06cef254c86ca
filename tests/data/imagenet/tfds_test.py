"""ImageNet prepared from tfds: a tiny imagenet2012 written by tfds itself."""

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow_datasets as tfds
from PIL import Image

import data
import data.prepare
from data.imagenet import prepare
from tests.data.imagenet import trees

NAMES = [f"n{i:08d}" for i in range(1000)]
LABELS = {"train": [10, 990, 15, 0, 11, 30, 20, 20, 9, 500, 500, 999], "validation": [0, 7, 70]}


def encoded(split, number):
    image, form = trees.photograph(np.random.default_rng([len(split), number]), number)
    file = io.BytesIO()
    image.convert("RGB").save(file, form)
    file.seek(0)
    return file


class Imagenet2012(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    """Records as the real one's."""

    __module__ = "imagenet2012"  # else tfds looks for its code as a resource of this package
    VERSION = tfds.core.Version("5.1.0")
    name = "imagenet2012"
    pkg_dir_path = Path(__file__).parent

    def _info(self):
        features = {"image": tfds.features.Image(encoding_format="jpeg"), "file_name": tfds.features.Text()}
        features["label"] = tfds.features.ClassLabel(names=NAMES)
        return tfds.core.DatasetInfo(
            builder=self, description="Noise.", features=tfds.features.FeaturesDict(features), disable_shuffling=True
        )

    def _split_generators(self, _):
        return {split: self._generate_examples(split) for split in LABELS}

    def _generate_examples(self, split):
        for number, label in enumerate(LABELS[split]):
            yield number, {"image": encoded(split, number), "file_name": f"{number}.JPEG", "label": label}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    root = tmp_path_factory.mktemp("tfds")
    Imagenet2012(data_dir=str(root), file_format="array_record").download_and_prepare()
    return root


def check(loaded, split, theirs, stride):
    kept = [number for number, label in enumerate(LABELS[theirs]) if label % stride == 0]
    assert split.labels.tolist() == [LABELS[theirs][number] // stride for number in kept]
    assert split.index.tolist() == list(range(len(kept)))
    for image, number in zip(split.images[:], kept):
        np.testing.assert_array_equal(image, trees.reference(encoded(theirs, number), 16, 18))


@pytest.mark.parametrize(("name", "stride"), [("imagenet100", 10), ("imagenet", 1)])
def test_wanted_records_are_stored(source, tmp_path, name, stride):
    # Of imagenet100 a shard is read from ten times as many records: 12 records of shards of 1 image are two shards.
    given = [source, source / "imagenet2012" / "5.1.0"][stride == 1]
    out = prepare.prepare(name, given, tmp_path, image_size=16, workers=1, shard_images=1)
    assert len(list((out / "shards").glob("train-*.npy"))) == (2 if stride == 10 else 12)
    loaded = data.load(name, data_dir=tmp_path, image_size=16)
    assert loaded.class_names == tuple(NAMES[::stride])
    check(loaded, loaded.train, "train", stride)
    check(loaded, loaded.test, "validation", stride)


def test_other_file_formats_are_named(source, tmp_path, capsys):
    folder = shutil.copytree(source / "imagenet2012" / "5.1.0", tmp_path / "imagenet2012" / "5.1.0")
    info = json.loads((folder / "dataset_info.json").read_text())
    (folder / "dataset_info.json").write_text(json.dumps(info | {"fileFormat": "tfrecord"}))
    assert data.prepare.main(["--dataset=imagenet", f"--source={tmp_path}", f"--data_dir={tmp_path}"]) == 1
    assert "stored as tfrecord, expected array_record" in capsys.readouterr().err


def test_truncated_records_are_named(source, tmp_path, monkeypatch):
    whole = Image.open

    def sometimes(file, *arguments):
        content = file.getvalue()
        damaged = content == encoded("train", 3).getvalue()
        return whole(io.BytesIO(content[: len(content) // 2]) if damaged else file, *arguments)

    monkeypatch.setattr(Image, "open", sometimes)
    given = {"image_size": 16, "workers": 1, "max_damaged": 0.1}
    out = prepare.prepare("imagenet", source, tmp_path, **given)
    assert (out / "damaged.txt").read_text().startswith("train record 3 (")
    assert data.load("imagenet", data_dir=tmp_path, image_size=16).train.index.tolist() == [0, 1, 2, *range(4, 12)]
