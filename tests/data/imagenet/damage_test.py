"""Prepared stores that were damaged."""

import dataclasses
import json
import os

import numpy as np
import pytest

import data
import data.prepare
from data.dataset import union
from data.imagenet import prepare, store
from tests.data.imagenet import trees
from tests.data.imagenet.trees import content, shards


def flip(path, position=-7):
    whole = bytearray(path.read_bytes())
    whole[position] ^= 1
    path.write_bytes(whole)
    return path


def mended(tree, copy):
    """Runs the command that verifies and mends; returns the store's content."""
    arguments = ["--dataset=imagenet100", f"--data_dir={copy}", "--image_size=16", "--verify"]
    assert data.prepare.main([*arguments, f"--source={tree}", "--workers=1", "--shard_images=8"]) == 0
    return content(copy)


def test_a_changed_byte_is_found_and_mended(tree, prepared, copy, capsys):
    path = flip(shards(copy)[5])
    arguments = ["--dataset=imagenet100", f"--data_dir={copy}", "--image_size=16", "--verify"]
    [line] = store.problems(copy / "imagenet100" / "16")
    assert line.startswith(f"{path}: expected sha256") and f"--data_dir={copy} --image_size=16 --verify" in line
    assert store.problems(prepared / "imagenet100" / "16") == []
    prepare.prepare("imagenet100", tree, copy, **trees.SMALL)  # without --verify only sizes are looked at
    assert data.prepare.main(arguments) == 1
    printed = capsys.readouterr().err
    assert path.name in printed and "expected sha256" in printed
    assert f"--data_dir={copy} --image_size=16 --verify" in printed
    assert mended(tree, copy) == content(prepared)


def test_a_changed_pixel_is_found_when_it_is_read(copy):
    path = flip(shards(copy)[5])  # a shard of test: positions 40 to 47
    for read in (
        lambda found: found.test.images[40],
        lambda found: found.test.images[35:50],
        lambda found: np.asarray(found.test.images),
        lambda found: found.test.to_device(),
        lambda found: union(found, dataclasses.replace(found, train=found.test)).train.images[198 + 47],
    ):
        loaded = data.load("imagenet100", data_dir=copy, image_size=16)
        loaded.test.images[:40]
        loaded.test.images[48:]
        with pytest.raises(ValueError, match=rf"{path.name}: images 0 to 7 changed(.|\n)*--data_dir={copy}.*--verify"):
            read(loaded)


def test_checksums_that_are_not_those_of_the_pixels_are_found(tree, prepared, copy):
    meta = copy / "imagenet100" / "16" / store.META
    text = meta.read_text()
    first = json.loads(text)["splits"]["test"]["shards"][0]["blocks"]["checksums"]
    meta.write_text(text.replace(first, first[::-1]))
    [line] = store.problems(meta.parent)
    assert "test-00000.npy: its checksums of blocks in store.json differ from its pixels" in line
    assert mended(tree, copy) == content(prepared)


def test_shards_without_checksums_are_made_again(tree, prepared, copy):
    meta = copy / "imagenet100" / "16" / store.META
    for path in (meta, shards(copy)[3].with_suffix(".json")):
        record = json.loads(path.read_text())
        for known in [s for split in record["splits"].values() for s in split["shards"]] if path == meta else [record]:
            del known["blocks"]
        path.write_text(json.dumps(record, indent=2) + "\n")
    with pytest.raises(ValueError, match=r"store\.json: .*blocks, found nothing of that name.*repeat data\.prepare"):
        data.load("imagenet100", data_dir=copy, image_size=16)
    meta.unlink()
    stamps = {path: path.stat().st_mtime_ns for path in shards(copy)}
    prepare.prepare("imagenet100", tree, copy, **trees.SMALL)
    assert content(copy) == content(prepared)
    assert [path for path in shards(copy) if path.stat().st_mtime_ns != stamps[path]] == [shards(copy)[3]]


def test_a_file_of_another_size_is_found_on_loading(copy):
    path = shards(copy)[2]
    os.truncate(path, path.stat().st_size - 1)
    shards(copy)[3].unlink()
    with pytest.raises(
        ValueError, match=rf"2 files changed since(.|\n)*{path.name}: expected \d+ bytes, found \d+\n(.|\n)*no file"
    ):
        data.load("imagenet100", data_dir=copy, image_size=16)


@pytest.mark.parametrize("name", ["train-labels.npy", "test-index.npy", "store.json"])
def test_damaged_tables_are_found_on_loading(copy, name):
    flip(copy / "imagenet100" / "16" / name, -2)
    [line] = store.problems(copy / "imagenet100" / "16")
    assert name in line and "repeat data.prepare" in line
    with pytest.raises(ValueError, match=rf"{name}.*repeat data.prepare"):
        data.load("imagenet100", data_dir=copy, image_size=16)
