"""The training loop: two programs serve a study, stopped runs continue, and pieces of blocks and devices change nothing."""

import collections
import dataclasses
import json
import os
import random
import shutil
import signal
import time

import chex
import jax
import numpy as np
import pytest
from flax import nnx

import models
from corruptions.scoring.conditions import list_conditions
from data import Split
from evaluation import correctness
from evaluation.evaluate import evaluate_models
from evaluation.shown import Shown
from models import condensenet
from runtime import meshes, workdirs
from tests.models import tiny as networks
from tests.refusing import refuses
from tests.training import tiny
from training import loop, steps, study
from training.run import NonFiniteLossError


def run(config, dataset, workdir, mesh):
    workdir.mkdir(exist_ok=True)
    one = study.model_config(config, config.train.corruption, config.seed)
    return loop.train(one, dataset.train.to_device(), dataset.num_classes, workdir, mesh=mesh)[1]


def lines(folder):
    return tiny.metrics(folder, "step", "loss", "accuracy")


def test_two_compiled_programs_serve_every_corruption_and_seed(dataset, mesh, tmp_path):
    config = tiny.config()
    for program in (steps.train_models_block, correctness.network_logits):
        program.clear_cache()  # of what other tests compiled
    names, seeds = ("noc/border", "noc/hue"), (0, 1)
    with meshes.counting_compiles() as compiled:
        split, test = dataset.train.to_device(), dataset.test.to_device()
        models = study.Trainings(config, ("standard", *names), seeds, tmp_path, dataset, split, mesh).train()
        conditions = list_conditions(names, "random") + list_conditions(["imagenet_c/brightness"], "1,3")[1:]
        found = evaluate_models(models, Shown.of(config, test, mesh), conditions, tmp_path)
    assert len(models) == 6 and len(found) == 5
    assert {name: compiled[name] for name in steps.PROGRAMS} == {"train_models_block": 1, "network_logits": 1}


def test_finished_runs_are_read_back_not_trained(dataset, mesh, tmp_path, in_whole_blocks):
    """Also a run that ended before it was marked as finished."""
    folder = shutil.copytree(in_whole_blocks[0], tmp_path / "run")
    mark = (folder / "final.json").read_text()
    for _ in range(2):
        chex.assert_trees_all_equal(run(tiny.config(), dataset, folder, mesh), in_whole_blocks[1])
        assert lines(folder) == lines(in_whole_blocks[0]) and [step for step, *_ in lines(folder)] == [5, 10]
        assert (folder / "final.json").read_text() == mark
        (folder / "final.json").unlink()


def test_a_finished_run_stays_as_it_is_when_there_are_more_images(dataset, mesh, tmp_path, in_whole_blocks):
    folder = shutil.copytree(in_whole_blocks[0], tmp_path / "run")
    twice = [np.concatenate([part, part]) for part in (dataset.train.images, dataset.train.labels, dataset.train.index)]
    more = dataclasses.replace(dataset, train=Split(*twice))
    chex.assert_trees_all_equal(run(tiny.config(), more, folder, mesh), in_whole_blocks[1])
    assert lines(folder) == lines(in_whole_blocks[0])


def test_a_training_without_steps_has_a_checkpoint_too(dataset, mesh, tmp_path):
    config = tiny.config(epochs=0)
    one = study.model_config(config, "standard", config.seed)
    with workdirs.open_workdir(tmp_path, one.to_dict()):
        first = run(config, dataset, tmp_path, mesh)
    shutil.rmtree(tmp_path / "checkpoints")  # earlier versions kept none: the same command mends the workdir
    with workdirs.open_workdir(tmp_path, one.to_dict()):
        chex.assert_trees_all_equal(run(config, dataset, tmp_path, mesh), first)
    _, state = loop.read_back(one, 32, dataset.num_classes, tmp_path, mesh=mesh)
    chex.assert_trees_all_equal(state, first)


def test_divergence_stops_with_a_clear_message_and_the_run_is_not_finished(dataset, mesh, tmp_path):
    refuses(
        lambda: run(tiny.config(learning_rate=1e30, epochs=4), dataset, tmp_path, mesh),
        "at step",
        "lower config.train.learning_rate",
        kind=NonFiniteLossError,
    )
    assert not workdirs.finished(tmp_path)


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


