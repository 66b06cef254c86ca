"""Workdirs refuse what would mix or lose results, and say why."""

import json
import shutil
import subprocess
import sys

import pandas
import pytest

import eval as evaluate
from analysis.report import inputs
from configs import default
from runtime import artifacts, distributed, files, workdirs
from runtime.files import DamagedFileError
from runtime.settings import WorkdirError
from tests.refusing import refuses
from tests.tools import report_studies


def test_fresh_workdir_records_config_and_provenance(tmp_path):
    with workdirs.open_workdir(tmp_path / "run", {"seed": 3, "a": {"b": 1}}) as path:
        assert workdirs.read_json(path / "config.json") == {"seed": 3, "a": {"b": 1}}
        record = workdirs.read_json(path / "provenance.json")
    assert record["seed"] == 3
    assert set(record["versions"]) >= {"jax", "flax", "optax", "numpy", "python"}
    assert len(record["git_revision"].removesuffix("+changes")) in (40, len("unknown"))


def test_runs_with_other_code_are_added_to_the_first(tmp_path, monkeypatch):
    """A model trained at one revision is not recorded for a later revision that only reads it."""
    for revision in ("one", "one", "two", "two", "one"):
        monkeypatch.setattr("runtime.artifacts.git_revision", lambda r=revision: r)
        with workdirs.open_workdir(tmp_path, {"seed": 3}):
            (tmp_path / "metrics.jsonl").touch()
    record = workdirs.read_json(tmp_path / "provenance.json")
    assert record["git_revision"] == "one" and [run["git_revision"] for run in record["continued"]] == ["two"]


def test_a_workdir_without_results_takes_new_settings(tmp_path):
    """A run that failed before its first step does not refuse the corrected command."""
    for epochs in (5, 6):
        with workdirs.open_workdir(tmp_path, {"train": {"epochs": epochs}}):
            for name in ("answers", "checkpoints"):
                (tmp_path / name).mkdir(exist_ok=True)
            assert not (tmp_path / "data.json").exists()  # it may be trained on other images, too
            (tmp_path / "data.json").write_text("{}")
        assert workdirs.read_config(tmp_path) == {"train": {"epochs": epochs}}
        assert "continued" not in workdirs.read_json(tmp_path / "provenance.json")


def test_files_are_written_with_their_origin_and_read_by_every_process(tmp_path):
    workdir = workdirs.Workdir(tmp_path / "out")
    frame = pandas.DataFrame({"name": ["a", "b"], "value": [0.1 + 0.2, float("nan")], "severity": [1, "random"]})
    workdir.write_csv("table.csv", frame, origin="two rows")
    workdir.write_json("b.json", {"b": 1})
    workdir.folder("deeper").write_text("c.txt", "text")
    assert (workdir / "table.csv").read_text() == "name,value,severity\na,0.30000000000000004,1\nb,nan,random\n"
    assert pandas.read_csv(workdir / "table.csv")["value"][0] == 0.1 + 0.2
    entries = workdir.read_json("provenance.json")["files"]
    assert set(entries) == {"table.csv", "b.json"} and entries["table.csv"]["origin"] == "two rows"
    assert entries["b.json"].keys() >= {"command", "git_revision", "written"}
    assert workdir.exists("b.json") and (workdir / "deeper" / "c.txt").read_text() == "text"
    workdir.remove("b.json", "gone.json")
    assert not workdir.exists("b.json") and workdir.on_main(max, 1, 2) == workdir.for_all(max, 1, 2) == 2


def test_other_processes_write_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(distributed, "is_main", lambda: False)
    workdir = workdirs.Workdir(tmp_path / "out")
    workdir.write_json("a.json", {})
    workdir.write_text("b.txt", "")
    workdirs.write_final(tmp_path, step=0, digest="", num_classes=1)
    assert not workdir.writes and not (tmp_path / "out").exists() and not (tmp_path / "final.json").exists()


