"""tools.adapt, eval.py on what it writes, and eval.py's own adaptation to test images."""

import json
import sys

import jax
import numpy as np
import pytest
from flax import nnx

import eval as evaluate
from analysis import frames
from evaluation import adaptation, trained_models
from evaluation.shown import Shown
from runtime import meshes, workdirs
from tests import processes
from tests.refusing import refuses
from tests.training import tiny
from tools import adapt
from training import memory


def settings(**changed):
    config = tiny.config()
    config.adapt.update({"images": 120, "batch_size": 40, "scheme": ""} | changed)
    config.eval.corruptions = ("imagenet_c/contrast",)
    config.eval.severity = "5"
    return config


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return tiny.untrained_workdir(tmp_path_factory.mktemp("adapt") / "source", tiny.config(flip=False))


@pytest.fixture(scope="module")
def adapted(source, tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapt") / "adapted"
    return folder, adapt.run(settings(images=160), source, folder)


def only(folder):
    ((key, found),) = trained_models.list_models(folder).items()
    return key, trained_models.read_model(found, 10, 32, meshes.data_mesh(1))


def test_statistics_are_those_of_all_training_images(source, adapted, dataset):
    """Without scheme, mirror and crop the images are those of the dataset, in another order and other batches."""
    (name, _), (graphdef, state) = only(source)
    expected, _ = adaptation.adapt(graphdef, state, [dataset.train.images])
    (new_name, _), (_, found) = only(adapted[0])
    assert name == "standard" and new_name == "standard+bn=standard"
    for one, other in zip(jax.tree.leaves(found.params), jax.tree.leaves(state.params), strict=True):
        np.testing.assert_array_equal(one, other)
    leaves = (jax.tree.leaves(s.statistics) for s in (found, expected, adapted[1], state))
    for one, other, returned, before in zip(*leaves, strict=True):
        np.testing.assert_array_equal(one, returned)
        np.testing.assert_allclose(one, other, atol=0.1 * np.abs(np.asarray(other) - before).max() + 1e-6)
    record = json.loads((adapted[0] / "final.json").read_text())
    assert record["adapted_to"] == 160 and (adapted[0] / "provenance.json").exists()


def test_the_adapted_model_is_evaluated_under_its_name(source, adapted):
    counts = evaluate.run(settings(), adapted[0])
    assert {key[0] for key, _ in counts} == {"standard+bn=standard"}
    refuses(lambda: adapt.run(settings(), adapted[0], adapted[0].with_name("again")), "adapted before")
    refuses(
        lambda: adapt.run(settings(images=160, scheme="augmix"), source, adapted[0]),
        "stored '', asked 'augmix'",
        kind=workdirs.WorkdirError,
    )


def test_adaptation_to_test_images_is_marked(source, adapted, dataset):
    """The statistics are those of the corrupted test images: answers are those of a model adapted by hand."""
    counts = evaluate.run(settings(), source)
    config = settings()
    config.eval.adapt = "test"
    both = evaluate.run(config, source)
    assert {key[0] for key, _ in counts} == {"standard"}
    assert {key[0] for key, _ in both} == {"standard", "standard+bn=test"}
    assert [row for row in both if row[0][0] == "standard"] == counts
    after = [c.correct for key, c in both if (key[0], c.corruption) == ("standard+bn=test", frames.CLEAN)]
    _, (graphdef, state) = only(source)
    own, _ = adaptation.adapt(graphdef, state, [dataset.test.images])
    logits, _ = nnx.merge(graphdef, own.params, own.statistics)(dataset.test.images, train=False)
    assert after == [int((np.asarray(logits).argmax(-1) == dataset.test.labels).sum())]
    config.eval.pseudo_count = 16.0
    assert "standard+bn=test:16" in {key[0] for key, _ in evaluate.run(config, source)}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"images": 200}, "config.adapt.images up to 160"),
        ({"images": 500, "batch_size": 500}, "config.adapt.images up to 160"),
        ({"scheme": "augmx"}, "an augmentation scheme .*, found 'augmx'"),
        ({"pseudo_count": -1.0}, "at least 0, found -1"),
    ],
)
def test_what_is_wrong_is_refused(source, tmp_path, changed, message):
    with pytest.raises(ValueError, match=message):
        adapt.run(settings(**changed), source, tmp_path / "new")


@pytest.mark.slow
def test_the_command(source, tmp_path):
    flags = ["--config.adapt.images=80", "--config.adapt.batch_size=40", f"--workdir={tmp_path / 'new'}"]
    done = processes.run([sys.executable, "-m", "tools.adapt", *flags])
    assert done.returncode != 0 and "expected --source" in done.stderr + done.stdout
    done = processes.run([sys.executable, "-m", "tools.adapt", f"--source={source}", *flags])
    assert done.returncode == 0, done.stderr
    assert only(tmp_path / "new")[0] == ("standard+bn=augmix", 0)


def test_adaptation_does_not_depend_on_how_images_are_evaluated(source, dataset, monkeypatch):
    """Batches of the adaptation are the same from streamed pieces, cut for another batch size of evaluation."""
    monkeypatch.setattr(adaptation, "_TEST_BATCH", 20)
    monkeypatch.setattr(memory, "_PIECE_BYTES", 1)
    _, model = only(source)
    test = dataset.test
    mesh = meshes.data_mesh(1)
    ends = []
    for split, batch_size in ((test.to_device(), 70), (test, 32)):
        shown = Shown(split, mesh, batch_size)
        ends.append(jax.tree.leaves(adaptation.adapt_to_test(0.0, model, shown)[1].statistics))
    for one, other in zip(*ends, strict=True):
        np.testing.assert_array_equal(one, other)
