"""Datasets written to a bucket hold what a folder would, wherever the writing stops."""

import json
import pathlib

import numpy as np
import PIL.Image
import pytest

from corruptions import objects
from corruptions.write import WriteError, sources, upload, write_dataset, writer
from tests.corruptions.write import datasets

IMAGES, LABELS = datasets.IMAGES[:6, :16, :16], datasets.LABELS[:6]
OPTIONS = {"corruptions": ["noc/contrast", "noc/hue"], "severities": [0, 0.5], "progress": False}
ADDRESS = "memory://b/sets/noc"


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """Calls of `machine(name)` move to a machine with a home folder of its own; the store is empty at first."""
    objects._tensorstore.cache_clear()
    objects._open.cache_clear()
    monkeypatch.setattr(writer, "corrupt", lambda key, images, *given, index: 255 - images)
    move = lambda name: monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))  # noqa: E731
    move("first")
    return move


def write(out, layout, **options):
    return write_dataset(out, (IMAGES, LABELS), layout=layout, **OPTIONS | options)


def of_bucket(prefix="sets/noc/"):
    bucket = objects.Bucket("memory", "b")
    files = {key.removeprefix(prefix): bucket.read(key).content for key in bucket.list(prefix)}
    return datasets.comparable(files, manifest=True)


@pytest.mark.parametrize("layout", ["npy", "folders", "webdataset"])
def test_a_bucket_holds_what_a_folder_would(layout, tmp_path, machine, monkeypatch):
    write(tmp_path / "out", layout)
    take, left = upload.Upload.take, [2]

    def stopping(self):
        take(self)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    monkeypatch.setattr(upload.Upload, "take", stopping)
    with pytest.raises(KeyboardInterrupt):
        write(ADDRESS, layout)
    whole = datasets.contents(tmp_path / "out", manifest=True)
    assert 1 < len(of_bucket()) < len(whole)
    monkeypatch.setattr(upload.Upload, "take", take)
    machine("second")
    assert write(ADDRESS, layout) == f"{ADDRESS}/manifest.json"
    assert of_bucket() == whole
    left_here = [path for path in (tmp_path / "second").rglob("*") if path.is_file()]
    assert not left_here, "each unit leaves this machine"
    write(ADDRESS, layout)
    runs = json.loads(objects.Bucket("memory", "b").read("sets/noc/manifest.json").content)["runs"]
    assert len(runs) == 2, "nothing was left to do"


def test_a_damaged_object_is_written_again(caplog):
    write(ADDRESS, "npy")
    before, bucket = of_bucket(), objects.Bucket("memory", "b")
    bucket.write("sets/noc/hue.npy", b"damaged")
    write(ADDRESS, "npy", verify=True)
    assert "hue.npy: expected sha256" in caplog.text and of_bucket() == before
    bucket.write("sets/noc/contrast.npy", None)
    write(ADDRESS, "npy")
    assert of_bucket() == before


@pytest.mark.parametrize("layout", ["npy", "folders"])
def test_a_comparison_keeps_one_unit_on_this_machine(layout, monkeypatch):
    fetch, here = upload.Upload.fetch, []

    def watching(self, unit):
        paths = [path.relative_to(self.folder) for path in self.folder.rglob("*") if path.is_file()]
        here.append([str(path) for path in paths if path.parts[0][0] != "." and path.name != "manifest.json"])
        fetch(self, unit)

    write(ADDRESS, layout)
    monkeypatch.setattr(upload.Upload, "fetch", watching)
    write(ADDRESS, layout, verify=True)
    assert len(here) > 1 and not any(here)


def test_what_a_folder_refuses_a_bucket_refuses():
    bucket = objects.Bucket("memory", "b")
    bucket.write("sets/noc/a.txt", b"1")
    with pytest.raises(WriteError, match=rf"found {ADDRESS} holding a.txt"):
        write(ADDRESS, "npy")
    bucket.write("sets/noc/a.txt", None)
    write(ADDRESS, "npy")
    with pytest.raises(WriteError, match="seed: stored 0, asked 1"):
        write(ADDRESS, "npy", seed=1)
    with pytest.raises(WriteError, match=r"expected .*gs://BUCKET/.*, found the address az://b/c"):
        write("az://b/c", "npy")


@pytest.mark.parametrize("out", [ADDRESS, "folder"])
def test_another_corruption_of_one_name_is_refused_later_too(out, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(out, "npy", corruptions="imagenet_c/contrast", severities=[1])
    with pytest.raises(
        WriteError, match=r"records another corruption called contrast\.npy; write this one to a folder"
    ):
        write(out, "npy", corruptions="noc/contrast", severities=[1])


def test_an_edited_card_stays_in_the_bucket(caplog):
    write(ADDRESS, "webdataset", severities=[0])
    bucket = objects.Bucket("memory", "b")
    card = bucket.read("sets/noc/README.md").content
    write(ADDRESS, "webdataset", severities=[0], corruptions="noc/border")
    assert b"noc/border" in bucket.read("sets/noc/README.md").content and b"noc/border" not in card
    bucket.write("sets/noc/README.md", edited := b"# Mine\n" + card)
    write(ADDRESS, "webdataset", severities=[0], corruptions="noc/shear")
    assert "README.md was edited; left as it is" in caplog.text
    assert bucket.read("sets/noc/README.md").content == edited


def test_of_two_writers_one_is_refused(monkeypatch):
    take = upload.Upload.take

    def between(self):
        monkeypatch.setattr(upload.Upload, "take", take)
        monkeypatch.setenv("XDG_CACHE_HOME", str(pathlib.Path(self.folder).parents[2] / "other"))
        write(ADDRESS, "npy")
        take(self)

    monkeypatch.setattr(upload.Upload, "take", between)
    with pytest.raises(WriteError, match=f"another process is writing {ADDRESS}"):
        write(ADDRESS, "npy")


def test_a_source_in_a_bucket_is_copied_once_and_known_by_its_address(machine, tmp_path):
    bucket, before = objects.Bucket("memory", "b"), None
    for number in range(6):
        path = tmp_path / f"{number}.png"
        PIL.Image.fromarray(np.full((16, 16, 3), number, np.uint8)).save(path)
        bucket.write(f"tree/{'ab'[number % 2]}/{number}.png", path.read_bytes())
    for name in ("first", "first", "second"):
        machine(name)
        source = sources.open_source("memory://b/tree")
        assert source.description["path"] == "memory://b/tree" and source.class_names == ("a", "b")
        assert before is None or source.description == before
        before = source.description
    (copy,) = (tmp_path / "first").rglob("tree")
    first = {path: path.stat().st_ino for path in copy.rglob("*.png")}
    bucket.write("tree/a/0.png", (tmp_path / "1.png").read_bytes())
    bucket.write("tree/b/1.png", None)
    machine("first")
    assert len(sources.open_source("memory://b/tree").labels) == 5
    changed = [path.name for path in copy.rglob("*.png") if path.stat().st_ino != first[path]]
    assert changed == ["0.png"]
    np.savez(tmp_path / "set.npz", images=IMAGES, labels=LABELS)
    bucket.write("set.npz", (tmp_path / "set.npz").read_bytes())
    assert len(sources.open_source("memory://b/set.npz").labels) == 6
