"""Every update against NumPy with gradients by hand, in float64, at rates that move the logits; and in the scan."""

import colorsys
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import models
from evaluation.streams import lame, methods, networks, roid, run, tent, views
from evaluation.streams.eata import Eata, Eta, Sar
from evaluation.streams.roid import Roid
from evaluation.streams.rotta import Rotta
from evaluation.streams.tent import Descent, Tent
from tests.evaluation.streams import reference, tiny
from tests.evaluation.streams.reference import Adam, Sgd
from tests.refusing import refuses

# Networks and the batches that they are shown: one of middling answers, one sure of some samples, one between them.
PLAIN = reference.drawn(), tiny.batches()
SURE = reference.drawn(head=9.0), tiny.batches(number=8)
CLEAR = reference.drawn(head=4.0), tiny.batches(number=8, size=9)
CLEAN = np.stack(tiny.batches(number=3, seed=9))


def passes(network, batches, **how):
    """The reference's logits of every batch, normalised in one way, by default with the stored statistics."""
    return [reference.Pass(network, x, **how).logits for x in batches]


@pytest.mark.parametrize(
    "method, expected, moved",
    [
        (tent.Method(), passes(*PLAIN), 0.05),
        (tent.BatchStatistics(), passes(*PLAIN, keep=0.0), 0),
        (tent.MixedStatistics(0.0), passes(*PLAIN), 0),
        *((tent.MixedStatistics(alpha), passes(*PLAIN, keep=1 - alpha, unbiased=True), 0) for alpha in (0.1, 0.7, 1.0)),
        (Tent(Descent("adam", 0.0)), passes(*PLAIN, keep=0.0), 0),
    ],
    ids=["source", "bn1", "bn_alpha 0", "bn_alpha 0.1", "bn_alpha 0.7", "bn_alpha 1", "tent without a rate"],
)
def test_methods_that_stay_normalise_as_they_say(method, expected, moved):
    tiny.compare(method, *PLAIN, expected, moved=moved)


def test_bn_ema_moves_the_stored_statistics_then_predicts():
    _, state = tiny.compare(tent.MovingStatistics(), *PLAIN, reference.bn_ema(*PLAIN), moved=0.05)
    assert np.abs(state["moments"]["first"]["mean"] - PLAIN[0][2]["first"]["mean"]).max() > 0.05


@pytest.mark.parametrize("kind, theirs", [("adam", Adam(0.1)), ("nesterov", Sgd(0.1, True)), ("sgd", Sgd(0.1, False))])
def test_tent_steps_on_the_mean_entropy_after_it_predicts(kind, theirs):
    tiny.compare(Tent(Descent(kind, 0.1)), *PLAIN, reference.tent(*PLAIN, theirs), moved=0.05)


def test_entropy_and_its_gradient():
    """H = -sum p ln p and dH/dz_i = -p_i (ln p_i + H) of p = softmax(z), computed by hand for z = (2, 1, 0). Equal
    logits have the largest entropy, so a gradient of 0.
    """
    with jax.enable_x64(True):
        z = jnp.array([2.0, 1.0, 0.0])
        value, slope = jax.value_and_grad(tent.entropy)(z)
        assert abs(float(value) - 0.832396) < 1e-6
        np.testing.assert_allclose(slope, [-0.282587, 0.140770, 0.141817], atol=1e-6)
        value, slope = jax.value_and_grad(tent.entropy)(jnp.full(5, 3.0))
        assert abs(float(value) - np.log(5)) < 1e-12
        np.testing.assert_allclose(slope, 0, atol=1e-12)


@pytest.mark.parametrize("name", ["bn1", "bn_alpha", "bn_ema"])
def test_a_network_without_batch_norm_is_refused_where_it_is_needed(name):
    graphdef, weights = network("small_vit")
    with pytest.raises(ValueError, match=f"expected a network with BatchNorm for {name}, found none; tent"):
        methods.make(name, 8, 32, 3).check(graphdef, weights)
    methods.make("tent", 8, 32, 3).check(graphdef, weights)
    theta = networks.theta_of(graphdef, weights)
    assert len(theta) == 9 and "blocks/3/norm2" in theta


def test_published_settings_follow_the_size_and_an_unknown_method_is_named():
    refuses(lambda: methods.make("tnet", 200, 32, 10), "method among source", "did you mean 'tent'")
    theta = {"a": {"scale": jnp.ones(1), "bias": jnp.zeros(1)}}
    gradient = jax.tree.map(jnp.ones_like, theta)
    for side, batch, first in ((32, 200, 0.001), (224, 64, 0.00025 * 1.9), (224, 1, 0.00025 * 2 / 64 * 1.9)):
        optimizer = methods.make("tent", batch, side, 10).optimizer
        moved, _ = optimizer.step(theta, gradient, optimizer.init(theta))
        np.testing.assert_allclose(moved["a"]["bias"], -first, rtol=1e-5)


