"""Calibrated ranges are bound to their content, their model and their images."""

import json
import pathlib
import shutil

import pytest

from configs import default
from runtime.files import DamagedFileError
from runtime.settings import WorkdirError
from tests.training import tiny
from tools import calibrate
from training import cli, ranges


class Quick:
    """In place of `tools.calibrate.Robustness`: every range is the same."""

    def __init__(self, mesh, model, split, name, **options):
        self.clean = 0.9

    def calibrated(self, targets):
        return {"range": [2.0, 4.0]}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tiny.untrained_workdir(tmp_path_factory.mktemp("trained") / "work", tiny.config())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrate, "Robustness", Quick)
        calibrate.run(asked("imagenet_c/fog"), folder)
    return folder


@pytest.fixture
def folder(trained, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(calibrate, "Robustness", Quick)
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


def test_an_edited_file_is_refused(folder):
    path = folder / "ranges.json"
    assert ranges.read_ranges(path) == {"imagenet_c/fog": {"range": (2.0, 4.0)}}
    change(path, lambda content: content["corruptions"]["imagenet_c/fog"].update(range=[1.0, 5.0]))
    for read in (
        lambda: ranges.read_ranges(path),
        lambda: ranges.check_image_shape(str(path), (32, 32, 3)),
        lambda: calibrate.run(asked("imagenet_c/fog"), folder),
    ):
        with pytest.raises(ValueError, match=r"ranges\.json: .*the file was edited"):
            read()
    change(path, lambda content: content.pop("sha256"))  # ranges of one's own
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


def test_ranges_of_an_earlier_model_are_refused_and_calibrated_again(folder, caplog):
    path = folder / "ranges.json"
    before = json.loads(path.read_text())
    tiny.train_again(folder, tiny.config())
    with pytest.raises(ValueError, match=r"another model than the one in .*tools\.calibrate --workdir"):
        ranges.read_ranges(path)
    study = folder.with_name("study")
    study.mkdir()
    ranges.copy(str(path), study / "ranges.json")
    for name in ("config.json", "final.json"):
        shutil.copy(folder / name, study)
    assert ranges.read_ranges(study / "ranges.json")  # a copy lies beside models that it was not made with
    after = calibrate.run(asked("imagenet_c/contrast"), folder)
    assert list(after["corruptions"]) == ["imagenet_c/contrast"] and "it is calibrated again" in caplog.text
    assert after["made_from"]["model"] == json.loads((folder / "final.json").read_text())["digest"]
    assert after["made_from"]["images"] == before["made_from"]["images"]
    assert ranges.read_ranges(path) == {"imagenet_c/contrast": {"range": (2.0, 4.0)}}


def test_ranges_of_other_images_are_calibrated_again(folder, caplog):
    path = folder / "ranges.json"

    def others(content):
        content["made_from"]["images"]["images"] = "0" * 64
        del content["sha256"]

    change(path, others)
    assert list(calibrate.run(asked("imagenet_c/contrast"), folder)["corruptions"]) == ["imagenet_c/contrast"]


def test_other_settings_are_refused_before(folder):
    config = asked("imagenet_c/contrast")
    config.calibrate.images = 60
    with pytest.raises(WorkdirError, match="images: stored 70, asked 60"):
        calibrate.run(config, folder)


def test_a_file_without_digests_is_continued_and_bound(folder):
    path = folder / "ranges.json"
    made_from = json.loads(path.read_text())["made_from"]
    change(path, lambda content: [content.pop(key) for key in ("made_from", "sha256")])
    change(path, lambda content: content["corruptions"]["imagenet_c/fog"].update(range=[1.0, 5.0]))  # a mark
    calibrate.run(asked("imagenet_c/fog", "imagenet_c/contrast"), folder)
    content = ranges.read_content(path)
    assert list(content["corruptions"]) == ["imagenet_c/contrast", "imagenet_c/fog"]
    assert content["corruptions"]["imagenet_c/fog"]["range"] == [1.0, 5.0]  # what is finished is not done again
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
    with pytest.raises((ValueError, DamagedFileError), match=r"ranges\.json: "):
        ranges.read_ranges(tmp_path / "ranges.json")
