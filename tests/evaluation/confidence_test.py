"""Answers hold their confidence: of a network, after temperature scaling, and of ensembles, against float64."""

import dataclasses
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

import data
import eval as evaluation
from analysis import answers, trained
from analysis.answers import PLAIN, SCALED
from corruptions.scoring.conditions import Condition
from corruptions.scoring.confidence import decode
from evaluation import correctness, temperature, trained_models
from evaluation.evaluate import ensembles
from evaluation.shown import Shown, ShownNatural
from runtime import artifacts, meshes
from runtime.files import DamagedFileError
from runtime.settings import SettingsError
from tests.analysis.made_up import cell_of
from tests.evaluation import known
from tests.refusing import refuses
from tests.training import tiny
from tools import check
from training import study

NUMBER, CLASSES = 23, 6
GENERATOR = np.random.default_rng(4)


@pytest.fixture(scope="module")
def three():
    """({key: network}, their logits [3, N, C], the images, which the last batch does not fill)."""
    drawn = [3 * np.random.default_rng(seed).normal(size=(NUMBER, CLASSES)) for seed in range(3)]
    models = {("standard", seed): known.split(known.Table(table)) for seed, table in enumerate(drawn)}
    logits = np.stack([state.params["table"][...] for _, state in models.values()]).astype(np.float64)
    images = np.zeros((NUMBER, 4, 4, 3), np.uint8)
    images[:, 0, 0, 0] = np.arange(NUMBER)
    labels = GENERATOR.integers(0, CLASSES, NUMBER).astype(np.int32)
    split = data.Split(jnp.asarray(images), jnp.asarray(labels), np.arange(NUMBER))
    return models, logits, Shown(split, meshes.data_mesh(), 10)


def compare(stored, correct, logs, labels):
    """Compares stored confidence with ln p [N, C]."""
    found, p = decode(stored, correct), np.exp(logs)
    np.testing.assert_array_equal(found.predicted, logs.argmax(1))
    np.testing.assert_array_equal(correct, logs.argmax(1) == labels)
    np.testing.assert_allclose(found.loss, -logs[np.arange(len(labels)), labels], atol=5e-4)
    np.testing.assert_allclose(found.rest, np.sort(p, 1)[:, :-1].sum(1), rtol=2e-5)
    np.testing.assert_allclose(found.squares, (p**2).sum(1), atol=1e-5)


def test_networks_ensembles_and_temperatures_are_asked_at_once(three, monkeypatch):
    models, logits, shown = three
    calls, original = [], correctness.network_logits
    monkeypatch.setattr(correctness, "network_logits", lambda *given: calls.append(1) or original(*given))
    mixed = ensembles(models)
    (key,) = mixed
    assert key == ("standard+ensemble=0.1.2", 0)
    found = correctness.ask({**models, **mixed}, shown, temperatures={("standard", 1): 2.5, key: 0.5})
    assert len(calls) == 3  # each network once
    labels = np.asarray(shown.split.labels)
    for seed in range(3):
        answered = found["standard", seed]
        compare(answered.confidence[PLAIN], answered.correct, log_softmax(logits[seed], 1), labels)
        assert answered.confidence.keys() == ({PLAIN, SCALED} if seed == 1 else {PLAIN})
    scaled = found["standard", 1]
    compare(scaled.confidence[SCALED], scaled.correct, log_softmax(logits[1] / 2.5, 1), labels)
    mean = logsumexp(log_softmax(logits, 2), axis=0) - np.log(3)
    compare(found[key].confidence[PLAIN], found[key].correct, mean, labels)
    compare(found[key].confidence[SCALED], found[key].correct, log_softmax(mean / 0.5, 1), labels)
    losses = [decode(of.confidence[PLAIN], of.correct).loss.mean() for of in found.values()]
    assert losses[3] < np.mean(losses[:3])


