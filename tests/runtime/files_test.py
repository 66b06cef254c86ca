"""The one writer, the readers, the lock and artifacts: nothing half-written, and errors that name the file."""

import errno
import json
import os
import pathlib
import stat
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

from corruptions.files import cache_folder, digest_of_file
from runtime import artifacts, files
from runtime.files import DamagedFileError
from runtime.settings import SettingsError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


WRITERS = {
    "text": lambda path: files.write_atomically(path, "ä\n"),
    "bytes": lambda path: files.write_atomically(path, b"12"),
    "json": lambda path: files.write_json(path, {"a": [1, 2]}),
    "arrays": lambda path: files.write_arrays(path, {"x": np.arange(9)}),
}


@pytest.fixture(params=WRITERS)
def write(request):
    return WRITERS[request.param]


class FullDisk:
    """A file that takes nothing; the system's error names no file."""

    def __init__(self, file):
        self._file = file

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def __getattr__(self, name):
        return getattr(self._file, name)

    def write(self, content):
        self._file.write(bytes(content)[:1])
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_names_the_path_and_keeps_the_old_file(tmp_path, monkeypatch, write):
    path = tmp_path / "folder" / "value"
    write(path)
    before = path.read_bytes()
    plain = open
    monkeypatch.setattr("builtins.open", lambda name, *mode, **more: FullDisk(plain(name, *mode, **more)))
    with pytest.raises(OSError, match=r"No space left on device: '.*folder/value'") as caught:
        write(path)
    monkeypatch.undo()
    assert caught.value.errno == errno.ENOSPC and caught.value.filename == str(path)
    assert path.read_bytes() == before and names(path.parent) == ["value"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_an_error_before_the_rename_leaves_the_old_file(tmp_path, monkeypatch, write, step):
    path = tmp_path / "value"
    path.write_text("old")
    monkeypatch.setattr(os, step, lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "disk failing")))
    with pytest.raises(OSError, match=r"disk failing: '.*value'"):
        write(path)
    assert path.read_text() == "old" and names(tmp_path) == ["value"]


def test_an_error_of_the_block_leaves_no_file(tmp_path):
    with pytest.raises(ValueError, match="of the block"), files.writing(tmp_path / "value") as file:
        file.write(b"half")
        raise ValueError("of the block")
    with pytest.raises(FileNotFoundError, match="other"), files.writing(tmp_path / "value"):
        raise FileNotFoundError(errno.ENOENT, "No such file", "other")  # another file's: not renamed
    assert names(tmp_path) == []


def test_content_is_on_disk_before_the_name_is(tmp_path, monkeypatch, write):
    order, sync, replace = [], os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (order.append(stat.S_ISDIR(os.fstat(fd).st_mode)), sync(fd)))
    monkeypatch.setattr(os, "replace", lambda *paths: (order.append("rename"), replace(*paths)))
    write(tmp_path / "value")
    assert order == [False, "rename", True]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_permissions_follow_the_umask(tmp_path, write, mask):
    before = os.umask(mask)
    try:
        write(tmp_path / "a")
        (tmp_path / "b").write_bytes(b"")
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"] == [0o666 & ~mask] * 2


def test_what_is_written_is_read(tmp_path):
    files.write_atomically(tmp_path / "text", "ä\n")
    assert (tmp_path / "text").read_bytes() == "ä\n".encode()
    files.write_json(tmp_path / "value.json", {"b": 1, "a": None})
    assert (tmp_path / "value.json").read_text() == '{\n  "b": 1,\n  "a": null\n}\n'
    assert files.read_json(tmp_path / "value.json") == {"b": 1, "a": None}
    files.write_json(tmp_path / "value.json", {"b": 1, "a": 2}, sort_keys=True)
    assert list(files.read_json(tmp_path / "value.json")) == ["a", "b"]
    arrays = {"x|0": np.arange(5.0), "y": np.zeros((0, 2), np.uint8)}
    files.write_arrays(tmp_path / "arrays.npz", arrays)
    content = (tmp_path / "arrays.npz").read_bytes()
    for found in (files.read_arrays(tmp_path / "arrays.npz"), files.read_arrays("elsewhere.npz", content=content)):
        assert found.keys() == arrays.keys()
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array, strict=True)
    with files.writing(tmp_path / "array.npy") as file:
        np.save(file, arrays["x|0"])
    for mapped in (False, True):
        found = files.read_array(tmp_path / "array.npy", mapped=mapped)
        assert isinstance(found, np.memmap) == mapped
        np.testing.assert_array_equal(found, arrays["x|0"])


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_json_without_nan(tmp_path, number):
    class Row(NamedTuple):
        value: float
        name: str

    value = {"rows": (Row(number, "a"), Row(0.5, "b")), "array": np.array([[1.0, number]]), "count": np.int64(3)}
    with pytest.raises(ValueError, match=r"value\.json: expected numbers that JSON has"):
        files.write_json(tmp_path / "value.json", {"deep": [number]})
    assert names(tmp_path) == []
    files.write_json(tmp_path / "value.json", files.without_nan(value))
    expected = {"rows": [{"value": None, "name": "a"}, {"value": 0.5, "name": "b"}], "array": [[1.0, None]], "count": 3}
    assert json.loads((tmp_path / "value.json").read_text(), parse_constant=pytest.fail) == expected


