"""Preparation of ImageNet, from a folder or from tfds: what is stored, what is left out, what is refused."""

import functools
import json
import os
import shutil

import numpy as np
import pytest
import tensorflow_datasets as tfds
from PIL import Image

import data
import data.prepare
from data.imagenet import prepare
from runtime.settings import WorkdirError
from tests.data import records
from tests.data.imagenet import trees
from tests.data.imagenet.trees import SMALL
from tests.refusing import refuses


def test_every_image_equals_pillows_and_damaged_ones_are_listed_with_the_reason(tree, prepared):
    loaded = data.load("imagenet100", data_dir=prepared, image_size=16)
    assert loaded.class_names == tuple(trees.CLASSES)
    assert loaded.train.images.shape == (198, 16, 16, 3) and loaded.test.images.shape == (100, 16, 16, 3)
    assert sorted(set(range(200)) - set(loaded.train.index.tolist())) == [trees.TRUNCATED, trees.NO_IMAGE]
    for split, folder in ((loaded.train, "train"), (loaded.test, "val")):
        files = trees.paths(tree, folder)
        for image, label, index in zip(split.images[:], split.labels, split.index):
            np.testing.assert_array_equal(image, trees.reference(files[index], 16, 18), str(files[index]))
            assert files[index].parent.name == trees.CLASSES[label]
    files = trees.paths(tree, "train")
    first, second = (prepared / "imagenet100" / "16" / "damaged.txt").read_text().splitlines()
    assert first.startswith(f"{files[trees.TRUNCATED]} (") and second.startswith(f"{files[trees.NO_IMAGE]} (")
    assert "UnidentifiedImageError" in second
    assert loaded.provenance["train"]["damaged"] == 2 and loaded.provenance["test"]["damaged"] == 0
    json.dumps(loaded.provenance)


def test_broken_links_and_names_that_are_no_text_are_damaged_images(tree, tmp_path):
    root = shutil.copytree(tree / "val", tmp_path / "tree" / "val").parent
    first, second = trees.paths(root, "val")[:2]
    first.unlink()
    first.symlink_to("nowhere")
    os.rename(second, os.fsencode(second.parent) + b"/caf\xe9.JPEG")
    out = prepare.prepare("imagenet100", root, tmp_path, max_damaged=0.02, **SMALL)
    lines = (out / "damaged.txt").read_text().splitlines()
    assert lines[0].startswith(f"{first} (FileNotFoundError")
    assert lines[1] == rf"{second.parent}/caf\udce9.JPEG (its name is not valid UTF-8)" and len(lines) == 2
    prepare.prepare("imagenet100", root, tmp_path, max_damaged=0.02, **SMALL)  # still the same source


def test_too_many_damaged_images_stop_it(tree, tmp_path):
    with pytest.raises(ValueError, match=r"2 of 200 images are damaged.*at most 0\.9%.*not an image|UnidentifiedImage"):
        prepare.prepare("imagenet100", tree, tmp_path, max_damaged=0.009, **SMALL)
    refuses(lambda: data.load("imagenet100", data_dir=tmp_path, image_size=16), "nothing", kind=FileNotFoundError)


def squashed(path):
    """The whole image at 16 pixels, by Pillow."""
    return np.asarray(Image.open(path).convert("RGB").resize((16, 16), Image.Resampling.BILINEAR))


@pytest.mark.parametrize(
    "options, name, expected, found",
    [
        ({"train_size": 20}, "16-train20", lambda path: trees.reference(path, 20, 20), r"\..*\n.*--image_size=16$"),
        # Asked for in the other way it is refused, with both remedies.
        (
            {"resize": "squash"},
            "16-squash",
            squashed,
            r"\. (.|\n)*--image_size=16\nor read .*--config.dataset.resize=squash",
        ),
    ],
)
def test_larger_and_squashed_images_are_stores_of_their_own(tree, tmp_path, options, name, expected, found):
    assert prepare.prepare("imagenet100", tree, tmp_path, **options, **SMALL).name == name
    loaded, from_tree = (data.load("imagenet100", data_dir=at, image_size=16, **options) for at in (tmp_path, tree))
    of_test = squashed if "resize" in options else lambda path: trees.reference(path, 16, 18)
    for split, folder, shown in ((loaded.train, "train", expected), (loaded.test, "val", of_test)):
        files = trees.paths(tree, folder)
        for image, index in list(zip(split.images[:], split.index))[::7]:
            np.testing.assert_array_equal(image, shown(files[index]), str(files[index]))
    assert loaded.image_shape == (16, 16, 3)
    np.testing.assert_array_equal(from_tree.train.images, loaded.train.images[:])
    preprocess = loaded.provenance["made_from"]["preprocess"]
    assert from_tree.provenance["preprocess"] == preprocess
    assert preprocess == "both sides 16, bilinear (Pillow)" or "resize" not in options
    with pytest.raises(FileNotFoundError, match=rf"size 16, found {name}{found}"):
        data.load("imagenet100", data_dir=tmp_path, image_size=16)


