"""A second call on a folder, what of it is refused, and arguments that are."""

import json
import pathlib

import numpy as np
import pytest

import corruptions
from corruptions.write import WriteError, files, verify, write_dataset
from tests.corruptions.write.datasets import NUMBER, expected


def test_a_second_call_adds_corruptions_and_does_nothing_twice(clean, tmp_path):
    write_dataset(tmp_path, clean, corruptions="imagenet_c/contrast")
    before = (tmp_path / "contrast.npy").stat()
    path = write_dataset(tmp_path, clean, corruptions=["noc/border", "imagenet_c/contrast"])
    after = (tmp_path / "contrast.npy").stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)
    found = json.loads(path.read_text())
    assert set(found["corruptions"]) == {"imagenet_c/contrast", "noc/border"} and len(found["runs"]) == 2
    assert np.array_equal(np.load(tmp_path / "border.npy")[:NUMBER], expected(clean[0], "noc/border", 0, seed=0))
    write_dataset(tmp_path, clean, corruptions="noc/border")
    assert len(json.loads(path.read_text())["runs"]) == 2  # nothing was left to do


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"seed": 1}, "seed: stored 0, asked 1"),
        ({"table": "tiny"}, r'contrast\.table: stored "cifar", asked "tiny"'),
        ({"severities": [1, 2]}, r"contrast\.severities: stored \[1, 2, 3, 4, 5\], asked \[1, 2\]"),
        ({"layout": "folders"}, 'layout: stored "npy", asked "folders"'),
    ],
)
def test_other_settings_are_refused_and_named(clean, tmp_path, change, named):
    write_dataset(tmp_path, clean, corruptions="imagenet_c/contrast")
    before = {p: p.read_bytes() for p in tmp_path.glob("*.*")}
    with pytest.raises(WriteError, match=named):
        write_dataset(tmp_path, clean, corruptions="imagenet_c/contrast", **change)
    assert {p: p.read_bytes() for p in tmp_path.glob("*.*")} == before


def _write(folder, clean, **options):
    write_dataset(folder, clean, corruptions="imagenet_c/contrast", severities=[1], **options)


def _foreign_block(folder, clean):
    _write(folder, clean, layout="folders")
    (folder / "border/1").mkdir(parents=True)


def _foreign_array(folder, clean):
    _write(folder, clean)
    (folder / "border.npy").write_text("published")


FOLDERS = {  # change to the folder "out", arguments of the next call, refusal
    "other images": (
        lambda out, clean: _write(out, (255 - clean[0], clean[1])),
        {"corruptions": "imagenet_c/contrast"},
        r"source\.images_sha256: stored",
    ),
    "a foreign file": (
        lambda out, clean: (out.mkdir(), (out / "thesis.tex").write_text("precious")),
        {},
        r"holding thesis\.tex",
    ),
    "a foreign array": (_foreign_array, {}, r"border\.npy .*not written by this program"),
    "a foreign block": (_foreign_block, {"layout": "folders"}, r"border/1 .*not written by this program"),
    "a file": (lambda out, clean: out.write_text(""), {}, "found a file"),
    "a damaged manifest": (
        lambda out, clean: (out.mkdir(), (out / "manifest.json").write_text("{")),
        {},
        r"manifest\.json is not a readable manifest",
    ),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_folders_that_are_refused_stay_as_they_are(clean, tmp_path, name):
    harm, arguments, message = FOLDERS[name]
    harm(tmp_path / "out", clean)
    ours = ("manifest.json", ".checks.json", ".lock")  # files that the writer may change before it refuses
    contents = lambda: {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file() and p.name not in ours}  # noqa: E731
    before = contents()
    with pytest.raises(WriteError, match=message):
        write_dataset(tmp_path / "out", clean, **{"corruptions": "noc/border", "severities": [1]} | arguments)
    assert contents() == before


def test_a_folder_below_a_file_is_refused(clean, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="cannot write to the folder"):
        write_dataset(tmp_path / "file" / "below", clean, corruptions="noc/border")


def test_two_writers_at_once_are_refused(clean, tmp_path):
    with files.lock(tmp_path), pytest.raises(WriteError, match="another process is writing"):
        write_dataset(tmp_path, clean, corruptions="noc/border")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"layout": "tar"}, ValueError, "layout among npy, folders, parquet, webdataset, found 'tar'"),
        ({"layout": "folders", "jpeg_quality": 0}, ValueError, "jpeg_quality 1..95 or None for PNG, found 0"),
        ({"batch_size": 0}, ValueError, "batch_size of at least 1"),
        ({"corruptions": "noc/borders"}, ValueError, "did you mean 'noc/border'"),
        ({"corruptions": []}, ValueError, "at least one corruption"),
        ({"corruptions": "cifar10_c_bar", "severities": [6]}, ValueError, r"1\.\.5 of cbar/.* found 6"),
        ({"corruptions": "cifar10_c_bar", "severities": ["random"]}, ValueError, r"1\.\.5 of cbar/.* found random"),
        ({"corruptions": ["cifar10_c_bar", "cbar/lines"]}, ValueError, "lines is asked for with two selections"),
        ({"corruptions": "cbar/lines", "table": "tiny"}, ValueError, "among cifar, imagenet, found 'tiny'"),
        ({"severities": [1.5]}, ValueError, "expected a severity in"),
        ({"severities": [1, 1]}, ValueError, "without repetition"),
        ({"options": {"noc/border": {"rang": 1}}}, ValueError, "did you mean 'range'"),
        ({"corruptions": ["noc/contrast", "imagenet_c/contrast"]}, ValueError, "folders of their own"),
        ({"corruptions": ["noc/border", "noc/hue"], "severities": {"noc/hue": [1]}}, WriteError, "as many severities"),
        ({"source": (np.zeros((2, 20, 20), np.uint8), np.zeros(2, int))}, ValueError, r"uint8\[N, H, W, 3\]"),
        ({"source": (np.zeros((2, 20, 20, 3), np.uint8), np.zeros(3, int))}, ValueError, r"whole labels \[2\]"),
        ({"source": (np.zeros((0, 20, 20, 3), np.uint8), np.zeros(0, int))}, ValueError, "at least one image"),
        ({"source": (np.zeros((1, 20, 20, 3), np.uint8), np.array([-1]))}, ValueError, r"found -1\.\.-1"),
        ({"source": (np.zeros((1, 8, 8, 3), np.uint8), np.array([0]))}, ValueError, "at least 16x16"),
    ],
)
def test_arguments_that_are_wrong(clean, tmp_path, change, error, message):
    arguments = {"source": clean, "corruptions": ["noc/border"], **change}
    with pytest.raises(error, match=message):
        write_dataset(tmp_path / "out", **arguments)


@pytest.mark.parametrize(
    "call",
    [
        lambda path: corruptions.evaluate(None, np.zeros((1, 16, 16, 3), np.uint8), [0], path=path),
        lambda path: verify(path),
    ],
    ids=["evaluate", "verify"],
)
@pytest.mark.parametrize("path", ["gs://b/c", pathlib.Path("s3://b/c")], ids=str)
def test_addresses_of_buckets_are_refused(call, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        WriteError, match=f"expected a path of this machine, found the address {path}; mount the bucket"
    ):
        call(path)
    assert not list(tmp_path.iterdir())
