"""The published layouts, pixels equal to `corrupt`, and manifests; a second call on a folder, and what is refused."""

import dataclasses
import hashlib
import io
import json
import pathlib

import jax
import numpy as np
import pytest
from PIL import Image, JpegImagePlugin

import corruptions
from corruptions.core import registry
from corruptions.write import WriteError, from_arrays, from_folder, verify, write_dataset
from data.corrupted import open_corrupted
from tests.corruptions.comparing import assert_same, refused
from tests.corruptions.write.datasets import expected
from tests.refusing import refuses

NUMBER = 23


@pytest.fixture(scope="module")
def clean():
    rng = np.random.default_rng(5)
    coarse = rng.integers(0, 256, (NUMBER, 5, 6, 3), dtype=np.uint8)
    images = [Image.fromarray(image).resize((24, 20), Image.Resampling.BICUBIC) for image in coarse]
    return np.stack([np.asarray(image) for image in images]), rng.integers(0, 4, NUMBER)


def test_npy_layout_is_that_of_cifar_10_c(clean, tmp_path):
    images, labels = clean
    names = ["imagenet_c/contrast", "noc/border"]
    severities = {"imagenet_c/contrast": [1, 4, 5], "noc/border": [0, 0.5, 1]}
    write_dataset(tmp_path, clean, corruptions=names, severities=severities, seed=7, batch_size=10)
    assert {path.name for path in tmp_path.glob("[!.]*")} == {
        "border.npy",
        "contrast.npy",
        "labels.npy",
        "manifest.json",
    }
    assert np.array_equal(np.load(tmp_path / "labels.npy"), np.concatenate([labels] * 3))
    for name in names:
        found = np.load(tmp_path / f"{name.split('/')[1]}.npy")
        assert found.dtype == np.uint8 and found.shape == (3 * NUMBER, 20, 24, 3)
        for block, severity in enumerate(severities[name]):
            target = expected(images, name, severity, seed=7)
            assert np.array_equal(found[block * NUMBER : (block + 1) * NUMBER], target), (name, severity)


def test_a_benchmark_with_levels_of_its_own_has_severities_1_to_5(clean, tmp_path, monkeypatch):
    images, labels = clean
    members = {"cbar/sparkles": (1, 5, 8, 9, 10), "cbar/lines": (2, 3, 4, 6, 7)}
    monkeypatch.setitem(registry._BENCHMARKS, "small_bar", members)
    path = write_dataset(tmp_path / "npy", clean, corruptions="small_bar", seed=3)
    for name, levels in members.items():
        found = np.load(tmp_path / f"npy/{name.split('/')[1]}.npy").reshape(5, *images.shape)
        for block, level in enumerate(levels):
            assert_same(found[block], expected(images, name, level, seed=3))
        entry = json.loads(path.read_text())["corruptions"][name]
        assert (entry["severities"], entry["levels"], entry["table"]) == ([1, 2, 3, 4, 5], list(levels), "cifar")
    options = {"layout": "folders", "jpeg_quality": None, "severities": [2, 4], "seed": 3}
    write_dataset(tmp_path / "folders", clean, corruptions=["small_bar"], **options)
    for severity, level in ((2, 5), (4, 9)):
        with Image.open(tmp_path / f"folders/sparkles/{severity}/{labels[1]}/01.png") as image:
            assert_same(np.asarray(image), expected(images, "cbar/sparkles", level, seed=3)[1])
    assert sorted(p.name for p in (tmp_path / "folders/lines").iterdir()) == ["2", "4"]


@pytest.mark.parametrize(("names", "written"), [(("truck", "airplane"), True), (("airplane", "truck"), False)])
def test_names_that_readers_would_sort_otherwise_are_listed(clean, tmp_path, caplog, names, written):
    source = from_arrays(clean[0], clean[1] % 2, names)
    folders = {"layout": "folders", "corruptions": "noc/hue", "severities": [0]}
    for _ in range(2):
        write_dataset(tmp_path / "out", source, **folders)
    assert (tmp_path / "out/classes.txt").is_file() == written == ("classes.txt" in caplog.text)
    if written:
        assert (tmp_path / "out/classes.txt").read_text().split() == list(names)
    assert verify(tmp_path / "out", everything=True) == []
    opened = open_corrupted(tmp_path / "out")
    ((_, labels),) = opened.batches("noc/hue", 0, batch_size=NUMBER)
    assert opened.class_names == names and sorted(labels) == sorted(clean[1] % 2)