def test_a_store_made_in_the_other_way_is_refused_wherever_it_lies(copy):
    folder = copy / "imagenet100"
    (folder / "16").rename(folder / "16-squash")
    refuses(lambda: data.load("imagenet100", data_dir=copy, image_size=16, resize="squash"), "'crop'")


def test_the_default_folder_is_the_one_that_is_written(copy, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("TFDS_DATA_DIR", raising=False)
    copy.rename(tmp_path / "tensorflow_datasets")
    assert len(data.load("imagenet100", image_size=16).test) == len(
        data.load("imagenet100", data_dir=tmp_path / "tensorflow_datasets", image_size=16).test
    )


def test_a_folder_of_other_tfds_datasets_is_no_imagenet(tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    (tmp_path / "cifar10").mkdir()
    refuses(lambda: data.load("imagenet100"), "holds train/ and val/")


def test_a_prepared_store_refuses_what_it_cannot_apply(prepared):
    load = functools.partial(data.load, "imagenet100", data_dir=prepared, image_size=16)
    refuses(lambda: load(test_fraction=0.5), "whose splits are fixed")
    assert len(load(max_damaged=0.5).test) == 100


def test_limits_and_devices_read_the_same_images(prepared):
    whole = data.load("imagenet100", data_dir=prepared, image_size=16)
    some = data.load("imagenet100", data_dir=prepared, image_size=16, train_limit=150, test_limit=7)
    assert np.bincount(some.train.labels).max() == 2 and len(some.test) == 7
    position = np.searchsorted(whole.train.index, some.train.index)
    np.testing.assert_array_equal(some.train.images, whole.train.images[:][position])
    np.testing.assert_array_equal(whole.train.to_device().images, whole.train.images[:])


def test_other_settings_or_files_need_another_folder(tree, copy):
    refuses(
        lambda: prepare.prepare("imagenet100", tree, copy, **SMALL | {"shard_images": 9}),
        "other settings",
        "stored 8, asked 9",
        kind=WorkdirError,
    )
    extra = tree / "train" / trees.CLASSES[0] / "new.JPEG"
    shutil.copy(trees.paths(tree, "val")[0], extra)
    try:
        refuses(
            lambda: prepare.prepare("imagenet100", tree, copy, **SMALL),
            "source.listing_sha256: stored",
            kind=WorkdirError,
        )
    finally:
        extra.unlink()


def test_wrong_numbers_of_classes(tree, tmp_path, capsys):
    for missing in (trees.CLASSES[:99], trees.CLASSES[:1]):
        root = tmp_path / str(len(missing))
        for name in missing:
            (root / "val" / name).mkdir(parents=True)
        with pytest.raises(ValueError, match=rf"1000 or 100 class folders for imagenet100, found {len(missing)}"):
            prepare.prepare("imagenet100", root, tmp_path / "out", **SMALL)
    assert data.prepare.main(["--dataset=imagenet", f"--source={tree}", f"--data_dir={tmp_path / 'out'}"]) == 1
    assert "expected 1000 class folders for imagenet, found 100" in capsys.readouterr().err


def test_every_tenth_class_of_a_whole_imagenet(tmp_path):
    for split in ("train", "val"):
        for name in NAMES:
            (tmp_path / "tree" / split / name).mkdir(parents=True)
            if name.endswith(("0", "5")):
                image, form = trees.photograph(np.random.default_rng(int(name[1:])), 4)
                image.save(tmp_path / "tree" / split / name / "x.JPEG", form)
    prepare.prepare("imagenet100", tmp_path / "tree", tmp_path / "out", **SMALL | {"shard_images": 64})
    for folder in ("out", "tree"):  # the store, and what it was made from
        found = data.load("imagenet100", data_dir=tmp_path / folder, image_size=16)
        assert found.class_names == tuple(NAMES[::10]) and found.test.labels.tolist() == list(range(100))
    prepare.prepare("imagenet", tmp_path / "tree", tmp_path / "out", **SMALL | {"shard_images": 64})
    assert len(data.load("imagenet", data_dir=tmp_path / "out", image_size=16).train) == 200


def test_a_source_is_needed(tmp_path, capsys):
    assert data.prepare.main(["--dataset=imagenet100", f"--data_dir={tmp_path}"]) == 1
    assert "needs --source" in capsys.readouterr().err
    assert data.prepare.main(["--dataset=imagenet100", f"--data_dir={tmp_path}", "--verify"]) == 1
    assert "expected a finished store" in capsys.readouterr().err


def test_real_photographs(shared, tmp_path):
    folder = shared / "data" / "imagenet100_samples"
    out = prepare.prepare("imagenet100", folder, tmp_path, test_fraction=1.0, workers=1)
    loaded = data.load("imagenet100", data_dir=tmp_path)
    assert loaded.test.images.shape == (100, 224, 224, 3) and len(loaded.train) == 0
    for number, path in enumerate(sorted(folder.glob("*/*.png"))[:20]):
        np.testing.assert_array_equal(loaded.test.images[number], trees.reference(path, 224, 256))
    assert (out / "damaged.txt").read_text() == ""


# A tiny imagenet2012 that tfds itself writes.
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