def test_a_second_process_is_refused(tmp_path):
    code = (
        "import sys; from runtime import workdirs\n"
        "try:\n"
        "    with workdirs.open_workdir(sys.argv[1], {}): print('entered')\n"
        "except workdirs.WorkdirInUseError as error: print(error)\n"
    )
    with workdirs.open_workdir(tmp_path, {}):
        second = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert "in use by another run" in second.stdout, second.stderr
    third = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert third.stdout.strip() == "entered"


def test_what_killed_writers_left_is_removed_but_not_that_of_a_run_that_goes_on(tmp_path):
    own = [tmp_path / ".part-counts.csv.0a", tmp_path / "answers" / "deeper" / ".part-clean-0.npz.0b"]
    others = [tmp_path / "models" / "fog" / ".part-final.json.0c", tmp_path / "checkpoints" / "4" / ".part-of-orbax"]
    with workdirs.open_workdir(tmp_path, {"seed": 1}):
        for path in (*own, *others, tmp_path / "models" / "fog" / ".lock"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    with workdirs.open_workdir(tmp_path, {"seed": 1}):
        assert not any(path.exists() for path in own) and all(path.exists() for path in others)


@pytest.mark.parametrize(
    ("path", "message"),
    [("", r"holding thesis\.tex"), ("thesis.tex", "found a file"), ("thesis.tex/below", "cannot be made")],
)
def test_what_is_no_workdir_is_refused_and_left(tmp_path, path, message):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(WorkdirError, match=message), workdirs.open_workdir(tmp_path / path, {}):
        pass
    assert {file.name for file in tmp_path.iterdir()} - {".lock"} == {"thesis.tex"}
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def move(path):
    path.rename(path.with_name("renamed"))


def replace(path):
    """Another run has begun in a folder of this name."""
    move(path)
    path.mkdir()
    (path / ".lock").touch()


@pytest.mark.parametrize("lose", [shutil.rmtree, move, replace])
@pytest.mark.parametrize("name", ["final.csv", "answers/fog.csv"])
def test_a_workdir_that_was_removed_or_renamed_is_told_at_the_next_write(lose, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WorkdirError, match=r"workdir .*work was removed or renamed") as told:
        with workdirs.open_workdir("work", {"seed": 1}) as workdir:
            lose(tmp_path / "work")
            workdir.write_text(name, "1")
    assert "\n" not in str(told.value)
    assert not list((tmp_path / "work").glob("[a-z]*")), "nothing is written beside what is lost"


def test_a_lock_that_somebody_removes_stops_no_run(tmp_path):
    with workdirs.open_workdir(tmp_path, {"seed": 1}) as workdir:
        (tmp_path / ".lock").unlink()
        workdir.write_text("a.csv", "1")
    shutil.move(tmp_path, tmp_path.with_name("elsewhere"))
    files.write_atomically(tmp_path / "a.csv", "of a later command")


# Settings that are stored with results: every difference is named.
STORED = {"seed": 0, "train": {"epochs": 5, "betas": (0.9, 0.99)}, "study": {"seeds": [0]}, "studies": 1}
OTHER = {"train": {"epochs": 6, "betas": (0.9, 0.98), "rate": 0}, "study": {"seeds": [0, 1], "limit": 3}, "studies": 2}
LINES = [
    "  seed: stored 0, asked 'nothing'",
    "  studies: stored 1, asked 2",
    "  train.betas: stored [0.9, 0.99], asked [0.9, 0.98]",
    "  train.epochs: stored 5, asked 6",
    "  train.rate: stored 'nothing', asked 0",
]


def test_other_settings_are_refused_and_every_difference_is_named(tmp_path):
    def open_with(config):
        with workdirs.open_workdir(tmp_path / "work", config, free=iter(["study"])):
            (tmp_path / "work" / "metrics.jsonl").touch()

    def claim_with(config):
        workdirs.claim(tmp_path / "settings.json", config, "refused", free=iter(["study"]))

    for claim, path in ((open_with, tmp_path / "work" / "config.json"), (claim_with, tmp_path / "settings.json")):
        for seeds in ([0], [0, 1]):  # free settings may change, and tuples equal the lists of JSON
            claim(STORED | {"study": {"seeds": seeds}})
            assert json.loads(path.read_text())["study"]["seeds"] == seeds
        before = path.read_bytes()
        with pytest.raises(WorkdirError) as caught:
            claim(OTHER)
        assert str(caught.value).splitlines()[1:] == LINES and path.read_bytes() == before


def test_damaged_settings_are_named(tmp_path):
    (tmp_path / "settings.json").write_text("[]")
    refuses(
        lambda: workdirs.claim(tmp_path / "settings.json", {}, "refused"),
        "settings.json: expected",
        "use another folder",
        kind=DamagedFileError,
    )


# A config.json that was edited: every reader refuses it, and the command that made the workdir restores it.
CONFIG = {"seed": 3, "dataset": {"seed": 0, "test_limit": 200}, "study": {"seeds": [0]}}
FREE = ("study",)


def claim(path, config=None):
    with workdirs.open_workdir(path, config or CONFIG, free=FREE):
        return workdirs.read_json(path / "config.json")


def edit(path, key, value):
    content = json.loads((path / "config.json").read_text())
    content["dataset"][key] = value
    (path / "config.json").write_text(json.dumps(content))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("made") / "work"
    claim(path)
    (path / "metrics.jsonl").touch()
    return path


@pytest.fixture
def work(made, tmp_path):
    return shutil.copytree(made, tmp_path / "work")


# 193 answers take as many packed bytes as 200.
@pytest.mark.parametrize(("key", "value"), [("seed", 1), ("test_limit", 193)])
def test_an_edit_is_refused_and_named(work, key, value):
    edit(work, key, value)
    command = json.loads((work / "provenance.json").read_text())["command"]
    for read in (
        lambda: workdirs.read_config(work),
        lambda: claim(work, CONFIG | {"dataset": {"seed": 0, "test_limit": 100}}),
        lambda: evaluate.run(default.get_config(), work),
    ):
        with pytest.raises(WorkdirError) as refused:
            read()
        assert f"{work / 'config.json'} was edited" in str(refused.value) and command in str(refused.value)


def test_the_settings_it_was_made_with_restore_it(work, caplog, monkeypatch):
    monkeypatch.setattr(workdirs.log, "propagate", True)
    edit(work, "seed", 1)
    assert claim(work) == CONFIG == workdirs.read_config(work)
    assert "config.json was edited; it is written again" in caplog.text


def test_layout_is_no_edit_and_free_settings_may_change(work):
    (work / "config.json").write_text(json.dumps(CONFIG, indent=7))
    assert workdirs.read_config(work) == CONFIG
    more = CONFIG | {"study": {"seeds": [0, 1]}}
    claim(work, more)
    assert workdirs.read_config(work) == more
    edit(work, "seed", 1)
    refuses(lambda: workdirs.read_config(work), "was edited", kind=WorkdirError)


def test_a_run_that_was_killed_before_it_wrote_the_config_leaves_a_good_workdir(work, monkeypatch):
    def killed(path, *args, **kwargs):
        raise KeyboardInterrupt

    more = CONFIG | {"study": {"seeds": [0, 1]}}
    write = workdirs.files.write_json
    monkeypatch.setattr(
        workdirs.files, "write_json", lambda p, *a, **k: (killed if p.name == "config.json" else write)(p, *a, **k)
    )
    with pytest.raises(KeyboardInterrupt):
        claim(work, more)
    monkeypatch.undo()
    assert workdirs.read_config(work) == CONFIG
    assert claim(work, more) == more == workdirs.read_config(work)


def test_the_report_refuses_it(tmp_path):
    study = report_studies.smoke(tmp_path / "study")
    record = json.loads((study / "provenance.json").read_text())
    record[workdirs.CONFIG_DIGESTS] = [artifacts.digest(report_studies.CONFIG)]
    (study / "provenance.json").write_text(json.dumps(record))
    edit(study, "image_size", 64)
    refuses(lambda: inputs.read(study), "config.json was edited", kind=WorkdirError)


@pytest.mark.parametrize("content", ["[]", "{", '{"config_sha256": 3}', '{"config_sha256": [3]}'])
def test_a_damaged_record_is_named(work, content):
    (work / "provenance.json").write_text(content)
    refuses(lambda: workdirs.read_config(work), "provenance.json: expected")
