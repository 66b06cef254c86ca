"""Folders of synsets: what is trained on and tested on, limits, files that cannot be read, and what is refused."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

import data
import train
from projects.structural import standin, superclasses

NAME = "imagenet22k_superclasses"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    made = tmp_path_factory.mktemp("synsets")
    standin.write_synsets(made, train=2, test=2)
    return made


@pytest.fixture(autouse=True)
def cache(root, monkeypatch):
    monkeypatch.setenv("JAXC_CACHE_DIR", str(root / "cache"))


def load(root, **given):
    return data.load(NAME, data_dir=root, image_size=32, **given)


def synsets_of(root, split, order):
    """The synset of each image of a split, found by its place among the files."""
    lists = json.loads((root / superclasses.LISTS).read_text()).values()
    places = {"train": (("train", "seen"),), "test": (("val", "seen"), ("unseen", "unseen"))}[split]
    names = [
        path.parent.name
        for folder, part in places
        for parts in lists
        for synset in parts[part]
        for path in sorted((root / folder / synset).iterdir())
    ]
    return [names[i] for i in order]


def test_superclasses_are_trained_on_seen_synsets_and_tested_on_both(root):
    found, lists = load(root), superclasses.read_lists(root / superclasses.LISTS)
    assert found.class_names == tuple(lists) and found.parts.names == ("seen", "unseen")
    assert (len(found.train), len(found.test)) == (20 * 2, 30 * 2)
    shown, asked = (synsets_of(root, split, getattr(found, split).index) for split in ("train", "test"))
    unseen = {synset for parts in lists.values() for synset in parts["unseen"]}
    assert not unseen & set(shown) and len(unseen) == 10
    np.testing.assert_array_equal(found.parts.labels, [synset in unseen for synset in asked])
    label = {synset: i for i, parts in enumerate(lists.values()) for part in parts.values() for synset in part}
    for split, names in ((found.train, shown), (found.test, asked)):
        np.testing.assert_array_equal(split.labels, [label[synset] for synset in names])
    few = load(root, train_limit=5, test_limit=10)
    assert sorted(few.train.labels) == list(range(5)) and sorted(few.test.labels) == sorted([*range(5)] * 2)
    assert few.parts.labels.tolist() == [0] * 5 + [1] * 5
    np.testing.assert_array_equal(
        few.test.images[:], found.test.images[np.searchsorted(found.test.index, few.test.index)]
    )


def test_test_images_that_cannot_be_read_count_as_errors(root, tmp_path):
    broken = tmp_path / "synsets"
    shutil.copytree(root, broken)
    first = min((broken / "unseen").rglob("*.png"))
    first.write_bytes(b"no image")
    found = superclasses.load_superclasses(NAME, data_dir=broken, image_size=32, max_damaged=0.1)
    assert len(found.test) == 59 and len(found.parts.labels) == 60 and found.parts.labels.sum() == 20
    assert found.test.index.tolist() == [*range(40), *range(41, 60)]
    train._tabulate(tmp_path, np.ones(59, bool), found.test.labels, found, "tiny")
    rows = pd.read_csv(tmp_path / "parts.csv", dtype=str).to_numpy().tolist()
    assert [(*row[:2], float(row[2])) for row in rows] == [("seen", "40", 1), ("unseen", "20", 0.95)]
    assert len((tmp_path / "classes.csv").read_text().splitlines()) >= 6


def test_a_synset_without_a_folder_is_named(root, tmp_path):
    for folder in ("train", "val", "unseen"):
        (tmp_path / folder).symlink_to(root / folder)
    with pytest.raises(FileNotFoundError, match=r"lists of synsets, found no file .*python -m projects\.structural"):
        load(tmp_path)
    for part, message in (
        ("unseen", r"each of 11 unseen synsets in .*, found none of n12345678; .*--tree=DIR"),
        ("seen", r"each of 21 seen synsets in .*train, found none of n12345678; get them$"),
    ):
        lists = superclasses.read_lists(root / superclasses.LISTS)
        lists["outline 0"][part].append("n12345678")
        (tmp_path / superclasses.LISTS).write_text(json.dumps(lists))
        with pytest.raises(FileNotFoundError, match=message):
            load(tmp_path)


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ({"dog": {"seen": ["n1"], "unseen": []}}, "expected synsets such as n02084071, found 'n1' in dog"),
        ({"dog": {"seen": ["n02085620"], "unseen": ["n02085620"]}}, "each synset once, found n02085620 again in dog"),
        ({"dog": {"seen": [], "unseen": ["n02085620"]}}, "expected lists 'seen', not empty, and 'unseen' of dog"),
        ({"dog": {"seen": 5, "unseen": []}}, "expected lists 'seen', not empty, and 'unseen' of dog"),
        ({"dog": {"seen": ["n02085620"], "unseen": None}}, "expected lists 'seen', not empty, and 'unseen' of dog"),
        ({"dog": ["n02085620"]}, "expected lists 'seen', not empty, and 'unseen' of dog"),
    ],
)
def test_lists_that_are_none_are_refused(lists, message, tmp_path):
    (tmp_path / "lists.json").write_text(json.dumps(lists))
    with pytest.raises(ValueError, match=message):
        superclasses.read_lists(tmp_path / "lists.json")