def test_classes_that_count_as_one_label_have_the_score_of_the_best(three):
    models, logits, shown = three
    groups = np.array([2, 0, -1, 2, 1, 0], np.int32)
    labels = GENERATOR.integers(0, 3, NUMBER).astype(np.int32)
    split = dataclasses.replace(shown.split, labels=jnp.asarray(labels))
    natural = ShownNatural(split, groups, shown.mesh, 10, {}, Condition("natural/some", "0"))
    answered = correctness.ask({"": models["standard", 0]}, natural)[""]
    of_labels = np.stack([logits[0][:, groups == label].max(1) for label in range(3)], 1)
    compare(answered.confidence[PLAIN], answered.correct, log_softmax(of_labels, 1), labels)


def test_outputs_that_are_not_finite_are_refused_by_condition(three):
    models, _, shown = three
    graphdef, state = models["standard", 0]
    broken = state._replace(params=jax.tree.map(lambda leaf: leaf.at[3, 0].set(jnp.nan), state.params))
    refuses(lambda: correctness.ask({"": (graphdef, broken)}, shown), "NaN")


@pytest.fixture(scope="module")
def study_of_two(tmp_path_factory):
    """A study of two seeds that trained on 160 images, of networks that saw none."""
    folder, given = tmp_path_factory.mktemp("confidence") / "work", tiny.config()
    for seed in (0, 1):
        given.seed = seed
        tiny.untrained_workdir(study.model_dir(folder, "standard", seed), given)
        tiny.finish(study.model_dir(folder, "standard", seed), given, seed)
    given.seed = 0
    artifacts.write_record(folder / "config.json", given.to_dict())
    return folder


def run(folder, corruptions=(), **changed):
    config = tiny.config()
    config.eval.update({"corruptions": corruptions, "severity": "1"} | changed)
    return {cell_of(row): row[1] for row in evaluation.run(config, folder)}


def test_temperatures_are_fitted_on_images_that_no_model_saw(study_of_two, tmp_path, monkeypatch):
    folder = shutil.copytree(study_of_two, tmp_path / "work")
    config = tiny.config()
    config.eval.temperature = 40
    shown = temperature.held_out(config, meshes.data_mesh())
    dataset = data.load("shapes", train_limit=200, test_limit=1)
    whole = dataset.train
    np.testing.assert_array_equal(np.sort(shown.split.index), np.arange(160, 200))
    np.testing.assert_array_equal(shown.split.images, whole.images[shown.split.index])

    counts = run(folder, ("noc/hue",), severity="0.5", temperature=40, ensemble=True)
    key = ("standard+ensemble=0.1", 0)
    assert {cell[:2] for cell in counts} == {("standard", 0), ("standard", 1), key}
    fits = artifacts.read_record(folder / temperature.FILE)["models"]
    assert fits.keys() == {"standard|0", "standard|1", "standard+ensemble=0.1|0"}
    models = trained_models.read_models(folder, dataset, shown.mesh)
    models |= ensembles(models)
    told = correctness.ask(models, shown, temperatures={name: fits[answers.name_of(name)]["value"] for name in models})
    for name, answered in told.items():
        before, after = (decode(answered.confidence[of], answered.correct).loss.mean() for of in (PLAIN, SCALED))
        fit = fits[answers.name_of(name)]
        assert (fit["before"], fit["after"]) == pytest.approx((before, after), abs=1e-3) and after < before
    by_model, record = answers.read_answered(folder / "answers" / "noc.hue-0.5.npz")
    assert record.temperatures == {("standard", seed): fits[f"standard|{seed}"]["value"] for seed in (0, 1)} | {
        key: fits["standard+ensemble=0.1|0"]["value"]
    }
    assert all(answered.confidence.keys() == {PLAIN, SCALED} for answered in by_model.values())
    assert trained.trained_digest(folder, *key) == record.models[key] != record.models["standard", 0]
    found = answers.read(folder).confidence("noc/hue", 0.5)
    assert set(found) == {(*model, name) for model in by_model for name in (PLAIN, SCALED)}
    assert found["standard", 0, PLAIN].correct.sum() == counts["standard", 0, "noc/hue", 0.5].correct

    monkeypatch.setattr(correctness, "network_logits", lambda *args: pytest.fail("evaluated again"))
    assert run(folder, ("noc/hue",), severity="0.5", temperature=40, ensemble=True) == counts
    assert run(folder, ("noc/hue",), severity="0.5").keys() == counts.keys()


