"""Preparation of ImageNet: what is stored, what is left out, and what happens when it is
interrupted.
"""

import dataclasses
import errno
import json
import os
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
from PIL import Image

import data
import data.prepare
from data import npy, union
from data.imagenet import prepare, store
from data.imagenet.prepare import PrepareError
from runtime.settings import WorkdirError
from tests.data.imagenet import trees

SMALL = {"image_size": 16, "workers": 1, "shard_images": 8}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return trees.write(tmp_path_factory.mktemp("imagenet"))


@pytest.fixture(scope="module")
def prepared(tree, tmp_path_factory):
    out = tmp_path_factory.mktemp("prepared")
    prepare.prepare("imagenet100", tree, out, **SMALL)
    return out


@pytest.fixture
def copy(prepared, tmp_path):
    return shutil.copytree(prepared, tmp_path / "copy")


def shards(out):
    return sorted((out / "imagenet100" / "16" / "shards").glob("*.npy"))


def content(out):
    """{file: bytes} of all that a store consists of."""
    folder = out / "imagenet100" / "16"
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_image_equals_pillows(tree, prepared):
    loaded = data.load("imagenet100", data_dir=prepared, image_size=16)
    assert loaded.class_names == tuple(trees.CLASSES)
    assert loaded.train.images.shape == (198, 16, 16, 3) and loaded.test.images.shape == (100, 16, 16, 3)
    assert sorted(set(range(200)) - set(loaded.train.index.tolist())) == [trees.TRUNCATED, trees.NO_IMAGE]
    for split, folder in ((loaded.train, "train"), (loaded.test, "val")):
        files = trees.paths(tree, folder)
        for image, label, index in zip(split.images[:], split.labels, split.index):
            np.testing.assert_array_equal(image, trees.reference(files[index], 16, 18), str(files[index]))
            assert files[index].parent.name == trees.CLASSES[label]


def test_damaged_images_are_listed_with_the_reason(tree, prepared):
    files = trees.paths(tree, "train")
    first, second = (prepared / "imagenet100" / "16" / "damaged.txt").read_text().splitlines()
    assert first.startswith(f"{files[trees.TRUNCATED]} (") and second.startswith(f"{files[trees.NO_IMAGE]} (")
    assert "UnidentifiedImageError" in second
    loaded = data.load("imagenet100", data_dir=prepared, image_size=16)
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
    prepare.prepare("imagenet100", root, tmp_path, max_damaged=0.02, **SMALL)  # the same source, for all that


def test_too_many_damaged_images_stop_it(tree, tmp_path):
    with pytest.raises(ValueError, match=r"2 of 200 images are damaged.*at most 0\.9%.*not an image|UnidentifiedImage"):
        prepare.prepare("imagenet100", tree, tmp_path, max_damaged=0.009, **SMALL)
    with pytest.raises(FileNotFoundError, match=r"no finished imagenet100 of size 16, found nothing"):
        data.load("imagenet100", data_dir=tmp_path, image_size=16)


def test_larger_training_images(tree, tmp_path):
    prepare.prepare("imagenet100", tree, tmp_path, train_size=20, **SMALL)
    loaded = data.load("imagenet100", data_dir=tmp_path, image_size=16, train_size=20)
    assert loaded.train.images.shape[1:] == (20, 20, 3) and loaded.image_shape == (16, 16, 3)
    files = trees.paths(tree, "train")
    for position in (0, 50, 197):
        expected = trees.reference(files[loaded.train.index[position]], 20, 20)
        np.testing.assert_array_equal(loaded.train.images[position], expected)
    from_tree = data.load("imagenet100", data_dir=tree, image_size=16, train_size=20)
    np.testing.assert_array_equal(from_tree.train.images, loaded.train.images[:])
    with pytest.raises(FileNotFoundError, match=r"size 16, found 16-train20.*\n.*--image_size=16$"):
        data.load("imagenet100", data_dir=tmp_path, image_size=16)


