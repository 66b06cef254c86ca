"""Answers at the exits of a network, of one whose answers are known."""

import types

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import data
from evaluation import correctness
from evaluation.correctness import ExitAnswers as Answered
from evaluation.correctness import of_exits as of_model
from evaluation.shown import Shown
from runtime import meshes


class Known(nnx.Module):
    """Exit k is right about images whose first pixel is below 10 k, and as sure as `logit` says."""

    def __init__(self, several):
        self.logit, self.several = nnx.Param(jnp.float32(2)), several

    def __call__(self, images, train, key=None):
        level = images[:, 0, 0, 0].astype(jnp.float32)
        sure = [jnp.where(level < 10 * k, self.logit[...], 0.0) for k in (1, 2, 3)]
        exits = [jnp.stack([value, jnp.ones_like(value)], -1) for value in sure]
        return exits[-1], {"exits": jnp.stack(exits)} if self.several else {}


def shown(number=7):
    images = np.zeros((number, 16, 16, 3), np.uint8)
    images[:, 0, 0, 0] = np.arange(number) * 5
    split = data.Split(images, np.zeros(number, np.int32), np.arange(number, dtype=np.int32))
    return Shown(split.to_device(), meshes.data_mesh(), 4)  # two batches, the last one filled up


def network(several=True):
    graphdef, params, rest = nnx.split(Known(several), nnx.Param, ...)
    return graphdef, types.SimpleNamespace(params=params, statistics=rest)


def test_every_exit_is_asked_about_every_image_once():
    found = of_model(network(), shown())
    level = np.arange(7)[:, None] * 5
    right = level < np.array([[10, 20, 30]])
    np.testing.assert_array_equal(found.correct, right)
    expected = np.exp(np.where(right, 2, 1)) / (np.exp(np.where(right, 2.0, 0.0)) + np.e)
    np.testing.assert_allclose(found.confidence, expected, rtol=1e-5)


def test_a_network_with_one_exit_is_refused():
    with pytest.raises(ValueError, match="several exits, such as msdnet, found one exit"):
        of_model(network(several=False), shown())


def test_a_network_that_diverged_is_not_called_sure(tmp_path):
    model = network()
    model[1].params["logit"][...] = jnp.float32(np.nan)
    with pytest.raises(ValueError, match="finite outputs for images under clean, found NaN"):
        of_model(model, shown())


def test_answers_are_kept_for_the_same_network_and_images(tmp_path, monkeypatch):
    model, path, asked = network(), tmp_path / "exits" / "clean-0.npz", []
    monkeypatch.setattr(
        correctness, "of_exits", lambda *given: asked.append(given) or Answered(np.eye(3), np.ones((3, 3)))
    )
    for images in (shown(), shown(), shown(6), shown(6)):
        found = correctness.kept_exits(path, model, "of 2", images)
        assert found.correct.tolist() == np.eye(3).tolist() and found.confidence.shape == (3, 3)
    assert len(asked) == 2
    correctness.kept_exits(path, model, "of 3", shown(6))
    assert len(asked) == 3
