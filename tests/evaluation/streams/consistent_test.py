"""RoTTA and ROID against NumPy with gradients by hand, in float64; the augmentation of their views."""

import colorsys

import jax
import jax.numpy as jnp
import numpy as np

from evaluation.streams import roid, views
from evaluation.streams.roid import Roid
from evaluation.streams.rotta import Rotta
from evaluation.streams.tent import Descent
from tests.evaluation.streams import reference, tiny

NETWORK = reference.drawn(head=4.0)
BATCHES = tiny.batches(number=8, size=9)
RATE = 0.05


def seen(x):
    """A view: dimmer, mirrored, shifted."""
    return 0.8 * x[:, :, ::-1] + 0.1


def ours(key, x):
    return seen(x)


def compare(method, expected):
    logits, state = tiny.run(method, NETWORK, BATCHES)
    for found, one in zip(logits, expected, strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-8, atol=1e-8)
    return logits, state


def test_roid_weighs_keeps_pulls_back_and_corrects():
    expected, kept = zip(*reference.roid(NETWORK, BATCHES, reference.Adam(RATE), seen), strict=True)
    assert min(one.sum() for one in kept) < len(BATCHES[0]) and len({one.sum() for one in kept}) > 1
    logits, state = compare(Roid(Descent("adam", RATE), views=ours), expected)
    still = roid.corrected(jnp.asarray(reference.Pass(NETWORK, BATCHES[-1], keep=0.0).logits, jnp.float32))
    assert np.abs(logits[-1] - still).max() > 0.1
    assert np.abs(state["theta"]["second"]["scale"] - NETWORK[1]["second"]["scale"]).max() > 0.02


def test_roid_without_a_rate_stays_at_the_source():
    _, state = tiny.run(Roid(Descent("adam", 0.0), views=ours), NETWORK, BATCHES)
    for name, layer in NETWORK[1].items():
        np.testing.assert_allclose(state["theta"][name]["scale"], layer["scale"], rtol=1e-12)


def test_the_likelihood_ratio_of_the_sheets_logits_and_a_uniform_prior():
    z = jnp.array([[2.0, 1.0, 0.0]])
    assert abs(float(roid.likelihood_ratio(z)[0]) - 0.027189) < 1e-5
    three = jnp.array([[3.0, 1.0, 2.0], [1.0, 2.0, 3.0], [2.0, 3.0, 1.0]])
    np.testing.assert_allclose(roid.corrected(three), three / 3, rtol=1e-5)


def test_roid_of_a_single_image_is_finite():
    _, state = tiny.run(Roid(Descent("adam", RATE), views=ours), NETWORK, [BATCHES[1][:1]])
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state["theta"]))


def test_rotta_teaches_from_a_balanced_memory():
    arguments = (seen, 6, 5, 0.3, 0.4)
    expected, held = zip(*reference.rotta(NETWORK, BATCHES, reference.Adam(RATE), *arguments), strict=True)
    assert max(held) == 6 or len(set(held)) > 1
    logits, state = compare(Rotta(Descent("adam", RATE), 6, 5, 0.3, 0.4, views=ours), expected)
    plain = reference.Pass(NETWORK, BATCHES[-1]).logits
    assert np.abs(logits[-1] - plain).max() > 0.5
    memory = state["memory"]
    assert np.bincount(memory["label"][memory["held"]]).max() <= 2 and memory["held"].sum() == held[-1] <= 6


def test_rotta_whose_teacher_does_not_move_is_the_source():
    logits, _ = tiny.run(Rotta(Descent("adam", RATE), 6, 5, 0.0, 0.0, views=ours), NETWORK, BATCHES)
    for found, x in zip(logits, BATCHES, strict=True):
        np.testing.assert_allclose(found, reference.Pass(NETWORK, x).logits, rtol=1e-9, atol=1e-9)


def test_hue_is_turned_as_in_colorsys():
    x = np.random.default_rng(0).random((1, 3, 4, 3)).astype(np.float32)
    found = np.asarray(views._hue(jnp.asarray(x), jnp.float32(0.05)))
    for place in np.ndindex(3, 4):
        h, s, v = colorsys.rgb_to_hsv(*x[0][place])
        np.testing.assert_allclose(found[0][place], colorsys.hsv_to_rgb((h + 0.05) % 1, s, v), atol=1e-5)


def test_a_view_is_one_draw_for_the_whole_batch_and_stays_an_image():
    one = np.random.default_rng(1).random((1, 16, 16, 3)).astype(np.float32)
    augment = jax.jit(views.augment)
    found = np.asarray(augment(jax.random.key(3), jnp.asarray(np.repeat(one, 3, 0))))
    np.testing.assert_allclose(found[0], found[2], atol=1e-6)
    assert found.min() >= 0 and found.max() <= 1 and np.abs(found[0] - one[0]).mean() > 0.01
    other = np.asarray(augment(jax.random.key(4), jnp.asarray(np.repeat(one, 3, 0))))
    assert np.abs(found - other).mean() > 0.01


def test_what_rotta_sees_is_blurred_and_noisy():
    one = np.random.default_rng(2).random((1, 9, 8, 3))
    rows, columns = (np.convolve(np.eye(5)[2], np.exp(-0.5 * (np.arange(-2, 3) / s) ** 2), "same") for s in (0.4, 0.4))
    kernel = np.outer(rows / rows.sum(), columns / columns.sum())
    windows = np.lib.stride_tricks.sliding_window_view(one, (5, 5), (1, 2))
    found = views._blurred(jnp.asarray(one, jnp.float32), jnp.float32(0.4))
    np.testing.assert_allclose(found, np.einsum("nhwcab,ab->nhwc", windows, kernel), atol=1e-6)
    grey = np.asarray(jax.jit(views.degrade)(jax.random.key(0), jnp.full((3, 32, 32, 3), 0.4, jnp.float32)))
    assert grey.shape == (3, 32, 32, 3) and abs(grey.std() - 0.005) < 0.0002 and np.abs(grey[0] - grey[1]).max() > 0.005
