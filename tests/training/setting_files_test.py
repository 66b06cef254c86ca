"""Files that settings name: photographs and banks reach every command by their digest, ranges are bound to model and images."""

import json
import pathlib
import shutil
import types

import jax
import numpy as np
import pytest
from PIL import Image

from configs import default
from corruptions import imagenet_c, laion_c
from corruptions.scoring.conditions import list_conditions
from corruptions.write.__main__ import main as write
from data import Split
from evaluation import correctness, trained_models
from evaluation.results import conditions_of
from evaluation.shown import Shown, stored_description
from runtime import meshes
from runtime.artifacts import provenance
from runtime.settings import SettingsError, WorkdirError
from tests.reference.photographs import photograph
from tests.training import tiny
from tools import calibrate
from tools.calibrate import Robustness
from training import cli, ranges

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
    with pytest.raises(ValueError, match=r"frost photographs of digest 0000.*use_photographs"):
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


def test_copies_that_benchmarks_make_are_shown_them_too(folder, digest, images, tmp_path):
    config = tiny.config()
    config.frost, config.eval.corruptions = str(folder), ("robodepth",)
    cli.use_files(config)
    of_copy = {"photographs": digest}
    assert config.train.corruption_options.to_dict() == {FROST: of_copy, "robodepth/frost": of_copy}
    (tmp_path / "config.json").write_text(json.dumps(tiny.config().to_dict()))
    with trained_models.open_workdir(tmp_path, config) as read:
        assert read.train.corruption_options.to_dict() == {FROST: of_copy, "robodepth/frost": of_copy}
    status, manifest = written(tmp_path, images, "robodepth/frost", f"--frost={folder}")
    assert status == 0 and manifest["corruptions"]["robodepth/frost"]["options"] == of_copy


def test_calibration_measures_with_them(digest, images, monkeypatch):
    seen = []
    answers = {"": np.ones(4, bool)}
    monkeypatch.setattr(correctness, "of_models", lambda models, shown: seen.append(shown.options) or answers)
    split = Split(images, np.zeros(4, np.int32), np.arange(4))
    robustness = Robustness(meshes.data_mesh(4), None, split, FROST, options={"photographs": digest})
    robustness(2.5), robustness.over((1.0, 3.0))
    assert seen[-2:] == [
        {FROST: {"photographs": digest, "interpolate": True}},
        {FROST: {"photographs": digest, "range": (1.0, 3.0)}},
    ]


def written(folder, images, name, *given):
    """(status, manifest) of a dataset that the writer wrote at severity 3."""
    np.savez(folder / "images.npz", images=images, labels=np.zeros(4, int))
    own = [f"--source={folder / 'images.npz'}", f"--out={folder / 'set'}", f"--corruptions={name}", "--severities=3"]
    status = write([*own, "--no-progress", *given])
    return status, json.loads((folder / "set" / "manifest.json").read_text())


def test_a_written_dataset_names_them(folder, digest, images, tmp_path):
    status, manifest = written(tmp_path, images, FROST, f"--frost={folder}")
    assert status == 0 and manifest["corruptions"][FROST]["options"] == {"photographs": digest}
    assert written(tmp_path, images, FROST)[0] == 1  # other settings
    for known, source in ((manifest, f"photographs_{digest[:16]}"), (None, "original_photographs")):
        stored = types.SimpleNamespace(provenance={"manifest": known}, image_shape=(32, 32, 3))
        assert stored_description(stored, FROST)["frost"] == source


def test_a_bank_reaches_both_of_its_corruptions_and_a_written_dataset(folder, images, tmp_path, monkeypatch):
    monkeypatch.setattr(laion_c.banks, "_USED", {})
    config = tiny.config()
    config.bank = str(folder)
    cli.use_files(config)
    digest, names = laion_c.used_banks()[-1], ("laion_c/mosaic", "laion_c/stickers")
    assert config.train.corruption_options.to_dict() == {name: {"bank": digest} for name in names}
    status, manifest = written(tmp_path, images, "laion_c/mosaic", f"--bank={folder}")
    assert status == 0 and manifest["corruptions"]["laion_c/mosaic"]["options"] == {"bank": digest}


