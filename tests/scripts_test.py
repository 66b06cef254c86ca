"""The scripts as a user runs them: a whole small study, resumed, evaluated further, and refusing what is wrong."""

import json
import sys

import numpy as np
import pytest

import data
import eval as evaluate
import overlap
from analysis.overlap.measured import read_overlap
from configs import default, overlap_shapes
from corruptions import write_dataset
from tests import compiling, processes
from tests.analysis.made_up import cell_of, read_counts
from tests.pages import commands, section_of
from tests.refusing import refuses

SMALL = ["--config.dataset.train_limit=600", "--config.dataset.test_limit=200", "--config.train.epochs=6"]
SMALL += ["--config.train.batch_size=50", "--config.train.learning_rate=0.05", "--config.eval.batch_size=100"]
SMALL += ["--config.study.corruptions=('noc/border','noc/hue')"]
# A setting of the study once a test has added a mixture to it: the module registers the mixture's name.
IMPORTED = "--config.imports=('tests.fixtures.of_two',)"


def script(name, *arguments):
    command = [sys.executable, *([name] if name.endswith(".py") else ["-m", name]), *arguments]
    done = processes.run(command, env=compiling.environment())
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("study") / "work"
    code, out, err = script("overlap.py", f"--workdir={workdir}", *SMALL)
    assert code == 0, err
    return workdir, out


def test_a_study_leaves_every_result(study):
    workdir, out = study
    tables = {"counts.csv", "scores.csv", "errors.csv", "errors_summary.csv", "overlap.csv", "overlap_long.csv"}
    records = {"config.json", "provenance.json", "evaluation.json", "benchmark.json", "stability.json"}
    results = {path.name for path in workdir.iterdir()}
    assert results >= tables | records | {"overlap.png", "overlap.pdf", "answers", "models"}
    counts = read_counts(workdir / "counts.csv")
    assert len(counts) == 3 * 3 and all(count.total == 200 for _, count in counts)
    names, matrix, *_ = read_overlap(workdir / "overlap.csv")
    assert names == ("noc/border", "noc/hue")
    np.testing.assert_allclose(matrix, matrix.T)
    accuracy = {(key[0], count.corruption): count.correct / count.total for key, count in counts}

    def robustness(model, corruption):
        return accuracy[model, corruption] / accuracy[model, "clean"]

    gains = {j: robustness(j, j) - robustness("standard", j) for j in names}
    if all(gain > 0 for gain in gains.values()):  # otherwise the entries are NaN, as the flags say
        transfer = [(robustness(i, j) - robustness("standard", j)) / gains[j] for i, j in (names, names[::-1])]
        assert matrix[0, 1] == pytest.approx(max(0, sum(transfer) / 2))
    else:
        assert np.isnan(matrix[0, 1])
    benchmark = json.loads((workdir / "benchmark.json").read_text())
    assert set(benchmark["members"]) <= set(names) and all(name in out for name in benchmark["members"])


def test_the_same_command_trains_nothing_again_and_may_ask_for_more(study):
    workdir, _ = study
    before = {p: p.stat().st_mtime_ns for p in workdir.glob("models/*/*/final.json")}
    assert len(before) == 3
    more = [argument.replace("'noc/hue'", "'noc/hue','noc/brightness'") for argument in SMALL]
    more += [IMPORTED, "--config.study.mixtures=('mixture=two',)"]
    code, out, err = script("overlap.py", f"--workdir={workdir}", *more)
    assert code == 0, err
    after = {p: p.stat().st_mtime_ns for p in workdir.glob("models/*/*/final.json")}
    assert len(after) == 5 and before.items() <= after.items()
    assert len(read_counts(workdir / "counts.csv")) == 5 * 4
    assert set(json.loads((workdir / "timing.json").read_text())["training_seconds"]) == {
        f"{model}|0" for model in ("standard", "noc/border", "noc/hue", "noc/brightness", "mixture=two")
    }
    mixture = [line for line in (workdir / "mixtures.csv").read_text().splitlines() if line.startswith("mixture=")]
    assert 1 <= len(mixture) <= 2 and "mixture=two: relative CE" in out  # corruptions that cost accuracy


