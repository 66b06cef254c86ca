"""tools.scheme_study: trained once, continued with more, refusing other settings; killed in the middle, and in two
processes, it ends in the tables of a run that nothing disturbed (slow).
"""

import os
import re
import sys

import pandas as pd
import pytest

import configs.msd
import configs.scheme_study
import overlap
from projects.coverage import __main__ as coverage
from projects.structural import enhancement_study
from runtime.workdirs import WorkdirError, open_workdir
from tests import processes
from tests.analysis.made_up import read_counts
from tests.refusing import refuses
from tests.runtime.pair import PATIENCE, ROOT, Pair, environment
from tests.training import tiny
from tools import calibrate, cbar, msd, scheme_study
from training import study


def slow(test):
    """Minutes of CPU time, many times as long on a loaded machine."""
    return pytest.mark.slow(pytest.mark.timeout(1500)(test))


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
    assert scheme_study.run(config(schemes=("patch_gaussian", "standard")), workdir) == ["patch_gaussian", "standard"]
    second = finished(workdir)
    assert first.items() <= second.items() and second.keys() - first.keys() == {("patch_gaussian", "seed0")}
    found = read_counts(workdir / "counts.csv")
    assert set(rows) < set(found) and [key[0] for key, _ in found] == 2 * ["standard", "patch_gaussian"]
    for name, lines in (("schemes", 2), ("scheme_corruptions", 2)):
        assert len(pd.read_csv(workdir / f"{name}.csv")) == lines
    assert "of one seed" in (printed := capsys.readouterr().out) and "no distances yet" in printed
    other = config()
    other.train.learning_rate = 0.06
    refuses(lambda: scheme_study.run(other, workdir), "stored 0.05, asked 0.06", kind=WorkdirError)
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


@slow
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


TABLES = ("counts.csv", "scores.csv", "errors.csv", "errors_summary.csv", "schemes.csv", "scheme_corruptions.csv")
SETTINGS = (
    "dataset.train_limit=160",
    "dataset.test_limit=70",
    "train.batch_size=32",
    "train.epochs=4",
    "eval.batch_size=70",
    "eval.severity=3",
    "eval.corruptions=('imagenet_c/contrast','imagenet_c/fog','imagenet_c/brightness')",
    "study.schemes=('standard','patch_gaussian','augmix=rotate')",  # two programs
)
COMMAND = ["-m", "tools.scheme_study", f"--config={ROOT / 'configs' / 'scheme_study.py'}:smoke", "--workdir=work"]
COMMAND += [f"--config.{setting}" for setting in SETTINGS]


def start(folder, devices=1):
    """The command as a user runs it, its workdir in `folder`."""
    command = [sys.executable, *COMMAND]
    return processes.Process(command, cwd=folder, env=environment(devices), output=folder / "output")


def finish(folder, devices=1):
    assert start(folder, devices).wait(PATIENCE) == 0, (folder / "output").read_text()[-5000:]