@pytest.mark.parametrize(
    "name, batch, transformer, first",
    [
        ("sar", 64, False, 0.00025), ("sar", 64, True, 0.001), ("sar", 1, False, 0.001 / 64), ("sar", 1, True, 0.002 / 64),
        ("tent", 64, True, 0.00025 * 1.9), ("tent", 1, True, 0.001 / 64 * 1.9),
    ],
)  # fmt: skip
def test_published_rates_of_imagenet_c_are_larger_for_vision_transformers(name, batch, transformer, first):
    """Of SAR's and ROID's authors; the Nesterov momentum of .9 makes 1.9 of a first step."""
    theta = {"a": {"scale": jnp.ones(1), "bias": jnp.zeros(1)}}
    optimizer = methods.make(name, batch, 224, 1000, transformer=transformer).optimizer
    moved, _ = optimizer.step(theta, jax.tree.map(jnp.ones_like, theta), optimizer.init(theta))
    np.testing.assert_allclose(moved["a"]["bias"], -first, rtol=1e-5)


@pytest.mark.parametrize(
    "name, left_out",
    [
        ("small_vit", set()),
        ("wrn_16_4", set()),
        ("vgg11_bn", set()),
        (
            "resnet18",
            {f"stages/3/{b}/{layer}" for b in (0, 1) for layer in ("norm1", "norm2")} | {"stages/3/0/shortcut/norm"},
        ),
        ("deit_tiny", {f"blocks/{b}/norm{k}" for b in (9, 10, 11) for k in (1, 2)} | {"norm"}),
    ],
)
def test_sar_leaves_the_last_blocks_of_resnets_and_vision_transformers_as_they_are(name, left_out):
    """Its code leaves them out by name, `layer4` of a ResNet and blocks 9 to 11 of a vision transformer, and no others."""
    model = nnx.eval_shape(lambda: models.build(name, 10))
    theta = {path: None for path, _ in networks.norms(model)}
    assert theta.keys() - networks.without_last(theta).keys() == left_out


ADAM = Descent("adam", 0.03)


def test_eta_learns_from_reliable_and_new_samples():
    expected, chosen = zip(*reference.eta(*SURE, Adam(0.03), 0.4, 0.8), strict=True)
    shares = [np.mean(one) for one in chosen]
    assert 0 < min(s for s in shares if s) < 1 and len(set(shares)) > 2  # both rules choose
    tiny.compare(Eta(ADAM, 0.4, 0.8), *SURE, expected, moved=0.1)


def test_eta_does_nothing_where_nothing_is_chosen():
    tiny.compare(Eta(ADAM, 1e-9, 0.8), *SURE, passes(*SURE, keep=0.0))


def test_eta_that_chooses_all_weighs_them():
    expected, chosen = zip(*reference.eta(*SURE, Sgd(0.03, True), 1.01, 2.0), strict=True)
    assert all(one.all() for one in chosen)
    logits, _ = tiny.compare(Eta(Descent("nesterov", 0.03), 1.01, 2.0), *SURE, expected)
    plain, _ = tiny.run(Tent(Descent("nesterov", 0.03)), *SURE)
    assert np.abs(logits[-1] - plain[-1]).max() > 0.1


def test_eata_keeps_what_matters_for_clean_images():
    fisher = reference.fisher(SURE[0], CLEAN)
    expected = [one for one, _ in reference.eta(*SURE, Adam(0.03), 0.4, 0.8, fisher, 300.0)]
    logits, state = tiny.compare(Eata(ADAM, 0.4, 0.8, 300.0), *SURE, expected, CLEAN)
    np.testing.assert_allclose(state["fisher"]["second"]["scale"], fisher["second"]["scale"], rtol=1e-9)
    free, _ = tiny.run(Eta(ADAM, 0.4, 0.8), *SURE)
    assert np.abs(free[-1] - logits[-1]).max() > 0.05
    same, _ = tiny.run(Eata(ADAM, 0.4, 0.8, 0.0), *SURE, source=CLEAN)
    np.testing.assert_allclose(same[-1], free[-1], rtol=1e-10)
    refuses(lambda: tiny.run(Eata(ADAM), *SURE), "none")


@pytest.mark.parametrize("margin, rho, least", [(0.6, 0.5, 0.0), (0.4, 0.3, 0.3)])
def test_sar_steps_at_the_sharpest_point_and_starts_anew(margin, rho, least):
    expected, resets = zip(*reference.sar(*SURE, 0.03, margin, rho, least), strict=True)
    assert any(resets) == (least > 0) and not all(resets)
    method = Sar(Descent("sgd", 0.03), margin, rho, least)
    _, state = tiny.compare(method, *SURE, expected, moved=0 if least else 0.05)
    assert least or np.isfinite(state["level"])


