"""Models of a study that start from its standard model."""

import sys

import chex
import jax
import numpy as np
import pytest

import data
import train
from runtime import meshes
from tests import processes
from tests.training import tiny
from training import steps, study


@pytest.fixture(scope="module")
def setting():
    return meshes.data_mesh(), data.load("shapes", train_limit=160, test_limit=70)


def config():
    found = tiny.config(init_from="standard")
    found.study.finetune = {
        "learning_rate": 0.0,
        "epochs": 1,
        "schedule": "step",
        "milestones": (),
        "weight_decay": 0.0,
    }
    return found


def differ(first, second):
    return not all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(first.params), jax.tree.leaves(second.params)))


def test_finetuned_models_start_from_the_standard_model_and_use_their_own_settings(setting, tmp_path, monkeypatch):
    # Traced once for the standard models and once for the fine-tuned ones, whose optimiser is
    # another.
    chex.clear_trace_counter()
    monkeypatch.setattr(steps, "train_block", chex.assert_max_traces(steps.train_block, n=2))
    mesh, dataset = setting
    split = dataset.train.to_device(meshes.replicated(mesh))
    found = study.Trainings(config(), ("standard", "noc/border"), (0, 1), tmp_path, dataset, split, mesh).train()
    for seed in (0, 1):
        standard, border = found["standard", seed][1], found["noc/border", seed][1]
        assert (int(standard.step), int(border.step)) == (10, 5)
        chex.assert_trees_all_equal(standard.params, border.params)  # at learning rate 0 nothing else moves them
    assert differ(found["standard", 0][1], found["standard", 1][1])
    again = study.Trainings(config(), ("standard", "noc/border"), (0, 1), tmp_path, dataset, split, mesh).train()
    chex.assert_trees_all_equal(again["noc/border", 1][1], found["noc/border", 1][1])


def test_a_finetuned_run_that_was_stopped_continues_on_several_devices(tmp_path):
    """Two CPU devices, stopped after an epoch (its checkpoint is kept): the end is that of a run
    never stopped."""
    code = (
        "import sys, pathlib, jax, data; jax.config.update('jax_num_cpu_devices', 2)\n"
        "from tests.training import finetuning_test, tiny; from training import loop, study; from runtime import meshes\n"
        "config = tiny.config(); one = study.model_config(config, 'noc/border', 0); mesh = meshes.data_mesh(32)\n"
        "split = data.load('shapes', train_limit=160, test_limit=70).train.to_device(meshes.replicated(mesh))\n"
        "root = pathlib.Path(sys.argv[1]); [(root / n).mkdir() for n in ('start', 'whole', 'halves')]\n"
        "start = loop.train(study.model_config(config, 'standard', 0), split, 10, root / 'start', mesh=mesh)[1]\n"
        "end = lambda name: loop.train(one, split, 10, root / name, mesh=mesh, initial=start)[1]\n"
        "whole = end('whole'); save = loop.Checkpoints.save\n"
        "def stop(self, state): save(self, state); raise KeyboardInterrupt\n"
        "loop.Checkpoints.save = stop\n"
        "try: end('halves')\n"
        "except KeyboardInterrupt: pass\n"
        "loop.Checkpoints.save = save; halves = end('halves')\n"
        "assert len(jax.devices()) == 2 and int(halves.step) == 10 and not finetuning_test.differ(whole, halves)\n"
        "print('equal')\n"
    )
    done = processes.run([sys.executable, "-c", code, tmp_path])
    assert done.returncode == 0 and done.stdout.endswith("equal\n"), done.stderr


def test_another_standard_recipe_makes_other_finetuned_models():
    one, other = config(), config()
    other.train.epochs = 3
    configs = [study.finetuned_config(c, study.model_config(c, "standard", 0), "noc/border") for c in (one, other)]
    configs = [c.to_dict() for c in configs]
    assert configs[0]["train"] == configs[1]["train"]
    assert configs[0]["start"] != configs[1]["start"]


def test_a_study_starts_from_its_own_standard_model_only(setting, tmp_path):
    mesh, dataset = setting
    wrong = tiny.config(init_from="runs/other")
    with pytest.raises(ValueError, match="init_from '' or 'standard' in a study"):
        study.Trainings(wrong, ("standard",), (0,), tmp_path, dataset, dataset.train, mesh).train()


def test_a_model_to_start_from_that_is_not_there_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(FileNotFoundError, match="expected a workdir with trained models, found none in nowhere"):
        train.train_and_evaluate(tiny.config(init_from="nowhere"), tmp_path / "work")
    assert not (tmp_path / "work").exists()
