"""The consistency loss against NumPy in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from training.jsd import jsd_loss

loss = jax.jit(jsd_loss)
gradient = jax.jit(jax.grad(lambda logits, labels: jsd_loss(*logits, labels)))


def reference(logits, labels, weight):
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
def test_equals_numpy(scale, weight):
    logits, labels = drawn(scale)
    found = loss(*logits, labels, weight)
    assert found.shape == () and found.dtype == jnp.float32
    np.testing.assert_allclose(found, reference(logits, labels, weight), rtol=2e-6)


def test_default_weight_is_twelve():
    logits, labels = drawn(2.0)
    assert float(loss(*logits, labels)) == float(loss(*logits, labels, 12.0))


def test_equal_views_leave_the_cross_entropy():
    logits, labels = drawn(2.0)
    expected = reference(logits[:1], labels, 0.0)
    np.testing.assert_allclose(loss(logits[0], logits[0], logits[0], labels), expected, rtol=1e-6)
    np.testing.assert_allclose(loss(*logits, labels, 0.0), expected, rtol=1e-6)


def test_opposed_certain_views_reach_the_bound():
    # Three one-hot predictions of three classes: M = 1/3 each, KL = ln 3, whatever the rest.
    logits = 200.0 * np.eye(3, dtype=np.float32)[:, None, :]
    labels = np.array([0])
    np.testing.assert_allclose(loss(*logits, labels), 12 * np.log(3), rtol=1e-6)


def test_gradient_equals_differences():
    logits, labels = drawn(1.5, batch=3, classes=4)
    found = np.asarray(gradient(logits, labels))
    for place in np.ndindex(logits.shape):
        step = np.zeros(logits.shape)
        step[place] = 1e-5
        slope = (reference(logits + step, labels, 12.0) - reference(logits - step, labels, 12.0)) / 2e-5
        assert abs(found[place] - slope) < 2e-5


def test_gradient_is_finite_for_certain_predictions():
    logits, labels = drawn(300.0)
    assert np.all(np.isfinite(gradient(logits, labels)))


@pytest.mark.parametrize(("shape", "labels"), [((4, 5), 3), ((5, 4), 4)])
def test_shapes_must_agree(shape, labels):
    good = jnp.zeros((4, 5))
    with pytest.raises(ValueError, match=r"expected three logits \[B, C\] and labels \[B\]"):
        jsd_loss(good, good, jnp.zeros(shape), jnp.zeros(labels, int))
