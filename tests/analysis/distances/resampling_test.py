"""The spread of distances over resamplings, against loops."""

import statistics

import numpy as np
import pytest

from analysis.distances import resampling

IMAGES, DRAWS = (2, 5), (1, 3, 4)


def test_centres_are_those_of_the_first_draws():
    rng = np.random.default_rng(0)
    transform, draws = rng.normal(size=(2, 7)), rng.normal(size=(4, 2, 7))
    found = resampling.nested_distances(transform.astype(np.float32), draws.astype(np.float32), DRAWS)
    assert found.shape == (2, 3)
    for g in range(2):
        for j, number in enumerate(DRAWS):
            centre = sum(draws[k, g] for k in range(number)) / number
            assert found[g, j] == pytest.approx(np.linalg.norm(transform[g] - centre), rel=1e-5)


def test_spreads_by_their_definition():
    distances = np.random.default_rng(1).uniform(1, 2, (3, 6, 2, 3))
    rows = resampling.spreads(distances, IMAGES, DRAWS)
    assert [row[:4] for row in rows] == [(n, m, 3, 6) for n in IMAGES for m in DRAWS]
    for row in rows:
        cells = distances[:, :, IMAGES.index(row.images), DRAWS.index(row.draws)].tolist()
        relative = [100 * statistics.stdev(cell) / statistics.mean(cell) for cell in cells]
        assert row.distance == pytest.approx(statistics.mean(map(statistics.mean, cells)))
        assert row.spread == pytest.approx(statistics.mean(relative))
        assert row.spread_error == pytest.approx(statistics.stdev(relative) / 3**0.5)
    text = resampling.spreads_text(rows)
    assert f"{rows[-1].spread:.1f} ({rows[-1].spread_error:.1f})" in text.splitlines()[-1]


def test_what_has_no_spread_is_refused():
    with pytest.raises(ValueError, match="at least 2 resamplings, found 1"):
        resampling.spreads(np.ones((3, 1, 2, 3)), IMAGES, DRAWS)
    with pytest.raises(ValueError, match=r"\[pairs, resamplings, 2, 3\], found shape \(3, 6, 3, 2\)"):
        resampling.spreads(np.ones((3, 6, 3, 2)), IMAGES, DRAWS)
