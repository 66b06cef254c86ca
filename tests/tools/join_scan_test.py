"""tools.join_scan: errors of one network joined with features of another, as tools.select_cbar
reads them.
"""

import numpy as np
import pytest

import corruptions
from analysis import tables
from analysis.cbar import scans
from analysis.cbar.join import join

CONDITIONS = [
    (name, level)
    for benchmark, levels in (("cbar_candidates", 10), ("imagenet_c", 5))
    for name in corruptions.names(benchmark)
    for level in range(1, levels + 1)
]


def counts():
    rows = [tables.Count("standard", seed, "clean", 0, 190, 200) for seed in (0, 1)]
    for k, (name, level) in enumerate(CONDITIONS):
        rows += [tables.Count("standard", seed, name, level, 100 + (k + seed) % 50, 200) for seed in (0, 1)]
    return rows


def centres():
    return {condition: np.full(4, k, np.float32) for k, condition in enumerate(CONDITIONS)}


def test_every_level_in_its_place_and_seeds_averaged(tmp_path):
    scans.write_scan(tmp_path / "s.csv", join(counts(), centres(), "standard"))
    found = scans.read_scan(tmp_path / "s.csv")
    assert found.candidates == corruptions.names("cbar_candidates") and found.candidate_errors.shape == (30, 10)
    assert found.references == corruptions.names("imagenet_c") and found.reference_features.shape == (15, 5, 4)
    k = CONDITIONS.index(("cbar/ripple", 7))
    row = found.candidates.index("cbar/ripple")
    mean = (100 + k % 50 + 100 + (k + 1) % 50) / 2
    assert found.candidate_errors[row, 6] == pytest.approx(100 * (1 - mean / 200))
    assert (found.candidate_features[row, 6] == k).all()


def test_what_is_missing_is_named():
    incomplete = [count for count in counts() if (count.corruption, count.severity) != ("cbar/lines", 3)]
    with pytest.raises(ValueError, match="errors of every level of cbar_candidates, missing 1: cbar/lines level 3"):
        join(incomplete, centres(), "standard")
    without = {key: value for key, value in centres().items() if key[0] != "imagenet_c/fog"}
    with pytest.raises(ValueError, match="features of every level of imagenet_c, missing 5: imagenet_c/fog level 1"):
        join(counts(), without, "standard")
    with pytest.raises(ValueError, match="of the model"):
        join(counts(), centres(), "augmix")