def test_squashed_images_are_a_store_of_their_own(tree, tmp_path):
    out = prepare.prepare("imagenet100", tree, tmp_path, resize="squash", **SMALL)
    assert out.name == "16-squash"
    options = {"data_dir": tmp_path, "image_size": 16, "resize": "squash"}
    loaded = data.load("imagenet100", **options)
    for split, folder in ((loaded.train, "train"), (loaded.test, "val")):
        files = trees.paths(tree, folder)
        for image, index in list(zip(split.images[:], split.index))[::7]:
            whole = Image.open(files[index]).convert("RGB").resize((16, 16), Image.Resampling.BILINEAR)
            np.testing.assert_array_equal(image, np.asarray(whole), str(files[index]))
    assert loaded.provenance["made_from"]["preprocess"] == "both sides 16, bilinear (Pillow)"
    from_tree = data.load("imagenet100", **options | {"data_dir": tree})
    np.testing.assert_array_equal(from_tree.train.images, loaded.train.images[:])
    assert from_tree.provenance["preprocess"] == loaded.provenance["made_from"]["preprocess"]
    # Asked for in the other way it is refused, with both remedies.
    other = r"size 16, found 16-squash\. (.|\n)*--image_size=16\nor read .*--config.dataset.resize=squash"
    with pytest.raises(FileNotFoundError, match=other):
        data.load("imagenet100", data_dir=tmp_path, image_size=16)


def test_a_store_made_in_the_other_way_is_refused_wherever_it_lies(copy):
    folder = copy / "imagenet100"
    (folder / "16").rename(folder / "16-squash")
    with pytest.raises(ValueError, match=r"resize 'squash', found 'crop'(.|\n)*--image_size=16 --resize=squash\n"):
        data.load("imagenet100", data_dir=copy, image_size=16, resize="squash")
    with pytest.raises(ValueError, match=r"expected resize with image_folder.* only, found it with shapes"):
        data.load("shapes", resize="squash")


def test_limits_and_devices_read_the_same_images(prepared):
    whole = data.load("imagenet100", data_dir=prepared, image_size=16)
    some = data.load("imagenet100", data_dir=prepared, image_size=16, train_limit=150, test_limit=7)
    assert np.bincount(some.train.labels).max() == 2 and len(some.test) == 7
    position = np.searchsorted(whole.train.index, some.train.index)
    np.testing.assert_array_equal(some.train.images, whole.train.images[:][position])
    np.testing.assert_array_equal(whole.train.to_device().images, whole.train.images[:])


