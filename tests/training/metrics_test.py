"""metrics.jsonl: damaged lines are named; TensorBoard gets the same numbers, or an error tells that it is missing."""

import json
import struct
import sys

import numpy as np
import pytest

from configs import default
from runtime.files import DamagedFileError
from runtime.settings import SettingsError
from tests import processes
from tests.pages import commands, section_of
from tests.refusing import refuses
from tests.training import tiny
from training import cli, run, states
from training.batches import Plan

LINE = '{"step": 10, "images_per_second": 50.0}'


@pytest.mark.parametrize(
    "text, message",
    [
        ("{}", "expected step, found nothing of that name"),
        ('{"step": 20, "images_per_second": 0}', "expected images_per_second above 0, found 0"),
        ('{"step": null, "images_per_second": 1}', "expected a whole number as step, found None"),
    ],
)
def test_a_line_that_is_no_report_is_named(tmp_path, text, message):
    path = tmp_path / "metrics.jsonl"
    path.write_text(f"{LINE}\n{text}\n")
    with pytest.raises(DamagedFileError) as caught:
        run.training_seconds(path, 100)
    assert str(caught.value) == f"{path}, line 2: {message}; remove the line"


def test_a_line_that_a_killed_process_was_writing_does_not_count(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text(f'{LINE}\n{{"step": 20, "ima')
    assert run.training_seconds(path, 100) == 10 * 100 / 50


def test_a_log_of_other_lines_is_not_continued(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text("[]\n")
    refuses(lambda: run.MetricsLog(path, 10), "a list; remove the line", kind=DamagedFileError)


def events(folder):
    """The events in a folder, file by file: TFRecords (length, its checksum, content, its checksum)."""
    event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2")
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        while content:
            (size,) = struct.unpack("<Q", content[:8])
            yield event_pb2.Event.FromString(content[12 : 12 + size])
            content = content[16 + size :]


def test_tensorboard_gets_the_numbers_of_metrics_jsonl(tmp_path):
    pytest.importorskip("tensorboardX")
    for begin, steps in ((0, (10, 20)), (10, (20,))):  # stopped after 20, continued from the checkpoint at 10
        log = run.MetricsLog(tmp_path / "metrics.jsonl", begin, tensorboard=True)
        assert begin or not list(tmp_path.iterdir())  # a run without a step leaves nothing
        for step in steps:
            log.write(step, loss=step / 4, images_per_second=100.0 + begin)
        log.close()
    found = list(events(tmp_path / "tensorboard"))
    scalars = {(v.tag, e.step): v.simple_value for e in found for v in e.summary.value}
    rates = {("images_per_second", 10): 100.0, ("images_per_second", 20): 110.0}
    assert scalars == {("loss", 10): 2.5, ("loss", 20): 5.0} | rates
    purged = [e.step for e in found if e.HasField("session_log")]
    assert purged == [1, 11]  # TensorBoard drops what came from there on before
    assert (tmp_path / "metrics.jsonl").read_text().count("\n") == 2


def test_nothing_is_written_unless_asked_for(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)  # what `import tensorboardX` meets where it is absent
    log = run.MetricsLog(tmp_path / "metrics.jsonl", 0)
    log.write(10, loss=1.0)
    log.close()
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]
    config = default.get_config()
    cli.check(config)
    config.train.tensorboard = True
    refuses(lambda: cli.check(config), "or the package tensorboardX", kind=SettingsError)


@pytest.mark.parametrize("network, smaller", [("resnet18", True), ("small_resnet", False)])
def test_a_slow_run_says_early_how_long_it_takes(tmp_path, monkeypatch, caplog, network, smaller):
    monkeypatch.setattr(run.log, "propagate", True)
    clock = iter(range(0, 10**6, 8))  # each report comes 8 seconds after the one before
    monkeypatch.setattr(run.time, "perf_counter", lambda: next(clock))
    job = run.Job(states.Spec({"name": network}, tiny.recipe(epochs=900), 0), None)
    report = run._Report(tmp_path, Plan(job.spec.train, (160, 32, 32, 3)), 0, job)
    for step in (1, 2, 3):
        report(step, {"loss": np.ones(1), "accuracy": np.ones(1)})
        assert ("images/s" in caplog.text) == (step > 1)  # the first time contains a compile
    (said,) = caplog.messages
    assert said.startswith("4 images/s: about 10.0 hours are left for this model.")
    assert ("(--config.model.name=small_resnet)" in said) == smaller and "(--config.train.epochs=N, now 900)" in said
    report.close()


@pytest.mark.slow
def test_the_how_to_of_tensorboard_shows_every_loss(tmp_path):
    pytest.importorskip("tensorboardX")
    section = section_of("docs/howto/train_evaluate.md", "Watch training in TensorBoard")
    given = [word.replace("runs/", f"{tmp_path}/") for word in next(commands(section))]
    small = ("dataset.train_limit=600", "dataset.test_limit=200", "train.epochs=1", "train.batch_size=50")
    small = [f"--config.{setting}" for setting in small]
    done = processes.run([sys.executable, *given, *small])
    assert done.returncode == 0, done.stderr
    (log,) = tmp_path.rglob("metrics.jsonl")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    shown = {(e.step, v.tag) for e in events(log.with_name("tensorboard")) for v in e.summary.value}
    assert lines and all((line["step"], "loss") in shown for line in lines if "loss" in line)
