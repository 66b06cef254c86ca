"""The search for severity ranges: known curves, caps, whole numbers, and curves that are not monotone."""

import math

import numpy as np
import pytest

from analysis.calibration import calibrate


def logistic(centre, width):
    return lambda v: 1 / (1 + math.exp((v - centre) / width))


@pytest.mark.parametrize("centre,width", [(0.3, 0.05), (0.05, 0.01), (0.6, 0.1)])
def test_real_ranges_reach_both_targets(centre, width):
    curve = logistic(centre, width)
    found = calibrate(curve, (0.0, 1.0))
    inverse = [centre + width * math.log(1 / target - 1) for target in (0.95, 0.5)]
    slope = 0.005 / (0.05 * 0.95 / width)  # |dv| that changes R by the tolerance, at the flatter end
    np.testing.assert_allclose(found.range, inverse, atol=slope)
    assert abs(found.robustness[0] - 0.95) < 0.005 and abs(found.robustness[1] - 0.5) < 0.005
    assert found.capped == (False, False) and found.monotone
    assert found.robustness == (curve(found.range[0]), curve(found.range[1]))


def test_every_value_is_evaluated_once():
    seen = []
    found = calibrate(lambda v: seen.append(v) or logistic(0.4, 0.05)(v), (0.0, 1.0))
    assert len(seen) == len(set(seen)) == len(found.evaluations) < 30
    assert [v for v, _ in found.evaluations] == sorted(seen)


def test_whole_numbers_nearest_to_the_targets_of_a_long_domain():
    generator = np.random.default_rng(0)
    for _ in range(50):
        curve = 1 - np.sort(generator.uniform(0, 0.8, 401))
        found = calibrate(lambda v, c=curve: c[v], (1, 400), integer=True)
        for end, target in zip(found.range, (0.95, 0.5)):
            assert isinstance(end, int) and abs(curve[end] - target) == np.abs(curve[1:] - target).min()


def test_severity_may_run_downwards():
    found = calibrate(lambda v: 1 - 1.5 / v, (255, 1), integer=True)
    assert found.range == (30, 3)
    assert [v for v, _ in found.evaluations] == sorted((v for v, _ in found.evaluations), reverse=True)


def test_caps_are_reported():
    assert calibrate(lambda v: 1 - 0.3 * v, (0.0, 1.0)).capped == (False, True)
    hue = calibrate(lambda v: 1 - 0.74 * v, (0.0, 0.5))
    assert hue.range[1] == 0.5 and hue.robustness[1] == pytest.approx(0.63)
    assert calibrate(lambda v: 0.9 - 0.1 * v, (2, 16), integer=True).capped[0]  # the mildest value is beyond the target


def test_whole_ends_are_apart():
    assert calibrate(lambda v: 1.0 if v < 7 else 0.2, (1, 20), integer=True).range in ((6, 7), (7, 8))
    assert calibrate(lambda v: 0.99, (1, 5), integer=True).range == (4, 5)
    assert calibrate(lambda v: 0.3, (1, 5), integer=True).range == (1, 2)


def test_a_curve_that_rises_again_is_reported_and_the_mildest_crossing_taken():
    def rotation(degrees):  # half a turn is milder than a quarter
        return 0.4 + 0.6 * abs(math.cos(math.radians(degrees)))

    found = calibrate(rotation, (1, 180), integer=True)
    assert not found.monotone and found.range[1] < 90
    assert found.robustness[1] == pytest.approx(0.5, abs=0.01)
    assert calibrate(lambda v: 1 - v + 0.01 * (v > 0.5), (0.0, 1.0), noise=0.02).monotone