@pytest.mark.parametrize("content", [b'{"a": ', b"", b"\xff\xfe{}", b"null trailing"])
def test_damaged_json_is_named_with_the_remedy(tmp_path, content):
    path = tmp_path / "value.json"
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"value\.json: expected valid JSON, found an error \(.*; mend it$"):
        files.read_json(path, remedy="mend it")


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [("[1]", dict, "object, found list"), ("{}", list, "list, found object"), ("3", dict, "object, found int")],
)
def test_json_of_another_type_is_refused(tmp_path, content, kind, message):
    path = tmp_path / "value.json"
    path.write_text(content)
    with pytest.raises(DamagedFileError, match=rf"value\.json: expected a JSON {message}; move it away"):
        files.read_json(path, kind)
    assert files.read_json(path, None) == json.loads(content)


def test_damaged_arrays_are_named_with_size_and_remedy(tmp_path):
    path = tmp_path / "arrays.npz"
    files.write_arrays(path, {"x": np.arange(1000)})
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[500] ^= 1
    np.save(tmp_path / "one.npy", np.arange(3))
    objects = tmp_path / "objects.npz"
    np.savez(objects, x=np.array([{}], object))
    contents = [whole[:100], whole[:-3], b"", b"<html>", bytes(flipped), (tmp_path / "one.npy").read_bytes()]
    for content in [*contents, objects.read_bytes()]:
        path.write_bytes(content)
        message = rf"arrays\.npz: expected an \.npz file.*\({len(content)} bytes; (.|\n)*\); mend it$"
        with pytest.raises(DamagedFileError, match=message):
            files.read_arrays(path, "mend it")
        with pytest.raises(DamagedFileError, match=message):
            files.read_arrays(path, "mend it", content=content)


@pytest.mark.parametrize("mapped", [False, True])
def test_a_damaged_array_is_named_with_size_and_remedy(tmp_path, mapped):
    path = tmp_path / "array.npy"
    np.save(path, np.arange(1000))
    whole = path.read_bytes()
    files.write_arrays(tmp_path / "arrays.npz", {"x": np.arange(3)})
    for content in (whole[:100], whole[:-1], b"", b"<html>", (tmp_path / "arrays.npz").read_bytes()):
        path.write_bytes(content)
        with pytest.raises(DamagedFileError, match=rf"array\.npy: expected an \.npy file.*\({len(content)} bytes"):
            files.read_array(path, mapped=mapped)


@pytest.mark.parametrize(
    "read",
    [
        files.read_json,
        files.read_arrays,
        files.read_array,
        digest_of_file,
        artifacts.read,
        artifacts.read_record,
    ],
)
def test_what_is_not_there_is_not_called_damaged(tmp_path, read):
    with pytest.raises(FileNotFoundError, match="nothing"):
        read(tmp_path / "nothing")


def test_a_folder_has_one_writer(tmp_path):
    code = (
        "import sys; from runtime import files\n"
        "try:\n"
        "    with files.locked(sys.argv[1]): print('entered')\n"
        "except BlockingIOError as error: print(error)\n"
    )

    def second():
        return subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True).stdout

    with files.locked(tmp_path):
        assert f"another process is writing {tmp_path}; wait" in second()
    assert second() == "entered\n"


HOME = "/home/a"


@pytest.mark.parametrize(
    ("xdg", "home", "expected"),
    [
        ("", HOME, f"{HOME}/.cache"),
        (None, HOME, f"{HOME}/.cache"),
        ("/x", "", "/x"),
        ("", None, None),
        ("a", HOME, None),
    ],
)
def test_caches_lie_in_one_absolute_folder(monkeypatch, xdg, home, expected):
    if home is None:  # a user without an entry in the system's list of users
        monkeypatch.setattr("os.path.expanduser", lambda path: path)
    else:
        monkeypatch.setenv("HOME", home)
    monkeypatch.setenv("XDG_CACHE_HOME", xdg) if xdg is not None else monkeypatch.delenv("XDG_CACHE_HOME", False)
    if expected:
        assert cache_folder() == pathlib.Path(expected, "jax-corruptions")
    else:
        with pytest.raises(FileNotFoundError, match="expected a home folder, or XDG_CACHE_HOME as an absolute path"):
            cache_folder()


