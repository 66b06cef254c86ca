"""The losses against NumPy in float64: their values, gradients, and the loss of a step."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.special
from flax import nnx

from training import states, steps
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


def test_mixup_with_all_of_the_first_image_is_the_plain_loss(monkeypatch):
    monkeypatch.setattr(
        steps, "draw_mixture", lambda key, number: (np.ones(number, np.float32), np.roll(np.arange(number), 1))
    )
    assert float(step(mixup=True)["loss"][0]) == pytest.approx(float(step()["loss"][0]), rel=1e-6)


@pytest.mark.parametrize(
    "given, message",
    [
        ({"jsd_weight": 12.0, "stability_weight": 0.5}, "train.stability_weight 0 with a train.jsd_weight, found 0.5"),
        ({"jsd_weight": 12.0, "label_smoothing": 0.1}, "train.label_smoothing 0 with a train.jsd_weight, found 0.1"),
        ({"mixup": True, "stability_weight": 0.5}, "train.mixup False with a .* found True with 0.0 and 0.5"),
        ({"mixup": True, "jsd_weight": 12.0}, "train.mixup False with a .* found True with 12.0 and 0.0"),
    ],
)
def test_losses_that_exclude_each_other_are_refused(given, message):
    with pytest.raises(ValueError, match=f"expected config.{message}"):
        Loss(**given)


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


def test_the_default_jsd_weight_is_twelve():
    logits, labels = drawn(2.0)
    assert float(jsd(*logits, labels)) == float(jsd(*logits, labels, 12.0))


def test_equal_views_leave_the_cross_entropy():
    logits, labels = drawn(2.0)
    expected = jsd_reference(logits[:1], labels, 0.0)
    np.testing.assert_allclose(jsd(logits[0], logits[0], logits[0], labels), expected, rtol=1e-6)
    np.testing.assert_allclose(jsd(*logits, labels, 0.0), expected, rtol=1e-6)


def test_opposed_certain_views_reach_the_bound():
    # Three one-hot predictions of three classes: M = 1/3 each, KL = ln 3, whatever the rest.
    logits = 200.0 * np.eye(3, dtype=np.float32)[:, None, :]
    labels = np.array([0])
    np.testing.assert_allclose(jsd(*logits, labels), 12 * np.log(3), rtol=1e-6)


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


@pytest.mark.parametrize(("shape", "labels"), [((4, 5), 3), ((5, 4), 4)])
def test_jsd_shapes_must_agree(shape, labels):
    good = jnp.zeros((4, 5))
    with pytest.raises(ValueError, match=r"expected three logits \[B, C\] and labels \[B\]"):
        steps.jsd_loss(good, good, jnp.zeros(shape), jnp.zeros(labels, int))
