"""ICONS-50: both layouts hold the same icons, what each protocol holds out, and files that are refused."""

import codecs
import os
import pathlib
import pickle

import numpy as np
import pytest

import data
from projects.structural import icons50, standin


@pytest.fixture(scope="module")
def drawn():
    return standin.draw_icons()


@pytest.fixture(scope="module")
def array(drawn, tmp_path_factory):
    return standin.write_icons(tmp_path_factory.mktemp("array"), drawn, array=True)


def test_the_stand_in_has_what_the_protocols_need(drawn):
    assert len(set(drawn.styles)) == 13 and len(drawn.classes) == 50 == len(icons50.SUBTYPES)
    assert len(icons50.HELD_OUT) == 41 and set(icons50.HELD_OUT) < set(icons50.CLASSES)
    assert list(icons50.CLASSES) == sorted(icons50.CLASSES)
    assert len(drawn.images) == 13 * (2 * 50 + 50) and len(set(drawn.paths)) == len(drawn.paths)
    np.testing.assert_array_equal(drawn.images[700], standin.draw_icons().images[700])


def some(drawn, places):
    texts = (tuple(np.array(column)[places].tolist()) for column in drawn[3:])
    return icons50.Icons(drawn.images[places], drawn.labels[places], drawn.classes, *texts)


def test_both_layouts_come_back(drawn, array, tmp_path):
    found = icons50.read(array)
    few = np.flatnonzero(np.isin(drawn.labels, (0, 7)) & (np.array(drawn.styles) == "emoji-one"))
    assert found[2:] == drawn[2:]
    np.testing.assert_array_equal(found.images, drawn.images)
    np.testing.assert_array_equal(found.labels, drawn.labels)
    part = some(drawn, few)
    standin.write_icons(tmp_path, part)
    (tmp_path / "README.txt").write_text("of the release")
    folder = icons50.read(tmp_path)
    assert folder.classes == ("airplane", "books") and folder.paths == part.paths
    np.testing.assert_array_equal(folder.images, part.images)


@pytest.mark.parametrize("style", icons50.STYLES)
def test_a_style_is_held_out(array, style):
    icons = icons50.read(array)
    found = data.load(f"icons50_{style}", data_dir=array)
    assert {icons.styles[i] for i in found.test.index} == {style} and found.num_classes == 50
    assert style not in {icons.styles[i] for i in found.train.index}
    assert set(found.test.labels) == set(range(50)) == set(found.train.labels)
    both = np.concatenate([found.train.index, found.test.index])
    np.testing.assert_array_equal(np.sort(both), np.arange(len(icons.images)))
    np.testing.assert_array_equal(found.test.images, icons.images[found.test.index])


def test_paths_hold_out_two_whole_classes_and_subtypes_do_not(array, drawn):
    exact = data.load("icons50_subclass_exact", data_dir=array)
    assert {drawn.subtypes[i] for i in exact.test.index} == set(icons50.SUBTYPES)
    assert set(exact.train.labels) == set(range(50)) and len(exact.test) == 13 * 50
    by_path = data.load("icons50_subclass", data_dir=array)
    names = {icons50.CLASSES[label] for label in set(range(50)) - set(by_path.train.labels.tolist())}
    assert names == {"books", "monkey"} and set(exact.test.index) < set(by_path.test.index)


def test_icons_without_the_style_or_the_subtypes_are_refused(drawn):
    few = np.flatnonzero((np.array(drawn.styles) == "lg") & ~np.isin(drawn.subtypes, icons50.SUBTYPES))[:5]
    for choose, name, message in (
        (icons50.of_style, "apple", "expected icons of the style apple and others, found 0 of 5"),
        (icons50.of_style, "lg", "expected icons of the style lg and others, found 5 of 5"),
        (
            icons50.of_subclass,
            "subtype_exact",
            "expected icons of the subtypes by subtype_exact and others, found 0 of 5",
        ),
        (icons50.of_subclass, "name", "expected match path or subtype_exact, found 'name'"),
    ):
        with pytest.raises(ValueError, match=message):
            choose(some(drawn, few), name)


class Built:
    """Is pickled as a call, and a state of its result."""

    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


def write_object(path, content, protocol=None):
    """Writes an .npy file of one object, or of the pickle in bytes."""
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|O", "fortran_order": False, "shape": ()})
        file.write(content if isinstance(content, bytes) else pickle.dumps(np.array(content, dtype=object), protocol))


KEYS = ((b"}", b"s."), (b"}(", b"u."), (b"(", b"d."))  # opcodes before and after a dictionary's key
OBJECT = np.dtype("O")
NULLS = bytes(8)  # an address without an object
PLAIN = {name: ["0", "1"] for name in ("style", "rendition", "subtype")} | {"class": [0, 1]}
PLAIN["image"] = np.zeros((2, 3, 32, 32), np.uint8)


def array_of(dtype, content, shape=(1,)):
    return Built(np._core.multiarray._reconstruct, (np.ndarray, (0,), b"b"), (1, shape, dtype, False, content))


def type_of(text, names=None, fields=None, size=-1, flags=0):
    return Built(np.dtype, (text, False, True), (3, "|", None, names, fields, size, -1, flags))


def nested(kind, depth=60):
    """A container that holds the one before twice: a few bytes in a pickle, 2^60 to whoever walks through it."""
    found = kind([0])
    for _ in range(depth):
        found = kind([found, found])
    return found


