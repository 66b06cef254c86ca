"""Evaluation: the same images for every model, no image lost, finished work kept; enhanced images; exits of a network."""

import dataclasses
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import corruptions
import data
import models
from analysis.answers import PLAIN
from analysis.answers import read as read_answers
from analysis.errors import joint
from corruptions import enhance as enhancements
from corruptions.scoring.conditions import Condition, list_conditions
from data.corrupted import open_corrupted
from evaluation import commands, correctness
from evaluation.evaluate import evaluate_models, warn_of_tables
from evaluation.results import count_answers
from evaluation.shown import Shown, ShownStored
from runtime import meshes
from runtime.log import log
from runtime.settings import WorkdirError
from tests.analysis.made_up import cell_of
from tests.evaluation import known
from tests.refusing import refuses
from tests.training import tiny


@pytest.fixture(scope="module")
def test_split(dataset):
    return dataset.test.to_device()


@pytest.fixture(scope="module")
def shown(mesh, test_split):
    """The test images, in batches that the last one does not fill."""
    return Shown(test_split, mesh, batch_size=32)


@pytest.fixture(scope="module")
def model():
    return known.split(models.build("small_resnet", 10))


@pytest.mark.parametrize(
    "name, severity, values",
    [
        ("noc/border", "random", [None]),
        ("noc/border", "0,1", [0.0, 1.0]),
        ("imagenet_c/fog", "levels", [1, 2, 3, 4, 5]),
        ("imagenet_c/fog", "1,3", [1, 3]),
    ],
)
def test_conditions_begin_with_clean_images_and_have_the_severities_asked_for(name, severity, values):
    clean, *others = list_conditions([name], severity)
    assert clean == Condition("clean", "0")
    assert [(c.corruption, c.value, c.levels) for c in others] == [(name, value, None) for value in values]


def test_benchmarks_bring_their_corruptions_and_their_own_levels():
    names = {c.corruption for c in list_conditions(["imagenet_noc", "noc/hue"], "random")}
    assert names == {"clean", *corruptions.names("imagenet_noc")}
    found = list_conditions(["cifar10_c_bar", "imagenet_c_bar", "cbar/lines"], "levels")
    assert len(set(found)) == len(found)  # corruptions of two benchmarks are evaluated once
    for name, levels in (
        ("circular_motion_blur", [1, 2, 3, 4, 5]),
        ("plasma_noise", [3, 6, 8, 9, 10]),
        ("brownish_noise", [1, 2, 3, 4, 5, 7, 9, 10]),  # 1, 4, 7, 9, 10 and 1 to 5
        ("lines", list(range(1, 11))),
    ):
        assert sorted(c.value for c in found if c.corruption == f"cbar/{name}") == levels
    assert len(list_conditions(["cbar_candidates"], "levels")) == 1 + 30 * 10
    assert len(list_conditions(["cifar10_c_bar"], "levels")) == 1 + 10 * 5


def test_random_severities_are_those_of_the_benchmark(shown, test_split):
    found = {c.corruption: c for c in list_conditions(["cifar10_c_bar"], "random")}
    noise = found["cbar/brownish_noise"]
    assert noise == Condition("cbar/brownish_noise", "random", (1, 4, 7, 9, 10)) and noise.label == "random"
    assert noise.stem == "cbar.brownish_noise-random-1-4-7-9-10"
    (everything,) = list_conditions(["cbar/brownish_noise"], "random")[1:]
    assert everything.stem == "cbar.brownish_noise-random" and everything.levels is None
    key = jax.random.fold_in(jax.random.key(0), zlib.crc32(b"cbar/brownish_noise"))
    at = [
        corruptions.corrupt(key, test_split.images, "cbar/brownish_noise", k, index=test_split.index)
        for k in range(1, 11)
    ]

    def met(images):  # of the ten severities, those of which some image is
        images = np.asarray(images)
        return {k for k, same in enumerate(at, 1) if (np.asarray(same) == images).all((1, 2, 3)).any()}

    assert met(shown.under(noise).images()) == {1, 4, 7, 9, 10}
    assert met(shown.under(everything).images()) == set(range(1, 11))
    calibrated = dataclasses.replace(shown, options={"cbar/brownish_noise": {"range": (2, 2)}})
    assert met(calibrated.under(noise).images()) == {2}