def test_sar_of_radius_0_that_takes_all_is_tent():
    flat, _ = tiny.run(Sar(Descent("sgd", 0.03), 50.0, 0.0, 0.0), *SURE)
    plain, _ = tiny.run(Tent(Descent("sgd", 0.03)), *SURE)
    np.testing.assert_allclose(flat[-1], plain[-1], rtol=1e-9)


def test_sar_moves_nothing_without_a_reliable_sample():
    _, state = tiny.run(Sar(Descent("sgd", 0.03), 1e-9), *SURE)
    for name, layer in SURE[0][1].items():
        np.testing.assert_array_equal(state["theta"][name]["scale"], layer["scale"])
    assert np.isnan(state["level"])


def test_lame_smooths_over_neighbours():
    given = tiny.batches(number=3, size=12)
    logits, _ = tiny.run(lame.Lame(), SURE[0], given)
    for found, expected, x in zip(logits, reference.lame(SURE[0], given), given, strict=True):
        np.testing.assert_allclose(np.exp(found), expected, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(np.exp(found).sum(1), 1, rtol=1e-12)
        assert np.abs(np.exp(found) - reference.softmax(reference.Pass(SURE[0], x).logits)).max() > 0.1


def test_lame_without_affinity_keeps_the_answers_and_equal_features_have_affinity_1():
    z = jnp.asarray(np.random.default_rng(0).normal(size=(6, 3)), jnp.float32)
    np.testing.assert_allclose(lame.smoothed(z, jnp.zeros((6, 6)), 100), jax.nn.log_softmax(z), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(lame.affinity(jnp.ones((6, 3)), 5), np.ones((6, 6)))
    w = lame.affinity(z, 5)
    np.testing.assert_allclose(w, w.T, rtol=1e-6)
    np.testing.assert_array_equal(np.diag(w), 1)


def seen(x):
    """A view: dimmer, mirrored, shifted."""
    return 0.8 * x[:, :, ::-1] + 0.1


def ours(key, x):
    return seen(x)


def test_roid_weighs_keeps_pulls_back_and_corrects():
    expected, kept = zip(*reference.roid(*CLEAR, Adam(0.05), seen), strict=True)
    assert min(one.sum() for one in kept) < 9 and len({one.sum() for one in kept}) > 1
    logits, state = tiny.compare(Roid(Descent("adam", 0.05), views=ours), *CLEAR, expected)
    still = roid.corrected(jnp.asarray(reference.Pass(CLEAR[0], CLEAR[1][-1], keep=0.0).logits, jnp.float32))
    assert np.abs(logits[-1] - still).max() > 0.1
    assert np.abs(state["theta"]["second"]["scale"] - CLEAR[0][1]["second"]["scale"]).max() > 0.02


def test_roid_without_a_rate_stays_at_the_source_and_is_finite_for_a_single_image():
    _, state = tiny.run(Roid(Descent("adam", 0.0), views=ours), *CLEAR)
    for name, layer in CLEAR[0][1].items():
        np.testing.assert_allclose(state["theta"][name]["scale"], layer["scale"], rtol=1e-12)
    _, state = tiny.run(Roid(Descent("adam", 0.05), views=ours), CLEAR[0], [CLEAR[1][1][:1]])
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state["theta"]))


def test_the_likelihood_ratio_by_hand_and_a_uniform_prior():
    """SLR = -sum q ln(q / (1 - q) + 1e-5) of q = softmax(z), computed by hand for z = (2, 1, 0). Where the mean answer
    is uniform, the prior scales all logits alike, three of three classes by 1/3.
    """
    z = jnp.array([[2.0, 1.0, 0.0]])
    assert abs(float(roid.likelihood_ratio(z)[0]) - 0.027189) < 1e-5
    three = jnp.array([[3.0, 1.0, 2.0], [1.0, 2.0, 3.0], [2.0, 3.0, 1.0]])
    np.testing.assert_allclose(roid.corrected(three), three / 3, rtol=1e-5)


def test_rotta_teaches_from_a_balanced_memory():
    expected, held = zip(*reference.rotta(*CLEAR, Adam(0.05), seen, 6, 5, 0.3, 0.4), strict=True)
    assert max(held) == 6 or len(set(held)) > 1
    logits, state = tiny.compare(Rotta(Descent("adam", 0.05), 6, 5, 0.3, 0.4, views=ours), *CLEAR, expected)
    assert np.abs(logits[-1] - reference.Pass(CLEAR[0], CLEAR[1][-1]).logits).max() > 0.5
    memory = state["memory"]
    assert np.bincount(memory["label"][memory["held"]]).max() <= 2 and memory["held"].sum() == held[-1] <= 6


