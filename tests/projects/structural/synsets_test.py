"""Folders of synsets: what is trained on and tested on, limits, files that cannot be read, and what is refused."""

import json
import runpy
import shutil
import sys

import numpy as np
import pandas as pd
import pytest

import data
import train
from data import tfds_source
from data.natural import sets
from projects.structural import imagenet22k, standin, superclasses
from projects.structural.configs import subclass
from tests.refusing import refuses
from training import states

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
    places = np.searchsorted(found.test.index, few.test.index)
    np.testing.assert_array_equal(few.test.images[:], found.test.images[places])


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
    refuses(lambda: load(tmp_path), "no file", "python -m projects.structural", kind=FileNotFoundError)
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


def line(offset, *below, instances=()):
    pointers = [f"~ {other} n 0000" for other in below] + [f"~i {other} n 0000" for other in instances]
    pointers.append("@ 00001740 n 0000")
    return f"{offset} 03 n 02 a_word 0 other 1 {len(pointers):03} {' '.join(pointers)} | a gloss | ~ 99999999 n 0000"


def write(path, lines):
    path.write_text("\n".join(["  1 This is the licence.", *lines]) + "\n")


def test_the_seen_lists_are_of_the_published_lengths():
    numbers = [len(one.seen) for one in imagenet22k.SUPERCLASSES]
    assert numbers == [8, 13, 4, 58, 4, 4, 6, 14, 7, 49, 118, 13, 16, 5, 16, 7, 10, 17, 27, 26, 20, 36, 7, 13, 44]
    places = [place for one in imagenet22k.SUPERCLASSES for place in one.seen]
    assert len(set(places)) == len(places) == 542 and sum(one.unseen for one in imagenet22k.SUPERCLASSES) == 5017
    assert 98 not in places and min(places) == 0 and max(places) == 998


def test_synsets_below_are_collected_once_and_without_instances(tmp_path):
    write(
        tmp_path / "data.noun",
        [line("00000001", "00000002", "00000003", instances=["00000009"]), line("00000002", "00000004")]
        + [line("00000003", "00000004"), line("00000004"), line("00000009")],
    )
    direct = imagenet22k.hyponyms(tmp_path)
    assert direct["n00000001"] == ("n00000002", "n00000003")
    assert imagenet22k.below("n00000001", direct) == {f"n0000000{i}" for i in (1, 2, 3, 4)}
    refuses(lambda: imagenet22k.below("n00000007", direct), "synset n00000007", "is it version 3.0?")


@pytest.mark.parametrize(
    "module, flags, found",
    [
        ("structural.imagenet22k", ["--wordnet={}/none", "--out={}/lists.json"], "none"),
        ("structural.standin", ["--dataset=cifar100", "--out={}/file/made"], "file"),
        ("natural_shift.standin", ["--out={}/file/made"], "file"),
    ],
)
def test_errors_of_commands_are_one_message(module, flags, found, tmp_path, monkeypatch, caplog):
    (tmp_path / "file").touch()
    monkeypatch.setattr(sys, "argv", [module, *(flag.format(tmp_path) for flag in flags)])
    monkeypatch.delitem(sys.modules, f"projects.{module}", raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"projects.{module}", run_name="__main__")
    told = caplog.text
    assert ended.value.code == 1 and f"{tmp_path / found}" in told and "Traceback" not in told


def test_lists_of_a_generated_wordnet(tmp_path, capsys):
    """Heads with their published numbers of unseen synsets below them, and some of ImageNet-1K."""
    names, lines, number = list(sets.imagenet().groups), [], 90_000_000
    for one in imagenet22k.SUPERCLASSES:
        unseen = [str(number + i) for i in range(one.unseen - 1)]  # the head is unseen itself
        number += len(unseen)
        seen = [names[place][1:] for place in one.seen]
        lines += [line(one.head[1:], *unseen, *seen), *map(line, (*unseen, *seen))]
    shared = "90000000"  # amphibian's, and now below bear too, which has fewer
    lines = [
        line("02131653", *(f"{i:08}" for i in range(7)), shared) if row.startswith("02131653") else row for row in lines
    ]
    lines += [line(f"{i:08}") for i in range(7)]
    write(tmp_path / "data.noun", lines)
    imagenet22k.write(tmp_path / "lists.json", tmp_path)
    found = json.loads((tmp_path / "lists.json").read_text())
    assert sum(len(parts["seen"]) for parts in found.values()) == 542
    expected = {one.name: one.unseen for one in imagenet22k.SUPERCLASSES} | {"amphibian": 85, "bear": 9}
    assert {name: len(parts["unseen"]) for name, parts in found.items()} == expected
    assert "n90000000" in found["bear"]["unseen"] and "n02131653" in found["bear"]["unseen"]
    order = [one.name for one in imagenet22k.SUPERCLASSES]
    assert list(found) == order and all(parts["unseen"] == sorted(parts["unseen"]) for parts in found.values())
    every = [name for parts in found.values() for part in parts.values() for name in part]
    assert len(set(every)) == len(every) and found["dog"]["seen"][0] == "n02085620"
    printed = capsys.readouterr().out
    assert "85 unseen, published 86" in printed and "542 seen   5017 unseen, published 5017" in printed
    (tmp_path / "synsets.txt").write_text("n90000001\nn90000000\n")
    for name in ("n90000000", "n90000001"):
        (tmp_path / "unseen" / name).mkdir(parents=True)
    for present in ("synsets.txt", "unseen"):
        imagenet22k.write(tmp_path / "few.json", tmp_path, tmp_path / present)
        few = json.loads((tmp_path / "few.json").read_text())
        assert {name: parts["unseen"] for name, parts in few.items() if parts["unseen"]} == {
            "amphibian": ["n90000001"],
            "bear": ["n90000000"],
        }
    for content, found in (("n90000001\ndog\n", "'dog'"), ("", "an empty file")):
        (tmp_path / "synsets.txt").write_text(content)
        with pytest.raises(ValueError, match=f"expected a synset such as n02084071 on each line, found {found}"):
            imagenet22k.write(tmp_path / "few.json", tmp_path, tmp_path / "synsets.txt")


