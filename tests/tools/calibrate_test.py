"""Robustness at a fixed severity for tools.calibrate, the ranges file, and its way into training and evaluation."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
import data
import models
from configs import default
from corruptions.core import code
from evaluation import bound
from runtime import meshes
from tests.evaluation import known
from tests.processes import ROOT
from tests.refusing import refuses
from tests.training import tiny
from tools import calibrate
from tools.calibrate import Robustness
from training import cli, study
from training.ranges import read_ranges
from training.sections import TrainSettings

NUMBER = 64
STEPS = ("pixels", "degrees", "steps (grey levels - 1)", "marks", "discs", "lozenges", "ratio of sides")


@pytest.fixture(scope="module")
def setting():
    mesh = meshes.data_mesh()
    split = data.load("shapes", train_limit=10, test_limit=NUMBER).test.to_device()
    return mesh, known.split(models.build("small_resnet", 10)), split


@pytest.mark.parametrize(
    "name,v,parameter",
    [
        ("noc/brightness", 0.3, "shift"),
        ("noc/border", 5, "thickness"),
        ("noc/quantization", 6, "steps"),
        ("noc/translation", 7, "dx"),
        ("noc/circle", 9, "number"),
        ("noc/rotation", 33, "degrees"),
    ],
)
def test_every_image_has_the_severity_asked_for(setting, name, v, parameter):
    robustness = Robustness(*setting, name)
    severity, options = robustness._fixed(v)
    keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(3), jnp.arange(20))
    drawn = jax.vmap(lambda key: corruptions.get(name).sample(key, (32, 32, 3), severity, **options))(keys)
    np.testing.assert_allclose(np.abs(drawn[parameter]), v, rtol=1e-5)


def test_fractions_of_another_benchmark_are_refused(setting, monkeypatch):
    """Their parameters have no domain here; one that is called as NOC's took NOC's."""
    mine = corruptions.random_choice(("noc/border", "noc/hue"), name="mine/border")
    monkeypatch.setattr("tools.calibrate.corruptions.get", lambda name: mine)
    refuses(lambda: Robustness(*setting, "mine/border"), "or one of noc's")


def test_robustness_is_a_ratio_of_accuracies_on_common_draws(setting, monkeypatch):
    seen = []

    def answers(models, shown):
        seen.append(np.concatenate([np.asarray(images) for images, _ in shown]))
        return {"": np.arange(NUMBER) < (48 if len(seen) == 1 else 24)}

    monkeypatch.setattr("evaluation.correctness.of_models", answers)
    robustness = Robustness(*setting, "noc/circle")
    assert robustness(5) == robustness(20) == 0.5 and robustness.over((5, 20)) == 0.5
    assert robustness.clean == 0.75
    # Common random numbers: few circles lie at places of many circles.
    clean, few, many = (images.astype(int) for images in seen[:3])
    changed = [(images != clean).any(-1) for images in (few, many)]
    assert changed[0].sum() < changed[1].sum()
    assert (changed[0] & ~changed[1]).sum() < 0.02 * changed[0].sum()
    corrupted, clean = (_error((accuracy * NUMBER + ADDED) / (NUMBER + 2 * ADDED)) for accuracy in (0.375, 0.75))
    assert robustness.error(0.5) == pytest.approx(np.hypot(corrupted, 0.5 * clean) / 0.75, rel=1e-4)


ADDED = 1.75 + 5.2 / NUMBER


def _error(accuracy):
    return np.sqrt(accuracy * (1 - accuracy) / NUMBER)


def test_levels_between_two_published_ones(setting):
    robustness = Robustness(*setting, "imagenet_c/contrast")
    assert robustness.domain == (1.0, 5.0) and not robustness.integer
    assert robustness._fixed(2.5) == (2.5, {"interpolate": True})


def test_a_range_of_levels_is_drawn_from_uniformly():
    brightness = corruptions.get("imagenet_c/brightness")  # its one parameter is the level's shift
    keys = jax.random.split(jax.random.key(0), 4000)
    sample = jax.vmap(lambda key: brightness.sample(key, (32, 32, 3), range=(1.5, 2.5), table="imagenet"))
    drawn = np.asarray(next(iter(sample(keys).values())))
    assert 0.15 <= drawn.min() < 0.16 and 0.24 < drawn.max() <= 0.25  # .1 .2 .3 at levels 1 2 3
    assert abs(drawn.mean() - 0.2) < 4 * 0.1 / np.sqrt(12 * 4000)
    for wrong in ((2.5, 1.5), (0.5, 2), (1, 6), 3, ("a", "b")):
        with pytest.raises(ValueError, match=r"range=\(mild, severe\)"):
            brightness.sample(keys[0], (32, 32, 3), range=wrong)


def write(path, **entries):
    content = {"image_shape": [32, 32, 3], "corruptions": {name: {"range": found} for name, found in entries.items()}}
    path.write_text(json.dumps(content))
    return path


def test_ranges_become_options_and_given_options_win(tmp_path):
    path = write(
        tmp_path / "ranges.json", **{"noc/border": [2, 6], "noc/quantization": [9, 2], "imagenet_c/fog": [1, 2.5]}
    )
    assert read_ranges(path)["noc/border"] == {"range": (2, 6)}
    config = default.get_config()
    config.lock()
    config.ranges = str(path)
    with config.unlocked():
        config.train.corruption_options = {"noc/border": {"range": (3, 4)}, "noc/gaussian": {"half_normal": False}}
    cli.use_ranges(config)
    assert TrainSettings.of(config.train).corruption_options == {
        "noc/border": {"range": (3, 4)},
        "noc/quantization": {"range": (9, 2)},
        "noc/gaussian": {"half_normal": False},
        "imagenet_c/fog": {"range": (1.0, 2.5)},
    }
    single = study.model_config(config, "noc/border", 0)
    assert single.train.corruption_options.to_dict() == {"noc/border": {"range": (3, 4)}}
    assert study.model_config(config, "standard", 0).train.corruption_options.to_dict() == {}


def test_options_count_under_any_spelling_of_the_corruption(tmp_path):
    config = default.get_config()
    config.ranges = str(write(tmp_path / "ranges.json", **{"imagenet_c/fog": [1, 2.5]}))
    config.train.corruption_options = {"fog": {"interpolate": True}, "imagenet_c/frost": {"range": (1, 2)}}
    cli.use_ranges(config)
    fog = {"range": (1.0, 2.5), "interpolate": True}
    assert config.train.corruption_options.to_dict() == {"imagenet_c/fog": fog, "imagenet_c/frost": {"range": (1, 2)}}
    assert study.model_config(config, "fog", 0).train.corruption_options.to_dict() == {"imagenet_c/fog": fog}


def test_the_ranges_that_are_shipped():
    path = ROOT / "configs" / "ranges" / "cifar10_cpu.json"
    content = json.loads(path.read_text())
    options = read_ranges(path)
    assert set(options) == {*corruptions.names("noc_candidates"), "noc/arlequin"}
    for name, entry in content["corruptions"].items():
        evaluated = dict(map(tuple, entry["evaluations"]))
        assert [evaluated[v] for v in entry["range"]] == entry["robustness"], name
        if entry["unit"] not in STEPS:
            ends = zip(entry["robustness"], (0.95, 0.5), entry["capped"])
            assert all(abs(r - t) < 0.005 or capped for r, t, capped in ends), name


@pytest.mark.parametrize(
    "entries,message",
    [
        ({"noc/border": [6, 2]}, "noc/border"),
        ({"noc/bordr": [2, 6]}, "noc/bordr"),
        ({"imagenet_c/fog": [0, 2]}, "imagenet_c/fog"),
        (None, "expected image_shape, found nothing of that name"),
    ],
)
def test_what_is_no_ranges_file_is_refused_by_name(tmp_path, entries, message):
    path = tmp_path / "ranges.json"
    refuses(lambda: read_ranges(path), "calibrate", kind=FileNotFoundError)
    path.write_text("{}") if entries is None else write(path, **entries)
    with pytest.raises(ValueError, match=rf"ranges\.json: {message}"):
        read_ranges(path)


def test_a_range_of_an_edited_corruption_is_calibrated_again(tmp_path, monkeypatch, own_registry, caplog):
    calibrated, work, config = [], tiny.untrained_workdir(tmp_path / "work", tiny.config()), default.get_config()
    config.calibrate.update({"corruptions": ("imagenet_c/contrast", "imagenet_c/brightness"), "images": 70})
    config.eval.batch_size = 32
    monkeypatch.setattr(calibrate.log, "propagate", True)

    class Robustness(tiny.QuickRobustness):
        def __init__(self, mesh, model, split, name, **options):
            calibrated.append(name)

    def run():
        calibrated.clear()
        calibrate.run(config, work)
        return calibrated

    monkeypatch.setattr(calibrate, "Robustness", Robustness)
    assert len(run()) == 2
    monkeypatch.setattr(code, "_of_library", lambda: "a comment was edited")
    assert not run() and not caplog.text
    probe, probed = bound.origin.probe, set()
    monkeypatch.setattr(
        bound.origin, "probe", lambda name, *given, **more: probed.add(name) or probe(name, *given, **more)
    )
    contrast = corruptions.get("imagenet_c/contrast")
    darker = dataclasses.replace(contrast, applier=lambda *given: contrast.applier(*given) / 2)
    corruptions.register(darker, replace=True)
    assert run() == ["imagenet_c/contrast"] and "contrast" in caplog.text
    assert probed == {"imagenet_c/contrast"}  # the other code of brightness was found equal before
    assert read_ranges(work / "ranges.json").keys() == {"imagenet_c/contrast", "imagenet_c/brightness"}
