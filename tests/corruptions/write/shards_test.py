"""Parquet and WebDataset: what their own readers find, the same bytes again, and the card."""

import fnmatch
import io
import json
import sys
import tarfile

import numpy as np
import pytest
import yaml
from PIL import Image

import corruptions
from corruptions.write import manifests, shards, verify, write_dataset, writer
from tests.corruptions.write.datasets import IMAGES, LABELS, contents, expected_at_once, register_mine
from tests.pages import example_of
from tests.refusing import refuses

parquet = pytest.importorskip("pyarrow.parquet")
OPTIONS = {"corruptions": ["noc/contrast", "noc/hue"], "severities": [0, 0.5, 1]}
SUFFIX = {"parquet": "parquet", "webdataset": "tar"}


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(shards, "IMAGES", 5)  # 12 images: two shards and a part
    monkeypatch.setattr(shards, "ROWS", 2)


@pytest.fixture
def stub(monkeypatch):
    """A corruption that needs no compiling: the negative."""
    monkeypatch.setattr(writer, "corrupt", lambda key, images, *given, index: 255 - images)


def read_parquet(path):
    for row in parquet.read_table(path).to_pylist():
        yield row["image"]["bytes"], row["label"], row["image"]["path"]


def read_webdataset(path):
    with tarfile.open(path) as archive:
        members = archive.getmembers()
        for image, label in zip(members[::2], members[1::2]):
            key = image.name.partition(".")[0]
            assert label.name == f"{key}.cls" and (image.mtime, image.uname) == (0, "")
            yield archive.extractfile(image).read(), int(archive.extractfile(label).read()), image.name


READ = {"parquet": read_parquet, "webdataset": read_webdataset}


def block(layout, folder):
    """(images, labels, names) of the shards in a folder, in order."""
    rows = [row for path in sorted(folder.iterdir()) for row in READ[layout](path)]
    images = np.stack([np.asarray(Image.open(io.BytesIO(content))) for content, _, _ in rows])
    return images, [label for _, label, _ in rows], [name for _, _, name in rows]


@pytest.mark.parametrize("layout", READ)
def test_shards_hold_the_corrupted_images_in_order(layout, tmp_path):
    path = write_dataset(tmp_path, (IMAGES, LABELS), layout=layout, jpeg_quality=None, seed=3, **OPTIONS)
    for name, severity in (("noc/hue", 0.5), ("noc/contrast", 1)):
        folder = tmp_path / name.split("/")[1] / f"{severity:g}"
        assert [p.name for p in sorted(folder.iterdir())] == [f"0000{i}.{SUFFIX[layout]}" for i in range(3)]
        images, labels, names = block(layout, folder)
        assert np.array_equal(images, expected_at_once(IMAGES, name, severity, seed=3)) and labels == LABELS.tolist()
        assert names[7] == {"parquet": "1/07.png", "webdataset": "00000007.png"}[layout]
    manifest = json.loads(path.read_text())
    assert manifest["complete"] and manifest["files"]["checksums/hue-0.5.sha256"]["shards"] == 3
    assert verify(tmp_path, everything=True) == []


def of_datasets(folder, cache):
    import datasets

    found = datasets.load_dataset(str(folder), "hue-0.5", split="test", cache_dir=str(cache))  # as the card tells
    assert found.features == datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=["0", "1", "2"])}
    )
    return [(row["image"], row["label"]) for row in found]


def of_webdataset(folder, cache):
    import webdataset

    paths = sorted(map(str, (folder / "hue" / "0.5").iterdir()))
    return list(webdataset.WebDataset(paths, shardshuffle=False).decode("pil").to_tuple("png", "cls"))


@pytest.mark.parametrize(
    ("layout", "read"),
    [
        pytest.param("parquet", of_datasets, marks=pytest.mark.needs("datasets")),
        pytest.param("webdataset", of_webdataset, marks=pytest.mark.needs("webdataset")),
    ],
)
def test_the_libraries_of_the_forms_read_them(layout, read, tmp_path):
    write_dataset(tmp_path / "out", (IMAGES, LABELS), layout=layout, jpeg_quality=None, seed=3, **OPTIONS)
    images, labels = zip(*read(tmp_path / "out", tmp_path / "cache"))
    assert np.array_equal(np.stack(images), expected_at_once(IMAGES, "noc/hue", 0.5, seed=3))
    assert list(labels) == LABELS.tolist()


