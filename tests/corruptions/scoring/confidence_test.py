"""Fourteen bytes an answer, of logits and of probabilities: against float64, within the rounding of the fields of `STORED`."""

import hashlib
import json

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

import corruptions
from analysis.confidence import metrics
from corruptions.core.origin import Origin
from corruptions.scoring import Classifier, confidence, folder
from corruptions.scoring.conditions import Condition
from corruptions.scoring.folder import read_confidence
from tests.corruptions.scoring.evaluate_test import OF, predict
from tests.corruptions.scoring.reuse_test import EARLIER
from tests.corruptions.write.datasets import IMAGES, LABELS
from tests.refusing import refuses

ONE = np.float32(1)


def drawn(number, classes, scale, seed=0):
    """Logits float32 of over-confident networks, and labels of which most are right."""
    generator = np.random.default_rng(seed)
    logits = (scale * generator.normal(size=(number, classes))).astype(np.float32)
    labels = np.where(generator.random(number) < 0.7, logits.argmax(1), generator.integers(0, classes, number))
    return logits, labels.astype(np.int32)


def stored(logits, labels, temperature=ONE):
    predicted = logits.argmax(-1).astype(np.int32)
    array = confidence.pack(confidence.encode(logits, labels, predicted, temperature))
    return array, confidence.decode(array, predicted == labels)


def ece(top, correct, bins=15):
    """Expected calibration error, written apart: a loop over bins (j/B, (j + 1)/B]."""
    total = 0.0
    for j in range(bins):
        inside = (top > j / bins) & (top <= (j + 1) / bins) if j else top <= 1 / bins
        if inside.any():
            total += inside.mean() * abs(top[inside].mean() - correct[inside].mean())
    return total


@pytest.mark.parametrize("classes, scale", [(2, 0.1), (10, 1.0), (10, 5.0), (10, 30.0), (1000, 3.0)])
@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_fourteen_bytes_hold_what_float64_gives(classes, scale, temperature):
    logits, labels = drawn(1000, classes, scale)
    array, found = stored(logits, labels, np.float32(temperature))
    assert array.dtype.itemsize == 14 and array.shape == (1000,)
    exact = log_softmax(logits.astype(np.float64) / temperature, axis=1)
    loss, p = -exact[np.arange(1000), labels], np.exp(exact)
    top, predicted = p.max(1), logits.argmax(1)
    np.testing.assert_array_equal(found.predicted, predicted)
    np.testing.assert_array_equal(found.clipped, np.round(1024 * loss) >= 65535)
    np.testing.assert_allclose(found.loss, np.minimum(loss, 64), rtol=2e-6, atol=2**-11 + 1e-5)
    others = np.where(np.arange(classes) == predicted[:, None], 0, p).sum(1)
    np.testing.assert_allclose(found.rest, others, rtol=3e-5, atol=1e-30)  # float32 of logits of hundreds
    np.testing.assert_allclose(found.squares, (p**2).sum(1), atol=1 / 120000 + 1e-6)
    if not found.clipped.any():
        assert abs(found.loss.mean() - loss.mean()) <= 5e-4
    assert abs(ece(found.top, found.correct) - ece(top, predicted == labels)) <= 1e-5
    brier = ((p - np.eye(classes)[labels]) ** 2).sum(1)
    assert abs(found.brier.mean() - brier.mean()) <= 1e-3
    np.testing.assert_array_equal(np.argsort(found.rest[:50]), np.argsort(others[:50]))


def test_probabilities_are_taken_as_they_are():
    logits, labels = drawn(300, 7, 2.0)
    p = softmax(logits.astype(np.float64), axis=1)
    predicted = p.argmax(1).astype(np.int32)
    array = confidence.pack(confidence.encode_probabilities(p.astype(np.float32), labels, predicted))
    of_logits, _ = stored(logits, labels)
    assert (array["predicted"] == of_logits["predicted"]).all()
    for name in ("loss", "squares"):
        assert np.abs(array[name].astype(int) - of_logits[name]).max() <= 1
    np.testing.assert_allclose(array["rest"], of_logits["rest"], rtol=1e-5, atol=1e-7)


def votes(number, seed=0):
    """Probabilities [N, 6], shares of twenty votes, whose largest ones tie, and labels that such shares often have."""
    generator = np.random.default_rng(seed)
    p = np.stack([generator.multinomial(20, row) for row in generator.dirichlet(np.full(6, 0.7), number)]) / 20
    labels = np.array([generator.choice(6, p=row) for row in p], np.int32)
    return p, labels


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_ties_stay_ties_and_edges_stay_edges(dtype):
    p, labels = votes(3000)
    given = p.astype(dtype)
    top, hit = given.max(1).astype(float), given.argmax(1) == labels
    fields = confidence.encode_probabilities(given, labels, given.argmax(1).astype(np.int32))
    found = confidence.decode(confidence.pack(fields), hit)
    np.testing.assert_array_equal(found.top, top)
    assert len(np.unique(found.rest)) == len(np.unique(top)) < 20
    assert metrics.ece(metrics.binned(found.top, hit)) == metrics.ece(metrics.binned(top, hit))
    for rank in (metrics.aurc, metrics.auroc, metrics.fpr95):
        assert rank(metrics.ranked(-found.rest, hit)) == rank(metrics.ranked(top, hit))


def test_ties_of_logits_do_not_depend_on_the_order_of_classes():
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(40, 1, 30)).astype(np.float32) * 4
    permuted = generator.permuted(np.repeat(rows, 50, axis=1), axis=-1).reshape(-1, 30)
    _, found = stored(permuted, np.zeros(2000, np.int32))
    for values in (found.rest, found.top):
        assert (values.reshape(40, 50) == values.reshape(40, 50)[:, :1]).all()


