"""Streams as they are shown: pixels, resets, skipped batches, rests, and files that are kept."""

import jax
import numpy as np
import pytest

import data
from analysis import streams as analysis
from corruptions.scoring.conditions import Condition
from evaluation import bound
from evaluation.shown import Shown
from evaluation.streams import methods, orders, run, shown
from evaluation.streams.methods import Windowed
from evaluation.streams.tent import BatchStatistics, Descent, Start, Tent
from runtime import artifacts, meshes
from runtime.files import DamagedFileError
from tests import checks
from tests.evaluation.streams import reference, tiny
from tests.refusing import refuses

NETWORK = reference.drawn()
RATE = 0.3
TENT = Tent(Descent("sgd", RATE))


@pytest.fixture(scope="module")
def split():
    return data.load("shapes", train_limit=10, test_limit=30).test.to_device()


def test_pixels_are_those_that_eval_shows(split):
    """Whatever the order, the piece and the neighbours."""
    mesh = meshes.data_mesh(1)
    stream = orders.mixed(np.asarray(split.labels), ("noc/border", "imagenet_c/contrast"), severity=1, seed=2)
    found = np.concatenate([np.asarray(p) for p in shown.pieces(split, stream, 16, 7, mesh, {})])
    plain = Shown(split, mesh, 10, seed=7)
    for number, segment in enumerate(stream.segments):
        ((name, severity),) = segment.parts
        rows = stream.segment == number
        expected = np.asarray(plain.under(Condition(name, str(severity))).images())[stream.image[rows]]
        np.testing.assert_array_equal(found[rows], expected)


def shown_to(method, batches, plan, together=2):
    """Predictions of `method` on a stream of arrays, given in pieces of its own length."""
    graphdef, weights = tiny.split(NETWORK, np.float32)
    stream = np.concatenate(batches).astype(np.float32)

    def images(number):
        for start in range(0, len(stream), together * plan.batch):
            yield jax.numpy.asarray(stream[start : start + together * plan.batch])

    start = Start(4, (plan.batch, *stream.shape[1:]), dtype=stream.dtype)
    return run.predictions(graphdef, weights, method, images, plan, start)


def by_hand(batches, adapts=None, resets=None):
    """TENT by `reference`: classes, with the batches it adapts to and before which it starts anew."""
    found, theta = [], NETWORK[1]
    optimizer = reference.Sgd(RATE, False)
    for k, x in enumerate(batches):
        if resets is not None and resets[k]:
            theta, optimizer = NETWORK[1], reference.Sgd(RATE, False)
        one = reference.Pass(NETWORK, x, theta, keep=0.0)
        found.append(one.logits.argmax(-1))
        if adapts is None or adapts[k]:
            theta = optimizer(theta, one.back(reference.d_entropy(one.logits) / len(x)))
    return np.concatenate(found)


BATCHES = tiny.batches(number=7, size=8, seed=3)
NEVER = by_hand(BATCHES)


def test_a_scan_over_pieces_is_the_steps_one_by_one():
    plan = run.plan(56, np.zeros(1), 8)
    np.testing.assert_array_equal(shown_to(TENT, BATCHES, plan), NEVER)
    assert (by_hand(BATCHES, resets=[True] * 7) != NEVER).any() and len(set(NEVER)) > 1


def test_the_rest_of_a_stream_is_a_batch_of_its_own():
    short = [*BATCHES[:6], BATCHES[6][:3]]
    found = shown_to(TENT, short, run.plan(51, np.zeros(1), 8))
    np.testing.assert_array_equal(found, by_hand(short))


def shared():
    """Two cores share batches of 8, each takes a rest of 3 whole, and the numbers are those of one."""
    short = [*BATCHES[:6], BATCHES[6][:3]]
    found = shown_to(TENT, short, run.plan(51, np.array([0, 24]), 8, "shift"))
    np.testing.assert_array_equal(found, by_hand(short, resets=[k in (0, 3) for k in range(7)]))
    graphdef, weights = tiny.split(NETWORK, np.float32)
    start = Start(4, BATCHES[0].shape, dtype=np.float32)
    assert run.cost(graphdef, weights, TENT, BATCHES[0].astype(np.float32), start) > 0


def test_the_cores_of_a_cpu_share_a_batch():
    checks.check(__name__, "shared", devices=2)


@pytest.mark.parametrize(
    "reset, resets",
    [
        ("batch", [1, 1, 1, 1, 1, 1, 1]),
        ("3", [1, 0, 0, 1, 0, 0, 1]),
        ("shift", [1, 0, 0, 1, 0, 0, 0]),  # images 24 and 50 are the first of their conditions: 50 lies within a batch
        ("never", [0, 0, 0, 0, 0, 0, 0]),
    ],
)
def test_resets_restore_parameters_and_optimiser(reset, resets):
    plan = run.plan(56, np.array([0, 24, 54]), 8, reset)
    np.testing.assert_array_equal(plan.resets, np.array(resets, bool))
    np.testing.assert_array_equal(shown_to(TENT, BATCHES, plan), by_hand(BATCHES, resets=resets))