@pytest.mark.parametrize("layout", READ)
def test_again_and_after_damage_the_bytes_are_the_same(layout, stub, tmp_path, caplog):
    write_dataset(tmp_path, (IMAGES, LABELS), layout=layout, batch_size=7, **OPTIONS)
    before = contents(tmp_path)
    assert len(before) == 2 * 3 * 3 + 6 + 1
    damaged = tmp_path / f"hue/0.5/00001.{SUFFIX[layout]}"
    damaged.write_bytes(damaged.read_bytes()[:-9] + b"otherwise")
    (tmp_path / "README.md").unlink()
    assert [f"hue/0.5/00001.{SUFFIX[layout]}: expected sha256" in line for line in verify(tmp_path)] == [True]
    with caplog.at_level("INFO"):
        write_dataset(tmp_path, (IMAGES, LABELS), layout=layout, batch_size=12, **OPTIONS)
    assert "1 of 6 blocks to write" in caplog.text and contents(tmp_path) == before


def test_parquet_says_what_its_columns_are(stub, tmp_path):
    write_dataset(tmp_path, (IMAGES, LABELS), layout="parquet", corruptions="noc/hue", severities=[0])
    file = parquet.ParquetFile(tmp_path / "hue/0/00000.parquet")
    assert file.num_row_groups == 3 and file.metadata.num_rows == 5
    features = json.loads(file.schema_arrow.metadata[b"huggingface"])["info"]["features"]
    assert features["image"] == {"_type": "Image"} and features["label"]["names"] == ["0", "1", "2"]


def test_the_card_tells_a_later_version(own_registry, tmp_path):
    register_mine(10, version=3)
    of = {"corruptions": ["mine/darker", "noc/contrast"], "severities": [1]}
    write_dataset(tmp_path, (IMAGES, LABELS), layout="parquet", **of)
    (mine,) = [line for line in (tmp_path / "README.md").read_text().splitlines() if "mine/darker<" in line]
    assert "version 3" in mine and (tmp_path / "README.md").read_text().count("version ") == 1


def test_the_card_names_every_configuration_and_stays_when_edited(stub, tmp_path, caplog):
    write_dataset(tmp_path, (IMAGES, LABELS), layout="parquet", corruptions="noc/hue", severities=[0, 0.5])
    write_dataset(tmp_path, (IMAGES, LABELS), layout="parquet", corruptions="noc/contrast", severities=[0])
    card = (tmp_path / "README.md").read_text()
    head = yaml.safe_load(card.split("---\n")[1])
    files = [name for name in contents(tmp_path) if name.endswith(".parquet")]
    of = {one["config_name"]: one["data_files"][0]["path"] for one in head["configs"]}
    assert list(of) == ["contrast-0", "hue-0", "hue-0.5"]
    assert all(len(fnmatch.filter(files, path)) == 3 for path in of.values()) and len(files) == 9
    assert "| <code>noc/hue</code> | 0, 0.5 | - | - | - |" in card and "JPEG of quality 85" in card
    (tmp_path / "README.md").write_text(card.replace("all</code>.", "all</code>, drawn by hand."))
    write_dataset(tmp_path, (IMAGES, LABELS), layout="parquet", corruptions="noc/border", severities=[0])
    assert "README.md was edited; left as it is" in caplog.text
    assert "border" not in (tmp_path / "README.md").read_text()


def test_names_of_others_are_shown_as_they_are_on_the_card():
    entry = {"path": "x", "written": [1], "levels": None, "table": None, "options": {"a|b": "<b>"}}
    manifest = {"source": {"kind": "tfds", "name": "a|b\n# <script>", "split": "`x`"}, "image_shape": [32, 32, 3]}
    manifest |= {"jpeg_quality": None, "corruptions": {"my/<i>|": entry}, "images": 1}
    manifest |= {"class_names": ["a"], "seed": 0, "key": "k"}
    card = manifests.card(manifest, ".tar")
    assert "<script>" not in card and "<i>" not in card and "<b>" not in card and "\n# <" not in card
    (row,) = [line for line in card.splitlines() if "my/" in line]
    assert row.count("|") == 6 and "a&#124;b" in row


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    refuses(
        lambda: write_dataset(tmp_path, (IMAGES, LABELS), layout="parquet", corruptions="noc/hue", severities=[0]),
        "needs pyarrow",
        "pip install pyarrow",
        kind=ModuleNotFoundError,
    )


def test_the_recipe_of_the_howto_runs(stub, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = {"corruptions": corruptions, "images": IMAGES, "labels": LABELS}
    exec(example_of("docs/howto/data.md", "Write a corrupted dataset as Parquet or WebDataset"), found)
    assert found["table"].num_rows == 5 and found["table"].column_names == ["image", "label"]
    assert (tmp_path / "hue-tar/hue/0.5/00002.tar").exists()
