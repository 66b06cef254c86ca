"""tools.tables --table=distances: two feature extractors by the distances in them, and by their correlation with error."""

import json
import types

import numpy as np
import pytest
import scipy.stats

from analysis.tables import Count
from runtime import artifacts
from tests.analysis.made_up import write_answers
from tools import tables

SCHEMES = ("standard", "augmix", "autoaugment_cifar", "patch_gaussian")
CORRUPTIONS = ("imagenet_c/fog", "imagenet_c/frost", "imagenet_c/snow")
WRONG = {"standard": 40, "augmix": 20, "autoaugment_cifar": 30, "patch_gaussian": 25}


def measured(folder, seed):
    """MSD and MMD [2, 1] of each scheme to each corruption, as tools.msd keeps them."""
    rng, found = np.random.default_rng(seed), {}
    for scheme in SCHEMES:
        arrays = {f"{name}|3": rng.uniform(1, 2, (2, 1)) for name in CORRUPTIONS}
        artifacts.write(folder / "schemes" / f"{scheme}.npz", arrays, {"model": str(seed), "scheme": scheme})
        found |= {(scheme, name): arrays[f"{name}|3"][:, 0] for name in CORRUPTIONS}
    return found


def test_ranks_and_correlations_of_two_networks(tmp_path, capsys):
    first, second = measured(tmp_path / "wrn", 1), measured(tmp_path / "vgg", 2)
    counts = [Count(scheme, 0, "clean", 0, 90, 100) for scheme in SCHEMES]
    counts += [Count(s, 0, name, 3, 100 - wrong, 100) for s, wrong in WRONG.items() for name in CORRUPTIONS]
    write_answers(tmp_path / "schemes", counts)
    given = types.SimpleNamespace(errors=str(tmp_path / "schemes"), out=None)
    found = tables.distances([tmp_path / "wrn", tmp_path / "vgg"], given)
    keys = list(first)
    x, y = ([of[key][0] for key in keys] for of in (first, second))
    assert found["msd"]["spearman"] == pytest.approx(scipy.stats.spearmanr(x, y).statistic)
    for name in CORRUPTIONS:
        rho = [scipy.stats.spearmanr([of[s, name][0] for s in WRONG], list(WRONG.values())) for of in (first, second)]
        assert found["correlation_with_error"][name] == pytest.approx([one.statistic for one in rho])
    assert f"{rho[0].statistic:+.2f}   {rho[1].statistic:+.2f}" in capsys.readouterr().out
    assert json.loads((tmp_path / "vgg" / "comparison.json").read_text())["mmd"]["schemes"] == sorted(SCHEMES)
    with pytest.raises(ValueError, match=r"expected two folders of tools\.msd with --table=distances, found 1"):
        tables.distances([tmp_path / "wrn"], given)