@pytest.mark.parametrize(
    "cost, eta, every",
    [(1.04, 1, 1), (1.06, 1, 2), (2.0, 1, 2), (2.1, 0.5, 2), (2.1, 0, 1), (9, 0.25, 3), (7.0, 1, 7)],
)
def test_a_stream_that_does_not_wait_is_adapted_to_now_and_then(cost, eta, every):
    assert run.skipping(cost, eta) == every
    plan = run.plan(56, np.zeros(1), 8, every=every)
    adapts = [k % every == 0 for k in range(7)]
    assert plan.adapts.tolist() == adapts
    if every > 1:
        expected = by_hand(BATCHES, adapts=adapts)
        np.testing.assert_array_equal(shown_to(TENT, BATCHES, plan), expected)


def test_a_window_answers_the_newest_image_and_adapts_once_to_every_window():
    images = np.concatenate(BATCHES)[:14]
    found = shown_to(Windowed(TENT, 4), list(images[:, None]), run.plan(14, np.zeros(1), 1), together=5)
    expected, theta, optimizer = [], NETWORK[1], reference.Sgd(RATE, False)
    for newest in range(14):
        window = images[np.maximum(0, newest - 3 + np.arange(4))]  # its first ones hold the first image several times
        one = reference.Pass(NETWORK, window, theta, keep=0.0)
        expected.append(one.logits[-1].argmax())
        if newest % 4 == 3:
            theta = optimizer(theta, one.back(reference.d_entropy(one.logits) / 4))
    np.testing.assert_array_equal(found, expected)
    assert len(set(expected)) > 1
    plain = shown_to(BatchStatistics(), [window], run.plan(4, np.zeros(1), 4), together=1)
    windowed = shown_to(Windowed(BatchStatistics(), 4), list(images[-4:, None]), run.plan(4, np.zeros(1), 1))
    assert windowed[-1] == plain[-1]


def test_a_finished_stream_is_not_shown_again_and_a_damaged_one_is_refused(tmp_path):
    path, made_from = tmp_path / "a" / "b.npz", {"model": "x", "batch": 8, "options": {"noc/hue": {"range": (1, 2.5)}}}
    answers = np.arange(5, dtype=np.int32)

    def kept(made_from, show):
        return bound.kept(path, made_from, lambda: {"predictions": show()}, run.REMEDY, {})["predictions"]

    np.testing.assert_array_equal(kept(made_from, lambda: answers), answers)
    np.testing.assert_array_equal(kept(made_from, lambda: pytest.fail("shown again")), answers)
    np.testing.assert_array_equal(kept(made_from | {"batch": 9}, lambda: answers + 1), answers + 1)
    assert artifacts.read(path).made_from["batch"] == 9
    path.write_bytes(path.read_bytes()[:-30])
    refuses(lambda: kept(made_from, lambda: answers), "show this stream again", kind=DamagedFileError)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda _: run.plan(10, np.zeros(1), 5, "often"), "expected the reset policy never, shift, batch or a number"),
        (lambda _: run.plan(10, np.zeros(1), 5, "0"), "found '0'"),
        (lambda _: run.plan(10, np.zeros(1), 0), "expected a batch and a period of at least 1, found 0"),
        (lambda _: methods.make("tent", 8, 32, 4, window=4), "expected batches of one image with a window, found 8"),
        (lambda _: run.skipping(2, 1.5), r"expected eta in \[0, 1\], found 1.5"),
        (lambda split: shown.check(orders.continual(np.zeros(40)), split), "of the 30 test images .* shows image 39"),
    ],
)
def test_bad_input_is_named(split, call, message):
    with pytest.raises(ValueError, match=message):
        call(split)


def test_numbers_of_a_stream():
    wrong = np.array([1, 0, 0, 1, 1, 1, 0, 0], bool)
    value, se = analysis.error(wrong, np.arange(8))
    assert value == 50 and se == pytest.approx(100 * np.std(wrong, ddof=1) / 8**0.5)
    np.testing.assert_allclose(analysis.by_segment(wrong, np.repeat([0, 2], 4), 3), [50, np.nan, 50])
    assert analysis.fewest_classes(np.array([1, 1, 2, 3, 4, 5, 5, 5, 5]), 3) == 1
    assert analysis.fewest_classes(np.array([1, 1, 2, 3, 4, 5]), 3) == 2
    times, values = analysis.over_time(wrong, points=2)
    assert times.tolist() == [2, 6] and values.tolist() == [50, 50]
    figure = analysis.picture({"source": wrong, "tent": ~wrong}, np.array([0, 4]), "t")
    assert len(figure.axes[0].lines) == 3


def test_errors_of_a_stream_are_over_images():
    """Images are shown three times; the error varies over test sets as the standard error says, and not as of 600 images."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(2000):
        hard = rng.uniform(0.1, 0.7, 200)  # images differ in how often they are answered wrongly
        order = rng.permutation(np.tile(np.arange(200), 3))
        found.append(analysis.error(rng.random(600) < hard[order], order))
    errors, ses = np.transpose(found)
    assert ses.mean() == pytest.approx(errors.std(), rel=0.04)
    assert ses.mean() > 1.05 * 100 * (0.4 * 0.6 / 600) ** 0.5
    same = np.repeat(rng.random(50) < 0.5, 4)  # an image is answered alike each time: 50 answers, not 200
    assert analysis.error(same, np.repeat(np.arange(50), 4))[1] == pytest.approx(100 * same.std() / 49**0.5)


if __name__ == "__main__":
    checks.run_named({"shared": shared})
