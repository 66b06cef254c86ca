"""Workdirs refuse what would mix or lose results, and say why."""

import json
import subprocess
import sys

import pandas
import pytest

from runtime import distributed, workdirs
from runtime.files import DamagedFileError


def test_fresh_workdir_records_config_and_provenance(tmp_path):
    with workdirs.open_workdir(tmp_path / "run", {"seed": 3, "a": {"b": 1}}) as path:
        assert workdirs.read_json(path / "config.json") == {"seed": 3, "a": {"b": 1}}
        record = workdirs.read_json(path / "provenance.json")
    assert record["seed"] == 3
    assert set(record["versions"]) >= {"jax", "flax", "optax", "numpy", "python"}
    assert len(record["git_revision"].removesuffix("+changes")) in (40, len("unknown"))


def test_runs_with_other_code_are_added_to_the_first(tmp_path, monkeypatch):
    """What was trained at one revision does not become the work of a later one that only reads
    it.
    """
    for revision in ("one", "one", "two", "two", "one"):
        monkeypatch.setattr("runtime.artifacts.git_revision", lambda r=revision: r)
        with workdirs.open_workdir(tmp_path, {"seed": 3}):
            (tmp_path / "metrics.jsonl").touch()
    record = workdirs.read_json(tmp_path / "provenance.json")
    assert record["git_revision"] == "one" and [run["git_revision"] for run in record["continued"]] == ["two"]


def test_other_config_is_refused_and_the_difference_named(tmp_path):
    with workdirs.open_workdir(tmp_path, {"seed": 3, "train": {"epochs": 5, "flip": True}}):
        (tmp_path / "metrics.jsonl").touch()
    with pytest.raises(workdirs.WorkdirError, match=r"train\.epochs: stored 5, asked 6"):
        with workdirs.open_workdir(tmp_path, {"seed": 3, "train": {"epochs": 6, "flip": True}}):
            pass
    assert workdirs.read_json(tmp_path / "config.json")["train"]["epochs"] == 5


def test_a_workdir_without_results_takes_new_settings(tmp_path):
    """A run that failed before its first step does not refuse the corrected command."""
    for epochs in (5, 6):
        with workdirs.open_workdir(tmp_path, {"train": {"epochs": epochs}}):
            (tmp_path / "answers").mkdir(exist_ok=True)
            assert not (tmp_path / "data.json").exists()  # it may be trained on other images, too
            (tmp_path / "data.json").write_text("{}")
        assert workdirs.read_config(tmp_path) == {"train": {"epochs": epochs}}
        assert "continued" not in workdirs.read_json(tmp_path / "provenance.json")


def test_a_setting_that_is_not_stored_is_a_difference(tmp_path):
    with workdirs.open_workdir(tmp_path, {"seed": 3, "train": {"epochs": 5}}):
        (tmp_path / "metrics.jsonl").touch()
    with pytest.raises(workdirs.WorkdirError, match=r"train\.crop: stored 'nothing', asked 0"):
        with workdirs.open_workdir(tmp_path, {"seed": 3, "train": {"epochs": 5, "crop": 0}}):
            pass


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


def test_free_keys_may_change(tmp_path):
    with workdirs.open_workdir(tmp_path, {"study": {"seeds": [0]}, "seed": 1}):
        pass
    with workdirs.open_workdir(tmp_path, {"study": {"seeds": [0, 1]}, "seed": 1}, free=("study",)):
        assert workdirs.read_json(tmp_path / "config.json")["study"]["seeds"] == [0, 1]


def test_tuples_equal_the_lists_that_json_makes_of_them(tmp_path):
    for _ in range(2):
        with workdirs.open_workdir(tmp_path, {"milestones": (20, 30)}):
            pass


def test_foreign_files_are_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(workdirs.WorkdirError, match=r"thesis\.tex"), workdirs.open_workdir(tmp_path, {}):
        pass
    assert [p.name for p in tmp_path.iterdir() if not p.name.startswith(".")] == ["thesis.tex"]


def test_a_file_as_workdir_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(workdirs.WorkdirError, match="found a file"), workdirs.open_workdir(tmp_path / "file", {}):
        pass
    with pytest.raises(workdirs.WorkdirError, match="cannot be made"):
        with workdirs.open_workdir(tmp_path / "file" / "below", {}):
            pass


def test_a_second_process_is_refused(tmp_path):
    code = (
        "import sys; from runtime import workdirs\n"
        "try:\n"
        "    with workdirs.open_workdir(sys.argv[1], {}): print('entered')\n"
        "except workdirs.WorkdirError as error: print(error)\n"
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


def test_json_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "value.json"
    workdirs.write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        workdirs.write_json(path, {"a": object()})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["value.json"]
    path.write_text('{"a": ')
    with pytest.raises(DamagedFileError, match=r"value\.json: expected valid JSON.*use another workdir"):
        workdirs.read_json(path)
