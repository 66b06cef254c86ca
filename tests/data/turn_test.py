"""Images whose EXIF data hold an orientation: read as stored and counted, or turned, by every reader of training and tests."""

import json

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict
from PIL import Image

import corruptions
import data
import data.prepare
from configs import default
from corruptions import imagenet_c, laion_c
from corruptions.write.__main__ import main as write
from data.natural import open_natural, sets
from runtime import workdirs
from runtime.settings import SettingsError, WorkdirError
from tests.data.imagenet import trees
from tests.refusing import refuses
from training import cli, study

PIXELS = np.random.default_rng(0).integers(0, 256, (24, 40, 3)).astype(np.uint8)


def save(folder, name="x.png", exif=True):
    """A picture whose first row is the right side of the scene, with EXIF data that say so or without."""
    folder.mkdir(parents=True, exist_ok=True)
    orientation = Image.Exif()
    orientation[0x0112] = 6
    Image.fromarray(PIXELS).save(folder / name, exif=orientation if exif else Image.Exif())


@pytest.fixture(scope="module")
def roots(tmp_path_factory):
    """A tree of ImageNet-100's classes: pictures with EXIF data; the same without; and the same, turned."""
    folder = tmp_path_factory.mktemp("trees")
    for name in trees.CLASSES:
        for split in ("train", "val"):
            save(folder / "exif" / split / name)
            save(folder / "plain" / split / name, exif=False)
            (folder / "turned" / split / name).mkdir(parents=True)
            Image.fromarray(np.rot90(PIXELS, -1)).save(folder / "turned" / split / name / "x.png")
    return {name: folder / name for name in ("exif", "plain", "turned")}


def images(source, name="imagenet100", **options):
    return np.asarray(data.load(name, data_dir=source, image_size=16, **options).test.images[:3])


@pytest.mark.parametrize("name", ["image_folder", "imagenet100"])
def test_a_folder_is_read_as_stored_or_turned(roots, name, caplog):
    stored, turned = (images(roots["exif"], name, turn=turn) for turn in (False, True))
    assert "100 files" in caplog.text and "--config.dataset.turn=True" in caplog.text
    np.testing.assert_array_equal(stored, images(roots["plain"], name))
    np.testing.assert_array_equal(turned, images(roots["turned"], name))
    assert (stored != turned).any()


def test_a_store_is_prepared_as_stored_or_turned(roots, tmp_path, caplog):
    assert not data.prepare.main(arguments := prepared(roots["exif"], tmp_path))
    assert "200 files" in caplog.text and "--turn turns them" in caplog.text
    np.testing.assert_array_equal(images(tmp_path), images(roots["plain"]))
    refuses(lambda: images(tmp_path, turn=True), "--image_size=16 --turn", kind=FileNotFoundError)
    caplog.clear()
    assert not data.prepare.main([*arguments, "--turn"]) and "files" not in caplog.text
    np.testing.assert_array_equal(images(tmp_path, turn=True), images(roots["turned"]))
    assert not data.prepare.main([*arguments, "--turn", "--verify"])
    (tmp_path / "imagenet100/16-turned").rename(tmp_path / "aside")
    (tmp_path / "aside").rename(tmp_path / "imagenet100/32")
    refuses(lambda: data.load("imagenet100", data_dir=tmp_path, image_size=32), "turn=True")


def prepared(source, out):
    return ["--dataset=imagenet100", f"--source={source}", f"--data_dir={out}", "--image_size=16", "--workers=1"]


def test_a_natural_set_is_read_as_stored_or_turned(tmp_path, caplog):
    for name in sets.imagenet("imagenet_r").groups:
        save(tmp_path / "imagenet-r" / name)
    read = lambda **given: open_natural("imagenet_r", tmp_path, 16, cache_dir=tmp_path / "cache", **given)  # noqa: E731
    for _ in range(2):  # the second from the cache
        caplog.clear()
        stored = read()
        assert "200 files" in caplog.text and "--config.dataset.turn=True" in caplog.text
    turned = read(turn=True)
    assert (np.asarray(stored.split.images) != np.asarray(turned.split.images)).any()
    assert "turned" in turned.provenance["preprocess"] and "turned" not in stored.provenance["preprocess"]