EPOCHS = "--config.train.epochs=60"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Workdir of a run that nothing disturbed."""
    workdir = tmp_path_factory.mktemp("undisturbed") / "whole"
    tiny.end(tiny.start(workdir, EPOCHS, "--config.train.checkpoint_epochs=60"))
    return workdir


def final(workdir):
    return workdirs.read_final(workdir)["digest"]


def test_killed_run_continues_to_bit_identical_parameters(whole, tmp_path):
    rng = random.Random(0)
    often = (EPOCHS, "--config.train.checkpoint_epochs=10")
    process = tiny.start(tmp_path / "killed", *often)
    tiny.wait_for(process, lambda: tiny.checkpoints_begun(tmp_path / "killed") >= 10)
    time.sleep(rng.uniform(0, 0.3))  # kill -9 at a random moment once the checkpoint of an epoch was begun
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL and not (tmp_path / "killed" / "final.json").exists()
    tiny.end(tiny.start(tmp_path / "killed", *often))
    assert final(tmp_path / "killed") == final(whole)
    assert lines(tmp_path / "killed") == lines(whole)


@pytest.mark.slow
def test_sigterm_saves_and_the_run_continues_to_the_same_parameters(whole, tmp_path):
    """Preemption: status 143, a message, and a checkpoint where it was, long before the next one due."""
    rare = (EPOCHS, "--config.train.checkpoint_epochs=60")
    process = tiny.start(tmp_path / "run", *rare)
    tiny.wait_for(process, (tmp_path / "run" / "metrics.jsonl").exists)
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=250)
    assert process.returncode == 143 and "the same command continues" in output, output
    assert not (tmp_path / "run" / "final.json").exists() and tiny.checkpoints_begun(tmp_path / "run") > 0
    assert "Resuming" in tiny.end(tiny.start(tmp_path / "run", *rare))
    assert final(tmp_path / "run") == final(whole)


@pytest.mark.slow
def test_control_c_keeps_the_checkpoints(tmp_path):
    process = tiny.start(tmp_path / "run", "--config.train.epochs=2000")
    tiny.wait_for(process, lambda: tiny.checkpoints_begun(tmp_path / "run") >= 2)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 130 and "Traceback" not in output, output
    assert output.rstrip().endswith("train.py: stopped; the same command continues"), output
    assert not (tmp_path / "run" / "final.json").exists() and tiny.checkpoints_begun(tmp_path / "run") >= 1


@pytest.mark.slow
def test_eight_devices_train_like_one(tmp_path):
    """With a scheme and a corruption, which are split over the devices too."""
    flags = (os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8").strip()
    for name, environment in {"one": {}, "eight": {"XLA_FLAGS": flags}}.items():
        tiny.end(tiny.start(tmp_path / name, "--config.train.scheme=augmix", "--config.train.crop=2", **environment))
    assert json.loads((tmp_path / "eight" / "provenance.json").read_text())["device"].startswith("8 x")
    one, eight = (np.array([loss for _, loss, _ in lines(tmp_path / name)]) for name in ("one", "eight"))
    np.testing.assert_allclose(eight[:3], one[:3], rtol=1e-4)  # later, other orders of summation have grown
    np.testing.assert_allclose(eight, one, rtol=5e-3)


@pytest.mark.slow
def test_groups_are_learned_by_the_end_of_a_training_and_the_network_converts(dataset, mesh, tmp_path, monkeypatch):
    monkeypatch.setitem(models._REGISTRY, "tiny_condensenet", networks.NETWORKS["condensenet"][0])
    config = tiny.config()
    del config.model.stem, config.model.widths  # of the small network
    config.model.name = "tiny_condensenet"
    one = study.model_config(config, "standard", 0)
    graphdef, state = loop.train(one, dataset.train.to_device(), 10, tmp_path, mesh=mesh)
    masks = [variable[...] for path, variable in nnx.to_flat_state(state.statistics) if path[-1] == "mask"]
    assert [mask.shape for mask in masks] == [(16, 4), (24, 4), (32, 4)]
    for mask in masks:
        np.testing.assert_array_equal(mask.sum(0), len(mask) // 4)
    converted = condensenet.convert(nnx.merge(graphdef, state.params, state.statistics))
    assert converted.head.kernel.shape == (24, 10)


def record_spans(monkeypatch):
    spans, original = [], steps.train_models_block

    def call(*arguments, **options):
        spans.append(None if options["spans"] is None else options["spans"].tolist())
        return original(*arguments, **options)

    monkeypatch.setattr(steps, "train_models_block", call)
    return spans


@pytest.fixture(scope="module")
def in_whole_blocks(dataset, mesh, tmp_path_factory):
    """Folder and state of a run in whole blocks of 5 steps, as accelerators train."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "in_pieces", lambda mesh: False)
        spans = record_spans(patch)
        state = run(tiny.config(), dataset, folder, mesh)
    assert spans == [None, None]
    return folder, state


