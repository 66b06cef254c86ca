"""Lists of test images: which images remain, in which order, what is refused, how a list is made."""

import hashlib

import numpy as np
import pytest

import data
from data import listed
from data.dataset import sha256
from evaluation.shown import name_dataset


@pytest.fixture(scope="module")
def shapes():
    return data.load("shapes", train_limit=10, test_limit=30)


def lines(dataset, rows):
    test = dataset.test
    return [f"{test.index[row]} {dataset.class_names[test.labels[row]]}" for row in rows]


def test_images_remain_in_the_order_of_the_list(shapes, tmp_path):
    rows = [17, 3, 29]
    (tmp_path / "list").write_text("\n".join(lines(shapes, rows)) + "\n\n")
    found = listed.choose(shapes, tmp_path / "list")
    for part in ("images", "labels", "index"):
        np.testing.assert_array_equal(getattr(found.test, part), np.asarray(getattr(shapes.test, part))[rows])
    assert found.train is shapes.train
    digest = sha256(shapes.test.index[rows])
    assert found.provenance["listed"] == {"number": 3, "sha256": digest}
    assert found.provenance["test"]["sha256"]["listed"] == digest
    assert name_dataset(found)["dataset"] == f"shapes, 3 images of list {digest[:12]}"
    assert name_dataset(shapes)["dataset"] == "shapes"


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda ok: [ok[0], "circle 3"], "line 2: expected the place of a test image and its class, found 'circle 3'"),
        (lambda ok: [ok[0], "17"], "line 2: expected the place"),
        (lambda ok: [ok[0], ok[1], ok[0]], "line 3: expected each image once"),
        (lambda ok: [f"99999 {ok[0].split()[1]}"], "expected a place in the 30 test images of shapes, found 99999"),
        (lambda ok: [ok[0].split()[0] + " " + ok[1].split()[1]], "found one of .*another copy of the dataset"),
        (lambda ok: [], "expected places of test images"),
    ],
)
def test_a_wrong_list_is_refused_by_its_line(shapes, tmp_path, change, message):
    labels = np.asarray(shapes.test.labels)
    rows = [0, int(np.flatnonzero(labels != labels[0])[0])]
    (tmp_path / "list").write_text("\n".join(change(lines(shapes, rows))))
    with pytest.raises(ValueError, match=message):
        listed.choose(shapes, tmp_path / "list")
    with pytest.raises(FileNotFoundError, match=r"config\.eval\.images, found no file"):
        listed.choose(shapes, tmp_path / "gone")


def test_places_are_those_of_the_tree(tmp_path, capsys):
    """Four files in two classes; names out of order."""
    for name in (
        "n01/ILSVRC2012_val_00000002.JPEG",
        "n01/ILSVRC2012_val_00000009.JPEG",
        "n02/ILSVRC2012_val_00000001.JPEG",
    ):
        path = tmp_path / "val" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    (tmp_path / "names").write_text("n02/ILSVRC2012_val_00000001.JPEG\r\nn01/ILSVRC2012_val_00000009.JPEG\r\n")
    given = [f"--names={tmp_path / 'names'}", f"--source={tmp_path}", f"--out={tmp_path / 'out'}"]
    assert listed.main(given) == 0
    assert (tmp_path / "out").read_text() == "2 n02\n1 n01\n"
    assert listed.main([*given, "--check=robustbench"]) == 1
    assert (
        "expected 5000 names with sum 123943129 and sha256 6b74a79879be, found 2 with 10 and" in capsys.readouterr().err
    )
    (tmp_path / "names").write_text("n02/ILSVRC2012_val_00000003.JPEG")
    assert listed.main(given) == 1
    assert "found 1 of 1 names missing" in capsys.readouterr().err


def test_a_published_list_is_known_by_its_numbers_in_order():
    names = [f"n01/ILSVRC2012_val_{number:08d}.JPEG" for number in (300, 1, 65535)]
    known = listed.Known(3, 65836, hashlib.sha256(bytes([44, 1, 1, 0, 255, 255])).hexdigest())
    listed.check(names, known)
    with pytest.raises(ValueError, match="take the file as it was published"):
        listed.check(names[::-1], known)
