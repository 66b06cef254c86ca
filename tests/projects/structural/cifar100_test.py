"""CIFAR-100's superclasses: what is held out, how much remains, and its stand-in."""

import numpy as np
import pytest

import data
from data import tfds_source
from projects.structural import standin, superclasses
from projects.structural.configs import subclass
from training import states

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
    assert {len(names) for names in superclasses.SUPERCLASSES.values()} == {5} and len(
        set(superclasses.SUBCLASSES)
    ) == 100
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
    with pytest.raises(ValueError, match="expected CIFAR-100's fine classes, of them apple, found 0 in its place"):
        data.load("cifar100_subclass_k1", data_dir=folder)


def test_the_recipe_and_its_learning_rate():
    config = subclass.get_config("k3")
    assert (config.dataset.name, config.model.name) == ("cifar100_subclass_k3", "wrn_40_2")
    steps = 20_000 // config.train.batch_size
    rate = states.learning_rate_schedule(config.train, steps)
    rates = [float(rate(step)) for step in (0, 1, 100, 50 * steps, 100 * steps - 1)]
    assert rates[0] == pytest.approx(0.1) and rates == sorted(rates, reverse=True) and rates[-1] < 1e-5
