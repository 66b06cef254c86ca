"""The losses against NumPy in float64: their values, gradients, and the loss of a step; the parameters that move."""

import types

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.special
from flax import nnx

import models
import train
from evaluation import trained_models
from models import condensenet, layers, norms
from projects.structural import datasets  # noqa: F401 - registers the dataset of the config
from projects.structural.configs import imagenet22k_superclasses
from runtime import meshes
from tests.refusing import refuses
from tests.training import tiny
from training import run, states, steps
from training.steps import Loss, cross_entropy

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (1, 8, 4, 4, 3)).astype(np.uint8)
LABELS = RNG.integers(0, 5, (1, 8))
KEY = jax.random.key(0)


def entropy_between(clean, noisy):
    p, log_q = scipy.special.softmax(np.float64(clean), -1), scipy.special.log_softmax(np.float64(noisy), -1)
    return -(p * log_q).sum(-1).mean()


def test_the_disagreement_and_its_gradient_are_those_of_numpy():
    clean, noisy = RNG.normal(scale=2, size=(2, 3, 4)).astype(np.float32)
    assert float(steps.disagreement(clean, noisy)) == pytest.approx(entropy_between(clean, noisy), rel=1e-5)
    found = jax.grad(steps.disagreement, argnums=(0, 1))(clean, noisy)
    for which, gradient in enumerate(found):
        for place in [(0, 0), (1, 3), (2, 2)]:
            ends = []
            for step in (1e-3, -1e-3):
                logits = [np.float64(clean), np.float64(noisy)]
                logits[which][place] += step
                ends.append(entropy_between(*logits))
            assert float(gradient[place]) == pytest.approx((ends[0] - ends[1]) / 2e-3, abs=1e-5)


def test_the_noise_is_uniform_and_the_images_stay():
    images = np.full((2, 16, 16, 3), 255, np.uint8)
    both = np.asarray(steps.with_noise(images, KEY, 0.1))
    assert both.shape == (2, 2, 16, 16, 3) and (both[:, 0] == 1).all()
    drawn = both[:, 1] - 1  # not cut off at 1
    assert np.abs(drawn).max() <= 0.1 and drawn.std() == pytest.approx(0.2 / 12**0.5, rel=0.05)
    assert abs(drawn.mean()) < 0.01 and (drawn[0] != drawn[1]).mean() > 0.99


class Linear(nnx.Module):
    """Logits that are linear in the pixels."""

    def __init__(self):
        self.weight = nnx.Param(jnp.asarray(RNG.normal(size=(48, 5)), jnp.float32))

    def __call__(self, images, train, key=None):
        pixels = images.astype(jnp.float32) / (255 if images.dtype == jnp.uint8 else 1)
        return pixels.reshape(-1, 48) @ self.weight[...], {}


GRAPHDEF, PARAMS, STATISTICS = nnx.split(Linear(), nnx.Param, ...)
OPTIMIZER = optax.sgd(0.1)


def step(**given):
    state = states.initial_state(PARAMS, STATISTICS, OPTIMIZER)
    return steps.train_block(GRAPHDEF, OPTIMIZER, state, IMAGES, LABELS, KEY, Loss(**given))[1]


def test_a_step_of_stability_training():
    weight = np.float64(PARAMS["weight"][...])
    clean = IMAGES[0].reshape(8, 48) / 255 @ weight
    entropy = -scipy.special.log_softmax(clean, -1)[np.arange(8), LABELS[0]].mean()
    plain = step()
    assert float(plain["loss"][0]) == pytest.approx(entropy, rel=1e-5)
    # Without noise the disagreement is the entropy of the predictions.
    still = step(stability_weight=0.5)
    assert float(still["loss"][0]) == pytest.approx(entropy + 0.5 * entropy_between(clean, clean), rel=1e-5)
    both = steps.with_noise(IMAGES[0], jax.random.fold_in(KEY, 0), 0.1)
    noisy = np.float64(both[:, 1]).reshape(8, 48) @ weight
    found = step(stability_weight=0.5, stability_noise=0.1)
    assert float(found["loss"][0]) == pytest.approx(entropy + 0.5 * entropy_between(clean, noisy), rel=1e-4)
    assert float(found["accuracy"][0]) == float(plain["accuracy"][0]) == (clean.argmax(-1) == LABELS[0]).mean()


def test_mixup_shares_are_uniform_and_partners_a_permutation():
    share, order = map(np.asarray, steps.draw_mixture(KEY, 400))
    assert sorted(order) == list(range(400)) and (order != np.arange(400)).mean() > 0.9
    assert share.min() >= 0 and share.max() < 1
    assert np.abs(np.sort(share) - (np.arange(400) + 0.5) / 400).max() < 1.63 / 400**0.5  # Kolmogorov's, 1 %


def test_a_step_of_mixup():
    share, order = (np.asarray(drawn) for drawn in steps.draw_mixture(jax.random.fold_in(KEY, 0), 8))
    clean, t = IMAGES[0].reshape(8, 48) / 255, np.float64(share)[:, None]
    logits = (t * clean + (1 - t) * clean[order]) @ np.float64(PARAMS["weight"][...])
    entropies = -scipy.special.log_softmax(logits, -1)
    places, labels = np.arange(8), LABELS[0]
    terms = share * entropies[places, labels] + (1 - share) * entropies[places, labels[order]]
    assert float(step(mixup=True)["loss"][0]) == pytest.approx(terms.mean(), rel=1e-5)


