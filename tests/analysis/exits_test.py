"""Thresholds of early exits, and what stopping there comes to."""

import numpy as np

from analysis import exits

CONFIDENCE = np.array([[0.9, 0.5, 0.6], [0.8, 0.9, 0.7], [0.3, 0.8, 0.2], [0.2, 0.4, 0.9]])


def test_shares_are_geometric():
    np.testing.assert_allclose(exits.shares(0.5, 3), np.array([4, 2, 1]) / 7)
    np.testing.assert_allclose(exits.shares(1, 5), np.full(5, 0.2))
    np.testing.assert_allclose(exits.shares(4, 2), [0.2, 0.8])


def test_the_most_confident_of_those_left_stop_first():
    """One of four stops at the first exit; of the three left the surest at the second."""
    least = exits.thresholds(CONFIDENCE, np.array([0.25, 0.25, 0.5]))
    assert least.tolist() == [0.9, 0.9, -np.inf]
    correct = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]], bool)
    assert exits.stop(correct, CONFIDENCE, least, np.array([10, 20, 40])) == (3, 4, (10 + 20 + 40 + 40) / 4)


def test_wanted_shares_come_out_and_no_share_is_no_stop():
    confidence, wanted = np.random.default_rng(0).random((1000, 4)), np.array([0.1, 0.0, 0.5, 0.4])
    least = exits.thresholds(confidence, wanted)
    at = (confidence >= least).argmax(1)
    np.testing.assert_array_equal(np.bincount(at, minlength=4), 1000 * wanted)
    assert least[1] == np.inf
    everything = exits.thresholds(confidence, np.array([1.0, 0, 0, 0]))
    assert (confidence[:, 0] >= everything[0]).all()
