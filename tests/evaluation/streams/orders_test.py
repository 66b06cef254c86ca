"""Streams: every image under every condition, in the order of the protocol; Dirichlet draws; walks between corruptions."""

import itertools

import numpy as np
import pytest

import corruptions
from evaluation.streams import orders, walks

LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 40))
RARE = np.repeat(np.arange(2), [199, 1])


def histogram_entropy(labels, batch=50):
    counts = [np.bincount(labels[i : i + batch], minlength=10) / batch for i in range(0, len(labels), batch)]
    return np.mean([-(p[p > 0] * np.log(p[p > 0])).sum() for p in counts])


@pytest.mark.parametrize("kind", [kind for kind in orders.KINDS if kind != "label_shift"])
@pytest.mark.parametrize("seed", [1, 2])
def test_every_image_is_shown_once_under_every_condition(kind, seed):
    stream = orders.KINDS[kind](LABELS, seed=seed)
    pairs = set(zip(stream.image.tolist(), stream.segment.tolist(), strict=True))
    assert len(stream) == len(pairs) == len(stream.segments) * len(LABELS)
    same = orders.KINDS[kind](LABELS, seed=seed)
    np.testing.assert_array_equal(stream.image, same.image)
    other = orders.KINDS[kind](LABELS, seed=seed + 1)
    assert (stream.image != other.image).any()


def test_continual_is_the_standard_order_at_severity_5_and_the_ten_orders_are_permutations():
    stream = orders.continual(LABELS)
    assert [segment.parts for segment in stream.segments] == [((name, 5),) for name in orders.STANDARD]
    assert orders.STANDARD[0] == "imagenet_c/gaussian_noise" and orders.STANDARD[14] == "imagenet_c/jpeg_compression"
    np.testing.assert_array_equal(stream.image[:400], np.arange(400))
    assert list(stream.shifts) == list(range(0, 6000, 400)) and stream.segments[3].label == "imagenet_c/defocus_blur-5"
    assert len(set(orders.ORDERS)) == 10 and all(sorted(order) == list(range(15)) for order in orders.ORDERS)
    assert tuple(orders.STANDARD) == corruptions.names("imagenet_c")


def test_gradual_has_131_segments():
    levels = [segment.parts[0][1] for segment in orders.gradual(LABELS).segments]
    assert len(levels) == 131 and levels[:14] == [5, 4, 3, 2, 1, 1, 2, 3, 4, 5, 4, 3, 2, 1]
    from_1 = [segment.parts[0][1] for segment in orders.gradual_from_1(LABELS).segments]
    assert from_1 == 15 * [1, 2, 3, 4, 5, 4, 3, 2, 1]


def test_forgetting_is_seen_on_clean_images_after_every_corruption():
    stream = orders.forgetting(LABELS, orders.STANDARD[:2])
    assert [segment.label for segment in stream.segments][1:] == ["clean", "imagenet_c/shot_noise-5", "clean"]


@pytest.mark.parametrize("ratio", [1, 20, 500_000])
def test_a_block_of_label_shift_has_a_frequent_class_and_draws_with_replacement(ratio):
    stream = orders.label_shift(LABELS, orders.STANDARD[:2], seed=4, ratio=ratio)
    assert len(stream) == 2 * 10 * 100 and (stream.image[:1000] == stream.image[1000:]).all()
    blocks = LABELS[stream.image[:1000]].reshape(10, 100)
    counts = np.array([np.bincount(block, minlength=10) for block in blocks])
    expected = ratio / (ratio + 9)
    larger = 0.1 * (ratio == 1)  # the largest of ten equal ones
    assert abs(counts.max(1).mean() / 100 - expected) < 0.08 + larger
    if ratio > 1:
        assert sorted(counts.argmax(1)) == list(range(10)) and (np.diff(counts.argmax(1)) != 1).any()
        others = (100 - counts.max(1)).sum()
        assert abs(others - 1000 * (1 - expected)) <= 4 * (1000 * expected * (1 - expected)) ** 0.5
    assert 150 < len(np.unique(stream.image)) < 400  # 400 (1 - e^-2.5) = 367 of equal draws


def test_mixed_changes_condition_from_image_to_image():
    stream = orders.mixed(LABELS, seed=3)
    assert np.mean(stream.segment[1:] != stream.segment[:-1]) > 0.9 and len(stream.shifts) == 1


def test_sorted_streams_show_a_class_at_a_time():
    stream = orders.correlated(LABELS, orders.STANDARD[:2])
    labels = LABELS[stream.image]
    assert (np.diff(labels[:400]) >= 0).all() and (np.diff(labels[400:]) >= 0).all()
    assert abs(orders.neighbours(labels) - 1) < 0.03 and abs(orders.neighbours(LABELS) - 0.1) < 0.06
    assert (np.diff(LABELS[orders.mixed_correlated(LABELS, delta=0).image]) >= 0).all()


def test_dirichlet_is_a_permutation_and_a_small_delta_correlates():
    """Within a chunk classes are contiguous for any delta: what differs is how many a chunk has."""
    entropies = []
    for delta in (0.01, 0.1, 0.3, 100):
        found = orders.dirichlet(LABELS, delta, np.random.default_rng(1))
        np.testing.assert_array_equal(np.sort(found), np.arange(400))
        entropies.append(histogram_entropy(LABELS[found]))
    assert entropies[0] < entropies[2] - 0.2 < entropies[3] - 0.4


