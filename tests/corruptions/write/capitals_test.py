"""Names that differ only in capitals, or in how their letters are composed: disks of macOS and Windows take them for one."""

import dataclasses
import unicodedata

import numpy as np
import pytest

import corruptions
from corruptions import files, noc
from corruptions.write import WriteError, from_arrays, from_folder, write_dataset
from tests.corruptions.write.datasets import IMAGES
from tests.refusing import refuses

LABELS = np.array([0, 1, 1])
GIVEN = {"corruptions": "noc/hue", "severities": [1], "layout": "folders", "jpeg_quality": None, "progress": False}
CAFE = [unicodedata.normalize(form, "café") for form in ("NFC", "NFD")]


@pytest.mark.parametrize("classes", [("A", "a"), ("Straße", "STRASSE"), CAFE], ids=["capitals", "sharp s", "composed"])
def test_classes_that_other_disks_merge_are_named_and_refused_on_such_a_disk(tmp_path, caplog, monkeypatch, classes):
    source = from_arrays(IMAGES[:3], LABELS, classes)
    write_dataset(tmp_path / "apart", source, **GIVEN)
    (line,) = [record.getMessage() for record in caplog.records if "capitals" in record.getMessage()]
    assert "1 names differ" in line and repr(classes[0]) in line and repr(classes[1]) in line
    assert len(from_folder(tmp_path / "apart/hue/1")) == 3
    assert not list((tmp_path / "apart").glob(".names-*"))
    monkeypatch.setattr(files, "keeps_apart", lambda *_: False)  # as macOS and Windows do
    with pytest.raises(
        WriteError, match=r"expected names that .* keeps apart, found .*; rename one, or .*parquet"
    ) as refusal:
        write_dataset(tmp_path / "merged", source, **GIVEN)
    assert "\n" not in str(refusal.value) and not list((tmp_path / "merged").glob("hue*"))
    write_dataset(tmp_path / "parquet", source, **GIVEN | {"layout": "parquet"})  # names in a table


def test_images_of_a_class_that_other_disks_merge_are_named(tmp_path, caplog):
    source = dataclasses.replace(from_arrays(IMAGES[:3], LABELS), names=("x", "IMG", "img"))
    write_dataset(tmp_path / "apart", source, **GIVEN)
    (line,) = [record.getMessage() for record in caplog.records if "capitals" in record.getMessage()]
    assert "'1/img.png' from '1/IMG.png'" in line
    caplog.clear()
    write_dataset(tmp_path / "same", dataclasses.replace(source, names=("IMG", "x", "img")), **GIVEN)
    assert "capitals" not in caplog.text  # in two classes


def test_corruptions_whose_files_other_disks_merge_are_refused(tmp_path, own_registry):
    with pytest.raises(
        ValueError, match="expected a name that every file system tells from 'noc/hue', found 'noc/HUE'"
    ) as refusal:
        corruptions.register(dataclasses.replace(noc.hue, name="HUE"))
    assert "\n" not in str(refusal.value)
    corruptions.register(dataclasses.replace(noc.hue, benchmark="mine", name="a.b"), replace=True)
    with pytest.raises(ValueError, match=r"tells from 'mine/a\.b', found 'mine.a/b'"):
        corruptions.register(dataclasses.replace(noc.hue, benchmark="mine.a", name="b"))  # files call both mine.a.b
    corruptions.register(dataclasses.replace(noc.hue, benchmark="mine", name="Hue"), replace=True)
    refuses(
        lambda: write_dataset(tmp_path, (IMAGES[:3], LABELS), **GIVEN | {"corruptions": ["noc/hue", "mine/Hue"]}),
        "have a corruption called",
    )
