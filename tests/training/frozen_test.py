"""A linear probe: which parameters move, and whether BatchNorm's statistics do."""

import types

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import models
import train
from evaluation import trained_models
from models import condensenet, layers
from projects.structural import datasets  # noqa: F401 - registers the dataset of the config
from projects.structural.configs import imagenet22k_superclasses
from runtime import meshes
from tests.training import tiny
from tests.training.loss_test import IMAGES, KEY, LABELS
from training import run, states, steps

RECIPE = tiny.config(frozen="backbone").train


class Probed(nnx.Module):
    """BatchNorm, a hidden layer and a last one, of 4x4 images."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.norm = layers.BatchNorm(3, rng=rng)
        self.hidden, self.head = layers.Linear(48, 6, rng=rng), layers.Linear(6, 5, rng=rng)

    def __call__(self, images, train, key=None):
        x = self.norm(images.astype(jnp.float32) / 255, train)
        return self.head(jax.nn.relu(self.hidden(x.reshape(len(x), -1)))), {}


GRAPHDEF, PARAMS, STATISTICS = nnx.split(Probed(), nnx.Param, ...)


@pytest.mark.parametrize("groups", [1, 0])
def test_only_the_last_layer_moves_and_the_statistics_as_asked(groups):
    optimizer = states.make_optimizer(RECIPE, 5)
    before = states.initial_state(PARAMS, STATISTICS, optimizer)
    images, labels = np.concatenate([IMAGES, IMAGES[:, ::-1]]), np.concatenate([LABELS, LABELS])
    after, _ = steps.train_block(GRAPHDEF, optimizer, before, images, labels, KEY, norm_groups=groups)
    for name in ("hidden", "norm"):
        assert jax.tree.all(jax.tree.map(np.array_equal, after.params[name], before.params[name]))
    moved = jax.tree.map(lambda old, new: not np.array_equal(old, new), before.params["head"], after.params["head"])
    assert jax.tree.all(moved)
    drifted = [not np.array_equal(new, old) for new, old in zip(*map(jax.tree.leaves, (after[2], before[2])))]
    assert drifted == [groups > 0] * 2


def test_momentum_is_kept_of_the_last_layer_alone():
    state = states.make_optimizer(RECIPE, 5).init(PARAMS)
    assert sorted(leaf.shape for leaf in jax.tree.leaves(state) if leaf.ndim) == [(5,), (6, 5)]
    assert states.make_optimizer(RECIPE, 5) is states.make_optimizer(RECIPE, 5)


def test_a_frozen_network_learns_no_groups(monkeypatch):
    monkeypatch.setattr(condensenet, "has_masks", lambda statistics: True)
    condense_steps = []
    for settings in (RECIPE, tiny.config().train):
        plan = types.SimpleNamespace(train=settings, norm_groups=1, total_steps=7, batch_size=32, block_steps=1)
        condense_steps.append(run.Program.of(plan, None, None, None).condense_steps)
    assert condense_steps == [0, 7]


@pytest.mark.slow
def test_a_probe_that_was_stopped_ends_like_one_that_was_not(tmp_path, monkeypatch):
    config = tiny.config(batch_norm="groups=1")
    config.model.update({"stem": 4, "widths": (4,)})
    config.train.init_from = str(tiny.untrained_workdir(tmp_path / "backbone", config))
    config.train.frozen = "backbone"
    save, saved = run.Checkpoints.save, []

    def stop_once(self, state):
        save(self, state)
        saved.append(int(state.step))
        if len(saved) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(run.Checkpoints, "save", stop_once)
    with pytest.raises(KeyboardInterrupt):
        train.train_and_evaluate(config, tmp_path / "halves")
    assert not (tmp_path / "halves" / "final.json").exists()
    for name in ("halves", "whole"):
        train.train_and_evaluate(config, tmp_path / name)
    assert saved == [5, 10, 5, 10]

    mesh = meshes.data_mesh()
    start, halves, whole = (
        trained_models.read_model(tmp_path / name, 10, 32, mesh)[1] for name in ("backbone", "halves", "whole")
    )
    chex.assert_trees_all_equal(halves, whole)  # momentum and drifting statistics among it
    stayed = jax.tree.map(np.array_equal, start.params, whole.params)
    for path, same in jax.tree_util.tree_leaves_with_path(stayed):
        assert same != states.of_head(path), path
    for name in ("stem_norm", "stages"):
        stayed = jax.tree.map(np.array_equal, start.statistics[name], whole.statistics[name])
        assert not any(jax.tree.leaves(stayed)), name


QUICK = ("small_resnet", "alexnet", "vgg11", "squeezenet1_1")
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in models.names() if name not in QUICK]


@pytest.mark.parametrize("name", [*QUICK, *SLOW])
def test_every_network_has_a_last_layer_that_alone_depends_on_the_classes(name):
    """So that a backbone of any number of classes is taken."""
    options = {"exits": 2} if "exits" in models.options(name) else {}
    (graphdef, few, _), (other, many, _) = (
        nnx.split(models.abstract(name, classes, **options), nnx.Param, ...) for classes in (5, 7)
    )
    assert graphdef == other and jax.tree.structure(few) == jax.tree.structure(many)
    differ = jax.tree.map(lambda one, two: one.shape != two.shape, few, many)
    for path, of_classes in jax.tree_util.tree_leaves_with_path(differ):
        assert of_classes == states.of_head(path), path


def test_the_recipe_is_the_sheets():
    config = imagenet22k_superclasses.get_config("alexnet")
    train, steps_per_epoch = config.train, 694_000 // 128
    assert (config.model.name, config.dataset.train_size, train.random_crop, train.flip) == ("alexnet", 256, 224, True)
    assert (train.epochs, train.batch_size, train.momentum, train.weight_decay) == (1, 128, 0.9, 5e-4)
    rate = states.learning_rate_schedule(train, steps_per_epoch)
    assert float(rate(0)) == pytest.approx(0.01) and float(rate(steps_per_epoch - 1)) < 1e-5