def results(workdir):
    """The lines of every table but those that tell when and where it was made."""
    return {
        name: [line for line in (workdir / name).read_text().splitlines() if not line.startswith("#")]
        for name in TABLES
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """{devices: tables of a study that ran to its end on them}."""
    found = {}
    for devices in (1, 2):
        folder = tmp_path_factory.mktemp(f"undisturbed{devices}")
        finish(folder, devices)
        found[devices] = results(folder / "work")
    return found


@slow
def test_killed_while_it_trains_and_while_it_evaluates_it_ends_in_the_same_tables(undisturbed, tmp_path):
    work = tmp_path / "work"
    kept = {}
    for begun in (lambda: len(finished(work)) >= 1, lambda: len(finished(work)) >= 3, lambda: answered(work)):
        start(tmp_path).kill_when(begun)
        assert not (work / "schemes.csv").exists()
        after = finished(work)
        assert kept.items() <= after.items()  # finished models are not trained again
        kept = after
    finish(tmp_path)
    assert len(finished(work)) == 6 and kept.items() <= finished(work).items()
    assert results(work) == undisturbed[1]
    assert len(read_counts(work / "counts.csv")) == 6 * (1 + 3)


def answered(workdir):
    return any((workdir / "answers").glob("*.npz"))


@slow
def test_two_processes_end_in_the_tables_of_one_with_two_devices(undisturbed, tmp_path):
    with Pair(tmp_path, *COMMAND) as pair:
        assert pair.wait() == [0, 0], pair.output()
    assert results(tmp_path / "host0" / "work") == undisturbed[2]
    assert os.listdir(tmp_path / "host1") == ["output"]  # only process 0 writes


@pytest.mark.parametrize(
    ("run", "given", "message"),
    [
        (overlap.run, {"eval": {"enhance": "clahe"}}, "expected config.eval.enhance '', found 'clahe'"),
        (
            overlap.run,
            {"eval": {"temperature": 9}, "dataset": {"train_limit": 0}},
            "trained with config.dataset.train_limit",
        ),
        (scheme_study.run, {"eval": {"temperature": 9}}, "expected config.eval.temperature 0, found 9; this command"),
        (cbar.search, {"eval": {"images": "list.txt"}}, "expected config.eval.images '', found 'list.txt'"),
        (
            enhancement_study.run,
            {"eval": {"adapt": "test"}, "study": {"enhancements": ("clahe",)}},
            "expected config.eval.adapt '', found 'test'",
        ),
        (coverage.run, {"eval": {"ensemble": True}}, "expected config.eval.ensemble False, found True"),
        (calibrate.run, {"eval": {"images": "list.txt"}}, "expected config.eval.images '', found 'list.txt'"),
        (
            scheme_study.run,
            {"train": {"label_smoothing": 0.1}},
            "train.jsd_weight, found 0.1, in the recipe of augmix+jsd",
        ),
    ],
)
def test_what_a_study_would_not_apply_is_refused_before_anything_is_written(run, given, message, tmp_path):
    config = tiny.config()
    config.study.update({"corruptions": ("noc/border", "noc/hue"), "schemes": ("standard", "augmix+jsd")})
    for section, values in given.items():
        config[section].update(values)
    with pytest.raises(ValueError, match=re.escape(message)):
        run(config, tmp_path / "work")
    assert not (tmp_path / "work").exists()


def test_a_temperature_for_which_too_few_images_are_left_is_refused_before_training(tmp_path):
    config = tiny.config()
    config.study.corruptions = ("noc/border", "noc/hue")
    config.eval.temperature = 100_000
    refuses(lambda: overlap.run(config, tmp_path / "work"), "images beyond the 160")
    assert not (tmp_path / "work" / "models").exists()


def test_a_study_that_was_refused_takes_its_corrected_settings(tmp_path):
    config = tiny.config()
    config.study.corruptions = ("noc/border", "noc/hue")
    config.ranges, config.train.scheme = str(ROOT / "configs/ranges/cifar10_cpu.json"), "augmix"
    refuses(lambda: overlap.run(config, tmp_path / "work"), "config.train.scheme ''")
    config.train.scheme = ""
    with open_workdir(tmp_path / "work", config.to_dict(), free=study.STUDY_FREE) as workdir:
        assert workdir.path == tmp_path / "work"


# Every study refuses settings that the names of its models would not tell.
@pytest.mark.parametrize("run", [overlap.run, enhancement_study.run, scheme_study.run, cbar.search])
@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("train", "enhance", "clahe"),
        ("train", "stability_weight", 0.05),
        ("train", "stability_noise", 0.05),
        ("train", "mixup", True),
        ("train", "frozen", "backbone"),
        ("study.finetune", "enhance", "nlm"),
        ("study.finetune", "corruption", "noc/hue"),
        ("study.finetune", "scheme", "augmix"),
        ("study.finetune", "jsd_weight", 12.0),
    ],
)
def test_what_no_name_tells_is_refused_before_anything_is_written(run, section, key, value, tmp_path, monkeypatch):
    monkeypatch.setattr(study, "load_dataset", lambda *given, **options: pytest.fail("images were loaded first"))
    config = tiny.config()
    config.study.update(
        {"corruptions": ("noc/border", "noc/hue"), "schemes": ("standard", "augmix+jsd"), "enhancements": ("clahe",)}
    )
    config.search.seeds = (1,)
    recipe = config.train if section == "train" else config.study.finetune
    with config.unlocked():
        recipe[key] = value
    with pytest.raises(ValueError, match=rf"expected config\.{section}\.{key} .* in a study, found {value!r}"):
        run(config, tmp_path / "work")
    assert not (tmp_path / "work").exists()