def test_ranges_of_another_bank_are_measured_again(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(laion_c.banks, "_USED", {})
    seen = []

    class Robustness(tiny.QuickRobustness):
        def __init__(self, *given, **options):
            seen.append(options["options"])
            super().__init__(*given, **options)

    monkeypatch.setattr(calibrate, "Robustness", Robustness)
    other = shutil.copytree(folder, tmp_path / "other")
    Image.fromarray(photograph(300, 300, seed=5)).save(other / "frost1.png")
    workdir = tiny.untrained_workdir(tmp_path / "work", tiny.config())
    for number, bank in ((1, folder), (1, folder), (2, other)):
        config = tiny.config()
        config.calibrate.update({"corruptions": ("laion_c/mosaic",), "images": 70})
        config.bank = str(bank)
        cli.use_files(config)
        content = calibrate.run(config, workdir)
        assert len(seen) == number and seen[-1] == {"bank": content["made_from"]["bank"]}
    assert seen[0] != seen[1]


def test_what_is_wrong_is_said_at_once(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder at"):
        configured(tmp_path / "gone")
    config = tiny.config()
    config.frost = str(folder)
    config.train.corruption_options = {FROST: {"photographs": "0" * 64}}
    with pytest.raises(SettingsError, match="expected the photographs 0000"):
        cli.use_files(config)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tiny.untrained_workdir(tmp_path_factory.mktemp("trained") / "work", tiny.config())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrate, "Robustness", tiny.QuickRobustness)
        calibrate.run(asked("imagenet_c/fog"), folder)
    return folder


@pytest.fixture
def calibrated(trained, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(calibrate, "Robustness", tiny.QuickRobustness)
    monkeypatch.setattr(calibrate.log, "propagate", True)
    return shutil.copytree(trained, tmp_path / "work")


def asked(*corruptions):
    config = default.get_config()
    config.calibrate.update({"corruptions": corruptions, "images": 70})
    return config


def change(path, edit):
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def test_an_edited_file_is_refused(calibrated):
    path = calibrated / "ranges.json"
    assert ranges.read_ranges(path) == {"imagenet_c/fog": {"range": (2.0, 4.0)}}
    change(path, lambda content: content["corruptions"]["imagenet_c/fog"].update(range=[1.0, 5.0]))
    for read in (
        lambda: ranges.read_ranges(path),
        lambda: ranges.check_image_shape(str(path), (32, 32, 3)),
        lambda: calibrate.run(asked("imagenet_c/fog"), calibrated),
    ):
        with pytest.raises(ValueError, match=r"ranges\.json: .*the file was edited"):
            read()
    change(path, lambda content: content.pop("sha256"))  # a user's ranges
    assert ranges.read_ranges(path) == {"imagenet_c/fog": {"range": (1.0, 5.0)}}


def test_the_icip_papers_ranges_are_a_file():
    path = str(pathlib.Path(__file__).resolve().parents[2] / "configs/ranges/icip2021.json")
    options = {"noc/border": {"range": (10, 45)}, "noc/obstruction": {"range": (50, 120)}}
    config = default.get_config()
    config.ranges = path
    cli.use_ranges(config)
    assert config.train.corruption_options.to_dict() == options == ranges.read_ranges(path)
    ranges.check_image_shape(path, (224, 224, 3))
    with pytest.raises(ValueError, match=r"shape \[32, 32, 3\], found ranges for \[224, 224, 3\]"):
        ranges.check_image_shape(path, (32, 32, 3))


def test_ranges_of_an_earlier_model_are_refused_and_calibrated_again(calibrated, caplog):
    path = calibrated / "ranges.json"
    before = json.loads(path.read_text())
    tiny.train_again(calibrated, tiny.config())
    with pytest.raises(ValueError, match=r"another model than the one in .*tools\.calibrate --workdir"):
        ranges.read_ranges(path)
    study = calibrated.with_name("study")
    study.mkdir()
    ranges.copy(str(path), study / "ranges.json")
    for name in ("config.json", "final.json"):
        shutil.copy(calibrated / name, study)
    assert ranges.read_ranges(study / "ranges.json")  # a copy lies beside models that it was not made with
    after = calibrate.run(asked("imagenet_c/contrast"), calibrated)
    assert list(after["corruptions"]) == ["imagenet_c/contrast"] and "it is calibrated again" in caplog.text
    assert after["made_from"]["model"] == json.loads((calibrated / "final.json").read_text())["digest"]
    assert after["made_from"]["images"] == before["made_from"]["images"]
    assert ranges.read_ranges(path) == {"imagenet_c/contrast": {"range": (2.0, 4.0)}}


def test_ranges_of_other_images_are_calibrated_again(calibrated):
    path = calibrated / "ranges.json"
    change(path, lambda content: content.pop("sha256") and content["made_from"]["images"].update(images="0" * 64))
    assert list(calibrate.run(asked("imagenet_c/contrast"), calibrated)["corruptions"]) == ["imagenet_c/contrast"]


def test_other_settings_are_refused_before(calibrated):
    config = asked("imagenet_c/contrast")
    config.calibrate.images = 60
    with pytest.raises(WorkdirError, match="images: stored 70, asked 60"):
        calibrate.run(config, calibrated)


def test_a_file_without_digests_is_continued_and_bound(calibrated):
    path = calibrated / "ranges.json"
    made_from = json.loads(path.read_text())["made_from"]
    change(path, lambda content: [content.pop(key) for key in ("made_from", "sha256")])
    change(path, lambda content: content["corruptions"]["imagenet_c/fog"].update(range=[1.0, 5.0]))  # a mark
    calibrate.run(asked("imagenet_c/fog", "imagenet_c/contrast"), calibrated)
    content = ranges.read_content(path)
    assert list(content["corruptions"]) == ["imagenet_c/contrast", "imagenet_c/fog"]
    assert content["corruptions"]["imagenet_c/fog"]["range"] == [1.0, 5.0]  # finished parts are not repeated
    assert content["made_from"] == made_from and "sha256" in json.loads(path.read_text())


@pytest.mark.parametrize(
    "content",
    [
        [],
        {"image_shape": [32, 32, 3]},
        {"image_shape": 3, "corruptions": {}},
        {"image_shape": [32, 32, 3], "corruptions": {"imagenet_c/fog": 3}},
        {"image_shape": [32, 32, 3], "corruptions": {"imagenet_c/fog": {}}},
        {"image_shape": [32, 32, 3], "corruptions": {}, "made_from": 3},
    ],
)
def test_what_is_no_such_file_is_named(tmp_path, content):
    (tmp_path / "ranges.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"ranges\.json: "):
        ranges.read_ranges(tmp_path / "ranges.json")
