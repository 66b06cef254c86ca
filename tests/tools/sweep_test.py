"""tools.sweep with a stand-in for the commands: what is run, again, printed and tabulated."""

import csv
import importlib.util
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from analysis.errors import joint
from corruptions import remote
from runtime import artifacts, files, workdirs
from runtime.files import DamagedFileError
from runtime.settings import SettingsError, WorkdirError
from tests import processes
from tests.pages import ROOT, commands, section_of
from tests.refusing import refuses
from tests.tools import tables_test as table_test
from tests.training import tiny
from tools import sweep
from training import cli

GIVEN = ["--config=configs/default.py", "--config.train.epochs=2"]
RATES = ["train.learning_rate=.05,.1", "seed=0,1,2"]


def members(workdir, texts, scripts=("train",), given=GIVEN):
    return sweep.list_members(tiny.config(), given, sweep.read_swept(texts), scripts, workdir)


class Commands:
    """Replaces `sweep.call`: leaves the files of train.py, or fails on request."""

    def __init__(self, accuracy=lambda folder: 0.5, fails=(), status=1):
        self.accuracy, self.fails, self.status, self.called = accuracy, fails, status, []

    def __call__(self, arguments, output):
        (folder,) = (argument.removeprefix("--workdir=") for argument in arguments if argument.startswith("--workdir="))
        folder = pathlib.Path(folder)
        self.called.append(f"{arguments[1]} {folder.parent.name}/{folder.name}")
        folder.mkdir(parents=True, exist_ok=True)
        if any(name in str(folder) for name in self.fails):
            output.write("step 3\ntrain.py: the disk is on fire\n(a hint)\n")
            return self.status
        accuracy = self.accuracy(folder)
        seed = [argument.removeprefix("--config.seed=") for argument in arguments if "config.seed=" in argument]
        (folder / "config.json").write_text(json.dumps({"seed": int(*seed)}))
        workdirs.write_final(folder, step=1, digest=str(seed), num_classes=10)
        clean = {"accuracy": accuracy, "standard_error": 0.01, "images": 70, "model": str(seed)}
        artifacts.write_record(folder / "clean.json", clean)
        (folder / "provenance.json").write_text(json.dumps({"device": "a device", "git_revision": "0123456789abc"}))
        return 0


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a sweep on stand-ins, its devices untouched: `run(Commands(...), texts)` -> what failed."""
    monkeypatch.setattr("jax._src.xla_bridge.backends", None)  # settings that the commands must have

    def run(stand_in, texts=RATES, scripts=("train",)):
        monkeypatch.setattr(sweep, "call", stand_in)
        chosen = members(tmp_path / "rates", texts, scripts)
        failed = sweep.run(chosen, tmp_path / "rates")
        sweep.tabulate(chosen, tmp_path / "rates")
        return list(failed)

    return run


def test_members_are_all_combinations_in_folders_that_tell_them():
    chosen = members(ROOT / "runs", RATES)
    assert [str(member.folder.relative_to(ROOT / "runs")) for member in chosen] == [
        f"train.learning_rate={rate}/seed={seed}" for rate in ("0.05", "0.1") for seed in (0, 1, 2)
    ]
    assert [member.setting for member in chosen] == 3 * ["train.learning_rate=0.05"] + 3 * ["train.learning_rate=0.1"]
    assert chosen[-1].commands == [["train.py", *GIVEN, "--config.train.learning_rate=0.1", "--config.seed=2"]]
    other_way = members(ROOT / "runs", RATES[::-1])
    assert {member.folder for member in other_way} == {member.folder for member in chosen}
    tuples = members(ROOT / "runs", ["train.milestones=(1,2),(3,4)", "train.corruption=noc/border,standard"])
    assert tuples[0].folder == ROOT / "runs/train.corruption=noc.border/train.milestones=1+2/seed=0"
    assert tuples[0].commands[0][3:] == ["--config.train.milestones=(1, 2)", "--config.train.corruption=noc/border"]
    (study, *_) = members(ROOT / "runs", ["model.name=small_resnet"], ("overlap",))
    assert study.folder == ROOT / "runs/model.name=small_resnet" and study.commands[0][0] == "overlap.py"


@pytest.mark.parametrize(
    "texts, message, options",
    [
        (["train.learningrate=1,2"], r"no setting config\.train\.learningrate; did you mean .*learning_rate", {}),
        (["train.batch_size=1,1.5"], r"config\.train\.batch_size: expected a whole number .*, found '1\.5'", {}),
        (["seed=0,-1"], r"config\.seed: expected a whole number", {}),
        (["train.schedule=cosine", "train.warmup_epochs=0,2"], r"warmup_epochs below 2 epochs, found 2", {}),
        (["seed=0,1", "seed=2"], "expected every setting in one --sweep, found seed in two", {}),
        (["seed"], "expected --sweep KEY=VALUE,VALUE, found 'seed'", {}),
        (["eval.stored=a,b"], r"no config\.eval\.stored in a sweep, .*; eval\.py takes it", {"scripts": ("eval",)}),
        (["train.learning_rate=.1,0.10"], r"every combination of settings once, found .*rate=0\.1/seed=0 again", {}),
        (["seed=0,1"], r"no seed in --sweep of overlap, .* --config\.study\.seeds", {"scripts": ("overlap",)}),
        (["seed=0,1"], r"config\.seed from --sweep or from a flag of its own", {"given": [*GIVEN, "--config.seed=3"]}),
    ],
)
def test_a_wrong_setting_is_refused_before_anything_starts(texts, message, options):
    with pytest.raises(SettingsError, match=message):
        members(ROOT / "runs", texts, **options)


def test_what_failed_is_named_and_runs_again_and_what_ended_well_does_not(run, tmp_path, caplog, monkeypatch, capsys):
    monkeypatch.setattr(sweep.log, "propagate", True)
    first = Commands(fails=("0.05/seed=1",))
    assert run(first) == ["train.learning_rate=0.05/seed=1"] and len(first.called) == 6
    assert "train.learning_rate=0.05/seed=1 failed with status 1: train.py: the disk is on fire (" in caplog.text
    assert "Not finished, and left out: train.learning_rate=0.05/seed=1." in capsys.readouterr().out
    again = Commands()
    assert run(again) == [] and again.called == ["train.py train.learning_rate=0.05/seed=1"]
    assert "Not finished" not in (tmp_path / "rates" / "table.md").read_text()
    more = Commands()
    assert run(more, [RATES[0], "seed=0,1,2,3"]) == [] and [name[-6:] for name in more.called] == ["seed=3", "seed=3"]
    evaluated = Commands()
    assert run(evaluated, ["seed=0"], ("train", "eval")) == []
    assert [name.partition(" ")[0] for name in evaluated.called] == ["train.py", "eval.py"]
    broken = Commands(fails=("seed=5",))
    assert run(broken, ["seed=5"], ("train", "eval")) == ["seed=5"] and len(broken.called) == 1


def test_another_machine_goes_on_from_the_bucket_alone(tmp_path, monkeypatch):
    """The first machine is lost in the fourth of six members; its home folder is not there any more."""
    MemoryFileSystem.store.clear()
    monkeypatch.setattr("jax._src.xla_bridge.backends", None)

    class Uploading(Commands):
        def __call__(self, arguments, output):
            if len(self.called) == 3 and self.fails:
                raise KeyboardInterrupt
            folder = pathlib.Path(files.local(arguments[-1].removeprefix("--workdir="), use="hold"))
            status = super().__call__([*arguments[:-1], f"--workdir={folder}"], output)
            for path in folder.rglob("*.*"):
                files.put(path)
            return status

    def go(machine, stand_in):
        monkeypatch.setattr(remote, "copies", {})
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / machine))
        monkeypatch.setattr(sweep, "call", stand_in)
        workdir = pathlib.Path(files.local("memory://b/rates"))
        chosen = members(workdir, RATES)
        assert sweep.run(chosen, workdir) == {}
        sweep.tabulate(chosen, workdir)
        return stand_in.called

    with pytest.raises(KeyboardInterrupt):
        go("first", Uploading(fails=("nothing else",)))
    assert [name[-6:] for name in go("second", Uploading())] == ["seed=0", "seed=1", "seed=2"]
    assert go("third", Uploading()) == []
    table = MemoryFileSystem().cat_file("b/rates/table.md")
    assert b"learning_rate=0.1" in table and b"Not finished" not in table
    assert len([key for key in MemoryFileSystem.store if key.endswith("/final.json")]) == 6


@pytest.mark.parametrize(
    "copied, message",
    [
        ("", r"expected a workdir with seed 1, found 0 in .*seed=1; remove it \(a copy of another member\?\)"),
        ("clean.json", r"clean\.json: expected the accuracy of this model, found another's; remove .*seed=1"),
        ("final.json", r"final\.json: expected state of the model of config\.json \(.* seed 1, .*found .* seed 0, "),
    ],
)
def test_a_copy_of_another_seed_is_refused(run, tmp_path, copied, message):
    run(Commands())
    first, second = (tmp_path / f"rates/train.learning_rate=0.05/seed={seed}" for seed in (0, 1))
    if copied:
        shutil.copy(first / copied, second / copied)
    else:
        shutil.rmtree(second)
        shutil.copytree(first, second)
    with pytest.raises((WorkdirError, DamagedFileError), match=message):
        run(Commands())


@pytest.mark.parametrize("status, left", [(143, 143), (130, 130), (-signal.SIGTERM, 143)])
def test_a_stopped_command_stops_the_sweep(run, status, left):
    stopped = Commands(fails=("seed=1",), status=status)
    with pytest.raises(SystemExit) as end:
        run(stopped)
    assert end.value.code == left and len(stopped.called) == 2


# A command that is told to end, and ends in its own way; it stops this process while it runs.
STOPS = "trap 'echo saved; exit {status}' TERM; kill -{signal} $PPID; sleep 5 & wait"


@pytest.fixture
def untold():
    """Records signals that reach this process instead of a command; they would end it."""
    numbers = []

    def note(number, _):
        numbers.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    yield numbers
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("status", [7, 0])
def test_a_command_is_told_when_the_sweep_is_stopped(tmp_path, untold, status):
    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with open(tmp_path / "log", "w+") as output:
        with pytest.raises(SystemExit) as end:
            sweep.call(["sh", "-c", STOPS.format(signal="TERM", status=status)], output)
        with pytest.raises(KeyboardInterrupt):
            sweep.call(["sh", "-c", STOPS.format(signal="INT", status=status)], output)
    assert end.value.code == 143 and (tmp_path / "log").read_text() == "saved\nsaved\n"
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == handlers and not untold


def test_a_command_is_told_when_the_sweep_is_stopped_while_it_starts(tmp_path, untold, monkeypatch):
    started = []

    class Slow(subprocess.Popen):
        def __init__(self, *given, **more):
            super().__init__(*given, **more)
            started.append(self)
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(subprocess, "Popen", Slow)
    with open(tmp_path / "log", "w") as output, pytest.raises(SystemExit) as end:
        sweep.call(["sleep", "5"], output)
    assert end.value.code == 143 and started[0].returncode == -signal.SIGTERM and not untold


def test_settings_of_the_config_file_that_changed_run_again(run, monkeypatch):
    assert run(Commands(), ["seed=0"]) == []
    changed = tiny.config(learning_rate=0.2)
    monkeypatch.setattr(tiny, "config", lambda: changed)
    again, once_more = Commands(), Commands()
    assert run(again, ["seed=0"]) == [] and again.called == ["train.py rates/seed=0"]
    assert run(once_more, ["seed=0"]) == [] and once_more.called == []


def test_the_table_has_mean_and_deviation_over_seeds(run, tmp_path):
    accuracies = {f"{rate}/seed={seed}": 0.5 + rate + seed**2 / 50 for rate in (0.05, 0.1) for seed in (0, 1, 2)}
    run(Commands(lambda folder: accuracies[str(folder).rpartition("rate=")[2]]))
    lines = (tmp_path / "rates" / "table.csv").read_text().splitlines()
    assert "a device, revision 0123456789ab" in (tmp_path / "rates" / "table.md").read_text()
    for row, rate in zip(csv.DictReader(lines), (0.05, 0.1), strict=True):
        errors = [100 * (1 - accuracies[f"{rate}/seed={seed}"]) for seed in (0, 1, 2)]
        assert (row["model"], row["benchmark"], row["seeds"]) == (f"train.learning_rate={rate}", "clean", "3")
        assert float(row["mean"]) == pytest.approx(np.mean(errors))
        assert float(row["std"]) == pytest.approx(np.std(errors, ddof=1))
        assert float(row["se"]) == pytest.approx(1)
    assert "| train.learning_rate=0.05 | 41.7 ± 1.0 (4.2) |" in (tmp_path / "rates" / "table.md").read_text()


def test_seeds_in_workdirs_of_their_own_are_scored_as_those_of_one(tmp_path):
    together = table_test.write(tmp_path / "together", 0.2, seeds=(0, 1))
    apart = [table_test.write(tmp_path / f"seed={seed}", 0.2, seeds=(seed,)) for seed in (0, 1)]
    other = table_test.write(tmp_path / "other", 0.5, held=table_test.conditions(dataset="shapes"))
    expected = joint.joint([joint.read(together, "rate=1")])
    table = sweep.sweep_table({"rate=1": apart, "rate=2": [other]}, missing=["rate=3"])
    for column in expected.columns:
        known, summary = (t.cells[name, column] for t, name in ((expected, "standard"), (table, "rate=1:standard")))
        assert summary[4:8] == pytest.approx(known[4:8]) and summary.seeds == 2 and summary.std > 0
    assert table.caption[-1] == "Not finished, and left out: rate=3."
    assert any("rate=2 was measured under other conditions than rate=1" in sentence for sentence in table.caption)


def test_seeds_under_other_conditions_are_labelled(tmp_path):
    held = table_test.conditions()
    (name, *_) = held.corruptions
    held.corruptions[name] = held.corruptions[name] | {"range": [0, 1]}
    others = {"seeds": (1,), "held": held}
    apart = [table_test.write(tmp_path / "seed=0", 0.2), table_test.write(tmp_path / "seed=1", 0.2, **others)]
    caption = sweep.sweep_table({"rate=1": apart}).caption
    (note,) = [sentence for sentence in caption if "other conditions" in sentence]
    assert note.startswith("rate=1/seed=1 was measured under other conditions than rate=1/seed=0: ")
    assert f"{name}, severity range: " in note and note.endswith(", here 0 to 1")


def test_what_is_left_is_printed(run, tmp_path):
    run(Commands(fails=("seed=1",)))
    chosen = members(tmp_path / "rates", RATES, ("train", "eval"))
    train, evaluate = (shlex.split(part) for part in sweep.shell(chosen[0]).split(" && "))
    assert train[:2] == ["python", "train.py"] and evaluate[:2] == ["python", "eval.py"]
    assert train[2:] == evaluate[2:] == [*GIVEN, *chosen[0].commands[0][3:], f"--workdir={chosen[0].folder}"]
    assert list(sweep.left(chosen)) == [0, 1, 2, 3, 4, 5]  # the evaluation is new
    assert list(sweep.left(members(tmp_path / "rates", RATES))) == [1, 4]
    refuses(
        lambda: sweep.printed("skypilot", sweep.left(chosen), ["--workdir=runs/rates"]),
        "--workdir in a bucket",
        "--workdir=runs/rates",
        kind=SettingsError,
    )
    run(Commands())
    finished = members(tmp_path / "rates", RATES)
    assert not sweep.left(finished) and not sweep.printed("commands", {}, ["again"])
    refuses(lambda: sweep.printed("slurm", sweep.left(finished), ["again"]), "all finished; the command without")


def test_a_member_that_another_process_runs_is_left_to_it(tmp_path, monkeypatch):
    """The exit status is then the command's own, 75; it is 1 where another member failed."""
    stand_in = Commands(fails=("seed=1",), status=75)
    monkeypatch.setattr(sweep, "call", stand_in)
    chosen = members(tmp_path / "rates", ["seed=0,1"])
    failed = sweep.run(chosen, tmp_path / "rates")
    assert failed == {"seed=1": 75} and sweep.status(failed) == 75
    assert sweep.status({"seed=1": 75, "seed=2": 2}) == 1 and sweep.status({}) == 0


