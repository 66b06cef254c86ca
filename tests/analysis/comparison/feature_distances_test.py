"""Distances between corruptions in feature space, of features whose distances are known."""

import itertools

import numpy as np
import pytest

from analysis.comparison import feature_distances

NAMES = tuple(f"c{k}" for k in range(8))


def test_centres_are_averaged_over_severities_before_distances():
    rng = np.random.default_rng(0)
    centres = {(name, severity): rng.normal(size=5) for name in NAMES[:3] for severity in (1, 2, "random")}
    found = feature_distances.centre_distances(centres, NAMES[2::-1])
    for i, j in np.ndindex(3, 3):
        a, b = (sum(v for (name, _), v in centres.items() if name == NAMES[2 - k]) / 3 for k in (i, j))
        assert found[i, j] == pytest.approx(np.sqrt(((a - b) ** 2).sum()))
    with pytest.raises(ValueError, match=r"found none of \['c7'\]"):
        feature_distances.centre_distances(centres, ("c0", "c7"))


def test_directions_are_angles_seen_from_the_clean_centre():
    rng = np.random.default_rng(0)
    clean, (a, b) = rng.normal(size=5), np.linalg.qr(rng.normal(size=(5, 2)))[0].T
    turns = np.radians([0, 60, 90, 180])
    lengths = (1, 0.1, 7, 30)  # do not count
    places = [clean + r * (np.cos(t) * a + np.sin(t) * b) for t, r in zip(turns, lengths)]
    centres = {("clean", 0): clean} | {(name, 1): place + 1 for name, place in zip(NAMES, places)}
    centres |= {(name, 2): place - 1 for name, place in zip(NAMES, places)}  # severities are averaged first
    found = feature_distances.direction_distances(centres, NAMES[:4])
    np.testing.assert_allclose(found, 1 - np.cos(turns[:, None] - turns), atol=1e-9)
    assert (found == found.T).all() and not np.diag(found).any()
    with pytest.raises(ValueError, match=r"found those of \['c0'\] to be the same"):
        feature_distances.direction_distances({("clean", 0): clean, ("c0", 1): clean, ("c1", 1): clean + 1}, NAMES[:2])
    with pytest.raises(ValueError, match="expected features of clean images"):
        feature_distances.direction_distances({("c0", 1): clean}, NAMES[:1])


def test_directed_distances_are_made_symmetric():
    means = {(a, b): (10 * i + j, -1) for (i, a), (j, b) in itertools.product(enumerate(NAMES[:3]), repeat=2)}
    found = feature_distances.msd_distances(means, NAMES[:3])
    np.testing.assert_allclose(found, [[0, 5.5, 11], [5.5, 0, 16.5], [11, 16.5, 0]])
    del means["c0", "c1"]
    with pytest.raises(ValueError, match=r"found 1 missing, such as \('c0', 'c1'\)"):
        feature_distances.msd_distances(means, NAMES[:3])
