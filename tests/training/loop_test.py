"""The training loop: what a batch holds, resuming, one compile for a study, independence of the
device count."""

import json
import os
import random
import signal
import time

import chex
import numpy as np
import pytest
from flax import nnx

import models
from corruptions.scoring.conditions import list_conditions
from evaluation.evaluate import evaluate_models
from evaluation.shown import Shown
from models import condensenet
from runtime import meshes, workdirs
from tests.models import tiny as networks
from tests.training import tiny
from tests.training.running import checkpoints_begun, start
from training import loop, steps, study


def run(config, dataset, workdir, mesh):
    workdir.mkdir(exist_ok=True)
    one = study.model_config(config, config.train.corruption, config.seed)
    return loop.train(one, dataset.train.to_device(), dataset.num_classes, workdir, mesh=mesh)[1]


def test_two_compiled_programs_serve_every_corruption_and_seed(dataset, mesh, tmp_path):
    config = tiny.config(epochs=1, batch_size=40)  # a shape of no other test
    config.eval.batch_size = 36
    names, seeds = ("noc/border", "noc/hue"), (0, 1)
    with meshes.counting_compiles() as compiled:
        split, test = dataset.train.to_device(), dataset.test.to_device()
        models = study.Trainings(config, ("standard", *names), seeds, tmp_path, dataset, split, mesh).train()
        evaluate_models(models, Shown.of(config, test, mesh), list_conditions(names, "random"), tmp_path)
    assert len(models) == 6
    assert {name: compiled[name] for name in steps.PROGRAMS} == {"train_models_block": 1, "network_logits": 1}


def test_finished_runs_are_read_back_not_trained(dataset, mesh, tmp_path):
    first = run(tiny.config(), dataset, tmp_path, mesh)
    lines = (tmp_path / "metrics.jsonl").read_text()
    again = run(tiny.config(), dataset, tmp_path, mesh)
    chex.assert_trees_all_equal(first, again)
    assert (tmp_path / "metrics.jsonl").read_text() == lines
    assert [json.loads(line)["step"] for line in lines.splitlines()] == [5, 10]


def test_a_run_that_ended_before_it_was_marked_finished_is_marked(dataset, mesh, tmp_path):
    run(tiny.config(), dataset, tmp_path, mesh)
    mark, lines = (tmp_path / "final.json").read_text(), (tmp_path / "metrics.jsonl").read_text()
    (tmp_path / "final.json").unlink()
    run(tiny.config(), dataset, tmp_path, mesh)
    assert (tmp_path / "final.json").read_text() == mark and (tmp_path / "metrics.jsonl").read_text() == lines


