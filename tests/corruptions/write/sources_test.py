"""Sources of written datasets: arrays, folders and tfds."""

import dataclasses
import functools
import io
import json
import os
import pathlib
import shutil
import sys
import tarfile
import zlib

import jax
import numpy as np
import pytest
import tensorflow_datasets as tfds
from PIL import Image

import corruptions
from corruptions import files
from corruptions.write import (
    Source,
    WriteError,
    __main__,
    from_arrays,
    from_folder,
    from_tfds,
    manifests,
    verify,
    write_dataset,
)
from data.corrupted import open_corrupted
from tests.corruptions.write.datasets import IMAGES, LABELS, expected_at_once
from tests.data import records
from tests.refusing import refuses


def save(path, image, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(path, **options)


def smooth(height, width):
    coarse = np.random.default_rng(height).integers(0, 256, (6, 7, 3), np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC))


def test_arrays_name_classes_so_that_they_sort_as_numbers():
    source = from_arrays(np.zeros((11, 16, 16, 3), np.uint8), np.arange(11))
    assert source.class_names[:2] == ("00", "01") and source.names[-1] == "10" and source.labels.dtype == np.int32
    refuses(lambda: from_arrays(IMAGES, LABELS, class_names=["a", "b"]), "0..2")
    refuses(lambda: from_arrays(IMAGES, LABELS + 2**32), "4294967298")


def test_folders_are_read_in_sorted_order(tmp_path):
    for i in range(6):
        save(tmp_path / f"{'ba'[i % 2]}/{5 - i}.png", IMAGES[i])
    source = from_folder(tmp_path)
    assert source.class_names == ("a", "b") and source.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert source.names == ("0", "2", "4", "1", "3", "5")
    assert np.array_equal(source.read(range(6)), IMAGES[[5, 3, 1, 4, 2, 0]])
    assert np.array_equal(source.read([4]), IMAGES[[2]])
    assert len(from_folder(tmp_path, limit=2)) == 2


@pytest.mark.parametrize(("height", "width"), [(80, 61), (61, 80), (57, 57), (40, 300)])
def test_preprocessing_is_that_of_the_published_sets(tmp_path, height, width):
    image = smooth(height, width)
    save(tmp_path / "a/x.png", image)

    def reference(size, box=None):
        return np.asarray(Image.fromarray(image).resize(size, Image.Resampling.BILINEAR, box=box, reducing_gap=None))

    read = lambda name, size: from_folder(tmp_path, preprocess=name, size=size).read(range(1))[0]  # noqa: E731
    assert np.array_equal(read("resize", 64), reference((64, 64)))
    # Shorter side 256 / 224 of 56 = 64, the longer one in proportion, rounded down, as torchvision's Resize(64).
    size = (64, int(64 * height / width)) if width <= height else (int(64 * width / height), 64)
    whole = reference(size)
    top, left = round((size[1] - 56) / 2), round((size[0] - 56) / 2)
    assert np.array_equal(read("imagenet", 56), whole[top : top + 56, left : left + 56])
    # 87.5 % of each side.
    high, wide = round(0.875 * height), round(0.875 * width)
    top, left = (height - high) // 2, (width - wide) // 2
    cut = Image.fromarray(image[top : top + high, left : left + wide])
    assert np.array_equal(read("inception", 30), np.asarray(cut.resize((30, 30), Image.Resampling.BILINEAR)))


def test_folders_that_do_not_fit(tmp_path):
    refuses(lambda: from_folder(tmp_path / "absent"), "no folder", kind=FileNotFoundError)
    refuses(lambda: from_folder(tmp_path), "class folders with images", kind=FileNotFoundError)
    save(tmp_path / "a/1.png", IMAGES[0])
    save(tmp_path / "a/2.png", smooth(40, 30))
    refuses(
        lambda: write_dataset(tmp_path / "out", from_folder(tmp_path, limit=2), corruptions="noc/hue"),
        "32x32 and 40x30 (",
        "2.png); choose a preprocess",
    )
    refuses(lambda: from_folder(tmp_path, preprocess="imagenet"), "at least 16 pixels")
    refuses(lambda: from_folder(tmp_path, size=32), "'keep', with preprocess 'none'")
    refuses(lambda: from_folder(tmp_path, preprocess="crop", size=32), "preprocess among none, imagenet")
    save(tmp_path / "a/1.jpg", IMAGES[0])
    refuses(lambda: from_folder(tmp_path), "'1' in class a")


