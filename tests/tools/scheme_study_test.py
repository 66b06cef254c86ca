"""tools.scheme_study: trained once, continued with more, refusing other settings."""

import pandas as pd
import pytest

import configs.msd
import configs.scheme_study
from runtime.workdirs import WorkdirError
from tests.analysis.made_up import read_counts
from tests.training import tiny
from tools import msd, scheme_study


def config(**changed):
    """Two schemes whose images are whole levels: the program of many other tests."""
    found = tiny.config(epochs=1)
    found.eval.update({"corruptions": ("imagenet_c/contrast",), "severity": "5"})
    found.study.update({"schemes": ("standard",), "seeds": (0,)} | changed)
    return found


def finished(workdir):
    return {path.parts[-3:-1]: path.stat().st_mtime_ns for path in workdir.glob("models/*/*/final.json")}


def test_a_study_continues_with_more_schemes_and_loses_nothing(tmp_path, capsys):
    workdir = tmp_path / "work"
    assert scheme_study.run(config(), workdir) == ["standard"]
    first, rows = finished(workdir), read_counts(workdir / "counts.csv")
    assert set(first) == {("standard", "seed0")} and len(rows) == 2
    assert scheme_study.run(config(schemes=("patch_gaussian", "standard")), workdir)
    second = finished(workdir)
    assert first.items() <= second.items() and second.keys() - first.keys() == {("patch_gaussian", "seed0")}
    found = read_counts(workdir / "counts.csv")
    assert set(rows) < set(found) and [row.model for row in found] == 2 * ["standard", "patch_gaussian"]
    for name, lines in (("schemes", 2), ("scheme_corruptions", 2)):
        assert len(pd.read_csv(workdir / f"{name}.csv")) == lines
    assert "of one seed" in (printed := capsys.readouterr().out) and "no distances yet" in printed
    other = config()
    other.train.learning_rate = 0.06
    with pytest.raises(WorkdirError, match=r"train.learning_rate: stored 0.05, asked 0.06"):
        scheme_study.run(other, workdir)
    assert finished(workdir) == second


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"schemes": ()}, "expected schemes in config.study.schemes, found none"),
        ({"schemes": ("standard", "imagenet_c/fog")}, "expected config.study.schemes of standard"),
        ({"train": {"corruption": "noc/hue"}}, "expected config.train.corruption 'standard' in a study of schemes"),
        ({"train": {"init_from": "standard"}}, "expected config.train.init_from '' in a study of schemes"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_written(changed, message, tmp_path):
    asked = config()
    asked.train.update(changed.pop("train", {}))
    asked.study.update(changed)
    with pytest.raises(ValueError, match=message):
        scheme_study.run(asked, tmp_path / "work")
    assert not (tmp_path / "work").exists()


@pytest.mark.slow
@pytest.mark.timeout(1500)  # two minutes of CPU time: a loaded machine takes many times as long
def test_the_smoke_study_gives_every_table_and_with_distances_the_correlations(tmp_path):
    asked = configs.scheme_study.get_config("smoke")
    names = scheme_study.run(asked, tmp_path)
    assert names == ["standard", "augmix=rotate", "augmix=posterize", "augmix", "patch_gaussian", "augmix+jsd"]
    table = pd.read_csv(tmp_path / "errors_summary.csv")
    measures = set(zip(table.benchmark, table.measure, strict=True))
    assert {("clean", "mean_error"), ("imagenet_c", "mean_error"), ("cifar10_c_bar", "gap")} <= measures
    assert msd.distances(asked, tmp_path)
    before = finished(tmp_path)
    scheme_study.run(asked, tmp_path)
    assert finished(tmp_path) == before and len(before) == 12
    found = pd.read_csv(tmp_path / "correlations.csv")
    assert len(found) == 15 and set(found.schemes) == {5}
    for name in ("correlations.png", "correlations_mmd.png", "schemes.csv", "scheme_corruptions.csv", "timing.json"):
        assert (tmp_path / name).exists()
