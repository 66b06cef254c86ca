"""A config.json that was edited is refused by every reader; the command that made the workdir
restores it.
"""

import json
import shutil

import pytest

import eval as evaluate
from analysis.report import inputs
from configs import default
from runtime import artifacts, workdirs
from tests.tools import report_studies

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
        with pytest.raises(workdirs.WorkdirError) as refused:
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
    with pytest.raises(workdirs.WorkdirError, match="was edited"):
        workdirs.read_config(work)


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
    with pytest.raises(workdirs.WorkdirError, match=r"config\.json was edited"):
        inputs.read(study)


@pytest.mark.parametrize("content", ["[]", "{", '{"config_sha256": 3}', '{"config_sha256": [3]}'])
def test_a_damaged_record_is_named(work, content):
    (work / "provenance.json").write_text(content)
    with pytest.raises(ValueError, match=r"provenance\.json: expected"):
        workdirs.read_config(work)