def test_answers_of_before_are_read_as_they_were():
    p, labels = votes(100)
    fields = confidence.encode_probabilities(p, labels, p.argmax(1).astype(np.int32))
    before = np.zeros(100, confidence.EARLIER)
    before["rest"] = 1 - p.max(1)
    assert before.itemsize == 10
    now, then = (confidence.decode(of, p.argmax(1) == labels) for of in (confidence.pack(fields), before))
    np.testing.assert_array_equal(then.top, 1 - before["rest"].astype(float))
    np.testing.assert_allclose(then.top, now.top, atol=1e-7)


@pytest.mark.parametrize(
    "row, label, expected",
    [
        ((0.4, 0.4, 0.2), 1, (0, -np.log(0.4), 0.6, 0.36)),  # the lowest of equal classes
        ((1.0, 0.0, 0.0), 1, (0, 64.0, 0.0, 1.0)),
        ((1.0, 0.0, 0.0), 0, (0, 0.0, 0.0, 1.0)),
        ((0.25, 0.25, 0.25, 0.25), 3, (0, np.log(4), 0.75, 0.25)),
    ],
)
def test_ends_and_ties(row, label, expected):
    p, labels = np.asarray([row], np.float32), np.asarray([label], np.int32)
    fields = confidence.encode_probabilities(p, labels, p.argmax(1).astype(np.int32))
    with np.errstate(divide="ignore"):
        of_logits, _ = stored(np.log(p), labels)
    for array in (confidence.pack(fields), of_logits):
        found = confidence.decode(array, p.argmax(1) == labels)
        assert found.predicted[0] == expected[0] and found.clipped[0] == (expected[1] == 64)
        np.testing.assert_allclose([found.loss[0], found.rest[0], found.squares[0]], expected[1:], atol=5e-4)


def test_two_sets_of_images_under_one_name_are_refused(tmp_path):
    written = folder.Folder(tmp_path)
    for levels in ((1, 2), (1, 2, 3)):
        condition = Condition("cbar/sparkles", "random", levels)
        written.write(condition, np.ones(3, bool), np.zeros(3, confidence.STORED), Origin())
    refuses(lambda: folder.read_wrong(tmp_path), "'cbar/sparkles random", "use two folders")


def probabilities(images):
    return softmax(predict(images) * 100, axis=1)


def test_a_folder_keeps_the_confidence_of_logits_and_of_probabilities(tmp_path):
    corruptions.evaluate(lambda images: predict(images) * 100, IMAGES, LABELS, path=tmp_path / "logits", **OF)
    classifier = Classifier(probabilities, outputs="probabilities")
    counts = corruptions.evaluate(classifier, IMAGES, LABELS, path=tmp_path / "probabilities", **OF)
    found, other = (read_confidence(tmp_path / name) for name in ("probabilities", "logits"))
    assert list(found) == list(other) == [(count.corruption, str(count.severity)) for count in counts]
    for one, two, count in zip(found.values(), other.values(), counts, strict=True):
        assert one.correct.sum() == count.correct and len(one.loss) == count.total
        for a, b in zip(one, two, strict=True):
            np.testing.assert_allclose(a, b, atol=1.1e-3)
    exact = log_softmax(100 * predict(IMAGES / np.float32(255)), axis=1)[np.arange(len(LABELS)), LABELS]
    np.testing.assert_allclose(found["clean", "0"].loss, -exact, atol=1e-3)


@pytest.mark.parametrize(
    "outputs, answer, message",
    [
        ("probabilities", lambda p: p * 0.9, r"expected probabilities that sum to 1 from predict, found the sum 0\.9"),
        ("probabilities", lambda p: p * 3 - 1, r"expected probabilities in \[0, 1\] from predict, found .*logits need"),
        ("probabilities", lambda p: p[:, :2], "expected probabilities of at least 3 classes for these labels, found 2"),
        ("probabilities", lambda p: p * np.nan, "expected probabilities from predict, found NaN"),
        ("logits", lambda p: np.where(p > 0.5, np.inf, p), "expected logits from predict, found infinity"),
        ("scores", lambda p: p, "expected outputs among logits, probabilities, found 'scores'"),
    ],
)
def test_other_outputs_are_refused(outputs, answer, message):
    with pytest.raises(ValueError, match=message):
        classifier = Classifier(lambda images: answer(probabilities(images)), outputs=outputs)
        corruptions.evaluate(classifier, IMAGES, LABELS, **OF)


def test_a_folder_of_before_is_read_and_says_what_it_lacks(tmp_path):
    with np.load(EARLIER / "answers.npz") as file:
        arrays = {name: file[name] for name in file.files if not name.endswith(" confidence")}
    settings = json.loads(str(arrays.pop("settings")))
    del settings["sha256"]
    content = [json.dumps(settings, sort_keys=True).encode()]
    for name in sorted(arrays):
        content += [json.dumps([name, arrays[name].dtype.str, arrays[name].shape]).encode(), arrays[name].tobytes()]
    settings["sha256"] = hashlib.sha256(b"".join(content)).hexdigest()
    np.savez(tmp_path / "answers.npz", **arrays, settings=json.dumps(settings))
    found = corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **OF)
    assert found == corruptions.evaluate(predict, IMAGES, LABELS, **OF)
    refuses(lambda: read_confidence(tmp_path), "none for clean 0")
    refuses(
        lambda: read_confidence(tmp_path / "nothing"),
        "expected a folder of corruptions.evaluate",
        kind=FileNotFoundError,
    )
