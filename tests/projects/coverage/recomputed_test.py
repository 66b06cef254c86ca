"""docs/results/coverage beside a second computation from the committed answers, tests/reference/coverage.py."""

import functools

import numpy as np
import pandas as pd
import pytest

from tests.processes import ROOT
from tests.reference import coverage

ANSWERS, RESULTS = ROOT / "projects/coverage/cpu/answers", ROOT / "docs/results/coverage"
NOC = ("quantization", "blur", "vertical_artifacts", "rain", "border", "shear", "brightness", "hue")


def table(name, **options):
    return pd.read_csv(RESULTS / f"{name}.csv", comment="#", **options)


@functools.cache
def names():
    return list(table("overlap", index_col=0).columns)


@functools.cache
def bits():
    return coverage.right_answers(ANSWERS, names(), (0, 1))


@functools.cache
def accuracy():
    return bits().mean(axis=(0, -1))


def members():
    found = {
        of: [k for k, name in enumerate(names()) if name.startswith(f"{of}/")]
        for of in ("imagenet_c", "laion_c", "optics", "camera")
    }
    selected = table("crossed").members[1].split(", ")
    return found | {
        "imagenet_noc": [names().index(f"noc/{n}") for n in NOC],
        "selected": [*map(names().index, selected)],
    }


def test_overlaps_and_transfers():
    unclipped, directed = coverage.overlaps(accuracy()), coverage.transfers(accuracy())
    np.testing.assert_allclose(table("overlap", index_col=0), np.maximum(unclipped, 0), atol=1e-9)
    pairs = table("overlap_long")
    first, second = (pairs[column].map(names().index).to_numpy() for column in "ij")
    np.testing.assert_allclose(pairs.T_ij, directed[first, second], atol=1e-9)
    np.testing.assert_allclose(pairs.T_ji, directed[second, first], atol=1e-9)
    apart = np.abs(directed - directed.T)[np.triu_indices(len(directed), 1)]
    [row] = table("asymmetry").itertuples()
    assert (row.median, row.ninety) == pytest.approx((np.median(apart), np.quantile(apart, 0.9)))
    np.fill_diagonal(directed, -np.inf)
    np.testing.assert_allclose(table("transfers").best, directed.max(axis=0), atol=1e-9)


def test_errors_hold_more_than_test_images_alone():
    """Two pairs: images drawn with replacement, a deviation from 300 draws (5 %), and the noise of trainings comes on top."""
    for first, second in (("imagenet_c/fog", "imagenet_c/contrast"), ("noc/border", "noc/hue")):
        i, j = 1 + names().index(first), 1 + names().index(second)
        chosen = bits()[:, [0, i, j]][:, :, [0, i, j]]
        drawn = [coverage.overlaps(one)[0, 1] for one in coverage.resampled(chosen, 300, 0)]
        pairs = table("overlap_long")
        [se] = pairs.se[(pairs.i == first) & (pairs.j == second)]
        assert 0.9 * np.std(drawn) < se < 3 * np.std(drawn)


def test_balance():
    rows = table("balance").set_index("benchmark")
    for name, at in members().items():
        row, ce = rows.loc[name], coverage.mean_relative_ce(accuracy(), at)
        assert (row.members, row.ce_std, row.ce_range, row.ce_mean) == pytest.approx(
            (len(at), ce.std(), np.ptp(ce), ce.mean())
        )
        assert row.r_std == pytest.approx(coverage.mean_robustness(accuracy(), at).std())
        of_seeds = [coverage.mean_relative_ce(one.mean(axis=-1), at).std() for one in bits()]
        assert (row.ce_std_0, row.ce_std_1) == pytest.approx(of_seeds)
    at = members()["imagenet_noc"]
    drawn = [coverage.mean_relative_ce(one, range(8)).std() for one in coverage.resampled(block(at), 300, 0)]
    low, high = np.percentile(drawn, (2.5, 97.5))  # of test images alone: narrower
    assert rows.ce_std_low["imagenet_noc"] < low < rows.ce_std["imagenet_noc"] < high < rows.ce_std_high["imagenet_noc"]


def block(at):
    chosen = [0, *(1 + k for k in at)]
    return bits()[:, chosen][:, :, chosen]


def test_coverage_counts():
    rows = table("coverage")
    unclipped = coverage.overlaps(accuracy())
    for name, at in members().items():
        of = rows[rows.benchmark == name]
        assert of.measured.tolist() == [coverage.covered(unclipped, at, margin) for margin in of.margin]
        assert len(of) == 26 and (of.outside == len(names()) - len(at)).all()
        assert ((of.least <= of.measured) & (of.measured <= of.most)).all()


def test_other_pages_say_what_the_tables_say():
    rows, balance = table("coverage").set_index(["benchmark", "margin"]), table("balance").set_index("benchmark")
    counts = [
        f"{of.measured:.0f} of {of.outside:.0f}"
        for of in (rows.loc[b, 0.3] for b in ("imagenet_c", "imagenet_noc", "laion_c"))
    ]
    first, second, third = counts
    std = {
        name: f"{row.ce_std:.1f} ({{}}{row.ce_std_low:.1f} to {row.ce_std_high:.1f}), {row.ce_range:.0f}, {row.ce_mean:.1f}"
        for name, row in balance.iterrows()
    }
    expected = {
        "README.md": f"ImageNet-C covers {first} others, ImageNet-NOC {second}.",
        "CITATION.cff": f"more than .3 with {first} others, ImageNet-NOC with {second}, and NOC is better balanced",
        "docs/status.md": f"overlap above .3 with {first}, {second}, {third} others; NOC is better balanced",
        "docs/reproduce.md": f"ImageNet-C {std['imagenet_c'].format('95 %: ')}; NOC {std['imagenet_noc'].format('')} ([coverage]",
    }
    for page, sentence in expected.items():
        assert sentence in " ".join((ROOT / page).read_text().split()), page
    assert balance.ce_std_high["imagenet_noc"] < balance.ce_std_low["imagenet_c"]  # NOC is better balanced


def test_the_gains_of_mixtures():
    rows = table("mixtures")
    for name in ("imagenet_c", "imagenet_noc", "laion_c"):
        of = rows[rows.mixture == f"mixture={name}"].set_index("corruption")
        for corruption in ("noc/hue", "laion_c/glitched", "imagenet_c/fog"):
            model = coverage.accuracies(ANSWERS, f"mixture={name}", ["clean", corruption], (0, 1))
            three = coverage.accuracies(ANSWERS, "standard", ["clean", corruption], (0, 1, 2))
            assert of.gain[corruption] == pytest.approx(model[1] / model[0] - three[1] / three[0], abs=1e-9)
