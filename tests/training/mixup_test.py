"""Mixup against NumPy: the mixtures, and the loss of a step."""

import jax
import numpy as np
import pytest
import scipy.special

from tests.training.stability_test import GRAPHDEF, IMAGES, KEY, LABELS, OPTIMIZER, PARAMS, STATISTICS
from training import mixup, states, steps
from training.stability import Stability


def test_shares_are_uniform_and_partners_a_permutation():
    share, order = map(np.asarray, mixup.draw(KEY, 400))
    assert sorted(order) == list(range(400)) and (order != np.arange(400)).mean() > 0.9
    assert share.min() >= 0 and share.max() < 1
    assert np.abs(np.sort(share) - (np.arange(400) + 0.5) / 400).max() < 1.63 / 400**0.5  # Kolmogorov's, 1 %


def step(**given):
    state = states.initial_state(PARAMS, STATISTICS, OPTIMIZER)
    return steps.train_block(GRAPHDEF, OPTIMIZER, state, IMAGES, LABELS, KEY, **given)[1]


def test_the_loss_of_a_step():
    share, order = (np.asarray(drawn) for drawn in mixup.draw(jax.random.fold_in(KEY, 0), 8))
    clean, t = IMAGES[0].reshape(8, 48) / 255, np.float64(share)[:, None]
    logits = (t * clean + (1 - t) * clean[order]) @ np.float64(PARAMS["weight"][...])
    entropies = -scipy.special.log_softmax(logits, -1)
    places, labels = np.arange(8), LABELS[0]
    terms = share * entropies[places, labels] + (1 - share) * entropies[places, labels[order]]
    assert float(step(mixup=True)["loss"][0]) == pytest.approx(terms.mean(), rel=1e-5)


def test_with_all_of_the_first_image_it_is_the_plain_loss(monkeypatch):
    monkeypatch.setattr(mixup, "draw", lambda key, number: (np.ones(number, np.float32), np.roll(np.arange(number), 1)))
    assert float(step(mixup=True)["loss"][0]) == pytest.approx(float(step()["loss"][0]), rel=1e-6)


def test_losses_that_exclude_each_other_are_refused():
    with pytest.raises(ValueError, match=r"expected mixup without JSD or stability weight, found 0\.0 and 0\.5"):
        step(mixup=True, stability=Stability(0.5, 0.1))