@pytest.mark.parametrize("use", [imagenet_c.use_photographs, laion_c.use_bank])
def test_photographs_of_frost_and_tile_images_are_read_as_stored_or_turned(tmp_path, use, caplog):
    save(tmp_path)
    stored = use(tmp_path)
    assert "1 files" in caplog.text and "turn=True" in caplog.text
    caplog.clear()
    turned = use(tmp_path, turn=True)
    assert stored != turned == use(tmp_path, turn=True) and not caplog.records


@pytest.mark.parametrize(
    ("use", "source"),
    [(imagenet_c.use_photographs, "original"), (laion_c.use_bank, np.zeros((2, 16, 16, 3), np.uint8))],
)
def test_what_has_no_exif_data_is_not_turned(use, source):
    refuses(lambda: use(source, turn=True), "with a folder")


def test_turned_photographs_of_frost_are_drawn_turned(tmp_path):
    save(tmp_path / "exif")
    (tmp_path / "turned").mkdir()
    Image.fromarray(np.rot90(PIXELS, -1)).save(tmp_path / "turned/x.png")
    digests = [
        imagenet_c.use_photographs(tmp_path / "exif", turn=True),
        imagenet_c.use_photographs(tmp_path / "turned"),
    ]
    key, batch = jax.random.key(0), np.zeros((2, 32, 32, 3), np.uint8)
    first, second = (corruptions.corrupt(key, batch, "imagenet_c/frost", 3, photographs=digest) for digest in digests)
    np.testing.assert_array_equal(first, second)


def config_of(name, **dataset):
    config = default.get_config()
    config.dataset.update({"name": name, "data_dir": "unused", **dataset})
    return config


def test_a_workdir_of_before_takes_the_setting_as_false_and_one_of_now_records_no_false(tmp_path):
    now = config_of("image_folder")
    before = ConfigDict(now.to_dict())
    del before.dataset.turn
    for config, other in ((before, now), (now, before)):
        folder = tmp_path / str(config is now)
        for of in (config, other):
            with workdirs.open_workdir(folder, of.to_dict()):
                (folder / "scores.csv").write_text("")  # results bind the workdir
            assert "turn" not in workdirs.read_config(folder)["dataset"]
        with pytest.raises(WorkdirError, match=r"dataset\.turn"):
            with workdirs.open_workdir(folder, config_of("image_folder", turn=True).to_dict()):
                pass
    models = [study.model_config(one, "standard", 0).to_json() for one in (before, now)]
    assert models[0] == models[1]
    assert study.model_config(config_of("image_folder", turn=True), "standard", 0).dataset.turn is True


def test_commands_take_the_setting_for_files_alone(roots):
    config = config_of("imagenet100", data_dir=str(roots["exif"]), image_size=16, turn=True)
    cli.check(config)
    np.testing.assert_array_equal(study.load_dataset(config).test.images[:3], images(roots["turned"]))
    refuses(lambda: cli.check(config_of("shapes", turn=True)), "True", kind=SettingsError)
    refuses(lambda: data.load("shapes", turn=True), "arguments of shapes among", "'turn'")


@pytest.mark.parametrize(("setting", "name"), [("frost", "imagenet_c/frost"), ("bank", "laion_c/mosaic")])
def test_commands_turn_photographs_of_frost_and_tile_images(setting, name, tmp_path, capsys):
    """With any dataset, also one whose own images lie in arrays."""
    save(tmp_path / "folder")
    use = imagenet_c.use_photographs if setting == "frost" else laion_c.use_bank
    option = "photographs" if setting == "frost" else "bank"
    for turn in (False, True):
        config = config_of("shapes", turn=turn, train_limit=20, test_limit=10)
        config[setting] = str(tmp_path / "folder")
        cli.check(config)
        cli.use_files(config)
        expected = {option: use(tmp_path / "folder", turn=turn)}
        assert config.train.corruption_options[name].to_dict() == expected
        study.load_dataset(config)
        np.savez(tmp_path / "images.npz", images=np.zeros((1, 32, 32, 3), np.uint8), labels=[0])
        out = tmp_path / str(turn)
        arguments = [f"--source={tmp_path / 'images.npz'}", f"--out={out}", f"--{setting}={tmp_path / 'folder'}"]
        assert write([*arguments, f"--corruptions={name}", "--severities=3", *["--turn"] * turn, "--no-progress"]) == 0
        manifest = json.loads((out / "manifest.json").read_text())
        assert expected.items() <= manifest["corruptions"][name]["options"].items()
    config.update({"frost": "original", "bank": ""})
    refuses(lambda: cli.check(config), "config.dataset.turn False with shapes", kind=SettingsError)