@pytest.mark.slow
def test_eval_adds_conditions(study):
    workdir, _ = study
    request = ["--config.eval.corruptions=('noc/rain',)", "--config.eval.severity=0,1", "--config.eval.batch_size=100"]
    code, out, err = script("eval.py", f"--workdir={workdir}", IMPORTED, *request)
    assert code == 0, err
    rows = [count for _, count in read_counts(workdir / "counts.csv") if count.corruption == "noc/rain"]
    assert {row.severity for row in rows} == {0.0, 1.0} and "noc/rain" in out


def test_eval_reads_a_stored_dataset(study, tmp_path):
    """A written dataset gives the same answers as images corrupted during evaluation."""
    workdir, _ = study
    test = data.load("shapes", test_limit=200, train_limit=10).test
    of = {"corruptions": ["noc/border"], "severities": ["random"], "seed": 0, "progress": False}
    write_dataset(tmp_path / "stored", (test.images, test.labels), **of)
    code, _, err = script("eval.py", f"--workdir={workdir}", IMPORTED, f"--config.eval.stored={tmp_path / 'stored'}")
    assert code == 0, err
    stored = read_counts(workdir / "stored" / "stored" / "counts.csv")
    direct = {cell_of(row)[:3]: row[1].correct for row in read_counts(workdir / "counts.csv")}
    found = [row for row in stored if row[1].corruption == "noc/border"]
    assert len(found) >= 3
    np.testing.assert_array_equal(test.index, np.arange(200))  # the draws follow the index
    assert [row[1].correct for row in found] == [direct[cell_of(row)[:3]] for row in found]


@pytest.mark.slow
def test_calibrated_ranges_are_written_and_used(study, tmp_path):
    workdir, _ = study
    request = [IMPORTED, "--config.calibrate.images=150", "--config.calibrate.corruptions=('noc/border','noc/hue')"]
    code, out, err = script("tools.calibrate", f"--workdir={workdir}", *request)
    assert code == 0, err
    ranges = workdir / "ranges.json"
    content = json.loads(ranges.read_text())
    border, hue = (content["corruptions"][name] for name in ("noc/border", "noc/hue"))
    assert 1 <= border["range"][0] < border["range"][1] <= 16 and content["images"] == 150
    assert 0 <= hue["range"][0] < hue["range"][1] <= 0.5 and "noc/hue" in out
    assert len(dict(map(tuple, border["evaluations"]))) == len(border["evaluations"]) >= 4
    short = [argument for argument in SMALL if "study" not in argument] + ["--config.train.epochs=1"]
    augmented = tmp_path / "border"
    given = ["--config=configs/aug.py:noc/border", f"--config.ranges={ranges}", f"--config.train.init_from={workdir}"]
    code, _, err = script("train.py", *given, f"--workdir={augmented}", IMPORTED, *short)
    assert code == 0, err
    used = json.loads((augmented / "config.json").read_text())["train"]
    assert used["corruption_options"] == {"noc/border": {"range": border["range"]}}


NO_CIFAR10 = ["--config.dataset.name=cifar10", "--config.dataset.data_dir=/nonexistent"]


@pytest.mark.parametrize(
    "name, arguments, message",
    [
        ("train.py", ["--config.train.corruption=fgo"], "did you mean"),
        pytest.param("train.py", ["--config.dataset.name=cifar11"], "cifar10", marks=pytest.mark.slow),
        pytest.param("train.py", ["--config.model.name=resnet17"], "resnet18", marks=pytest.mark.slow),
        pytest.param("train.py", NO_CIFAR10, "python -m data.prepare", marks=pytest.mark.slow),
        pytest.param("tools.calibrate", [], "expected a workdir with trained models", marks=pytest.mark.slow),
    ],
)
def test_errors_are_one_clear_message(tmp_path, name, arguments, message):
    code, _, err = script(name, f"--workdir={tmp_path / 'w'}", *arguments)
    assert code == 1 and message in err and "Traceback" not in err, err