@pytest.mark.parametrize(
    "path", ["az://b/c", "hdfs://b", "https://h/x", "gs://", "NAME=az://b/c", pathlib.Path("az://b/c")]
)
def test_addresses_of_other_stores_are_refused(path):
    with pytest.raises(SettingsError, match=r"^weights: expected a path of this machine, .* address \w+:/.*; copy its"):
        files.local(path, "weights")
    with pytest.raises(SettingsError, match="found the address"):
        files.write_atomically(path, "")
    for plain in ("/a/b:c", "a=b", "tfds:cifar10", "host:8080", "C:/a", "~/x"):
        assert files.local(plain) == plain


def test_files_need_no_jax():
    code = "import sys; from runtime import files; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# Artifacts: read as they were written, or refused with the sentence that mends them.
ARRAYS = {
    "bits": np.arange(5, dtype=np.uint8),
    "centre": np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3),
    "number": np.asarray(3),
    "names": np.array(["noc/hue", "cbar/lines"]),
    "none": np.zeros((0, 4)),
}
MADE_FROM = {"model": "ab12", "options": {"range": (0.5, 1.5)}, "seed": 0}


def test_arrays_and_their_record_are_read_back(tmp_path):
    artifacts.write(tmp_path / "a.npz", ARRAYS, MADE_FROM)
    content = (tmp_path / "a.npz").read_bytes()
    for found in (artifacts.read(tmp_path / "a.npz"), artifacts.read("elsewhere", content=content)):
        assert found.made_from == json.loads(json.dumps(MADE_FROM)) and list(found.arrays) == list(ARRAYS)
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(found.arrays[name], array)
            assert found.arrays[name].dtype == array.dtype


def edit(path, **changed):
    with np.load(path) as archive:
        arrays = dict(archive)
    np.savez(path, **{name: array for name, array in (arrays | changed).items() if array is not None})


HARMS = {
    "an array": lambda path: edit(path, bits=np.arange(5, dtype=np.uint8)[::-1]),
    "the type of an array": lambda path: edit(path, bits=np.arange(5, dtype=np.int8)),
    "the shape of an array": lambda path: edit(path, centre=ARRAYS["centre"].reshape(3, 2)),
    "the name of an array": lambda path: edit(path, bits=None, bites=ARRAYS["bits"]),
    "one array more": lambda path: edit(path, more=np.ones(2)),
    "the record": lambda path: edit(path, made_from=np.array(record(path).replace("ab12", "cd34"))),
    "no record": lambda path: edit(path, made_from=None),
    "a record of another kind": lambda path: edit(path, made_from=np.array('{"record": [], "sha256": "0"}')),
    "a record that is no JSON": lambda path: edit(path, made_from=np.array("{")),
    "half of the file": lambda path: path.write_bytes(path.read_bytes()[:300]),
}


def record(path):
    with np.load(path) as archive:
        return str(archive["made_from"])


@pytest.mark.parametrize("harm", HARMS)
def test_damaged_edited_and_foreign_arrays_are_refused_with_the_remedy(tmp_path, harm):
    path = tmp_path / "a.npz"
    artifacts.write(path, ARRAYS, MADE_FROM)
    HARMS[harm](path)
    with pytest.raises(DamagedFileError, match=r"a\.npz: expected .*found .*; give the command again"):
        artifacts.read(path, "give the command again")


def test_a_record_alone_is_read_back_whatever_its_layout(tmp_path):
    path = tmp_path / "final.json"
    artifacts.write_record(path, {"step": 3, "range": (1.0, 2.0)})
    content = json.loads(path.read_text())
    path.write_text(json.dumps(dict(reversed(content.items())), indent=7))
    assert artifacts.read_record(path, shape={"step": int}) == {"step": 3, "range": [1.0, 2.0]}


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"step": 4, "sha256": "SEAL"}', '{"step": "3", "sha256": "SEAL"}', '{"step": 3}', '{"sha256": 3}'],
)
def test_damaged_edited_and_foreign_records_are_refused_with_the_remedy(tmp_path, content):
    path = tmp_path / "final.json"
    artifacts.write_record(path, {"step": 3})
    path.write_text(content.replace("SEAL", json.loads(path.read_text())["sha256"]))
    with pytest.raises(DamagedFileError, match=r"final\.json: expected .*found .*; train it again"):
        artifacts.read_record(path, "train it again", shape={"step": int})


def test_a_record_that_a_user_wrote_has_no_digest(tmp_path):
    (tmp_path / "ranges.json").write_text('{"range": [1, 2]}')
    assert artifacts.read_record(tmp_path / "ranges.json", by_hand=True) == {"range": [1, 2]}
    (tmp_path / "ranges.json").write_text('{"range": [1, 2], "sha256": "0"}')
    with pytest.raises(DamagedFileError, match="the file was edited"):
        artifacts.read_record(tmp_path / "ranges.json", by_hand=True)


def test_a_digest_does_not_depend_on_order_or_tuples():
    assert artifacts.digest({"a": (1, 2), "b": 3}) == artifacts.digest({"b": 3, "a": [1, 2]})
    assert artifacts.digest({"a": 1}) != artifacts.digest({"a": 2})
