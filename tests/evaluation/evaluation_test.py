"""Evaluation: the same images for every model, no image lost, finished work kept."""

import dataclasses
import zlib

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
import data
from analysis.answers import read as read_answers
from analysis.errors import joint
from corruptions.scoring.conditions import Condition, list_conditions
from data.corrupted import open_corrupted
from evaluation import commands, correctness
from evaluation.evaluate import evaluate_models, warn_of_tables
from evaluation.results import count_answers
from evaluation.shown import Shown, ShownStored, file_name
from runtime import meshes
from runtime.files import DamagedFileError
from runtime.log import log
from runtime.settings import WorkdirError
from tests.training import tiny
from training import states, study


@pytest.fixture(scope="module")
def mesh():
    return meshes.data_mesh()


@pytest.fixture(scope="module")
def test_split():
    return data.load("shapes", train_limit=10, test_limit=70).test.to_device()


@pytest.fixture(scope="module")
def shown(mesh, test_split):
    """The test images, in batches that the last one does not fill."""
    return Shown(test_split, mesh, batch_size=32)


@pytest.fixture(scope="module")
def model():
    config = tiny.config()
    config = study.model_config(config, "standard", 0)
    graphdef, params, statistics = states.build_model(config, 10, 32)
    return graphdef, states.TrainState(jnp.zeros((), jnp.int32), params, statistics, ())


def test_conditions_of_benchmarks_and_severities():
    assert list_conditions(["noc/border"], "random") == [
        Condition("clean", "0"),
        Condition("noc/border", "random"),
    ]
    levels = list_conditions(["imagenet_c/fog"], "levels")
    assert [c.value for c in levels[1:]] == [1, 2, 3, 4, 5]
    fractions = list_conditions(["noc/border"], "0,1")
    assert [c.value for c in fractions[1:]] == [0.0, 1.0]
    assert [c.value for c in list_conditions(["imagenet_c/fog"], "1,3")[1:]] == [1, 3]
    names = {c.corruption for c in list_conditions(["imagenet_noc", "noc/hue"], "random")}
    assert names == {"clean", *corruptions.names("imagenet_noc")}


def test_benchmarks_bring_their_own_levels():
    names = ["cifar10_c_bar", "imagenet_c_bar", "cbar/lines"]
    found = list_conditions(names, "levels")
    assert len(set(found)) == len(found)  # corruptions of two benchmarks are evaluated once

    def levels(name):
        return [c.value for c in found if c.corruption == name]

    assert levels("cbar/circular_motion_blur") == [1, 2, 3, 4, 5]
    assert levels("cbar/plasma_noise") == [3, 6, 8, 9, 10]
    assert sorted(levels("cbar/brownish_noise")) == [1, 2, 3, 4, 5, 7, 9, 10]  # 1, 4, 7, 9, 10 and 1 to 5
    assert sorted(levels("cbar/lines")) == list(range(1, 11))
    assert len(list_conditions(["cbar_candidates"], "levels")) == 1 + 30 * 10
    assert len(list_conditions(["cifar10_c_bar"], "levels")) == 1 + 10 * 5


def test_random_severities_are_those_of_the_benchmark(shown, test_split):
    found = {c.corruption: c for c in list_conditions(["cifar10_c_bar"], "random")}
    noise = found["cbar/brownish_noise"]
    assert noise == Condition("cbar/brownish_noise", "random", (1, 4, 7, 9, 10)) and noise.label == "random"
    assert file_name(noise) == "cbar.brownish_noise-random-1-4-7-9-10"
    (everything,) = list_conditions(["cbar/brownish_noise"], "random")[1:]
    assert file_name(everything) == "cbar.brownish_noise-random" and everything.levels is None
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


def test_a_list_of_test_images_is_evaluated_alone(tmp_path):
    """In a separate workdir, whose tables are not compared with the tables of all images."""
    config = tiny.config()
    config.eval.corruptions = ("noc/border",)
    whole, some = (tiny.untrained_workdir(tmp_path / name, config) for name in ("whole", "some"))
    test = data.load("shapes", train_limit=160, test_limit=70)
    lines = [f"{place} {test.class_names[label]}\n" for place, label in zip(test.test.index[:6], test.test.labels[:6])]
    (tmp_path / "list").write_text("".join(lines))
    everything = {c.corruption: c for c in commands.run(config, whole)}
    bits = read_answers(whole).correct(("standard", 0, "noc/border", "random"))
    config.eval.images = str(tmp_path / "list")
    counts = {c.corruption: c for c in commands.run(config, some)}
    assert {c.total for c in counts.values()} == {6} and everything["clean"].total == 70
    assert counts["noc/border"].correct == np.sum(bits[:6])
    found = [read_answers(folder).conditions["dataset"] for folder in (whole, some)]
    assert found[0] == "shapes" and found[1].startswith("shapes, 6 images of list ")
    for mismatch in ("refuse", "label"):  # other conditions may be marked, other images never stand in one table
        with pytest.raises(ValueError, match="6 images of list"):
            joint.joint([joint.read(folder, folder.name) for folder in (whole, some)], mismatch=mismatch)
    config.eval.images = ""
    with pytest.raises(WorkdirError, match="answers to other images under 2 of 2 conditions"):
        commands.run(config, some)