def test_what_cannot_be_done_is_said_before_anything_is_written(tmp_path):
    config = overlap_shapes.get_config()
    config.study.corruptions = ("noc/hue",)
    refuses(lambda: overlap.run(config, tmp_path / "study"), "at least two corruptions")
    refuses(
        lambda: evaluate.run(default.get_config(), tmp_path / "none"),
        "workdir with trained models",
        kind=FileNotFoundError,
    )
    assert not list(tmp_path.iterdir())


def test_a_wrong_setting_is_one_line_before_anything_is_written(tmp_path):
    cases = {
        "--config.trian.epochs=3": "there is no setting config.trian.epochs; did you mean config.train.epochs?",
        "--config=configs/aug_fg.py": (
            "expected a config file as --config, found no file configs/aug_fg.py; did you mean configs/aug_fog.py?"
        ),
        "--config.train.epochs=1.5": "config.train.epochs: expected a whole number from 0 to 1000000, found '1.5'",
        "--config=gone.py": "expected a config file as --config, found no file gone.py",
        "--config=configs/scheme.py:augmix,gpu": (
            "expected scheme.py:SCHEME or scheme.py:SCHEME,cpu, found 'augmix,gpu' (--help lists the flags)"
        ),
        "--config.ranges=nowhere.json": (
            "expected a file of calibrated ranges (tools.calibrate writes ranges.json), found no nowhere.json\n"
            "(JAX_CORRUPTIONS_TRACEBACK=1 shows where.)"
        ),
        "--epochs=3": (
            "there is no flag --epochs; a setting is given as --config.train.epochs=3 or --config.study.finetune.epochs=3"
        ),
        "--epoch=3": "Unknown command line flag 'epoch' (--help lists the flags)",
        "--config.train.epochs=-1": "config.train.epochs: expected a whole number from 0 to 1000000, found -1",
    }
    for argument, message in cases.items():
        assert script("train.py", f"--workdir={tmp_path / 'w'}", argument) == (1, "", f"train.py: {message}\n")
    assert not list(tmp_path.iterdir())


def test_help_lists_the_settings():
    page = section_of("docs/howto/train_evaluate.md", "Find out why a command stopped")
    code, out, _ = script(*next(commands(page)))
    assert "  --config.train.epochs=6  epochs of training\n" in out and "  --workdir=..." in out and code == 0


def test_help_fits_a_screen_and_the_rest_is_a_flag_away(tmp_path):
    """From another folder; a command without arguments prints it too."""
    said = []
    for arguments in ([], ["--help"], ["--help=all"]):
        done = processes.run([sys.executable, str(processes.ROOT / "train.py"), *arguments], cwd=tmp_path)
        assert done.returncode == 0 and not done.stderr, done.stderr
        said.append(done.stdout.splitlines())
    assert said[0] == said[1] and len(said[1]) <= 40 and max(map(len, said[1])) <= 160 and not list(tmp_path.iterdir())
    assert "a whole number from 1 to 1048576" in "\n".join(said[2]) and len(said[2]) > 130


@pytest.mark.slow
def test_the_least_study_ends_in_a_report_that_says_that_it_is_near_chance(tmp_path):
    page = section_of("docs/howto/studies.md", "Measure overlap").split("The smallest study")[1]
    study, report, *_ = commands(page)
    for program, *given in (study, report[1:]):
        code, _, err = script(program, *(word.replace("runs/", f"{tmp_path}/") for word in given))
        assert code == 0, err
    assert "near chance" in (tmp_path / "least" / "report.html").read_text()


@pytest.mark.slow
def test_another_config_in_the_same_workdir_is_refused(study):
    workdir, _ = study
    other = [argument.replace("epochs=6", "epochs=7") for argument in SMALL]
    code, _, err = script("overlap.py", f"--workdir={workdir}", *other)
    assert code == 1 and "train.epochs: stored 6, asked 7" in err