def test_a_list_of_test_images_is_evaluated_alone(dataset, tmp_path):
    """In a separate workdir, whose tables are not compared with the tables of all images."""
    config = tiny.config()
    config.eval.corruptions = ("noc/border",)
    whole, some = (tiny.untrained_workdir(tmp_path / name, config) for name in ("whole", "some"))
    first = zip(dataset.test.index[:6], dataset.test.labels[:6])
    lines = [f"{place} {dataset.class_names[label]}\n" for place, label in first]
    (tmp_path / "list").write_text("".join(lines))
    everything = {c.corruption: c for _, c in commands.run(config, whole)}
    bits = read_answers(whole).correct(("standard", 0, "noc/border", "random"))
    config.eval.images = str(tmp_path / "list")
    counts = {c.corruption: c for _, c in commands.run(config, some)}
    assert {c.total for c in counts.values()} == {6} and everything["clean"].total == 70
    assert counts["noc/border"].correct == np.sum(bits[:6])
    found = [read_answers(folder).conditions["dataset"] for folder in (whole, some)]
    assert found[0] == "shapes" and found[1].startswith("shapes, 6 images of list ")
    for mismatch in ("refuse", "label"):  # other conditions may be marked, other images never stand in one table
        with pytest.raises(ValueError, match="6 images of list"):
            joint.joint([joint.read(folder, folder.name) for folder in (whole, some)], mismatch=mismatch)
    config.eval.images = ""
    refuses(lambda: commands.run(config, some), "2 of 2 conditions", kind=WorkdirError)


def test_levels_made_for_another_image_size_are_warned_of(caplog, monkeypatch):
    monkeypatch.setattr(log, "propagate", True)
    warn_of_tables(["cifar10_c_bar", "cbar_candidates", "standard"], (32, 32, 3))
    assert not caplog.records
    warn_of_tables(["cifar10_c_bar", "imagenet_c_bar"], (224, 200, 3))
    (record,) = caplog.records
    assert "cifar10_c_bar was selected from the ranges 'cifar'; images of 224x200" in record.getMessage()


@pytest.mark.parametrize(
    "names, severities, message",
    [
        (["imagenet_c/fog"], "all", "found 'all'"),
        (["imagenet_c/fog"], "6", "1..5"),
        (["imagenet_c/fog"], "1.5", "whole severity"),
        (["cifar10_c_bar", "imagenet_c_bar"], "random", "one selection of the random severities of cbar/"),
    ],
)
def test_bad_severities_are_named(names, severities, message):
    with pytest.raises(ValueError, match=message):
        list_conditions(names, severities)


def test_no_image_is_lost_whatever_the_batch_size(mesh, model, test_split):
    labels = jnp.asarray(test_split.labels)
    answers = [correctness.of_model(model, test_split.images, labels, size, mesh) for size in (70, 32, 7, 100, 2**20)]
    assert all(found.shape == (70,) for found in answers)
    for found in answers[1:]:
        np.testing.assert_array_equal(found, answers[0])
    assert 0 < answers[0].sum() < 70


def test_the_corrupted_test_set_depends_on_seed_and_condition_alone(shown, test_split):
    border = shown.under(Condition("noc/border", "random"))
    once = border.images()
    np.testing.assert_array_equal(once, border.images())
    assert (np.asarray(once) != np.asarray(dataclasses.replace(border, seed=1).images())).any()
    part = data.Split(test_split.images[40:], test_split.labels[40:], test_split.index[40:])
    np.testing.assert_array_equal(border.showing(part).images(), once[40:])
    key = jax.random.fold_in(jax.random.key(0), zlib.crc32(b"noc/hue"))
    direct = corruptions.corrupt(key, test_split.images, "noc/hue", 0.5, index=jnp.asarray(test_split.index))
    np.testing.assert_array_equal(shown.under(Condition("noc/hue", "0.5")).images(), direct)


def test_answers_are_kept_and_only_missing_ones_are_computed(model, shown, tmp_path, monkeypatch):
    conditions = list_conditions(["noc/border"], "random")
    first = evaluate_models({("standard", 0): model}, shown, conditions, tmp_path)
    calls = []
    original = correctness.network_logits
    monkeypatch.setattr(correctness, "network_logits", lambda *a: calls.append(1) or original(*a))
    models = {("standard", 0): model, ("noc/border", 0): model}
    second = evaluate_models(models, shown, conditions, tmp_path)
    assert len(calls) == 2  # the new model, clean and corrupted
    for condition in conditions:
        np.testing.assert_array_equal(first[condition]["standard", 0], second[condition]["standard", 0])
        np.testing.assert_array_equal(second[condition]["standard", 0], second[condition]["noc/border", 0])
    rows = count_answers(second)
    assert rows[0] == (("standard", 0), ("clean", 0, int(first[conditions[0]]["standard", 0].sum()), 70))
    assert cell_of(rows[-1]) == ("noc/border", 0, "noc/border", "random")


