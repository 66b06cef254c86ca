"""config.frost: photographs reach every command by their digest, wherever they lie."""

import dataclasses
import json
import shutil

import jax
import numpy as np
import pytest
from PIL import Image

from corruptions import imagenet_c, laion_c
from corruptions.scoring.conditions import list_conditions
from corruptions.write.__main__ import main as write
from data import Split
from evaluation import correctness, trained_models
from evaluation.results import conditions_of
from evaluation.shown import Shown, stored_description
from runtime import meshes
from runtime.artifacts import provenance
from runtime.settings import SettingsError
from tests.reference.photographs import photograph
from tests.training import tiny
from tools.calibrate import Robustness
from training import cli

FROST = "imagenet_c/frost"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("frost")
    for k, (height, width) in enumerate(((330, 400), (345, 360))):
        Image.fromarray(photograph(height, width, seed=k)).save(path / f"frost{k + 1}.png")
    return path


@pytest.fixture(scope="module")
def digest(folder):
    return imagenet_c.use_photographs(folder)


def configured(folder):
    config = tiny.config()
    config.frost = str(folder)
    cli.use_files(config)
    return config


@pytest.fixture(scope="module")
def images():
    return np.stack([photograph(32, 32, seed=k) for k in range(4)])


def test_the_digest_tells_the_pictures_and_not_their_place(folder, digest, tmp_path):
    shutil.copytree(folder, tmp_path / "moved")
    assert imagenet_c.use_photographs(tmp_path / "moved") == digest
    (tmp_path / "moved" / "frost1.png").rename(tmp_path / "moved" / "frost9.png")  # another order: other draws
    assert imagenet_c.use_photographs(tmp_path / "moved") != digest
    assert digest != imagenet_c.ORIGINAL_PHOTOGRAPHS and digest in provenance()["frost_photographs"]


def test_photographs_that_were_not_read_are_refused_by_their_digest():
    with pytest.raises(ValueError, match=r"frost photographs of digest 0000.*--config\.frost=FOLDER"):
        imagenet_c.frost.sample(jax.random.key(0), (32, 32, 3), 3, photographs="0" * 64)


def test_what_is_shown_is_bound_to_the_digest(folder, digest, images):
    config, split = configured(folder), Split(images, np.zeros(4, np.int32), np.arange(4, dtype=np.int32))
    assert config.train.corruption_options.to_dict() == {FROST: {"photographs": digest}}
    mesh = meshes.data_mesh(4)
    shown, plain = Shown.of(config, split, mesh), Shown.of(tiny.config(), split, mesh)
    (_, frost), (_, fog) = list_conditions([FROST], "3"), list_conditions(["imagenet_c/fog"], "3")
    assert shown.under(frost).record.shown["options"] == {"photographs": digest}
    assert shown.under(frost).record.shown != plain.under(frost).record.shown
    assert shown.under(fog).record == plain.under(fog).record  # bound to its own options
    assert conditions_of(shown, [frost]).frost == f"photographs_{digest[:16]}"


def test_trained_models_are_shown_the_photographs_of_the_command(folder, digest, tmp_path):
    trained = tiny.config()
    trained.train.corruption_options = {FROST: {"range": (1.0, 2.0)}}
    (tmp_path / "config.json").write_text(json.dumps(trained.to_dict()))
    with trained_models.open_workdir(tmp_path, configured(folder)) as read:
        assert read.train.corruption_options.to_dict() == {FROST: {"range": [1.0, 2.0], "photographs": digest}}
    with trained_models.open_workdir(tmp_path, tiny.config()) as read:
        assert "photographs" not in read.train.corruption_options[FROST]


def test_calibration_measures_with_them(digest, images, monkeypatch):
    seen = []
    monkeypatch.setattr(
        correctness, "of_models", lambda models, shown: seen.append(shown.options) or {"": np.ones(4, bool)}
    )
    split = Split(images, np.zeros(4, np.int32), np.arange(4))
    robustness = Robustness(meshes.data_mesh(4), None, split, FROST, options={"photographs": digest})
    robustness(2.5), robustness.over((1.0, 3.0))
    assert seen[-2:] == [
        {FROST: {"photographs": digest, "interpolate": True}},
        {FROST: {"photographs": digest, "range": (1.0, 3.0)}},
    ]


def test_a_written_dataset_names_them(folder, digest, images, tmp_path):
    np.savez(tmp_path / "images.npz", images=images, labels=np.zeros(4, int))
    given = [f"--source={tmp_path / 'images.npz'}", f"--out={tmp_path / 'set'}", f"--corruptions={FROST}"]
    assert write([*given, "--severities=3", f"--frost={folder}", "--no-progress"]) == 0
    entry = json.loads((tmp_path / "set" / "manifest.json").read_text())["corruptions"][FROST]
    assert entry["options"] == {"photographs": digest}
    assert write([*given, "--severities=3", "--no-progress"]) == 1  # other settings
    stored = dataclasses.make_dataclass("Stored", ["provenance", "image_shape"])
    manifest = json.loads((tmp_path / "set" / "manifest.json").read_text())
    for known, source in ((manifest, f"photographs_{digest[:16]}"), (None, "original_photographs")):
        described = stored_description(stored({"manifest": known}, (32, 32, 3)), FROST)
        assert described["frost"] == source


def test_a_bank_reaches_both_of_its_corruptions_and_a_written_dataset(folder, images, tmp_path, monkeypatch):
    monkeypatch.setattr(laion_c.banks, "_USED", {})
    config = tiny.config()
    config.bank = str(folder)
    cli.use_files(config)
    digest, names = laion_c.used_banks()[-1], ("laion_c/mosaic", "laion_c/stickers")
    assert config.train.corruption_options.to_dict() == {name: {"bank": digest} for name in names}
    np.savez(tmp_path / "images.npz", images=images, labels=np.zeros(4, int))
    given = [f"--source={tmp_path / 'images.npz'}", f"--out={tmp_path / 'set'}", "--corruptions=laion_c/mosaic"]
    assert write([*given, "--severities=3", f"--bank={folder}", "--no-progress"]) == 0
    entry = json.loads((tmp_path / "set" / "manifest.json").read_text())["corruptions"]["laion_c/mosaic"]
    assert entry["options"] == {"bank": digest}


def test_what_is_wrong_is_said_at_once(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder at"):
        configured(tmp_path / "gone")
    config = tiny.config()
    config.frost = str(folder)
    config.train.corruption_options = {FROST: {"photographs": "0" * 64}}
    with pytest.raises(SettingsError, match="expected the photographs 0000"):
        cli.use_files(config)
