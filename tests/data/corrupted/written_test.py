"""Datasets of `corruptions.write`, read back in every layout; damaged shards are refused."""

import io
import json
import tarfile

import numpy as np
import pytest
from PIL import Image

from corruptions.write import from_arrays, manifests, shards, write_dataset, writer
from data.corrupted import dataset, open_corrupted
from tests.data.corrupted.published_test import LABELS, NUMBER, pixels, whole
from tests.refusing import refuses


@pytest.mark.parametrize("layout", ["npy", "folders", "parquet", "webdataset"])
def test_written_datasets_are_read_back(tmp_path, layout, monkeypatch):
    monkeypatch.setattr(shards, "IMAGES", 4)  # 7 images: two shards, and batches across them
    if layout == "parquet":
        pytest.importorskip("pyarrow.parquet")
    images = pixels("clean", 0)
    source = from_arrays(images, LABELS, class_names=["zebra", "ant", "cat", "bee"])  # not in sorted order
    severities = {"noc/border": [0, 0.5], "noc/contrast": [1, "random"]}
    given = {"corruptions": list(severities), "severities": severities}
    path = write_dataset(tmp_path, source, layout=layout, jpeg_quality=None, **given)
    assert (tmp_path / "contrast/random").is_dir() == (layout != "npy")
    dataset = open_corrupted(tmp_path)
    assert dataset.conditions() == tuple((name, s) for name, some in severities.items() for s in some)
    assert dataset.number == NUMBER and dataset.class_names == ("zebra", "ant", "cat", "bee")
    assert dataset.provenance["manifest"] == json.loads(path.read_text())
    again = tmp_path / "again"
    write_dataset(again, source, **given)
    order = np.argsort(LABELS, kind="stable") if layout == "folders" else np.arange(NUMBER)
    for name in ("border", "contrast"):
        both = np.load(again / f"{name}.npy").reshape(2, NUMBER, 32, 32, 3)
        for block, severity in enumerate(severities[f"noc/{name}"]):
            found, labels = whole(dataset, f"noc/{name}", severity)
            assert np.array_equal(found, both[block][order]) and np.array_equal(labels, LABELS[order])


@pytest.mark.parametrize("layout", ["npy", "folders"])
def test_unfinished_datasets_and_removed_folders_are_refused(tmp_path, layout):
    given = {"corruptions": "noc/border", "severities": [0, 1], "layout": layout}
    path = write_dataset(tmp_path, (pixels("clean", 0), LABELS), **given)
    if layout == "folders":
        (tmp_path / "border/1").rename(tmp_path / "elsewhere")
        refuses(lambda: open_corrupted(tmp_path), "of its files changed", "Mend")
    manifest = json.loads(path.read_text())
    manifest["corruptions"]["noc/border"]["written"].pop()
    manifests.save(tmp_path, manifest)
    refuses(lambda: open_corrupted(tmp_path), "run its command again")
    for text in ("[]", "{", "{}", '{"sha256": 3}'):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"manifest\.json is not a readable manifest"):
            open_corrupted(tmp_path)


SUFFIX = {"webdataset": "tar", "parquet": "parquet"}


@pytest.fixture(params=SUFFIX)
def written(request, tmp_path, monkeypatch):
    """(folder, a shard, the dataset that was opened) of a corruption that needs no compiling."""
    if request.param == "parquet":
        pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(writer, "corrupt", lambda key, images, *given, index: 255 - images)
    given = {"corruptions": "noc/hue", "severities": [0.5], "jpeg_quality": None, "layout": request.param}
    write_dataset(tmp_path, (pixels("clean", 0), LABELS), **given)
    return tmp_path, tmp_path / f"hue/0.5/00000.{SUFFIX[request.param]}", open_corrupted(tmp_path)


def test_a_shard_that_was_changed_is_refused_and_named_when_it_is_read(written):
    folder, shard, dataset = written
    content = shard.read_bytes()
    for harmed in (content[:3000], content[:600] + bytes(len(content) - 600), b"", content[::-1]):
        shard.write_bytes(harmed)
        with pytest.raises(ValueError, match=rf"{shard.name}.* is damaged|expected 7 images as in its manifest"):
            whole(dataset, "hue", 0.5)
    with pytest.raises(ValueError, match=rf"{shard.name}: expected sha256.*\nMend them with:\n.*--verify"):
        open_corrupted(folder)
    shard.unlink()
    refuses(lambda: whole(dataset, "hue", 0.5), "hue/0.5: expected 7 images as")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([*LABELS[:-1], 4], r"record 6: expected a label 0\.\.3, found 4"),
        ([*LABELS[:-1], -1], r"record 6: expected a label 0\.\.3, found -1"),
        (LABELS[:-1], "expected 7 images as in its manifest, found 6"),
    ],
)
def test_shards_of_other_labels_or_numbers_are_refused_though_their_sha256_fits(written, monkeypatch, labels, message):
    folder, shard, _ = written
    opened = shards.Rows(shard, ["a"]) if shard.suffix == ".parquet" else shards.Members(shard)
    for position, (image, label) in enumerate(zip(pixels("clean", 0), labels)):
        png = io.BytesIO()
        Image.fromarray(image).save(png, "PNG")
        opened.add(position, "x.png", label, png.getvalue())
    opened.close()
    monkeypatch.setattr(dataset, "verify", lambda path, everything: [])
    with pytest.raises(ValueError, match=message):
        whole(open_corrupted(folder), "hue", 0.5)


@pytest.mark.parametrize("written", ["webdataset"], indirect=True)
def test_an_image_without_its_label_is_named(written):
    _, shard, dataset = written
    with tarfile.open(shard) as archive:
        members = archive.getmembers()
        contents = [archive.extractfile(member).read() for member in members]
    with tarfile.open(shard, "w") as archive:
        for member, content in list(zip(members, contents))[1:]:
            archive.addfile(member, io.BytesIO(content))
    refuses(lambda: whole(dataset, "hue", 0.5), "00000.tar is damaged", "of 00000000.cls beside it")
