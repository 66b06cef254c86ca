"""Stability training against NumPy: the disagreement, its gradient, and the loss of a step."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.special
from flax import nnx

from training import stability, states, steps
from training.stability import Stability

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (1, 8, 4, 4, 3)).astype(np.uint8)
LABELS = RNG.integers(0, 5, (1, 8))
KEY = jax.random.key(0)


def reference(clean, noisy):
    p, log_q = scipy.special.softmax(np.float64(clean), -1), scipy.special.log_softmax(np.float64(noisy), -1)
    return -(p * log_q).sum(-1).mean()


def test_the_disagreement_and_its_gradient_are_those_of_numpy():
    clean, noisy = RNG.normal(scale=2, size=(2, 3, 4)).astype(np.float32)
    assert float(stability.disagreement(clean, noisy)) == pytest.approx(reference(clean, noisy), rel=1e-5)
    found = jax.grad(stability.disagreement, argnums=(0, 1))(clean, noisy)
    for which, gradient in enumerate(found):
        for place in [(0, 0), (1, 3), (2, 2)]:
            ends = []
            for step in (1e-3, -1e-3):
                logits = [np.float64(clean), np.float64(noisy)]
                logits[which][place] += step
                ends.append(reference(*logits))
            assert float(gradient[place]) == pytest.approx((ends[0] - ends[1]) / 2e-3, abs=1e-5)


def test_the_noise_is_uniform_and_the_images_stay():
    images = np.full((2, 16, 16, 3), 255, np.uint8)
    both = np.asarray(stability.with_noise(images, KEY, 0.1))
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


def loss(given):
    state = states.initial_state(PARAMS, STATISTICS, OPTIMIZER)
    return steps.train_block(GRAPHDEF, OPTIMIZER, state, IMAGES, LABELS, KEY, stability=given)[1]


def test_two_losses_that_compare_views_are_refused_together():
    state = states.initial_state(PARAMS, STATISTICS, OPTIMIZER)
    views = np.stack(3 * [IMAGES], axis=2)
    with pytest.raises(ValueError, match=r"expected a stability weight of 0 with a JSD weight, found 0\.5 and 12"):
        steps.train_block(GRAPHDEF, OPTIMIZER, state, views, LABELS, KEY, 12.0, stability=Stability(0.5, 0.1))


def test_the_loss_of_a_step():
    weight = np.float64(PARAMS["weight"][...])
    clean = IMAGES[0].reshape(8, 48) / 255 @ weight
    entropy = -scipy.special.log_softmax(clean, -1)[np.arange(8), LABELS[0]].mean()
    plain = loss(stability.OFF)
    assert float(plain["loss"][0]) == pytest.approx(entropy, rel=1e-5)
    # Without noise the disagreement is the entropy of the predictions.
    still = loss(Stability(0.5, 0.0))
    assert float(still["loss"][0]) == pytest.approx(entropy + 0.5 * reference(clean, clean), rel=1e-5)
    both = stability.with_noise(IMAGES[0], jax.random.fold_in(KEY, 0), 0.1)
    noisy = np.float64(both[:, 1]).reshape(8, 48) @ weight
    found = loss(Stability(0.5, 0.1))
    assert float(found["loss"][0]) == pytest.approx(entropy + 0.5 * reference(clean, noisy), rel=1e-4)
    assert float(found["accuracy"][0]) == float(plain["accuracy"][0]) == (clean.argmax(-1) == LABELS[0]).mean()