@pytest.mark.parametrize("seconds, number", [(0, 10), (1000, 4)])
def test_pieces_of_any_length_train_to_the_same_bits(
    dataset, mesh, tmp_path, in_whole_blocks, monkeypatch, seconds, number
):
    monkeypatch.setattr(loop, "PIECE_SECONDS", seconds)
    spans = record_spans(monkeypatch)
    state = run(tiny.config(), dataset, tmp_path, mesh)
    assert (len(spans) == 10 if seconds == 0 else len(spans) <= number) and spans[0] == [[0, 1]]
    chex.assert_trees_all_equal(state, in_whole_blocks[1])
    assert lines(tmp_path) == lines(in_whole_blocks[0]) and [step for step, *_ in lines(tmp_path)] == [5, 10]


@pytest.mark.parametrize("in_pieces", [True, False])
def test_a_run_stopped_within_a_block_continues_to_the_same_bits(
    dataset, mesh, tmp_path, in_whole_blocks, monkeypatch, in_pieces
):
    """The first part stops in a piece of a block; the second continues in pieces, or as an accelerator does."""
    monkeypatch.setattr(loop, "PIECE_SECONDS", 0)
    original, calls = steps.train_models_block, []

    def third_is_last(*arguments, **options):
        calls.append(options["spans"])
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return original(*arguments, **options)

    with monkeypatch.context() as patch, pytest.raises(SystemExit) as end:
        patch.setattr(steps, "train_models_block", third_is_last)
        run(tiny.config(), dataset, tmp_path, mesh)
    assert end.value.code == 143 and (tmp_path / "checkpoints" / "3").is_dir()
    assert [step for step, *_ in lines(tmp_path)] == [3]
    monkeypatch.setattr(loop, "in_pieces", lambda mesh: in_pieces)
    chex.assert_trees_all_equal(run(tiny.config(), dataset, tmp_path, mesh), in_whole_blocks[1])
    assert [step for step, *_ in lines(tmp_path)] == [3, 5, 10] and lines(tmp_path)[2] == lines(in_whole_blocks[0])[1]


BLOCKS = 8  # one an epoch


def traced(folder):
    """Nanoseconds at which the host handed each block over, and at which the block's last operation ended."""
    (path,) = folder.glob("**/*.xplane.pb")
    calls, ends = [], collections.Counter()
    for plane in jax.profiler.ProfileData.from_file(str(path)).planes:
        for event in (event for line in plane.lines for event in line.events):
            if event.name == "PjitFunction(train_models_block)":
                calls.append((event.start_ns, event.end_ns))
            told = dict(event.stats)
            if told.get("hlo_module") == "jit_train_models_block":
                ends[told["run_id"]] = max(ends[told["run_id"]], event.end_ns)
    outer = [start for start, end in calls if not any(a < start and end < b for a, b in calls)]
    return sorted(outer), sorted(ends.values())


@pytest.mark.slow
def test_a_block_is_handed_over_before_the_one_before_it_has_ended(dataset, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "in_pieces", lambda mesh: False)  # as on an accelerator
    config = study.model_config(tiny.config(epochs=BLOCKS, checkpoint_epochs=BLOCKS), "standard", 0)
    workdir = tmp_path / "run"
    workdir.mkdir()
    with workdirs.open_workdir(workdir, config.to_dict()), jax.profiler.trace(tmp_path / "trace"):
        loop.train(config, dataset.train.to_device(), dataset.num_classes, workdir, mesh=meshes.data_mesh(1))
    handed_over, ended = traced(tmp_path / "trace")
    assert len(handed_over) == len(ended) == BLOCKS
    assert all(following < end for following, end in zip(handed_over[1:], ended))