def test_a_released_c_bar_folder_is_evaluated_under_our_names(mesh, model, test_split, tmp_path):
    source, workdir = tmp_path / "CIFAR-10-C-bar", tmp_path / "work"
    source.mkdir(), workdir.mkdir()
    clean, labels = np.asarray(test_split.images), np.asarray(test_split.labels)
    np.save(source / "transverse_chromatic_abberation.npy", np.concatenate([clean // k for k in range(1, 6)]))
    np.save(source / "labels.npy", np.tile(labels, 5))
    stored = ShownStored(open_corrupted(source), mesh, batch_size=32)
    found = evaluate_models({("standard", 0): model}, stored, stored.conditions, workdir)
    assert list(found) == [Condition("cbar/transverse_chromatic_aberration", str(k)) for k in range(1, 6)]
    for k, answers in enumerate(found.values(), 1):
        images = jnp.asarray(clean // k)
        expected = correctness.of_model(model, images, jnp.asarray(labels), 70, mesh)
        np.testing.assert_array_equal(answers["standard", 0], expected)
    np.save(source / "transverse_chromatic_abberation.npy", np.concatenate([clean // k for k in range(2, 7)]))
    refuses(
        lambda: evaluate_models(
            {}, ShownStored(open_corrupted(source), mesh, batch_size=32), stored.conditions, workdir
        ),
        "under 5 of 5",
        "-1.npz: source.content: stored",
        kind=WorkdirError,
    )


def test_an_enhanced_evaluation_is_one_of_a_model_with_a_name_of_its_own(tmp_path):
    def settings(**changed):
        config = tiny.config()
        config.eval.update({"corruptions": ()} | changed)
        return config

    folder = tiny.untrained_workdir(tmp_path / "work", settings())
    plain = commands.run(settings(), folder)
    both = commands.run(settings(enhance="clahe"), folder)
    assert {key[0] for key, _ in both} == {"standard", "standard+enhance=clahe"}
    assert [row for row in both if row[0][0] == "standard"] == plain
    of_clean = read_answers(folder).confidence("clean", 0)
    losses = [of_clean[name, 0, PLAIN].loss for name in ("standard", "standard+enhance=clahe")]
    assert np.mean(np.abs(losses[0] - losses[1]) > 1e-3) > 0.9  # the network saw other images
    assert commands.run(settings(enhance="clahe"), folder) == both  # read back
    assert commands.run(settings(), folder) == both


class Brightness(nnx.Module):
    """A network that answers with the mean brightness in steps of 1/200, and doubts a little."""

    def __init__(self):
        self.sharpness = nnx.Param(jnp.asarray(300.0))

    def __call__(self, images, train):
        place = (images.astype(jnp.float32) / 255).mean((1, 2, 3))[:, None] * 200
        return -self.sharpness[...] / 100 * jnp.abs(place - jnp.arange(200.0)[None, :]), {}


@pytest.mark.parametrize("name", ["clahe", "ten_crop"])
def test_images_are_enhanced_or_answers_averaged(name):
    images = np.random.default_rng(0).integers(0, 200, (6, 32, 32, 3)).astype(np.uint8)
    images[:, :9, :9] = 255
    model = Brightness()
    classify = enhancements.averaged(lambda images: model(images, train=False)[0], name)
    scores = classify(jnp.asarray(images) if name == "ten_crop" else enhancements.enhance(images, name))
    split = data.Split(jnp.asarray(images), scores.argmax(-1).astype(jnp.int32), np.arange(6))
    shown, models = Shown(split, meshes.data_mesh(2), 2), {"": known.split(model)}
    with meshes.counting_compiles() as compiled:
        assert correctness.of_models(models, shown, name)[""].all()
        assert not correctness.of_models(models, shown)[""].all()
    assert compiled["network_logits"] <= (2 if name == "ten_crop" else 1)  # enhanced images are images


def levels(number=7):
    images = np.zeros((number, 16, 16, 3), np.uint8)
    images[:, 0, 0, 0] = np.arange(number) * 5
    split = data.Split(images, np.zeros(number, np.int32), np.arange(number, dtype=np.int32))
    return Shown(split.to_device(), meshes.data_mesh(), 4)  # two batches, the last one filled up


def test_every_exit_is_asked_about_every_image_once():
    found = correctness.of_exits(known.split(known.Known(True)), levels())
    level = np.arange(7)[:, None] * 5
    right = level < np.array([[10, 20, 30]])
    np.testing.assert_array_equal(found.correct, right)
    expected = np.exp(np.where(right, 2, 1)) / (np.exp(np.where(right, 2.0, 0.0)) + np.e)
    np.testing.assert_allclose(found.confidence, expected, rtol=1e-5)


def test_a_network_with_one_exit_and_one_that_diverged_are_refused():
    refuses(lambda: correctness.of_exits(known.split(known.Known(False)), levels()), "one exit")
    model = known.split(known.Known(True))
    model[1].params["logit"][...] = jnp.float32(np.nan)  # which is above any threshold of confidence
    refuses(lambda: correctness.of_exits(model, levels()), "NaN")


def test_answers_are_kept_for_the_same_network_and_images(tmp_path, monkeypatch):
    model, path, asked = known.split(known.Known(True)), tmp_path / "exits" / "clean-0.npz", []
    monkeypatch.setattr(
        correctness,
        "of_exits",
        lambda *given: asked.append(given) or correctness.ExitAnswers(np.eye(3), np.ones((3, 3))),
    )
    for images in (levels(), levels(), levels(6), levels(6)):
        found = correctness.kept_exits(path, model, "of 2", images)
        assert found.correct.tolist() == np.eye(3).tolist() and found.confidence.shape == (3, 3)
    assert len(asked) == 2
    correctness.kept_exits(path, model, "of 3", levels(6))
    assert len(asked) == 3