def test_losses_that_exclude_each_other_are_refused():
    refuses(lambda: Loss(mixup=True, jsd_weight=12.0), "train.mixup False with a", "with 12.0 and 0.0")


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_label_smoothing_spreads_a_share_of_the_target(smoothing):
    logits, labels = RNG.normal(0, 3, (6, 5)), np.array([0, 4, 2, 2, 1, 3])
    target = (1 - smoothing) * np.eye(5)[labels] + smoothing / 5
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    found = cross_entropy(jnp.asarray(logits, jnp.float32), jnp.asarray(labels), smoothing)
    assert float(found) == pytest.approx(-(target * log_p).sum(1).mean(), rel=1e-5)


jsd = jax.jit(steps.jsd_loss)
jsd_gradient = jax.jit(jax.grad(lambda logits, labels: steps.jsd_loss(*logits, labels)))


def jsd_reference(logits, labels, weight):
    p = scipy.special.softmax(np.float64(logits), axis=-1)
    mixture = np.clip(p.mean(0), 1e-7, 1)
    divergences = [scipy.special.xlogy(one, one).sum(-1) - (one * np.log(mixture)).sum(-1) for one in p]
    entropy = -scipy.special.log_softmax(np.float64(logits[0]), axis=-1)[np.arange(len(labels)), labels].mean()
    return entropy + weight * np.mean(divergences)


def drawn(scale, batch=16, classes=10):
    rng = np.random.default_rng(0)
    logits = rng.normal(0, scale, (3, batch, classes)).astype(np.float32)
    return logits, rng.integers(0, classes, batch)


@pytest.mark.parametrize("weight", [12.0, 1.0])
@pytest.mark.parametrize("scale", [0.3, 3.0, 30.0])  # at 30 most probabilities of the mixture are clipped
def test_jsd_equals_numpy(scale, weight):
    logits, labels = drawn(scale)
    found = jsd(*logits, labels, weight)
    assert found.shape == () and found.dtype == jnp.float32
    np.testing.assert_allclose(found, jsd_reference(logits, labels, weight), rtol=2e-6)


def test_equal_views_leave_the_cross_entropy():
    logits, labels = drawn(2.0)
    expected = jsd_reference(logits[:1], labels, 0.0)
    np.testing.assert_allclose(jsd(logits[0], logits[0], logits[0], labels), expected, rtol=1e-6)
    np.testing.assert_allclose(jsd(*logits, labels, 0.0), expected, rtol=1e-6)


def test_the_jsd_gradient_equals_differences():
    logits, labels = drawn(1.5, batch=3, classes=4)
    found = np.asarray(jsd_gradient(logits, labels))
    for place in np.ndindex(logits.shape):
        step = np.zeros(logits.shape)
        step[place] = 1e-5
        slope = (jsd_reference(logits + step, labels, 12.0) - jsd_reference(logits - step, labels, 12.0)) / 2e-5
        assert abs(found[place] - slope) < 2e-5


def test_the_jsd_gradient_is_finite_for_certain_predictions():
    logits, labels = drawn(300.0)
    assert np.all(np.isfinite(jsd_gradient(logits, labels)))


RECIPE = tiny.config(frozen="backbone").train


class Probed(nnx.Module):
    """BatchNorm, a hidden layer and a last one, of 4x4 images."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.norm = norms.BatchNorm(3, rng=rng)
        self.hidden, self.head = layers.Linear(48, 6, rng=rng), layers.Linear(6, 5, rng=rng)

    def __call__(self, images, train, key=None):
        x = self.norm(images.astype(jnp.float32) / 255, train)
        return self.head(jax.nn.relu(self.hidden(x.reshape(len(x), -1)))), {}


PROBED, WEIGHTS, STATES = nnx.split(Probed(), nnx.Param, ...)


@pytest.mark.parametrize("groups", [1, 0])
def test_only_the_last_layer_moves_and_the_statistics_as_asked(groups):
    optimizer = states.make_optimizer(RECIPE, 5)
    before = states.initial_state(WEIGHTS, STATES, optimizer)
    images, labels = np.concatenate([IMAGES, IMAGES[:, ::-1]]), np.concatenate([LABELS, LABELS])
    after, _ = steps.train_block(PROBED, optimizer, before, images, labels, KEY, norm_groups=groups)
    for name in ("hidden", "norm"):
        assert jax.tree.all(jax.tree.map(np.array_equal, after.params[name], before.params[name]))
    moved = jax.tree.map(lambda old, new: not np.array_equal(old, new), before.params["head"], after.params["head"])
    assert jax.tree.all(moved)
    drifted = [not np.array_equal(new, old) for new, old in zip(*map(jax.tree.leaves, (after[2], before[2])))]
    assert drifted == [groups > 0] * 2


def test_momentum_is_kept_of_the_last_layer_alone():
    state = states.make_optimizer(RECIPE, 5).init(WEIGHTS)
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
    chex.assert_trees_all_equal(halves, whole)  # also momentum and drifting statistics
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


def test_the_recipe_for_superclasses_is_that_of_the_draft_of_2018():
    config = imagenet22k_superclasses.get_config("alexnet")
    train, steps_per_epoch = config.train, 694_000 // 128
    assert (config.model.name, config.dataset.train_size, train.random_crop, train.flip) == ("alexnet", 256, 224, True)
    assert (train.epochs, train.batch_size, train.momentum, train.weight_decay) == (1, 128, 0.9, 5e-4)
    rate = states.learning_rate_schedule(train, steps_per_epoch)
    assert float(rate(0)) == pytest.approx(0.01) and float(rate(steps_per_epoch - 1)) < 1e-5