def test_rotta_whose_teacher_does_not_move_is_the_source():
    tiny.compare(Rotta(Descent("adam", 0.05), 6, 5, 0.0, 0.0, views=ours), *CLEAR, passes(*CLEAR))


def test_hue_is_turned_as_in_colorsys():
    x = np.random.default_rng(0).random((1, 3, 4, 3)).astype(np.float32)
    found = np.asarray(views._hue(jnp.asarray(x), jnp.float32(0.05)))
    for place in np.ndindex(3, 4):
        h, s, v = colorsys.rgb_to_hsv(*x[0][place])
        np.testing.assert_allclose(found[0][place], colorsys.hsv_to_rgb((h + 0.05) % 1, s, v), atol=1e-5)


def test_a_view_is_one_draw_for_the_whole_batch_and_stays_an_image():
    one = np.random.default_rng(1).random((1, 16, 16, 3)).astype(np.float32)
    three, augment = jnp.asarray(np.repeat(one, 3, 0)), jax.jit(views.augment)
    found, other = (np.asarray(augment(jax.random.key(seed), three)) for seed in (3, 4))
    np.testing.assert_allclose(found[0], found[2], atol=1e-6)
    assert found.min() >= 0 and found.max() <= 1 and np.abs(found[0] - one[0]).mean() > 0.01
    assert np.abs(found - other).mean() > 0.01


def test_what_rotta_sees_is_blurred_and_noisy():
    one = np.random.default_rng(2).random((1, 9, 8, 3))
    line = np.exp(-0.5 * (np.arange(-2, 3) / 0.4) ** 2)
    kernel = np.outer(line, line) / line.sum() ** 2
    windows = np.lib.stride_tricks.sliding_window_view(one, (5, 5), (1, 2))
    found = views._blurred(jnp.asarray(one, jnp.float32), jnp.float32(0.4))
    np.testing.assert_allclose(found, np.einsum("nhwcab,ab->nhwc", windows, kernel), atol=1e-6)
    grey = np.asarray(jax.jit(views.degrade)(jax.random.key(0), jnp.full((3, 32, 32, 3), 0.4, jnp.float32)))
    assert grey.shape == (3, 32, 32, 3) and abs(grey.std() - 0.005) < 0.0002 and np.abs(grey[0] - grey[1]).max() > 0.005


# Every method with its published settings in the scan over a stream: state and types go round, on uint8 images.
SHAPE = (2, 4, 16, 16, 3)  # two batches of four images
WITHOUT_BATCH_NORM = ("source", "tent", "lame", "eta", "eata", "sar", "rotta", "roid")
CASES = [("small_resnet", name) for name in methods.names()] + [("small_vit", name) for name in WITHOUT_BATCH_NORM]
QUICK = (*[("small_resnet", name) for name in ("eata", "rotta", "roid")], ("small_vit", "sar"))  # every kind of state


@functools.cache
def network(name):
    options = {"image_size": 16} if "vit" in name else {}
    graphdef, params, statistics = nnx.split(models.build(name, 5, **options), nnx.Param, ...)
    return graphdef, networks.Weights(params, statistics)


def scan(name, method, images, weights):
    graphdef, _ = network(name)
    source = images if method.needs_source else None
    first = method.init(graphdef, weights, tent.Start(5, SHAPE[1:], source))
    flags = jnp.array([2, 1]), jnp.array([True, False])
    return run._scan(graphdef, method, False, weights, first, first, images, *flags, jax.random.key(0), np.int32(0))


@pytest.mark.parametrize("net, name", QUICK)
def test_the_state_goes_round(net, name):
    images = jax.ShapeDtypeStruct(SHAPE, np.uint8)
    method = methods.make(name, 4, 16, 5)
    state, answers, finite = jax.eval_shape(functools.partial(scan, net, method), images, network(net)[1])
    assert "theta" in state
    assert answers.shape == SHAPE[:2] and answers.dtype == np.int32 and finite.shape == (2,)


@pytest.mark.slow
@pytest.mark.parametrize("net, name", CASES)
def test_answers_are_finite_and_the_state_moves(net, name):
    images = jnp.asarray(np.random.default_rng(0).integers(0, 256, SHAPE), jnp.uint8)
    method = methods.make(name, 4, 16, 5)
    state, answers, finite = scan(net, method, images, network(net)[1])
    assert finite.all() and answers.min() >= 0 and answers.max() < 5
    assert ("theta" in state) == (name not in ("source", "bn1", "bn_alpha", "bn_ema", "lame"))
    if part := {"tent": "theta", "roid": "theta", "bn_ema": "moments"}.get(name):
        first = method.init(network(net)[0], network(net)[1], tent.Start(5, SHAPE[1:], None))
        moved = jax.tree.map(lambda a, b: float(jnp.abs(a - b).max()), state[part], first[part])
        assert max(jax.tree.leaves(moved)) > 0