def test_a_killed_run_continues_and_keeps_what_is_finished(tree, prepared, tmp_path):
    process = subprocess.Popen(
        trees.command(tree, tmp_path, "--workers=2"), cwd=trees.ROOT, env=os.environ | {"JAX_PLATFORMS": "cpu"}
    )
    records = tmp_path / "imagenet100" / "16" / "shards"
    while process.poll() is None and len(list(records.glob("*.json"))) < 3:
        time.sleep(0.002)
    workers = [int(pid) for pid in children(process.pid)]
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (records.parent / store.META).exists(), "the run was over before it was killed"
    assert workers
    deadline = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{pid}") and not zombie(pid) for pid in workers):
        assert time.monotonic() < deadline, "workers outlive the killed run"
        time.sleep(0.05)
    # The record comes last: a shard without one is made again.
    finished = {path: path.with_suffix(".npy").stat().st_mtime_ns for path in records.glob("*.json")}
    assert finished
    (records / ".part-train-00099.npy.x").write_bytes(b"half a shard")
    done = trees.run(tree, tmp_path, "--workers=2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(records.parent)
    assert all(path.with_suffix(".npy").stat().st_mtime_ns == then for path, then in finished.items())
    assert content(tmp_path) == content(prepared)


def children(pid):
    path = f"/proc/{pid}/task/{pid}/children"
    return open(path).read().split() if os.path.exists(path) else pytest.skip("needs /proc/PID/task/PID/children")


def zombie(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_full_disk_is_named_and_the_run_continues(tree, prepared, tmp_path, monkeypatch):
    left, append = [50], npy.Writer.append

    def limited(self, piece):
        left[0] -= len(piece)
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(self, piece)

    monkeypatch.setattr(npy.Writer, "append", limited)
    with pytest.raises(PrepareError, match=r"disk is full \(No space left.*free space, then repeat the command"):
        prepare.prepare("imagenet100", tree, tmp_path, **SMALL)
    kept = {path: path.stat().st_mtime_ns for path in shards(tmp_path)}
    assert len(kept) == 6  # 50 images are six shards of 8, 1 of them damaged, and a piece
    monkeypatch.undo()
    prepare.prepare("imagenet100", tree, tmp_path, **SMALL)
    assert all(path.stat().st_mtime_ns == then for path, then in kept.items())
    assert content(tmp_path) == content(prepared)


def test_free_space_is_checked_before_anything_is_written(tree, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=300 * 16 * 16 * 3 - 1)
    monkeypatch.setattr(prepare.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(PrepareError, match=r"0\.0 GB of free space for 38 shards"):
        prepare.prepare("imagenet100", tree, tmp_path, **SMALL)
    assert not shards(tmp_path)


def test_a_changed_byte_is_found_and_mended(tree, prepared, copy):
    path = shards(copy)[5]
    whole = bytearray(path.read_bytes())
    whole[-7] ^= 1
    path.write_bytes(whole)
    arguments = ["--dataset=imagenet100", f"--data_dir={copy}", "--image_size=16", "--verify"]
    [line] = store.problems(copy / "imagenet100" / "16")
    assert line.startswith(f"{path}: expected sha256") and f"--data_dir={copy} --image_size=16 --verify" in line
    assert store.problems(prepared / "imagenet100" / "16") == []
    assert trees.run(tree, copy, "--workers=1").returncode == 0  # without --verify only sizes are looked at
    found = subprocess.run([*trees.command(tree, copy)[:3], *arguments], cwd=trees.ROOT, capture_output=True, text=True)
    assert found.returncode == 1 and path.name in found.stderr and "expected sha256" in found.stderr, found.stderr
    assert f"--data_dir={copy} --image_size=16 --verify" in found.stderr
    assert data.prepare.main([*arguments, f"--source={tree}", "--workers=1", "--shard_images=8"]) == 0
    assert content(copy) == content(prepared)


def test_a_changed_pixel_is_found_when_it_is_read(copy):
    path = shards(copy)[5]  # of test: positions 40 to 47
    whole = bytearray(path.read_bytes())
    whole[-7] ^= 1
    path.write_bytes(whole)
    for read in (
        lambda given: given.test.images[40],
        lambda given: given.test.images[35:50],
        lambda given: np.asarray(given.test.images),
        lambda given: given.test.to_device(),
        lambda given: union.union(given, dataclasses.replace(given, train=given.test)).train.images[198 + 47],
    ):
        loaded = data.load("imagenet100", data_dir=copy, image_size=16)
        loaded.test.images[:40]
        loaded.test.images[48:]
        with pytest.raises(ValueError, match=rf"{path.name}: images 0 to 7 changed(.|\n)*--data_dir={copy}.*--verify"):
            read(loaded)


def test_checksums_that_are_not_those_of_the_pixels_are_found(tree, prepared, copy):
    meta = copy / "imagenet100" / "16" / store.META
    text = meta.read_text()
    first = json.loads(text)["splits"]["test"]["shards"][0]["blocks"]["checksums"]
    meta.write_text(text.replace(first, first[::-1]))
    [line] = store.problems(meta.parent)
    assert "test-00000.npy: its checksums of blocks in store.json are not those of its pixels" in line
    arguments = ["--dataset=imagenet100", f"--data_dir={copy}", "--image_size=16", "--verify"]
    assert data.prepare.main([*arguments, f"--source={tree}", "--workers=1", "--shard_images=8"]) == 0
    assert content(copy) == content(prepared)


def without_checksums(out):
    """Makes the store one of before there were any."""
    for path in (out / "imagenet100" / "16" / store.META, *(path.with_suffix(".json") for path in shards(out))):
        record = json.loads(path.read_text())
        for one in (
            [s for split in record["splits"].values() for s in split["shards"]] if "splits" in record else [record]
        ):
            del one["blocks"]
        path.write_text(json.dumps(record, indent=2) + "\n")


def test_an_older_store_is_read_and_given_checksums(tree, prepared, copy, caplog):
    without_checksums(copy)
    loaded = data.load("imagenet100", data_dir=copy, image_size=16)
    expected = data.load("imagenet100", data_dir=prepared, image_size=16).test.images
    np.testing.assert_array_equal(loaded.test.images[:], expected[:])
    assert "38 files have no checksums of blocks" in caplog.text and f"--data_dir={copy}" in caplog.text
    stamps = {path: path.stat().st_mtime_ns for path in shards(copy)}
    assert data.prepare.main(["--dataset=imagenet100", f"--data_dir={copy}", "--image_size=16", "--verify"]) == 0
    assert content(copy) == content(prepared)
    assert stamps == {path: path.stat().st_mtime_ns for path in shards(copy)}  # nothing was decoded again
    caplog.clear()
    data.load("imagenet100", data_dir=copy, image_size=16)
    assert not caplog.text


def test_a_file_of_another_size_is_found_on_loading(copy):
    path = shards(copy)[2]
    os.truncate(path, path.stat().st_size - 1)
    shards(copy)[3].unlink()
    with pytest.raises(
        ValueError, match=rf"2 files are not(.|\n)*{path.name}: expected \d+ bytes, found \d+\n(.|\n)*no file"
    ):
        data.load("imagenet100", data_dir=copy, image_size=16)


@pytest.mark.parametrize("name", ["train-labels.npy", "test-index.npy", "store.json"])
def test_damaged_tables_are_found_on_loading(copy, name):
    path = copy / "imagenet100" / "16" / name
    whole = bytearray(path.read_bytes())
    whole[-2] ^= 1
    path.write_bytes(whole)
    [line] = store.problems(copy / "imagenet100" / "16")
    assert name in line and "repeat data.prepare" in line
    with pytest.raises(ValueError, match=rf"{name}.*repeat data.prepare"):
        data.load("imagenet100", data_dir=copy, image_size=16)


def test_other_settings_or_files_need_another_folder(tree, copy):
    with pytest.raises(WorkdirError, match=r"other settings(.|\n)*shard_images: stored 8, asked 9"):
        prepare.prepare("imagenet100", tree, copy, **SMALL | {"shard_images": 9})
    extra = tree / "train" / trees.CLASSES[0] / "new.JPEG"
    shutil.copy(trees.paths(tree, "val")[0], extra)
    try:
        with pytest.raises(WorkdirError, match=r"source\.listing_sha256: stored"):
            prepare.prepare("imagenet100", tree, copy, **SMALL)
    finally:
        extra.unlink()


def test_one_writer_at_a_time(tree, copy):
    with prepare.files.locked(copy / "imagenet100" / "16"):
        with pytest.raises(PrepareError, match="another process is writing"):
            prepare.prepare("imagenet100", tree, copy, **SMALL)


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
    names = [f"n{i:08d}" for i in range(1000)]
    for split in ("train", "val"):
        for name in names:
            (tmp_path / "tree" / split / name).mkdir(parents=True)
            if name.endswith(("0", "5")):
                image, form = trees.photograph(np.random.default_rng(int(name[1:])), 4)
                image.save(tmp_path / "tree" / split / name / "x.JPEG", form)
    prepare.prepare("imagenet100", tmp_path / "tree", tmp_path / "out", **SMALL | {"shard_images": 64})
    loaded = data.load("imagenet100", data_dir=tmp_path / "out", image_size=16)
    assert loaded.class_names == tuple(names[::10]) and loaded.test.labels.tolist() == list(range(100))
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


def test_control_c_is_one_line(tmp_path, monkeypatch, capsys):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(data.prepare, "prepare_and_verify", interrupted)
    assert data.prepare.main(["--dataset=imagenet100", f"--data_dir={tmp_path}"]) == 130
    assert capsys.readouterr().err == "data.prepare: stopped; the same command continues\n"
