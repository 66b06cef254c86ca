"""ETA, EATA, SAR and LAME against NumPy with gradients by hand, in float64, and their limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evaluation.streams import lame
from evaluation.streams.eata import Eata, Eta, Sar
from evaluation.streams.tent import Descent, Tent
from tests.evaluation.streams import reference, tiny

NETWORK = reference.drawn(head=9.0)  # sure of some samples
BATCHES = tiny.batches(number=8)
CLEAN = np.stack(tiny.batches(number=3, seed=9))
RATE = 0.03


def compare(method, expected, source=None, given=BATCHES):
    """The logits of every batch; returns those of the last."""
    logits, state = tiny.run(method, NETWORK, given, source=source)
    for found, one in zip(logits, expected, strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-8, atol=1e-8)
    return logits, state


def test_eta_learns_from_reliable_and_new_samples():
    expected, chosen = zip(*reference.eta(NETWORK, BATCHES, reference.Adam(RATE), 0.4, 0.8), strict=True)
    shares = [np.mean(one) for one in chosen]
    assert 0 < min(s for s in shares if s) < 1 and len(set(shares)) > 2  # both rules choose
    logits, _ = compare(Eta(Descent("adam", RATE), 0.4, 0.8), expected)
    assert np.abs(logits[-1] - reference.Pass(NETWORK, BATCHES[-1], keep=0.0).logits).max() > 0.1


def test_eta_does_nothing_where_nothing_is_chosen():
    compare(Eta(Descent("adam", RATE), 1e-9, 0.8), [reference.Pass(NETWORK, x, keep=0.0).logits for x in BATCHES])


def test_eta_that_chooses_all_weighs_them():
    expected, chosen = zip(*reference.eta(NETWORK, BATCHES, reference.Sgd(RATE, True), 1.01, 2.0), strict=True)
    assert all(one.all() for one in chosen)
    logits, _ = compare(Eta(Descent("nesterov", RATE), 1.01, 2.0), expected)
    plain, _ = tiny.run(Tent(Descent("nesterov", RATE)), NETWORK, BATCHES)
    assert np.abs(logits[-1] - plain[-1]).max() > 0.1


def test_eata_keeps_what_matters_for_clean_images():
    fisher = reference.fisher(NETWORK, CLEAN)
    arguments = (reference.Adam(RATE), 0.4, 0.8, fisher, 300.0)
    expected = [one for one, _ in reference.eta(NETWORK, BATCHES, *arguments)]
    logits, state = compare(Eata(Descent("adam", RATE), 0.4, 0.8, 300.0), expected, source=CLEAN)
    np.testing.assert_allclose(state["fisher"]["second"]["scale"], fisher["second"]["scale"], rtol=1e-9)
    free, _ = tiny.run(Eta(Descent("adam", RATE), 0.4, 0.8), NETWORK, BATCHES)
    assert np.abs(free[-1] - logits[-1]).max() > 0.05
    same, _ = tiny.run(Eata(Descent("adam", RATE), 0.4, 0.8, 0.0), NETWORK, BATCHES, source=CLEAN)
    np.testing.assert_allclose(same[-1], free[-1], rtol=1e-10)


def test_eata_without_clean_images_is_refused():
    with pytest.raises(ValueError, match="expected a batch of training images or more for eata, found none"):
        tiny.run(Eata(Descent("adam", RATE)), NETWORK, BATCHES)


@pytest.mark.parametrize("margin, rho, least", [(0.6, 0.5, 0.0), (0.4, 0.3, 0.3)])
def test_sar_steps_at_the_sharpest_point_and_starts_anew(margin, rho, least):
    expected, resets = zip(*reference.sar(NETWORK, BATCHES, RATE, margin, rho, least), strict=True)
    assert any(resets) == (least > 0) and not all(resets)
    logits, state = compare(Sar(Descent("sgd", RATE), margin, rho, least), expected)
    if not least:
        assert np.abs(logits[-1] - reference.Pass(NETWORK, BATCHES[-1], keep=0.0).logits).max() > 0.05
        assert np.isfinite(state["level"])


def test_sar_of_radius_0_that_takes_all_is_tent():
    flat, _ = tiny.run(Sar(Descent("sgd", RATE), 50.0, 0.0, 0.0), NETWORK, BATCHES)
    plain, _ = tiny.run(Tent(Descent("sgd", RATE)), NETWORK, BATCHES)
    np.testing.assert_allclose(flat[-1], plain[-1], rtol=1e-9)


def test_sar_moves_nothing_without_a_reliable_sample():
    _, state = tiny.run(Sar(Descent("sgd", RATE), 1e-9), NETWORK, BATCHES)
    for name, layer in NETWORK[1].items():
        np.testing.assert_array_equal(state["theta"][name]["scale"], layer["scale"])
    assert np.isnan(state["level"])


def test_lame_smooths_over_neighbours():
    given = tiny.batches(number=3, size=12)
    logits, _ = tiny.run(lame.Lame(), NETWORK, given)
    for found, expected, x in zip(logits, reference.lame(NETWORK, given), given, strict=True):
        np.testing.assert_allclose(np.exp(found), expected, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(np.exp(found).sum(1), 1, rtol=1e-12)
        assert np.abs(np.exp(found) - reference.softmax(reference.Pass(NETWORK, x).logits)).max() > 0.1


def test_lame_without_affinity_keeps_the_answers_and_equal_features_have_affinity_1():
    z = jnp.asarray(np.random.default_rng(0).normal(size=(6, 3)), jnp.float32)
    np.testing.assert_allclose(lame.smoothed(z, jnp.zeros((6, 6)), 100), jax.nn.log_softmax(z), rtol=1e-5, atol=1e-5)
    same = jnp.ones((6, 3))
    np.testing.assert_array_equal(lame.affinity(same, 5), np.ones((6, 6)))
    w = lame.affinity(z, 5)
    np.testing.assert_allclose(w, w.T, rtol=1e-6)
    np.testing.assert_array_equal(np.diag(w), 1)
