"""What `corruptions.write` wrote, read back."""

import json

import numpy as np
import pytest

from corruptions.write import from_arrays, manifests, shards, write_dataset
from data.corrupted import open_corrupted
from tests.data.corrupted.pictures import LABELS, NUMBER, pixels, whole


@pytest.mark.parametrize("layout", ["npy", "folders", "parquet", "webdataset"])
def test_written_datasets_are_read_back(tmp_path, layout, monkeypatch):
    monkeypatch.setattr(shards, "IMAGES", 4)  # 7 images: two shards, and batches across them
    if layout == "parquet":
        pytest.importorskip("pyarrow.parquet")
    images = pixels("clean", 0)
    source = from_arrays(images, LABELS, class_names=["zebra", "ant", "cat", "bee"])  # not in sorted order
    severities = {"noc/border": [0, 0.5], "noc/contrast": [1, "random"]}
    path = write_dataset(
        tmp_path, source, corruptions=list(severities), severities=severities, layout=layout, jpeg_quality=None
    )
    dataset = open_corrupted(tmp_path)
    assert dataset.conditions() == tuple((name, s) for name, some in severities.items() for s in some)
    assert dataset.number == NUMBER and dataset.class_names == ("zebra", "ant", "cat", "bee")
    assert dataset.provenance["manifest"] == json.loads(path.read_text())
    again = tmp_path / "again"
    write_dataset(again, source, corruptions=list(severities), severities=severities)
    order = np.argsort(LABELS, kind="stable") if layout == "folders" else np.arange(NUMBER)
    for name in ("border", "contrast"):
        both = np.load(again / f"{name}.npy").reshape(2, NUMBER, 32, 32, 3)
        for block, severity in enumerate(severities[f"noc/{name}"]):
            found, labels = whole(dataset, f"noc/{name}", severity)
            assert np.array_equal(found, both[block][order]) and np.array_equal(labels, LABELS[order])


@pytest.mark.parametrize("layout", ["npy", "folders"])
def test_unfinished_datasets_are_refused(tmp_path, layout):
    path = write_dataset(tmp_path, (pixels("clean", 0), LABELS), corruptions="noc/border", layout=layout)
    manifest = json.loads(path.read_text())
    manifest["corruptions"]["noc/border"]["written"].pop()
    manifests.save(tmp_path, manifest)
    with pytest.raises(ValueError, match=r"is not written to its end \(noc/border\); run its command again"):
        open_corrupted(tmp_path)
    for text in ("[]", "{", "{}", '{"sha256": 3}'):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"manifest\.json is not a readable manifest"):
            open_corrupted(tmp_path)


def test_written_folders_that_were_removed_are_named(tmp_path):
    write_dataset(tmp_path, (pixels("clean", 0), LABELS), corruptions="noc/border", severities=[0, 1], layout="folders")
    (tmp_path / "border/1").rename(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=r"1 of its files are not what was written:\n.*border/1 is missing\nMend"):
        open_corrupted(tmp_path)