def test_divergence_stops_with_a_clear_message_and_keeps_the_last_checkpoint(dataset, mesh, tmp_path):
    with pytest.raises(loop.NonFiniteLossError, match=r"at step \d+; lower config\.train\.learning_rate"):
        run(tiny.config(learning_rate=1e30, epochs=4), dataset, tmp_path, mesh)
    assert not loop.finished(tmp_path)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"batch_size": 0}, "config.train.batch_size"),
        ({"batch_size": 1000}, "expected config.train.batch_size up to 160"),
    ],
)
def test_bad_recipes_are_named(dataset, mesh, tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        run(tiny.config(**change), dataset, tmp_path, mesh)


AUGMENTED = ["--config.train.scheme=augmix", "--config.train.crop=2"]
EPOCHS = "--config.train.epochs=30"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Workdir of a run that nothing disturbed."""
    workdir = tmp_path_factory.mktemp("undisturbed") / "whole"
    end(start(workdir, EPOCHS, "--config.train.checkpoint_epochs=30"))
    return workdir


def end(process):
    """Waits for a run; gives what it printed."""
    output, _ = process.communicate(timeout=250)
    assert process.returncode == 0, output
    return output


def final(workdir):
    return workdirs.read_final(workdir)["digest"]


def test_killed_run_continues_to_bit_identical_parameters(whole, tmp_path):
    rng = random.Random(0)
    often = (EPOCHS, "--config.train.checkpoint_epochs=5")
    for goal in (5, 15):  # kill -9 once the checkpoint of an epoch was begun, at a random moment after
        process = start(tmp_path / "killed", *often)
        while process.poll() is None and checkpoints_begun(tmp_path / "killed") < goal:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.3))
        process.send_signal(signal.SIGKILL)
        process.wait()
    end(start(tmp_path / "killed", *often))
    assert final(tmp_path / "killed") == final(whole)

    def curve(path):
        lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
        return [(line["step"], line["loss"]) for line in lines]

    assert curve(tmp_path / "killed") == curve(whole)


@pytest.mark.slow
def test_sigterm_saves_and_the_run_continues_to_the_same_parameters(whole, tmp_path):
    """Preemption: status 143, a message, and a checkpoint in the middle of where it was, long
    before the next one due."""
    rare = (EPOCHS, "--config.train.checkpoint_epochs=30")
    process = start(tmp_path / "run", *rare)
    while process.poll() is None and not (tmp_path / "run" / "metrics.jsonl").exists():
        time.sleep(0.01)
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=250)
    assert process.returncode == 143 and "the same command continues" in output, output
    assert not (tmp_path / "run" / "final.json").exists() and checkpoints_begun(tmp_path / "run") > 0
    assert "Resuming" in end(start(tmp_path / "run", *rare))
    assert final(tmp_path / "run") == final(whole)


@pytest.mark.slow
def test_control_c_keeps_the_checkpoints(tmp_path):
    process = start(tmp_path / "run", "--config.train.epochs=2000")
    while process.poll() is None and checkpoints_begun(tmp_path / "run") < 2:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 130 and "Traceback" not in output, output
    assert output.rstrip().endswith("train.py: stopped; the same command continues"), output
    assert not (tmp_path / "run" / "final.json").exists() and checkpoints_begun(tmp_path / "run") >= 1


@pytest.mark.slow
def test_eight_devices_train_like_one(tmp_path):
    """With a scheme and a corruption, which are split over the devices too."""
    process = start(tmp_path / "one", *AUGMENTED)
    output, _ = process.communicate(timeout=250)
    assert process.returncode == 0, output
    flags = (os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8").strip()
    process = start(tmp_path / "eight", *AUGMENTED, XLA_FLAGS=flags)
    output, _ = process.communicate(timeout=250)
    assert process.returncode == 0, output
    record = json.loads((tmp_path / "eight" / "provenance.json").read_text())
    assert record["device"].startswith("8 x")

    def losses(name):
        lines = (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        return np.array([json.loads(line)["loss"] for line in lines])

    one, eight = losses("one"), losses("eight")
    np.testing.assert_allclose(eight[:3], one[:3], rtol=1e-4)  # later, other orders of summation have grown
    np.testing.assert_allclose(eight, one, rtol=5e-3)


@pytest.mark.slow
def test_groups_are_learned_by_the_end_of_a_training_and_the_network_converts(dataset, mesh, tmp_path, monkeypatch):
    monkeypatch.setitem(models._REGISTRY, "tiny_condensenet", networks.NETWORKS["condensenet"][0])
    config = tiny.config()
    config.model.name = "tiny_condensenet"
    one = study.model_config(config, "standard", 0)
    graphdef, state = loop.train(one, dataset.train.to_device(), 10, tmp_path, mesh=mesh)
    masks = [variable[...] for path, variable in nnx.to_flat_state(state.statistics) if path[-1] == "mask"]
    assert [mask.shape for mask in masks] == [(16, 4), (24, 4), (32, 4)]
    for mask in masks:
        np.testing.assert_array_equal(mask.sum(0), len(mask) // 4)
    converted = condensenet.convert(nnx.merge(graphdef, state.params, state.statistics))
    assert converted.head.kernel.shape == (24, 10)
