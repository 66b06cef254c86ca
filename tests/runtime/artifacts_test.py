"""Artifacts are read as they were written, or refused with the sentence that mends them."""

import json

import numpy as np
import pytest

from runtime import artifacts, files
from runtime.files import DamagedFileError

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
    for found in (
        artifacts.read(tmp_path / "a.npz"),
        artifacts.read("elsewhere", content=(tmp_path / "a.npz").read_bytes()),
    ):
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
    "a flipped byte": lambda path: path.write_bytes(flipped(path.read_bytes())),
    "an empty file": lambda path: path.write_bytes(b""),
    "an array file": lambda path: files.write_array(path, np.ones(3)),
    "text": lambda path: path.write_text("[]"),
}  # fmt: skip


def flipped(content):
    place = content.index(ARRAYS["centre"].tobytes())
    return content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :]


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


def test_a_missing_artifact_is_a_missing_file(tmp_path):
    for read in (artifacts.read, artifacts.read_record):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "a")


def test_a_digest_does_not_depend_on_order_or_tuples():
    assert artifacts.digest({"a": (1, 2), "b": 3}) == artifacts.digest({"b": 3, "a": [1, 2]})
    assert artifacts.digest({"a": 1}) != artifacts.digest({"a": 2})