SIZES = ((40, 30), (32, 32), (50, 70), (32, 32), (33, 90))


@pytest.mark.parametrize("layout", ["folders", "webdataset"])
def test_images_of_many_sizes_keep_them(layout, tmp_path, capsys):
    images = [smooth(*size) for size in SIZES]
    for i, image in enumerate(images):
        save(tmp_path / f"in/{'ab'[i > 2]}/{i}.png", image)
    flags = [f"--source={tmp_path / 'in'}", f"--out={tmp_path / 'out'}", "--size=keep", f"--layout={layout}"]
    flags += ["--corruptions=imagenet_c/contrast", "--severities=1,3", "--jpeg_quality=none", "--no-progress"]
    assert __main__.main(flags) == 0 and __main__.main([*flags, "--verify"]) == 0, capsys.readouterr().err
    assert verify(tmp_path / "out", everything=True) == []
    key = jax.random.fold_in(jax.random.key(0), zlib.crc32(b"imagenet_c/contrast"))
    expected = list(corruptions.corrupt_each(key, images, "imagenet_c/contrast", 3))
    if layout == "folders":
        paths = sorted((tmp_path / "out/contrast/3").rglob("*.png"))
    else:
        with tarfile.open(tmp_path / "out/contrast/3/00000.tar") as archive:
            paths = [io.BytesIO(archive.extractfile(m).read()) for m in archive.getmembers() if m.name.endswith(".png")]
        assert "5 images of their own sizes in 2 classes" in (tmp_path / "out/README.md").read_text()
    assert all(np.array_equal(np.asarray(Image.open(path)), image) for path, image in zip(paths, expected, strict=True))
    refuses(lambda: open_corrupted(tmp_path / "out"), "many sizes")


def test_images_of_many_sizes_have_one_table_which_the_manifest_names(tmp_path, capsys):
    images = [smooth(44, 60), smooth(48, 60)]
    for i, image in enumerate(images):
        save(tmp_path / f"in/a/{i}.png", image)
    fixed = ["--size=keep", "--layout=folders", "--jpeg_quality=none", "--no-progress", "--severities=3"]
    flags = [f"--source={tmp_path / 'in'}", *fixed, "--corruptions=imagenet_c/contrast"]
    key = jax.random.fold_in(jax.random.key(0), zlib.crc32(b"imagenet_c/contrast"))
    for given, table in (([], "imagenet"), (["--table=by_size"], "by_size"), (["--table=cifar"], "cifar")):
        out = tmp_path / table
        assert __main__.main([*flags, f"--out={out}", *given]) == 0, capsys.readouterr().err
        entry = json.loads((out / "manifest.json").read_text())["corruptions"]["imagenet_c/contrast"]
        assert entry["table"] == table
        for i, image in enumerate(images):
            own = corruptions.corrupt(key, image[None], "imagenet_c/contrast", 3, index=[i], table=table)[0]
            found = np.asarray(Image.open(out / f"contrast/3/a/{i}.png")).astype(int)
            assert np.abs(found - np.asarray(own)).max() <= 1
    # Version 0.2.0 took the tables by size and recorded none.
    path = tmp_path / "by_size/manifest.json"
    manifest = json.loads(path.read_text())
    manifest["corruptions"]["imagenet_c/contrast"] |= {"table": None, "options": {}}
    manifests.save(path.parent, manifest)
    assert __main__.main([*flags, f"--out={path.parent}"]) == 1
    assert "by_size" in capsys.readouterr().err
    assert __main__.main([*flags, f"--out={path.parent}", "--table=by_size"]) == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--layout=npy"],
            "--layout: expected the layout folders, parquet or webdataset",
        ),
        (["--preprocess=resize"], "a size of at least 16 pixels for preprocess 'resize', found 'keep'"),
    ],
)
def test_what_sizes_that_are_kept_do_not_go_with(flags, message, tmp_path, capsys):
    save(tmp_path / "in/a/1.png", IMAGES[0])
    assert __main__.main([f"--source={tmp_path / 'in'}", f"--out={tmp_path / 'out'}", "--size=keep", *flags]) == 1
    assert message in capsys.readouterr().err and not (tmp_path / "out").exists()


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_is_at_least_one(limit, tmp_path):
    for call in (from_folder, from_tfds):
        with pytest.raises(ValueError, match=f"expected a limit of at least 1, found {limit}"):
            call(str(tmp_path), limit=limit)