def test_a_member_that_was_trained_again_makes_its_ensemble_stale(study_of_two, tmp_path):
    folder = shutil.copytree(study_of_two, tmp_path / "work")
    run(folder, ensemble=True)
    tiny.train_again(study.model_dir(folder, "standard", 0), tiny.config())
    assert {key[0] for key, _ in answers.read(folder).counts} == {"standard"}


def test_temperatures_of_an_earlier_model_are_named_and_fitted_again(study_of_two, tmp_path):
    folder = shutil.copytree(study_of_two, tmp_path / "work")
    run(folder, temperature=40)
    before = temperature.read(folder / temperature.FILE)["models"]
    check._temperatures(folder / temperature.FILE, folder)
    tiny.finish(study.model_dir(folder, "standard", 0), tiny.config(), state_of_seed=7)
    refuses(lambda: check._temperatures(folder / temperature.FILE, folder), "an earlier model's")
    run(folder, temperature=40)
    after = temperature.read(folder / temperature.FILE)["models"]
    assert after["standard|0"] != before["standard|0"] and after["standard|1"] == before["standard|1"]
    check._temperatures(folder / temperature.FILE, folder)


def test_answers_of_before_are_read_and_evaluated_again_where_temperatures_are_asked_for(study_of_two, tmp_path):
    folder = shutil.copytree(study_of_two, tmp_path / "work")
    before = run(folder)
    path = folder / "answers" / "clean-0.npz"
    bits, record = answers.read_file(path)
    answers.write(path.parent, bits, record)
    archive, made_from = artifacts.read(path)
    del made_from["temperatures"]
    artifacts.write(path, archive, made_from)
    assert run(folder) == before and not answers.read_answered(path)[0]["standard", 0].confidence
    refuses(lambda: answers.read(folder).confidence("clean", 0), "none of stand")
    assert run(folder, temperature=40) == before
    assert answers.read_answered(path)[0]["standard", 0].confidence.keys() == {PLAIN, SCALED}


@pytest.mark.parametrize(
    "limit, number, imported, message",
    [
        (0, 5, False, "with config.dataset.train_limit, which leaves 5 training images over, found models that were"),
        (7990, 11, False, "expected 11 training images beyond the 7990 of config.dataset.train_limit, found 10"),
        (100, 5, True, "found imported weights, whose training images are not known"),
    ],
)
def test_trainings_that_leave_no_images_are_refused(limit, number, imported, message, monkeypatch):
    config = tiny.config()
    config.dataset.train_limit, config.eval.temperature = limit, number
    if imported:
        config.imported = {"file": "some.pth"}
    tiny_set = data.load("shapes", train_limit=10, test_limit=1)
    many = dataclasses.replace(tiny_set.train, images=np.zeros((8000, 1, 1, 3), np.uint8), labels=np.zeros(8000, int))
    monkeypatch.setattr(study, "load_dataset", lambda config: dataclasses.replace(tiny_set, train=many))
    with pytest.raises(SettingsError, match=message):
        temperature.held_out(config, meshes.data_mesh())


def test_edited_temperatures_are_refused(study_of_two, tmp_path):
    folder = shutil.copytree(study_of_two, tmp_path / "work")
    (folder / temperature.FILE).write_text('{"images": {}, "models": {}, "sha256": "0"}')
    refuses(lambda: run(folder, temperature=40), "fit the temperatures again", kind=DamagedFileError)


def test_unreadable_training_images_leave_none_that_are_known_to_be_unseen(monkeypatch):
    config = tiny.config()
    config.eval.temperature = 20
    whole = study.load_dataset(config)
    train = {**whole.provenance["train"], "damaged": ["cat/3.png (truncated)"]}
    damaged = dataclasses.replace(whole, provenance={**whole.provenance, "train": train})
    monkeypatch.setattr(study, "load_dataset", lambda config: damaged)
    refuses(lambda: temperature.held_out(config, meshes.data_mesh()), "1 that cannot", "(truncated) and train again")