HIDDEN = {"a": (OBJECT, 0)}
NESTED = nested(list)
TUPLES = pickle.dumps(nested(tuple), 2)[2:-1]  # the opcodes that make it; Python cannot hash it in our time
FOUND = "a pickle of arrays, strings and numbers, found "
REFUSED = {  # (content or changed fields of PLAIN, what is expected and found)
    "code": [
        (Built(os.mkdir, ("made",)), f"{FOUND}.*mkdir"),
        ({"image": Built(os.mkdir, ("made",))}, f"{FOUND}.*mkdir"),
    ],
    "addresses": [
        (
            {"style": array_of(type_of("O8"), NULLS)},
            f"{FOUND}a state of ObjectDType",
        ),  # without flags: bytes for objects
        ({"style": array_of(type_of("V8", ("a",), HIDDEN, 8), NULLS)}, f"{FOUND}the type of an array as 'V8'"),
        ({"style": array_of(type_of("S8", ("a",), HIDDEN, 8), NULLS)}, f"{FOUND}a state of BytesDType"),
        ({"style": array_of(type_of("S8", size=2**40), NULLS)}, f"{FOUND}a state of BytesDType"),
        ({"style": array_of(type_of("S8", np.array([None])), NULLS)}, f"{FOUND}a state of BytesDType"),  # equals None
        ({"style": array_of(OBJECT, NULLS)}, f"{FOUND}a state of ndarray"),
        ({"style": array_of(OBJECT, [1], shape=(0,))}, f"{FOUND}a state of ndarray"),
        ({"style": array_of(np.dtype("u1"), NULLS, shape=(-1, -8))}, f"{FOUND}a state of ndarray"),
        ({"style": Built(np._core.multiarray.scalar, (OBJECT, NULLS))}, f"{FOUND}an object as a number"),
        ({"style": Built(np.ndarray, ((1,), OBJECT))}, f"{FOUND}'NoneType' object is not callable"),
    ],
    "kinds": [
        ({"class": np.zeros((2, 1), int)}, r".*class.*, found int64 \[2, 1\]"),
        ({"class": np.array(3)}, r".*class.*, found \{'style': 2, .*"),
        ({"style": np.array([2**31 - 1] * 2, np.int32).view("U1")}, ".*class.*, found invalid maximum character"),
        ({"image": np.zeros((2, 32, 32, 3), np.uint8)}, r"images uint8 \[N, 3, 32, 32\]"),
        ({"image": None}, ".* of one length"),
    ],
    "deep containers": [
        *(({name: [NESTED]}, f".*{name}") for name in ("style", "rendition", "subtype", "class", "image")),
        ({"class": np.array([None, 0], object)[:1]}, ".*class"),
        *((b"\x80\x02" + op + TUPLES + b"K\x00" + end, ".*a key of type tuple") for op, end in KEYS),
        (b"\x80\x04\x8f(" + TUPLES + b"\x90.", ".*a set"),
        ({"more": Built(np.dtype, (NESTED,))}, ".*the type of an array as list"),
        ({"more": Built(codecs.encode, ("x", NESTED))}, ".*bytes in an encoding as list"),
    ],
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("content", "message"), [row for rows in REFUSED.values() for row in rows])
def test_pickles_that_hold_anything_else_are_refused_at_once_and_run_nothing(tmp_path, monkeypatch, content, message):
    monkeypatch.chdir(tmp_path)
    write_object("bad.npy", PLAIN | content if isinstance(content, dict) else content)
    assert os.path.getsize("bad.npy") < 14_500
    with pytest.raises(ValueError, match=rf"bad\.npy: expected {message}"):
        icons50.read(pathlib.Path("bad.npy"))
    assert not os.path.exists("made")


def test_files_that_are_no_release_are_named(tmp_path, array):
    for name in ("empty", "wrong/ball", "damaged/ball"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "wrong/ball/apple.png").write_bytes(b"")
    (tmp_path / "damaged/ball/apple_0_x.png").write_bytes(b"")
    np.save(tmp_path / "plain.npy", np.zeros(3))
    (tmp_path / "cut.npy").write_bytes(array.read_bytes()[:5000])
    for name, error, message in (
        ("nowhere", FileNotFoundError, "makes a stand-in"),
        ("empty", FileNotFoundError, "expected folders of classes with PNG files"),
        ("plain.npy", ValueError, r"plain\.npy: expected one pickled dictionary, found an array float64"),
        ("cut.npy", ValueError, r"cut\.npy: expected a pickle of arrays"),
        ("wrong", ValueError, r"expected icons called STYLE_RENDITION_SUBTYPE\.png, found .*apple\.png"),
        ("damaged", ValueError, r"expected icons that can be read, found .*apple_0_x\.png"),
    ):
        with pytest.raises(error, match=message):
            icons50.read(tmp_path / name)


def test_pickles_of_older_protocols_are_read(tmp_path, drawn):
    """NumPy 1 wrote protocol 2 or 3, and scalars of its own."""
    content = {"class": np.array([0, 3], ">i8"), "style": np.array(["apple", "lg"])}
    content |= {"rendition": [np.str_("0"), np.str_("1")], "subtype": np.array(["x", "y"], dtype=object)}
    content["image"] = [drawn.images[0].transpose(2, 0, 1), drawn.images[1].transpose(2, 0, 1)]
    for protocol in (2, 3, 4):
        write_object(path := tmp_path / f"{protocol}.npy", content, protocol)
        found = icons50.read(path)
        assert found.styles == ("apple", "lg") and found.renditions == ("0", "1") and found.labels.tolist() == [0, 3]
    write_object(path, content | {"style": np.array([b"apple", b"lg"])})
    assert icons50.read(path).styles == ("apple", "lg")
