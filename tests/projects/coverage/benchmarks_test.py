"""projects.coverage.benchmarks: transfers, coverage by margin, crossed selections and severities of known numbers."""

import json

import numpy as np
import pytest

from analysis.overlap import study as overlap_study
from projects.coverage import benchmarks

NAMES = ("imagenet_c/fog", "imagenet_c/contrast", "noc/border", "noc/hue")


def accuracies(transfer):
    """Accuracies of models that transfer T [i, j] of a gain of .2 in R over a standard R of .6; clean accuracies are .8."""
    full = np.full((5, 5), 0.8)
    full[:, 1:] = 0.8 * (0.6 + 0.2 * np.vstack([np.zeros(4), transfer]))
    return full


def directed():
    transfer = np.eye(4)
    transfer[0, 1], transfer[1, 0] = 0.7, 0.3  # fog helps on contrast more than contrast on fog: the overlap is .5
    transfer[2, 3] = 0.25  # border on hue: .125
    return transfer


def measured(transfer, number=10_000):
    """A study of these accuracies: image k is right where its place is below the accuracy, each model in an order of its own."""
    rng = np.random.default_rng(0)
    order = rng.permuted(np.tile(np.arange(number), (5, 1)), axis=1)
    bits = order[:, None] < np.rint(accuracies(transfer) * number)[..., None]
    return overlap_study.Study.of(NAMES, bits[None], (0,))


def test_transfers_are_directed():
    found = measured(directed())
    table = benchmarks.transfers_frame(found).set_index("corruption")
    assert table.best[list(NAMES)].tolist() == pytest.approx([0.3, 0.7, 0, 0.25], abs=2e-3)
    assert table.best_from.tolist()[:2] == [NAMES[1], NAMES[0]] and table.best_from[NAMES[3]] == NAMES[2]
    assert table.overlap[NAMES[3]] == pytest.approx(0.125, abs=2e-3) and table.backward[NAMES[3]] == pytest.approx(
        0, abs=2e-3
    )
    [row] = benchmarks.asymmetry_frame(found).itertuples()
    assert row.pairs == 6 and row.median == pytest.approx(0, abs=2e-3)
    assert row.ninety == pytest.approx(np.quantile([0, 0, 0, 0, 0.25, 0.4], 0.9), abs=2e-3)
    assert row.clear == pytest.approx(2 / 6)


def test_coverage_falls_with_the_margin():
    table = benchmarks.coverage_frame(measured(directed()), {"fog": NAMES[:1]}).set_index(["benchmark", "margin"])
    fog = table.loc["fog"]
    assert fog.measured[0.48] == 1 and fog.measured[0.5] <= 1 and (fog.outside == 3).all()
    assert fog.loc[0.3].tolist() == [3, 1, 1, 1]  # contrast is shown to be covered, border and hue not to be
    assert fog.loc[0.5].tolist()[2:] == [0, 1]  # at its own overlap nothing is shown of contrast
    covered = benchmarks.benchmarks_frame(measured(directed()), {"fog": NAMES[:1]})
    assert benchmarks.uncovered_frame(covered).values.tolist()[0] == ["fog", 2, "border and hue"]


def test_a_selection_of_one_seed_is_measured_on_the_other():
    """The first seed sees no overlap and selects all four; on the second fog and contrast overlap by .5, border and hue by .125."""
    of_seeds = {0: accuracies(np.eye(4)), 1: accuracies(directed())}
    first, second = benchmarks.crossed_frame(NAMES, of_seeds, 0.1).itertuples()
    assert (first.chosen_on, first.measured_on, first.size, first.pairs, first.above) == (0, 1, 4, 6, 2)
    assert first.mean_overlap == pytest.approx((0.5 + 0.125) / 6)
    assert (second.size, second.pairs, second.above) == (2, 1, 0) and second.outside == 2


def test_severities_count_the_ends_that_a_range_reaches(tmp_path):
    ends = {NAMES[0]: (0.94, 0.51), NAMES[1]: (0.95, 0.6), NAMES[2]: (0.9, 0.49), NAMES[3]: (0.3, 0.3)}
    content = {name: {"robustness": of, "range": [1, 1 + (name != NAMES[3])]} for name, of in ends.items()}
    (tmp_path / "ranges.json").write_text(json.dumps({"corruptions": content}))
    table = benchmarks.severities_frame(tmp_path / "ranges.json", NAMES).set_index("package")
    assert table.loc["imagenet_c"].tolist()[:5] == [2, 1, 2, 1, 0]
    assert table.loc["noc"].tolist() == [2, 0, 0, 1, 1, 0.3, 0.9, 0.3]
    assert table.loc["all"].tolist() == [4, 1, 2, 2, 1, 0.3, 0.95, 0.3]


def test_the_relative_ce_of_the_standard_model_would_be_100():
    full = accuracies(directed())
    ce = benchmarks.relative_ce(full)
    assert ce[0, 2] == pytest.approx(100) and ce[0, 0] == pytest.approx(50)  # a gain of .2 of the .4 that are lost