def test_files_that_are_not_wordnets_are_named(tmp_path):
    refuses(lambda: imagenet22k.hyponyms(tmp_path), "WordNet's file data.noun", kind=FileNotFoundError)
    cut = "00000001 03 n 01 a 0 002 ~ 00000002 n 0000 | cut"
    for wrong in ("plain text", "00000001 03 v 01 a 0 000 | a verb", cut):
        write(tmp_path / "data.noun", [line("00000005"), wrong])
        with pytest.raises(ValueError, match=r"data\.noun, line 3: expected a synset of nouns, found '"):
            imagenet22k.hyponyms(tmp_path)


# CIFAR-100's ids of the subclasses of its 20 superclasses, in the order they are held out.
IDS = """72 4 95 30 55  73 32 67 91 1  92 70 82 54 62  16 61 9 10 28  51 0 53 57 83
40 39 22 87 86  20 25 94 84 5  14 24 6 7 18  43 97 42 3 88  37 17 76 12 68
49 33 71 23 60  15 21 19 31 38  75 63 66 64 34  77 26 45 99 79  11 2 35 46 98
29 93 27 78 44  65 50 74 36 80  56 52 47 59 96  8 58 90 13 48  81 69 41 89 85"""
ROWS = np.array(IDS.split(), int).reshape(20, 5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tfds")
    standin.write_cifar100(made, train=2, test=1)
    return made


def test_ids_are_those_of_cifar100():
    assert list(superclasses.SUPERCLASSES) == sorted(superclasses.SUPERCLASSES)
    assert {len(names) for names in superclasses.SUPERCLASSES.values()} == {5}
    assert len(set(superclasses.SUBCLASSES)) == 100
    for label, row in enumerate(ROWS):
        assert [superclasses.SUBCLASSES[i] for i in row] == list(list(superclasses.SUPERCLASSES.values())[label])
        assert superclasses.superclasses(row).tolist() == [label] * 5


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_the_first_k_of_each_superclass_are_held_out(k):
    for images in (50_000, 10_000):
        fine = np.repeat(np.arange(100), images // 100)
        held = superclasses.held_out(fine, k)
        assert set(fine[held]) == set(ROWS[:, :k].ravel()) and held.sum() == k * images // 5


@pytest.mark.parametrize("k", [1, 3])
def test_training_sees_none_of_them_and_tests_both(folder, k):
    found, whole = data.load(f"cifar100_subclass_k{k}", data_dir=folder), data.load("cifar100", data_dir=folder)
    assert found.class_names == tuple(superclasses.SUPERCLASSES) and found.parts.names == ("seen", "unseen")
    assert (len(found.train), len(found.test)) == ((5 - k) * 40, 100)
    held = set(ROWS[:, :k].ravel())
    assert set(whole.train.labels[found.train.index]) == set(range(100)) - held
    fine = whole.test.labels[found.test.index]
    np.testing.assert_array_equal(found.parts.labels, [label in held for label in fine])
    for split, source in ((found.train, whole.train), (found.test, whole.test)):
        np.testing.assert_array_equal(split.images, source.images[split.index])
        np.testing.assert_array_equal(split.labels, [np.argwhere(i == ROWS)[0, 0] for i in source.labels[split.index]])
    few = data.load(f"cifar100_subclass_k{k}", data_dir=folder, train_limit=20, test_limit=60)
    assert sorted(few.train.labels) == list(range(20))
    np.testing.assert_array_equal(few.parts.labels, found.parts.labels[few.test.index])


def test_other_classes_are_refused(folder, monkeypatch):
    monkeypatch.setattr(tfds_source, "class_names", lambda *given: tuple(map(str, range(100))))
    refuses(lambda: data.load("cifar100_subclass_k1", data_dir=folder), "0 in its place")


def test_the_recipe_and_its_learning_rate():
    config = subclass.get_config("k3")
    assert (config.dataset.name, config.model.name) == ("cifar100_subclass_k3", "wrn_40_2")
    steps = 20_000 // config.train.batch_size
    rate = states.learning_rate_schedule(config.train, steps)
    rates = [float(rate(step)) for step in (0, 1, 100, 50 * steps, 100 * steps - 1)]
    assert rates[0] == pytest.approx(0.1) and rates == sorted(rates, reverse=True) and rates[-1] < 1e-5