def test_levels_made_for_another_image_size_are_warned_of(caplog, monkeypatch):
    monkeypatch.setattr(log, "propagate", True)
    warn_of_tables(["cifar10_c_bar", "cbar_candidates", "standard"], (32, 32, 3))
    assert not caplog.records
    warn_of_tables(["cifar10_c_bar", "imagenet_c_bar"], (224, 200, 3))
    (record,) = caplog.records
    assert "cifar10_c_bar was selected from the ranges 'cifar'; images of 224x200" in record.getMessage()


def test_two_selections_of_random_severities_are_refused():
    with pytest.raises(ValueError, match="one selection of the random severities of cbar/"):
        list_conditions(["cifar10_c_bar", "imagenet_c_bar"], "random")


@pytest.mark.parametrize("severities, message", [("all", "found 'all'"), ("6", "1..5"), ("1.5", "whole severity")])
def test_bad_severities_are_named(severities, message):
    with pytest.raises(ValueError, match=message):
        list_conditions(["imagenet_c/fog"], severities)


def test_no_image_is_lost_whatever_the_batch_size(mesh, model, test_split):
    labels = jnp.asarray(test_split.labels)
    answers = [correctness.of_model(model, test_split.images, labels, size, mesh) for size in (70, 32, 7, 100)]
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
    assert rows[0] == ("standard", 0, "clean", 0, int(first[conditions[0]]["standard", 0].sum()), 70)
    assert rows[-1][:4] == ("noc/border", 0, "noc/border", "random")


def test_one_program_serves_every_condition(model, shown, monkeypatch):
    """Clean images, levels and random severities have one shape: the network is compiled once."""
    chex.clear_trace_counter()
    counted = chex.assert_max_traces(correctness.network_logits.__wrapped__, n=1)
    monkeypatch.setattr(correctness, "network_logits", jax.jit(counted, static_argnames=("graphdef", "enhance")))
    conditions = list_conditions(["imagenet_c/brightness"], "1,3") + list_conditions(["noc/border"], "random")[1:]
    assert len(conditions) == 4
    for condition in conditions:
        assert correctness.of_models({"": model}, shown.under(condition))[""].shape == (70,)
    with pytest.raises(AssertionError, match="traced > 1 times"):
        correctness.of_models({"": model}, dataclasses.replace(shown, batch_size=7))


def test_images_and_labels_of_other_lengths_are_refused(mesh, model, test_split):
    with pytest.raises(AssertionError, match="equal_shape_prefix"):
        correctness.of_model(model, test_split.images, jnp.asarray(test_split.labels)[:30], 20, mesh)


def test_damaged_answers_are_refused_by_name(model, shown, tmp_path):
    models, conditions = {("standard", 0): model}, list_conditions([], "random")
    evaluate_models(models, shown, conditions, tmp_path)
    path = tmp_path / "answers" / "clean-0.npz"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(DamagedFileError, match=r"clean-0\.npz.*remove it to evaluate this condition again"):
        evaluate_models(models, shown, conditions, tmp_path)


def test_eight_devices_see_the_same_corrupted_images(shown, test_split):
    """Through shard_map on whatever devices there are; the process tests run it on eight."""
    images = shown.under(Condition("noc/hue", "0.5")).images()
    key = jax.random.fold_in(jax.random.key(0), zlib.crc32(b"noc/hue"))
    direct = corruptions.corrupt(key, test_split.images, "noc/hue", 0.5, index=jnp.asarray(test_split.index))
    np.testing.assert_array_equal(images, direct)


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
    with pytest.raises(WorkdirError, match=r"other images under 5 of 5(.|\n)*-1\.npz: source\.content: stored "):
        evaluate_models({}, ShownStored(open_corrupted(source), mesh, batch_size=32), stored.conditions, workdir)
