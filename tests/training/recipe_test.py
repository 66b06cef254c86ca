"""What the fast recipe adds to a training run: triangular schedule, label smoothing, alternating
flips, whitening."""

import jax.numpy as jnp
import numpy as np
from flax import nnx

import data
from configs import fast_cifar10
from runtime import meshes
from tests.training import tiny
from training import loop, states, study

RNG = np.random.default_rng(0)


def test_the_triangle_rises_and_falls_in_straight_lines():
    recipe = tiny.config(schedule="triangle", learning_rate=0.5, epochs=10, warmup_epochs=2).train
    rate = states.learning_rate_schedule(recipe, 7)
    expected = [0.5 * s / 14 if s < 14 else 0.5 * (70 - s) / 56 for s in range(71)]
    np.testing.assert_allclose([rate(jnp.asarray(s)) for s in range(71)], expected, atol=1e-7)
    recipe.warmup_epochs = 0
    rate = states.learning_rate_schedule(recipe, 7)
    np.testing.assert_allclose([rate(jnp.asarray(s)) for s in (0, 35, 70)], [0.5, 0.25, 0], atol=1e-7)


def test_the_code_reading_starts_from_xavier_and_does_not_normalise():
    released = study.model_config(tiny.config(reading="code"), "standard", 0)
    graphdef, *state = states.build_model(released, 10, 32)
    model = nnx.merge(graphdef, *state)
    images = RNG.integers(0, 256, (2, 32, 32, 3), np.uint8)
    np.testing.assert_allclose(model.normalize(images), images / 255, rtol=1e-6)
    np.testing.assert_array_equal(model.head.bias[...], np.full(10, 0.01, np.float32))
    kernel = np.asarray(model.head.kernel[...])
    bound = (6 / sum(kernel.shape)) ** 0.5
    assert 0.9 * bound < np.abs(kernel).max() <= bound * (1 + 1e-6)

    plain = study.model_config(tiny.config(), "standard", 0)
    assert not {"mean", "std", "init"} & set(plain.model)
    given = tiny.config(reading="code")
    given.model.init, given.model.mean = "he", (0.5, 0.5, 0.5)
    single = study.model_config(given, "standard", 0).model
    assert (single.init, single.mean, single.std) == ("he", (0.5, 0.5, 0.5), (1.0, 1.0, 1.0))
    given.model.checkpoint = "resnet.pth"  # imported weights have their own normalisation
    assert "std" not in study.model_config(given, "standard", 0).model


def test_the_recipe_trains_whitened_and_leaves_the_filters_alone(tmp_path):
    config = fast_cifar10.get_config()
    config.dataset.name = "shapes"
    config.model.widths = (8, 8)
    config.train.update(epochs=3, batch_size=32, learning_rate=0.2, warmup_epochs=1)
    split = data.load("shapes", train_limit=160, test_limit=10).train.to_device()
    single = study.model_config(config, "standard", 0)
    _, trained = loop.train(single, split, 10, tmp_path, mesh=meshes.data_mesh(32))
    mean, std = (trained.statistics["normalize"][name][...] for name in ("mean", "std"))
    expected = states.whitening_filters(split.images, 2, mean, std)
    np.testing.assert_allclose(trained.statistics["whitening"][...], expected, rtol=1e-5)
    assert np.any(trained.params["whitening_bias"][...])


def test_other_networks_have_nothing_to_whiten():
    single = study.model_config(tiny.config(), "standard", 0)
    _, params, statistics = states.build_model(single, 10, 32)
    fresh = states.TrainState(jnp.zeros((), jnp.int32), params, statistics, ())
    assert states.whitened(fresh, None) is fresh