def test_settings_given_as_text_are_typed_and_leave_the_config_alone():
    config = tiny.config()
    changed = cli.overridden(config, {"train.learning_rate": "1", "train.nesterov": "true", "train.milestones": "(1,)"})
    assert (changed.train.learning_rate, changed.train.nesterov, changed.train.milestones) == (1.0, True, (1,))
    assert config.train.learning_rate == 0.05 and changed.train.epochs == config.train.epochs
    options = cli.overridden(config, {"train.corruption_options": "{'noc/hue': {'range': (0, 1)}}"})
    written = cli.argument("train.corruption_options", options.train.corruption_options)
    key, _, text = written.removeprefix("--config.").partition("=")
    assert cli.overridden(config, {key: text}).train == options.train


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_the_recipe(tmp_path):
    section = section_of("docs/howto/train_evaluate.md", "Sweep settings and seeds")
    small = ("dataset.train_limit=160", "dataset.test_limit=70", "train.epochs=1", "train.batch_size=32")
    small = [f"--config.{setting}" for setting in (*small, "eval.corruptions=('noc/border',)", "eval.batch_size=70")]

    def call(arguments):
        arguments = arguments[: arguments.index(">")] if ">" in arguments else arguments
        given = [word.replace("runs/", f"{tmp_path}/").replace("seed=0,1,2", "seed=0,1") for word in arguments]
        done = processes.run([sys.executable, *given, *small], timeout=600)
        assert done.returncode == 0, done.stderr
        return done

    train, evaluate, slurm, skypilot, launch = commands(section)
    assert call(train).stderr.count("finished before") == 0
    rows = list(csv.DictReader((tmp_path / "rates" / "table.csv").read_text().splitlines()))
    assert [row["seeds"] for row in rows] == ["2", "2"]
    assert call(train).stderr.count("finished before") == 4
    assert "#SBATCH --array=0,1,2,3\n" in call(slurm).stdout
    assert "rate=0.1:noc/border" in call(evaluate).stdout
    assert (tmp_path / "rates/train.learning_rate=0.1/seed=1/counts.csv").is_file()
    skypilot = [word.replace("gs://BUCKET", "memory://bucket") for word in skypilot]
    assert "for member in 0 1 2 3; do sky jobs launch" in call(skypilot).stdout
    if importlib.util.find_spec("submitit"):
        launch = [word.replace("=slurm", "=local") for word in launch]
        assert "rate=0.1:noc/border" in call(launch).stdout


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["--print=commands", "--member=0"],
            "expected one of --print, --launch and --member, found --print and --member",
        ),
        (
            ["--job=timeout_min=5"],
            "expected --job with --launch=local or --launch=slurm, found --job=timeout_min=5 without --launch",
        ),
    ],
)
def test_flags_that_exclude_each_other_are_refused_before_anything_runs(given, message, tmp_path):
    small = [f"--config={ROOT}/tests/fixtures/small.py", "--sweep=seed=0,1", f"--workdir={tmp_path}/work"]
    done = processes.run([sys.executable, "-m", "tools.sweep", *small, *given])
    assert done.returncode == 1 and message in done.stderr
    assert not (tmp_path / "work").exists()
