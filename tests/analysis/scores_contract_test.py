"""What the scores refuse and name."""

import numpy as np
import pytest

from analysis import references, scores
from tests.analysis.alexnet import ALEXNET, EXTRAS, LEVELS, flat
from tests.analysis.published import IMAGENET_C


def complete():
    return {name: dict.fromkeys(LEVELS, 0.5) for name in IMAGENET_C}


def refused(errors, *parts, benchmark="imagenet_c"):
    with pytest.raises(ValueError) as error:
        scores.mean_corruption_error(errors, 0.2, benchmark=benchmark)
    for part in ("expected", "found", *parts):
        assert part in str(error.value)


def test_the_15_are_never_mixed_with_the_extras():
    mixed = complete() | {name: dict.fromkeys(LEVELS, 0.5) for name in EXTRAS}
    refused(mixed, "extras", *EXTRAS)
    only = scores.mean_corruption_error({n: mixed[n] for n in EXTRAS}, 0.2, benchmark="imagenet_c_extra")
    assert set(only.raw) == set(EXTRAS)


def test_missing_corruptions_and_severities_are_named():
    errors = complete()
    del errors["fog"]
    refused(errors, "['fog'] missing")
    errors = complete()
    del errors["snow"][4], errors["snow"][2]
    refused(errors, "snow", "[2, 4] missing")
    errors = complete() | {"snow": dict.fromkeys((1, 2, 3, 4, 5, 6), 0.5)}
    refused(errors, "snow", "[6] besides")
    refused(complete() | {"snow": [0.5] * 4}, "snow", "5 errors")
    refused(complete() | {"imagenet_c/snow": [0.5] * 5}, "by two names")
    refused({f"noc/{n}": e for n, e in complete().items()}, "noc/fog", "missing")
    refused(complete() | {"snow": [50.0] * 5}, "not percent")
    refused(complete(), "quantization", benchmark="imagenet_noc")
    refused(complete(), "imagenet_x", benchmark="imagenet_x")


def test_qualified_names_are_accepted_in_any_order():
    errors = {f"imagenet_c/{n}": dict(zip(LEVELS, ALEXNET.errors[n], strict=True)) for n in reversed(IMAGENET_C)}
    score = scores.mean_corruption_error(errors, ALEXNET.clean)
    assert tuple(score.raw) == IMAGENET_C
    assert score.mce == pytest.approx(100)


def test_reference_that_loses_nothing_is_refused_and_little_is_flagged():
    flat_reference = references.Reference("R", flat([0.43] * 15), 0.435, LEVELS)
    with pytest.raises(ValueError, match="expected the reference to lose accuracy"):
        scores.mean_corruption_error(complete(), 0.2, reference=flat_reference)
    means = np.where(np.arange(15) == 3, 0.47, 0.8)
    score = scores.mean_corruption_error(
        complete(), 0.2, reference=references.Reference("R", flat(means), 0.435, LEVELS)
    )
    assert score.weak == ("defocus_blur",)


def test_impossible_inputs_are_refused():
    with pytest.raises(ValueError, match="clean accuracy above 0"):
        scores.robustness(0.1, 0.0)
    with pytest.raises(ValueError, match="0 <= correct <= total"):
        scores.accuracy(5, 4)
    with pytest.raises(ValueError, match="not percent"):
        scores.robustness(45.0, 0.9)
    with pytest.raises(ValueError, match="one error per severity"):
        scores.corruption_error([0.5, 0.5], [0.5])
    with pytest.raises(ValueError, match="same severities"):
        scores.unnormalised_mean_error({"a": [0.1], "b": [0.1, 0.2]})
    assert scores.standard_error(30, 100) == pytest.approx((0.3 * 0.7 / 100) ** 0.5)
