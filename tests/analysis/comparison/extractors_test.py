"""Agreement of two feature extractors: against SciPy, on made-up distances; tools.compare on the
published correlations.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from analysis.comparison import extractors
from analysis.distances.files import Correlation, Distance, write_correlations, write_msd

SCHEMES = tuple(f"s{k}" for k in range(6))
CORRUPTIONS = ("imagenet_c/fog", "imagenet_c/frost", "imagenet_c/snow", "imagenet_c/contrast")
# E. Mintun, A. Kirillov, S. Xie (2021), supplement, Table 1: Spearman of MSD and error with
# WRN-40-2 and VGG-19-BN features.
PUBLISHED = {
    "gaussian_noise": (0.76, 0.70), "shot_noise": (0.83, 0.78), "impulse_noise": (0.90, 0.92), "motion_blur": (0.86, 0.81),
    "defocus_blur": (0.83, 0.78), "zoom_blur": (0.77, 0.68), "glass_blur": (0.69, 0.66), "brightness": (0.27, 0.08),
    "fog": (0.68, 0.60), "frost": (0.66, 0.66), "snow": (0.65, 0.53), "contrast": (0.66, 0.65), "pixelate": (0.35, 0.29),
    "jpeg_compression": (0.33, 0.26), "elastic_transform": (0.77, 0.74),
}  # fmt: skip


def rows(seed, noise, scale=1.0):
    shared, own = np.random.default_rng(1), np.random.default_rng(seed)
    found = []
    for k, name in enumerate(CORRUPTIONS):
        for scheme in SCHEMES:
            for level in (1, 2):
                msd = scale * (k + shared.uniform(0, 2) + noise * own.uniform(0, 1) + 0.1 * level)
                found.append(Distance(scheme, name, level, msd, 0.01, own.uniform(1, 2), 0.01))
    return found


def means(found):
    return np.array([[np.mean([r.msd for r in found if r[:2] == (s, c)]) for s in SCHEMES] for c in CORRUPTIONS])


def test_correlations_are_those_of_the_mean_distances():
    first, second = rows(2, 1.0), rows(3, 1.0, scale=7.0)
    found = extractors.agreement(first, second[::-1], resamples=300)
    x, y = means(first), means(second)
    assert found.spearman == pytest.approx(scipy.stats.spearmanr(x.ravel(), y.ravel()).statistic)
    each = [scipy.stats.spearmanr(*both).statistic for both in zip(x, y)]
    assert list(found.by_corruption.values()) == pytest.approx(each) and found.ordering == pytest.approx(np.mean(each))
    assert found.interval[0] < found.spearman < found.interval[1] <= 1
    assert found.ordering_interval[0] <= found.ordering <= found.ordering_interval[1]
    # Ordering of schemes within a corruption is harder than telling corruptions apart.
    assert found.ordering < found.spearman < 0.99


def test_scale_does_not_matter():
    first = rows(2, 0.5)
    same = [row._replace(msd=7 * row.msd) for row in first]
    found = extractors.agreement(first, same)
    assert found.spearman == pytest.approx(1) and found.interval == pytest.approx((1, 1))
    other = extractors.agreement(first, same, "mmd")
    assert other.ordering == pytest.approx(1)


def test_two_schemes_have_no_ordering():
    few = [row for row in rows(2, 0.5) if row.scheme in SCHEMES[:2]]
    found = extractors.agreement(few, rows(3, 0.5)[: len(SCHEMES) * 8])
    assert found.schemes == SCHEMES[:2] and np.isnan(found.ordering) and not np.isnan(found.spearman)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda first, second: (first, second[:-1]), "the same measurements in both, found only in one: .*contrast"),
        (lambda first, second: (first, [r for r in second if r.corruption < "imagenet_c/fr"]), "found 6 and 2"),
        (lambda first, second: (first, second, "mdd"), "the measure msd or mmd, found 'mdd'"),
    ],
)
def test_what_cannot_be_compared_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        extractors.agreement(*change(rows(2, 0.5), rows(3, 0.5)))


def test_compare_prints_the_published_table(tmp_path):
    for k, folder in enumerate(("wrn", "vgg")):
        (tmp_path / folder).mkdir()
        write_msd(tmp_path / folder / "msd.csv", rows(k, 1.0))
        table = [Correlation(f"imagenet_c/{c}", 512, v[k], *[float("nan")] * 5) for c, v in PUBLISHED.items()]
        write_correlations(tmp_path / folder / "correlations.csv", table, "comment")
    flags = [f"--first={tmp_path / 'wrn'}", f"--second={tmp_path / 'vgg'}"]
    done = subprocess.run(
        [sys.executable, "-m", "tools.compare", *flags],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
    assert "imagenet_c/brightness" in done.stdout and "+0.27   +0.08" in done.stdout
    result = json.loads((tmp_path / "vgg" / "comparison.json").read_text())
    assert result["correlation_with_error"]["imagenet_c/impulse_noise"] == [0.9, 0.92]
    assert result["msd"]["spearman"] > 0.5 and len(result["msd"]["by_corruption"]) == 4