def test_a_damaged_image_is_named(tmp_path):
    for i in range(3):
        save(tmp_path / f"in/a/{i}.png", IMAGES[i])
    damaged = tmp_path / "in/a/2.png"
    damaged.write_bytes(damaged.read_bytes()[:500])
    refuses(
        lambda: write_dataset(tmp_path / "out", from_folder(tmp_path / "in"), corruptions="noc/hue"), "read as an image"
    )
    save(damaged, IMAGES[2])
    write_dataset(tmp_path / "out", from_folder(tmp_path / "in"), corruptions="noc/hue")
    write_dataset(tmp_path / "arrays", (IMAGES[:3], [0, 0, 0]), corruptions="noc/hue")
    assert (tmp_path / "out/hue.npy").read_bytes() == (tmp_path / "arrays/hue.npy").read_bytes()
    first, second = ({path.name for path in (tmp_path / folder).iterdir()} for folder in ("out", "arrays"))
    assert first == second  # nothing is left of the call that failed


def test_a_broken_link_and_a_name_that_is_no_text_are_named(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.png").symlink_to("nowhere")
    refuses(lambda: from_folder(tmp_path), "image (No such file", "remove it")
    (tmp_path / "a" / "x.png").unlink()
    Image.new("RGB", (16, 16)).save(tmp_path / "a" / "y.png")
    os.rename(tmp_path / "a" / "y.png", os.fsencode(tmp_path) + b"/a/caf\xe9.png")
    with pytest.raises(ValueError, match=r"caf\\udce9\.png cannot be read.*not valid UTF-8.*rename"):
        from_folder(tmp_path)


def test_a_changed_folder_is_another_source(tmp_path):
    save(tmp_path / "in/a/0.png", IMAGES[0])
    write_dataset(tmp_path / "out", from_folder(tmp_path / "in"), corruptions="noc/hue")
    save(tmp_path / "in/a/0.png", IMAGES[1], compress_level=0)
    refuses(
        lambda: write_dataset(tmp_path / "out", from_folder(tmp_path / "in"), corruptions="noc/hue"),
        "source.listing_sha256",
        kind=WriteError,
    )
    path = tmp_path / "in/a/1.bmp"
    save(path, IMAGES[2])
    stat, first = path.stat(), from_folder(tmp_path / "in").description
    save(path, IMAGES[3])  # of equal size, and of equal time
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    second = from_folder(tmp_path / "in").description
    assert first["listing_sha256"] == second["listing_sha256"] and first != second


def test_content_decides_whether_a_folder_is_the_source_not_its_place_or_its_times(tmp_path, monkeypatch):
    for i in range(4):
        save(tmp_path / f"in/{'ab'[i % 2]}/{i}.png", IMAGES[i])
    write_dataset(tmp_path / "out", from_folder(tmp_path / "in"), corruptions="noc/hue", severities=[0])
    here = (tmp_path / "out/manifest.json").read_bytes()
    shutil.copytree(tmp_path / "in", tmp_path / "there", copy_function=shutil.copy)  # other times
    for path in (tmp_path / "there").rglob("*.png"):
        os.utime(path, (1, 1))
    again = functools.partial(write_dataset, tmp_path / "out", corruptions=["noc/hue", "noc/contrast"], severities=[0])
    again(from_folder(tmp_path / "there"))
    written = json.loads((tmp_path / "out/manifest.json").read_text())
    assert written["source"] == json.loads(here)["source"] and written["corruptions"].keys() == {
        "noc/hue",
        "noc/contrast",
    }

    # Large sources: a sample of their bytes is compared, and the times of the files.
    monkeypatch.setattr(files, "WHOLE", 0)
    sampled = functools.partial(write_dataset, tmp_path / "sampled", corruptions="noc/hue", severities=[0])
    sampled(from_folder(tmp_path / "in"))
    with pytest.raises(
        WriteError, match=r"listing_sha256: (?s:.*)a copy must have the times of its files \(cp -a, rsync -a\)"
    ):
        sampled(from_folder(tmp_path / "there"))
    shutil.copytree(tmp_path / "in", tmp_path / "same_times")
    sampled(from_folder(tmp_path / "same_times"))
    monkeypatch.undo()

    (tmp_path / "there/a/0.png").rename(tmp_path / "there/a/1.png")
    with pytest.raises(WriteError, match=r"source\.names_sha256"):
        again(from_folder(tmp_path / "there"))
    (tmp_path / "there/a/1.png").rename(tmp_path / "there/a/0.png")
    save(tmp_path / "there/a/0.png", IMAGES[1])
    with pytest.raises(WriteError, match=r"source\.content_sha256"):
        again(from_folder(tmp_path / "there"))


def test_an_older_record_without_names_and_sizes_is_continued_where_the_listing_is_the_same(tmp_path):
    save(tmp_path / "in/a/0.png", IMAGES[0])
    out = functools.partial(write_dataset, tmp_path / "out", corruptions="noc/hue", severities=[0])
    out(from_folder(tmp_path / "in"))
    manifest = manifests.load(tmp_path / "out")
    del manifest["source"]["names_sha256"]
    manifests.save(tmp_path / "out", manifest)
    out(from_folder(tmp_path / "in"))
    shutil.copytree(tmp_path / "in", tmp_path / "there")
    out(from_folder(tmp_path / "there"))
    os.utime(tmp_path / "there/a/0.png", (1, 1))
    with pytest.raises(WriteError, match=r"source\.listing_sha256"):
        out(from_folder(tmp_path / "there"))


def write_tfds(root, shift=0, colour=0):
    """A tiny dataset, images of two sizes in `mixed`; `shift` moves labels, `colour` pixels."""
    splits = {
        "test": [{"image": image + np.uint8(colour)} for image in IMAGES],
        "mixed": [{"image": smooth(40 + i, 50)} for i in range(12)],
    }
    for rows in splits.values():
        for i, row in enumerate(rows):
            row |= {"label": (i + shift) % 3, "file_name": f"val_{i}.png"}
    label = tfds.features.ClassLabel(names=["cat", "dog", "eel"])
    return records.write(root, "jaxc_tiny", splits, file_name=tfds.features.Text(), label=label)


@pytest.fixture(scope="module")
def tfds_root(tmp_path_factory):
    return write_tfds(tmp_path_factory.mktemp("tfds"))


@pytest.mark.parametrize("change", [{"shift": 1}, {"colour": 7}])
def test_a_tfds_dataset_that_was_replaced_is_another_source(tfds_root, tmp_path, change):
    write_dataset(tmp_path / "out", from_tfds("jaxc_tiny", data_dir=tfds_root), corruptions="noc/hue", severities=[1])
    other = from_tfds("jaxc_tiny", data_dir=write_tfds(tmp_path / "other", **change))
    refuses(
        lambda: write_dataset(tmp_path / "out", other, corruptions="noc/contrast", severities=[1]),
        "source.content_sha256: stored",
        kind=WriteError,
    )


def test_tfds_without_tensorflow(tfds_root, tmp_path):
    source = from_tfds("jaxc_tiny", data_dir=tfds_root)
    assert source.class_names == ("cat", "dog", "eel") and source.names[11] == "val_11"
    write_dataset(tmp_path / "tfds", source, corruptions="noc/hue", seed=2)
    write_dataset(tmp_path / "arrays", (IMAGES, LABELS), corruptions="noc/hue", seed=2)
    for name in ("hue.npy", "labels.npy"):
        assert (tmp_path / "tfds" / name).read_bytes() == (tmp_path / "arrays" / name).read_bytes()
    stored = json.loads((tmp_path / "tfds/manifest.json").read_text())["source"]
    assert stored["kind"] == "tfds" and stored["name"] == "jaxc_tiny/1.0.0" and stored["split"] == "test"
    mixed = from_tfds("jaxc_tiny", split="mixed", data_dir=tfds_root, preprocess="imagenet", size=32, limit=5)
    assert mixed.read(range(5)).shape == (5, 32, 32, 3) and len(mixed) == 5
    assert "tensorflow" not in sys.modules


def test_tfds_that_is_not_there(tfds_root, tmp_path):
    refuses(lambda: from_tfds("jaxc_absent", data_dir=tmp_path), "cannot read 'jaxc_absent'", kind=FileNotFoundError)
    refuses(
        lambda: from_tfds("jaxc_tiny", split="train", data_dir=tfds_root),
        "read 'jaxc_tiny', split 'train'",
        kind=FileNotFoundError,
    )


HOSTILE = ("../../x", "/etc/x", "a/b", "a_b", ".a", "..", "", "x\n", "back\\slash", "y" * 300, "z.png/z", "\udc80")


@pytest.mark.parametrize("layout", ["npy", "folders", "parquet", "webdataset"])
@pytest.mark.parametrize("number", [1, len(HOSTILE)])
def test_names_of_others_stay_in_the_folder_and_are_read_back(layout, number, tmp_path):
    """Class names and image names that lead elsewhere, or that readers would not see."""
    labels = np.arange(24) % 12
    images = np.stack([np.full((32, 32, 3), 20 * label + 10, np.uint8) for label in labels])
    classes = HOSTILE if number > 1 else tuple("abcdefghijkl")
    names = [HOSTILE[i // 2 % number] for i in range(24)]  # with one of them, the two images of a class have one name
    source = Source(
        lambda positions: images[list(positions)], labels.astype(np.int32), names, classes, {"kind": "test"}
    )
    folder = tmp_path / "deep" / "er" / "out"
    write_dataset(folder, source, corruptions="noc/hue", severities=[1], layout=layout, jpeg_quality=None)
    assert [path.name for path in tmp_path.rglob("*") if not path.is_relative_to(folder)] == ["deep", "er"]
    assert verify(folder, everything=True) == []
    opened = open_corrupted(folder)
    assert opened.class_names == source.class_names and len(set(source.class_names)) == 12
    ((pixels, found),) = opened.batches("noc/hue", 1, batch_size=24)
    paths = [(label, pathlib.PurePath(f"{name}.png")) for label, name in zip(labels, source.names)]
    order = sorted(range(24), key=paths.__getitem__) if layout == "folders" else np.arange(24)
    assert np.array_equal(found, labels[order])
    assert np.array_equal(pixels, expected_at_once(images, "noc/hue", 1, 0)[order])


def test_safe_names_stay_as_they_are_and_others_stay_distinct(caplog):
    classes = ("a_b", "a/b", "tench, Tinca tinca", "été", "a b.c", "a_b-2", "a\0b")
    names = ("train/n01/x", "x", "x", "../x", "a/.b", "..", "y.png")
    labels = np.array([0, 0, 0, 1, 1, 1, 1], np.int32)
    source = Source(lambda positions: None, labels, names, classes, {})
    assert source.class_names == ("a_b", "a_b-3", "tench, Tinca tinca", "été", "a b.c", "a_b-2", "a_b-4")
    assert source.names == ("train/n01/x", "x", "x-2", "_./x", "a/_b", "_.", "y.png")
    assert "2 names are no safe file names, and are changed (the first: 'a/b' to 'a_b')" in caplog.text
    again = dataclasses.replace(source)
    assert again.class_names == source.class_names and again.names == source.names


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("PIL", "reading images needs Pillow.*pip install pillow"),
        ("tensorflow_datasets", "needs tensorflow-datasets.*pip install tensorflow-datasets array-record$"),
    ],
)
def test_missing_packages_are_named_with_the_command_that_installs_them(module, message, tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError, match=message):
        from_folder(tmp_path) if module == "PIL" else from_tfds("cifar10")
