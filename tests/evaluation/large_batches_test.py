"""Batch sizes that are too large: a batch holds what there is, and one that memory does not hold is refused before it begins."""

import re
import tracemalloc

import numpy as np
import pytest

import corruptions
import models
from corruptions.scoring import test_set
from data import Split
from evaluation import correctness
from evaluation.shown import Shown
from runtime import meshes
from runtime.settings import SettingsError
from tests.evaluation import any_classifier, known
from training import memory

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 32, 32, 3)).astype(np.uint8)
LABELS = np.arange(40) % 4


@pytest.mark.parametrize("evaluate", [corruptions.evaluate, any_classifier.evaluate])
def test_a_batch_that_would_be_filled_up_to_gigabytes_is_refused(evaluate):
    asked = []
    with pytest.raises(
        ValueError, match=r"expected batch_size up to 40, .*found 1048576, .*12 GiB; batch_size=40"
    ) as refusal:
        evaluate(lambda images: asked.append(images), IMAGES, LABELS, batch_size=2**20)
    assert not asked and "\n" not in str(refusal.value)


def test_a_classifier_of_one_batch_size_is_asked_with_it():
    shapes = set()

    def predict(images):
        shapes.add(images.shape)
        return np.zeros((len(images), 4), np.float32)

    corruptions.evaluate(predict, IMAGES, LABELS, corruptions="noc/hue", severity=1, batch_size=100, progress=False)
    assert shapes == {(100, 32, 32, 3)}


def test_batches_that_are_given_may_be_large_and_the_last_one_small(monkeypatch):
    monkeypatch.setattr(test_set, "LARGEST_FILLING", 2**16)
    batches = [(IMAGES[:32], LABELS[:32]), (IMAGES[32:], LABELS[32:])]
    predict = lambda images: np.zeros((len(images), 4), np.float32)  # noqa: E731
    (clean,) = corruptions.evaluate(predict, batches, corruptions=(), batch_size=100, progress=False)
    assert clean.total == 40


def test_a_dataset_is_written_in_batches_of_what_there_is(tmp_path):
    given = {"corruptions": "noc/hue", "severities": [1], "progress": False}
    tracemalloc.start()
    corruptions.write_dataset(tmp_path / "large", (IMAGES, LABELS), batch_size=2**20, **given)
    assert tracemalloc.get_traced_memory()[1] < 2**28
    tracemalloc.stop()
    corruptions.write_dataset(tmp_path / "whole", (IMAGES, LABELS), **given)
    name = "hue.npy"
    np.testing.assert_array_equal(np.load(tmp_path / "large" / name), np.load(tmp_path / "whole" / name))


@pytest.fixture
def left(monkeypatch):
    """Sets the bytes that the machine has left."""

    def leave(number):
        for module in (memory.machine, test_set):
            monkeypatch.setattr(module, "free_memory", lambda: number)

    return leave


OF_ONE = 32 * 32 * 3 * (4 + 2)


def test_a_batch_whose_images_do_not_fit_is_refused_before_predict(left):
    left(40 * OF_ONE - 1)
    asked, words = [], r"expected batch_size of images that fit the .* found 40, .*; batch_size=19 takes half"
    with pytest.raises(ValueError, match=words) as refusal:
        corruptions.evaluate(lambda images: asked.append(images), IMAGES, LABELS, batch_size=40)
    assert not asked and "\n" not in str(refusal.value)


@pytest.mark.parametrize("given", [{"batch_size": 39}, {"batch_size": 40, "dtype": "uint8"}])
def test_a_batch_whose_images_fit_is_shown(left, given):
    left(39 * OF_ONE)
    predict = lambda images: np.zeros((len(images), 4), np.float32)  # noqa: E731
    (clean,) = any_classifier.evaluate(predict, IMAGES, LABELS, corruptions=(), progress=False, **given)
    assert clean.total == 40


@pytest.fixture
def ask(mesh):
    """Asks a small network about all 40 images at once, as eval.py and overlap.py do."""
    model = known.split(models.build("small_resnet", 10))
    split = Split(IMAGES, LABELS.astype(np.int32), np.arange(40)).to_device()
    return lambda: correctness.of_models({"a": model}, Shown(split, mesh, batch_size=2**20))["a"]


def test_a_batch_whose_images_do_not_fit_is_refused_before_they_are_read(left, ask, monkeypatch):
    monkeypatch.setattr(Shown, "__iter__", lambda shown: pytest.fail("read"))
    left(40 * 32 * 32 * 3)  # has no room for copies
    words = (
        r"config\.eval\.batch_size: expected a batch whose images fit .* found one of 40 images, .*; at most \d+ fit"
    )
    with pytest.raises(SettingsError, match=words) as refusal:
        ask()
    assert "\n" not in str(refusal.value)


def test_a_batch_that_a_network_has_no_memory_for_is_refused_with_the_largest_that_fits(left, ask, monkeypatch, mesh):
    needed, own = [], memory._needed
    monkeypatch.setattr(memory, "_needed", lambda *given: needed.append(own(*given)) or needed[-1])
    devices = len(mesh.local_devices)
    left(2**40)
    with meshes.counting_compiles() as compiled:
        right = ask()
    assert len(right) == 40 and len(needed) == 1
    assert compiled["network_logits"] == 1  # for the question and the answer
    assert needed[0] > 40 * 32 * 32 * 3 * 4  # float32
    left(needed[0] * devices)
    ask()
    left(int(0.7 * needed[0]) * devices)
    words = r"config\.eval\.batch_size: .* free on cpu, found one of 40 images, whose classification needs .* is about (\d+) \(20 need"
    with pytest.raises(SettingsError, match=words) as refusal:
        ask()
    assert 20 <= int(re.search(words, str(refusal.value))[1]) < 40 and "\n" not in str(refusal.value)