def test_classes_without_images_are_told(clean, tmp_path, caplog):
    source = from_arrays(clean[0], clean[1] * 0 + 1, ("a", "b", "c"))
    write_dataset(tmp_path / "out", source, layout="folders", corruptions="noc/hue", severities=[0])
    assert "2 of 3 classes" in caplog.text


@pytest.mark.parametrize("batch_size", [1, 8, NUMBER, 100, None])
def test_batch_size_does_not_matter(clean, tmp_path, batch_size):
    write_dataset(tmp_path, clean, corruptions="noc/border", severities=["random"], batch_size=batch_size)
    assert np.array_equal(np.load(tmp_path / "border.npy"), expected(clean[0], "noc/border", None, seed=0))


def test_options_and_table_reach_the_corruption_and_the_manifest(clean, tmp_path):
    images, _ = clean
    options = {"noc/border": {"range": np.array([3, 5])}}
    names = ["noc/border", "imagenet_c/brightness"]
    path = write_dataset(tmp_path, clean, corruptions=names, severities=[1], options=options, table="imagenet", seed=1)
    assert np.array_equal(np.load(tmp_path / "border.npy"), expected(images, "noc/border", 1, 1, range=(3, 5)))
    target = expected(images, "imagenet_c/brightness", 1, 1, table="imagenet")
    assert np.array_equal(np.load(tmp_path / "brightness.npy"), target)
    assert not np.array_equal(target, expected(images, "imagenet_c/brightness", 1, 1))
    entries = json.loads(path.read_text())["corruptions"]
    assert entries["noc/border"]["options"] == {"range": [3, 5]}
    assert entries["imagenet_c/brightness"]["table"] == "imagenet"


def test_random_severities_of_a_selection_are_drawn_from_its_levels(clean, tmp_path, monkeypatch):
    monkeypatch.setitem(registry._BENCHMARKS, "small_bar", {"cbar/sparkles": (1, 5)})
    for number, severities in enumerate(("random", ["random"], ["random", 2])):
        out = tmp_path / str(number)
        path = write_dataset(out, clean, corruptions="small_bar", severities=severities, seed=3)
        found = np.load(out / "sparkles.npy")
        assert_same(found[:NUMBER], expected(clean[0], "cbar/sparkles", None, seed=3, levels=(1, 5)))
    assert_same(found[NUMBER:], expected(clean[0], "cbar/sparkles", 5, seed=3))
    entry = json.loads(path.read_text())["corruptions"]["cbar/sparkles"]
    assert (entry["severities"], entry["levels"]) == (["random", 2], ["random", 5])


def test_one_severity_is_a_number_or_random(clean, tmp_path):
    path = write_dataset(tmp_path, clean, corruptions="imagenet_c/contrast", severities=3)
    assert json.loads(path.read_text())["corruptions"]["imagenet_c/contrast"]["severities"] == [3]
    for wrong in ("3", [None], [True], "levels"):
        with pytest.raises(ValueError, match=r'severities "random", 3 or \(1, 3, 5\) of imagenet_c/contrast, found'):
            write_dataset(tmp_path / "b", clean, corruptions="imagenet_c/contrast", severities=wrong)


def test_options_under_two_spellings_join_and_misspelt_ones_are_refused(clean, tmp_path):
    options = {"fog": {"table": "imagenet"}, "imagenet_c/fog": {"interpolate": True}}
    path = write_dataset(tmp_path, clean, corruptions="imagenet_c/fog", severities=[1], options=options)
    entry = json.loads(path.read_text())["corruptions"]["imagenet_c/fog"]
    assert entry["options"] == {"table": "imagenet", "interpolate": True}
    with refused("rnage", "'rnage'"):
        write_dataset(tmp_path / "b", clean, corruptions="noc/hue", options={"noc/border": {"rnage": (3, 5)}})
    assert not (tmp_path / "b").exists()