# Walks between two corruptions.
ROW, COLUMN = np.meshgrid(np.arange(21), np.arange(21), indexing="ij")
PLANE = 100 - 10 * (ROW + COLUMN) / 4
HILL = 80 * np.exp(-((ROW / 10) ** 2) - (COLUMN / 8) ** 2)


@pytest.mark.parametrize(
    "accuracy, target, start, end, number, mean",
    [
        (PLANE, 60, 15, 16, 32, 60),
        (PLANE, 40, 20, 20, 41, 40.609756),
        (PLANE, 20, 20, 20, 41, 25.609756),
        (HILL, 40, 9, 7, 17, 39.922501),
        (HILL, 20, 12, 10, 23, 19.989608),
        (HILL, 0, 20, 20, 41, 0.306244),
    ],
)
def test_walks_on_made_up_accuracies(accuracy, target, start, end, number, mean):
    path = walks.path(accuracy, target)
    assert path[0] == (start, 0) and path[-1] == (0, end) and len(path) == number == start + end + 1
    np.testing.assert_allclose(np.mean([accuracy[node] for node in path]), mean, atol=1e-6)
    steps = {(b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(path)}
    assert steps <= {(-1, 0), (0, 1)}
    if accuracy is PLANE and target == 60:
        assert "".join("u" if b[1] > a[1] else "d" for a, b in itertools.pairwise(path)) == "uudd" * 7 + "uud"


def test_the_second_corruption_becomes_the_first():
    size = len(walks.GRID)
    assert walks.GRID == (0, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5)
    asked = []

    def measure(first, second):
        asked.append((first, second))
        return PLANE[:size, :size]

    found = walks.walks(["a/x", "a/y", "a/z"], 5, 90, measure, 3)
    assert [(walk.first, walk.second) for walk in found] == asked
    assert all(walk.first != walk.second for walk in found)
    assert all(b.first == a.second for a, b in itertools.pairwise(found))
    stream = walks.stream(found, 40, 7, 0)
    nodes = sum(len(walk.path) for walk in found)
    assert len(stream) == 7 * nodes and len(stream.segments) == nodes
    assert all(len(set(stream.image[stream.segment == k])) == 7 for k in range(nodes))
    first = stream.segments[0].parts
    assert len(first) == 1 and first[0] == (found[0].first, walks.GRID[found[0].path[0][0]])
    last = stream.segments[len(found[0].path) - 1].parts
    assert last == ((found[0].second, walks.GRID[found[0].path[-1][1]]),)


@pytest.mark.parametrize("delta", [1e-8, 0.1, 100.0])
@pytest.mark.parametrize("classes", [10, 150])
def test_slots_hold_every_image_once_each_class_contiguous(delta, classes):
    """With 150 classes there are 100 slots: where a run of labels ends, another class of the slot or another slot begins."""
    labels = np.random.default_rng(1).permutation(np.repeat(np.arange(classes), 20))
    found = orders.slots(labels, delta, np.random.default_rng(3))
    np.testing.assert_array_equal(np.sort(found), np.arange(len(labels)))
    runs = 1 + int((np.diff(labels[found]) != 0).sum())
    assert classes <= runs <= classes * min(classes, 100, 20) and (delta > 1e-7 or runs <= classes)


class Given:
    """A generator with the shares of two classes in place of draws."""

    def __init__(self):
        self.shares = [np.array([0.6, 0.4]), np.array([1.0, 0.0])]

    def dirichlet(self, alpha):
        assert alpha.tolist() == [0.1, 0.1]
        return self.shares.pop(0)

    def permutation(self, given):
        return np.arange(given)[::-1] if np.ndim(given) == 0 else given[::-1]


def test_slots_are_filled_by_shares_alone():
    """Slot 0: all of class 1, then six tenths of class 0, rounded down; nobody balances it with slot 1."""
    labels = np.array([0, 0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(orders.slots(labels, 0.1, Given()), [6, 5, 4, 3, 2, 1, 0])
    stream = orders.correlated_slots(LABELS, orders.STANDARD[:2], seed=1, delta=0)
    assert stream.name == "correlated_slots:0.1" and (stream.image[:400] != stream.image[400:]).any()
    assert orders.neighbours(LABELS[stream.image]) > 0.8


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: orders.continual(LABELS[:0]), "expected images and corruptions for a stream, found 0 and 15"),
        (lambda: orders.correlated(LABELS, delta=-1.0), "expected delta of at least 0, found -1"),
        (lambda: orders.slots(LABELS, 0, np.random.default_rng(0)), "expected delta above 0 for slots, found 0"),
        (lambda: orders.label_shift(LABELS, ratio=0.5), "expected a ratio of at least 1, found 0.5"),
        (lambda: orders.dirichlet(RARE, 1e-8, np.random.default_rng(0)), "take a larger delta or more images"),
        (lambda: walks.path(np.zeros((3, 4)), 0), r"expected finite accuracies \[n, n\]"),
        (lambda: walks.path(np.full((3, 3), np.nan), 0), "expected finite accuracies"),
        (lambda: walks.walks(["a/x"], 1, 0, None, 0), "expected two corruptions or more"),
        (lambda: walks.stream([], 40, 41, 0), "expected 1 to 40 images at a node, the test images at hand, found 41"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
