"""Folders as people have them: of a Mac, with links, with other files, with numbers in their names."""

import contextlib
import os
import signal
import socket

import numpy as np
import pytest
from PIL import Image

import data
from corruptions import imagenet_c, laion_c
from corruptions.reading import folders
from corruptions.write import from_folder
from data import tree
from tests.corruptions.write.datasets import IMAGES
from tests.refusing import refuses


def save(path, number=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(IMAGES[number]).save(path, format="PNG" if path.suffix in (".jfif", ".jpe") else None)


def both_readers(root):
    """The classes and the labels of each file, as the writer and as the trunk's commands see them."""
    source, (classes, items) = from_folder(root), tree.scan(root, 1, 1.0, 0)
    assert list(source.class_names) == classes
    assert source.labels.tolist() == [label for _, label, _ in items["test"]]
    return classes, [(path.relative_to(root).as_posix(), label) for path, label, _ in items["test"]]


def test_a_folder_of_a_mac_or_a_disk_station_shifts_no_label(tmp_path):
    for name in (
        "__MACOSX/cat/._0.png",
        "@eaDir/cat/0.png",
        "#recycle/0.png",
        "$RECYCLE.BIN/0.png",
        "cat/@eaDir/0.png/thumb.jpg",
        "cat/0.png",
        "dog/0.png",
    ):
        save(tmp_path / name)
    assert both_readers(tmp_path) == (["cat", "dog"], [("cat/0.png", 0), ("dog/0.png", 1)])


def test_classes_without_images_are_named(tmp_path, caplog):
    save(tmp_path / "cat/0.png")
    (tmp_path / "aardvark").mkdir()
    assert both_readers(tmp_path) == (["aardvark", "cat"], [("cat/0.png", 1)])
    assert caplog.text.count("aardvark") == 2  # once for each reader


def test_names_that_break_lines_are_shown_in_one(tmp_path, caplog):
    save(tmp_path / "cat/0.png")
    (tmp_path / "a\nb\x1b[31m").mkdir()
    folders.labelled_images(tmp_path, folders.class_folders(tmp_path))
    assert r"a\nb\x1b[31m" in caplog.text and caplog.records[0].getMessage().count("\n") == 0


def test_what_is_left_out_is_counted(tmp_path, caplog):
    for name in ("cat/0.png", "cat/1.jfif", "cat/2.JPE", "cat/album.jpg/3.png"):
        save(tmp_path / name)
    for name in ("cat/4.heic", "cat/5.heic", "cat/notes.txt", "labels.csv", "cat/.hidden"):
        (tmp_path / name).touch()
    _, items = both_readers(tmp_path)
    assert [name for name, _ in items] == ["cat/0.png", "cat/1.jfif", "cat/2.JPE", "cat/album.jpg/3.png"]
    lines = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    assert len(lines) == 2 and all("4 files" in line and "2 .heic" in line for line in lines)
    caplog.clear()
    save(tmp_path / "other/cat/0.png")
    both_readers(tmp_path / "other")
    assert not caplog.records


@pytest.fixture
def alarm():
    """Ends a test that waits for a pipe's other end."""

    def ring(number, frame):
        raise TimeoutError("a reader opened a pipe")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def special_files(folder):
    """Puts files in a folder that are no images whatever their names: a pipe, a socket, links to a pipe and a device."""
    os.mkfifo(folder / "f.png")
    (folder / "link.png").symlink_to("f.png")
    (folder / "zero.png").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as end, contextlib.chdir(folder):
        end.bind("s.png")


def test_pipes_sockets_and_devices_are_left_out_and_counted(tmp_path, caplog, alarm):
    save(tmp_path / "root/cat/0.png")
    save(tmp_path / "elsewhere/1.png", 1)
    (tmp_path / "root/cat/1.png").symlink_to(tmp_path / "elsewhere/1.png")  # to a regular file: an image
    special_files(tmp_path / "root/cat")
    os.mkfifo(tmp_path / "root/f.png")
    _, items = both_readers(tmp_path / "root")
    assert [name for name, _ in items] == ["cat/0.png", "cat/1.png"]
    lines = [record.getMessage() for record in caplog.records if "left out 5 files" in record.getMessage()]
    assert len(lines) == 2 and all("5 no regular files" in line for line in lines)
    assert len(data.load("image_folder", data_dir=tmp_path / "root", image_size=32, test_fraction=1.0).test) == 2


def test_pipes_sockets_and_devices_are_no_photographs_of_frost_and_no_tile_images(tmp_path, caplog, alarm):
    save(tmp_path / "cat/0.png")
    frost, bank = imagenet_c.use_photographs(tmp_path / "cat"), laion_c.use_bank(tmp_path / "cat")
    assert not caplog.records
    special_files(tmp_path / "cat")
    assert imagenet_c.use_photographs(tmp_path / "cat") == frost and laion_c.use_bank(tmp_path / "cat") == bank
    assert sum("left out 4 files: 4 no regular files" in record.getMessage() for record in caplog.records) == 2


def test_a_folder_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    save(tmp_path / "cat/0.png")
    listed = folders.os.scandir

    def scandir(folder):
        if folder == tmp_path / "cat":
            raise PermissionError(13, "Permission denied", str(folder))
        return listed(folder)

    monkeypatch.setattr(folders.os, "scandir", scandir)
    refuses(lambda: from_folder(tmp_path), "cat: Permission denied")


def test_links_are_followed_and_circles_end(tmp_path):
    save(tmp_path / "elsewhere/1.png")
    save(tmp_path / "root/cat/0.png")
    save(tmp_path / "root/dog/0.png")
    (tmp_path / "root/cat/linked").symlink_to(tmp_path / "elsewhere")
    for name in ("l1", "l2"):
        (tmp_path / "root/cat" / name).symlink_to(".")
        (tmp_path / "root/cat" / f"up{name}").symlink_to("..")
    (tmp_path / "root/all").symlink_to(".")
    (tmp_path / "root/eel").symlink_to(tmp_path / "elsewhere")
    expected = [("cat/0.png", 0), ("cat/linked/1.png", 0), ("dog/0.png", 1), ("eel/1.png", 2)]
    assert both_readers(tmp_path / "root") == (["cat", "dog", "eel"], expected)
    for i in range(40):  # 2^40 paths, 41 folders
        (tmp_path / f"deep/a/{i}").mkdir(parents=True)
        for name in ("left", "right"):
            (tmp_path / f"deep/a/{i}" / name).symlink_to(f"../{(i + 1) % 40}")
    save(tmp_path / "deep/a/39/0.png")
    assert len(folders.image_paths(tmp_path / "deep/a/0")) == 1


def test_numbers_in_names_of_classes_are_a_warning(tmp_path, caplog):
    for i in range(11):
        save(tmp_path / f"{i}/0.png")
    classes, _ = both_readers(tmp_path)
    assert classes[2] == "10"
    assert sum("'10', not '2'" in record.getMessage() for record in caplog.records) == 2
    caplog.clear()
    folders.warn_of_numbers("x", ["00", "01", "n1", "n2"])
    assert not caplog.records


def test_frames_follow_their_numbers():
    names = ["frame10.png", "frame2.png", "b1", "frame1.png", "a", "01", "1", "frame2b.png", "²"]
    expected = ["01", "1", "a", "b1", "frame1.png", "frame2.png", "frame2b.png", "frame10.png", "²"]
    assert sorted(names, key=folders.by_number) == expected


@pytest.mark.parametrize("limit", [2, 3, 4])
def test_a_limit_takes_a_share_of_each_class(tmp_path, limit):
    for i in range(4):
        save(tmp_path / f"a/{i}.png", i)
    save(tmp_path / "b/0.png", 4)
    source = from_folder(tmp_path, limit=limit)
    assert source.labels.tolist() == [0] * (limit - 1) + [1]
    assert np.array_equal(source.read(range(limit)), IMAGES[[*range(limit - 1), 4]])


def test_commands_read_the_tree_as_the_writer_does(tmp_path):
    save(tmp_path / "__MACOSX/._0.png")
    save(tmp_path / "cat/0.jpe", 1)
    save(tmp_path / "dog/0.png", 2)
    loaded = data.load("image_folder", data_dir=tmp_path, image_size=32, resize="squash", test_fraction=1.0)
    assert loaded.class_names == ("cat", "dog") and loaded.test.labels.tolist() == [0, 1]
    assert np.array_equal(loaded.test.images, from_folder(tmp_path).read(range(2)))