def test_manifest_says_what_was_written_and_by_what(clean, tmp_path):
    path = write_dataset(tmp_path, clean, corruptions="imagenet_c/contrast", seed=11)
    found = json.loads(path.read_text())
    assert path == tmp_path / "manifest.json" and found["complete"] is True
    assert (found["seed"], found["layout"], found["images"]) == (11, "npy", NUMBER)
    assert found["image_shape"] == [20, 24, 3] and found["class_names"] == ["0", "1", "2", "3"]
    entry = found["corruptions"]["imagenet_c/contrast"]
    assert entry["severities"] == entry["written"] == [1, 2, 3, 4, 5] and entry["table"] == "cifar"
    assert found["source"]["images_sha256"] == hashlib.sha256(clean[0].tobytes()).hexdigest()
    assert sorted(found["files"]) == ["contrast.npy", "labels.npy"]
    for name, facts in found["files"].items():
        content = (tmp_path / name).read_bytes()
        assert facts == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (run,) = found["runs"]
    assert run["versions"]["jax"] == jax.__version__ and run["versions"]["numpy"] == np.__version__
    assert {"jaxlib", "jax-corruptions", "python"} <= set(run["versions"]) and run["command"] and run["device"]


def test_folders_as_published_are_jpeg_85(clean, tmp_path):
    images, labels = clean
    write_dataset(tmp_path, clean, corruptions="imagenet_c/contrast", severities=[2, 3], layout="folders", seed=2)
    files = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.JPEG"))
    assert files == sorted(f"contrast/{s}/{labels[i]}/{i:02d}.JPEG" for s in (2, 3) for i in range(NUMBER))
    corrupted = expected(images, "imagenet_c/contrast", 3, seed=2)
    for i in range(NUMBER):
        reference = io.BytesIO()
        Image.fromarray(corrupted[i]).save(reference, "JPEG", quality=85, optimize=True)
        path = tmp_path / f"contrast/3/{labels[i]}/{i:02d}.JPEG"
        with Image.open(path) as image, Image.open(reference) as target:
            assert JpegImagePlugin.get_sampling(image) == 2  # 4:2:0
            assert image.quantization[0][:3] == [5, 3, 3]  # 16, 11, 10 of the standard, times 30 %
            assert np.array_equal(np.asarray(image), np.asarray(target))
    lines = (tmp_path / "checksums/contrast-3.sha256").read_text().splitlines()
    assert len(lines) == NUMBER
    for line in lines:
        digest, name = line.split("  ")
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == digest
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {".checks.json", ".lock", "checksums", "contrast", "manifest.json"}


def test_folders_keep_class_and_file_names(clean, tmp_path):
    images, _ = clean
    for i, name in enumerate(["n02/val_7.png", "n02/val_10.JPEG", "n01/x/y.png"]):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(images[i]).save(tmp_path / "in" / name)
    (tmp_path / "in/n00").mkdir()  # a class without images keeps its number
    out = tmp_path / "out"
    write_dataset(out, from_folder(tmp_path / "in"), corruptions="noc/border", severities=[1], layout="folders")
    files = sorted(p.relative_to(out).as_posix() for p in out.rglob("*.JPEG"))
    assert files == ["border/1/n01/x/y.JPEG", "border/1/n02/val_10.JPEG", "border/1/n02/val_7.JPEG"]
    assert (out / "border/1/n00").is_dir()


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
    refuses(
        lambda: write_dataset(tmp_path / "file" / "below", clean, corruptions="noc/border"),
        "write to the folder",
        kind=WriteError,
    )


