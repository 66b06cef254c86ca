"""A batch size far above the number of images: a batch holds what there is, or the call is refused before it is filled."""

import tracemalloc

import numpy as np
import pytest

import corruptions
from corruptions.scoring import test_set
from tests.evaluation import any_classifier

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