def test_an_empty_path_is_no_folder(clean, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with refused("out", "an empty one"):
        write_dataset("", clean, corruptions="noc/border")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"layout": "tar"}, ValueError, "layout among npy, folders, parquet, webdataset, found 'tar'"),
        ({"layout": "folders", "jpeg_quality": 0}, ValueError, "jpeg_quality 1..95 or None for PNG, found 0"),
        ({"batch_size": 0}, ValueError, "batch_size of at least 1"),
        ({"corruptions": "noc/borders"}, ValueError, "did you mean 'noc/border'"),
        ({"corruptions": []}, ValueError, "at least one corruption"),
        ({"corruptions": "cifar10_c_bar", "severities": [6]}, ValueError, r"1\.\.5 of cbar/.* found 6"),
        ({"corruptions": "cifar10_c_bar", "severities": ["random", 0]}, ValueError, r"1\.\.5 of cbar/.* found 0"),
        ({"corruptions": ["cifar10_c_bar", "cbar/lines"]}, ValueError, "lines is asked for with two selections"),
        ({"corruptions": "cbar/lines", "table": "tiny"}, ValueError, "found 'tiny'"),
        ({"severities": [1.5]}, ValueError, "expected a severity in"),
        ({"table": "cifar"}, ValueError, "expected no table for corruptions without one, found 'cifar'"),
        ({"severities": {"noc/hue": [1]}}, ValueError, "severities of corruptions that are asked for, .* noc/hue"),
        (
            {"corruptions": dataclasses.replace(registry.get("noc/hue"))},
            ValueError,
            r"not; corruptions\.register\(it\)",
        ),
        ({"severities": [1, 1]}, ValueError, "without repetition"),
        ({"options": {"noc/border": {"rang": 1}}}, ValueError, "did you mean 'range'"),
        ({"corruptions": ["noc/contrast", "imagenet_c/contrast"]}, ValueError, "folders of their own"),
        ({"corruptions": ["noc/border", "noc/hue"], "severities": {"noc/hue": [1]}}, WriteError, "as many severities"),
        ({"source": (np.zeros((2, 20, 20), np.uint8), np.zeros(2, int))}, ValueError, r"uint8\[N, H, W, 3\]"),
        ({"source": (np.zeros((2, 20, 20, 3), np.uint8), np.zeros(3, int))}, ValueError, r"whole labels \[2\]"),
        ({"source": (np.zeros((0, 20, 20, 3), np.uint8), np.zeros(0, int))}, ValueError, "at least one image"),
        ({"source": (np.zeros((1, 20, 20, 3), np.uint8), np.array([-1]))}, ValueError, r"found -1\.\.-1"),
        ({"source": (np.zeros((1, 8, 8, 3), np.uint8), np.array([0]))}, ValueError, "at least 16x16"),
        (
            {"source": np.zeros((2, 20, 20, 3), np.uint8)},
            TypeError,
            r"\(images, labels\) or a Source to write, found ndarray",
        ),
    ],
)
def test_arguments_that_are_wrong(clean, tmp_path, change, error, message):
    arguments = {"source": clean, "corruptions": ["noc/border"], **change}
    with pytest.raises(error, match=message):
        write_dataset(tmp_path / "out", **arguments)


def test_a_value_that_is_refused_is_asked_for_again_rightly(clean, tmp_path):
    arguments = {"corruptions": "noc/border", "severities": np.array([0.5], np.float32)}
    refuses(lambda: write_dataset(tmp_path, clean, **arguments, options={"noc/border": {"grey": 2}}), "grey")
    path = write_dataset(tmp_path, clean, **arguments, options={"noc/border": {"grey": 0.5}})
    assert json.loads(path.read_text())["corruptions"]["noc/border"]["severities"] == [0.5]


@pytest.mark.parametrize(
    "call",
    [
        lambda path: corruptions.evaluate(None, np.zeros((1, 16, 16, 3), np.uint8), [0], path=path),
        lambda path: verify(path),
        lambda path: write_dataset(path, (np.zeros((1, 16, 16, 3), np.uint8), [0])),
    ],
    ids=["evaluate", "verify", "write"],
)
@pytest.mark.parametrize("path", ["gs://b/c", pathlib.Path("s3://b/c")], ids=str)
def test_addresses_of_buckets_are_refused(call, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        WriteError, match=f"expected a path of this machine, found the address {path}; write to a folder and copy it"
    ):
        call(path)
    assert not list(tmp_path.iterdir())


def test_folders_without_jpeg_are_lossless(clean, tmp_path):
    images, labels = clean
    options = {"severities": [0.25, "random"], "layout": "folders", "jpeg_quality": None}
    write_dataset(tmp_path, clean, corruptions=["noc/border"], **options)
    for severity, value in (("0.25", 0.25), ("random", None)):
        target = expected(images, "noc/border", value, seed=0)
        for i in range(NUMBER):
            with Image.open(tmp_path / f"border/{severity}/{labels[i]}/{i:02d}.png") as image:
                assert np.array_equal(np.asarray(image), target[i])
