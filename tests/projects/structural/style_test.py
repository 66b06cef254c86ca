"""`structural/style_transfer` by name: with weights as any corruption, without them an error that
says where to get some; stylised copies, whole after damage, and mixed in."""

import importlib
import itertools
import json

import jax
import numpy as np
import pytest
from jax import export
from PIL import Image

import corruptions
from corruptions import registry
from corruptions.from_files import FROM_FILES, FromFile
from corruptions.write import __main__ as command
from data import decode
from evaluation import trained_models
from projects.structural import adain, weights
from runtime import artifacts, meshes
from runtime.files import DamagedFileError
from runtime.settings import SettingsError
from tests.reference.photographs import photographs
from tests.training import tiny
from training import cli, study

KEY, NAME = jax.random.key(7), weights.NAME
STYLES = 4


def write(path, seed=0):
    """Weights of a small network, of random values that do not saturate."""
    rng = np.random.default_rng(seed)
    network = adain.StyleTransfer((8, 8, 8, 4), rng=rng)
    arrays = {name: np.asarray(array) for name, array in adain.arrays_of(network).items()}
    last = "decoder/stages/3/1/conv"
    arrays |= {
        f"{last}/kernel": arrays[f"{last}/kernel"] * np.float32(2e-3),
        f"{last}/bias": np.full(3, 0.5, np.float32),
    }
    mean, deviation = rng.uniform(1, 50, (2, STYLES, 4)).astype(np.float32)
    weights.write(path, adain.from_arrays(arrays), mean, deviation, 1, {"encoder": "random"})
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A file in use, and the corruption known for as long as this module's tests run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "NAMED", dict(registry.NAMED))
        patch.setattr(weights, "_used", [])
        patch.setitem(FROM_FILES, "style", FromFile((NAME,), "style", weights.use, "weights"))
        module = importlib.import_module("projects.structural.style")
        corruptions.register(module.style_transfer, replace=True)  # where another test had it imported
        yield write(tmp_path_factory.mktemp("style") / "style.npz")


@pytest.fixture(scope="module")
def digest(file):
    return weights.use(file)


@pytest.fixture
def unknown(monkeypatch):
    names = {n: known for n, known in registry.NAMED.items() if known is None or known.qualified_name != NAME}
    monkeypatch.setattr(registry, "NAMED", names)
    monkeypatch.setattr(weights, "_used", [])


@pytest.mark.parametrize("name", [NAME, "style_transfer"])
def test_what_brings_the_weights_is_said_where_the_name_is_not_known(name, unknown):
    config = tiny.config()
    config.eval.corruptions = (name,)
    with pytest.raises(SettingsError, match=r"eval\.corruptions: .*weights.*--config\.style=FILE.*train_style_decoder"):
        cli.check(config)


def test_one_program_for_all_severities_and_one_style_for_an_image(digest):
    images, before = photographs(2, 32, 32), corruptions.batch._corrupt._cache_size()
    shown = [np.asarray(corruptions.corrupt(KEY, images, NAME, s, style=digest)) for s in range(1, 6)]
    assert corruptions.batch._corrupt._cache_size() == before + 1
    assert all(x.shape == images.shape and x.dtype == np.uint8 for x in shown)
    assert all((a != b).any((1, 2, 3)).all() for a, b in itertools.pairwise(shown))
    corruption = corruptions.get("style_transfer")
    drawn = [corruption.sample(KEY, (32, 32, 3), severity) for severity in (1, 3, 5)]
    np.testing.assert_allclose([params["alpha"] for params in drawn], (0.2, 0.6, 1.0), rtol=1e-6)
    content = np.random.default_rng(0).random((1, 4, 4, 4), np.float32)
    maps = [adain.adain(content, *(p[k].reshape(1, 1, 1, 4) for k in ("mean", "deviation")), p["alpha"]) for p in drawn]
    distances = [float(np.square(np.asarray(m) - content).sum()) ** 0.5 for m in maps]
    np.testing.assert_allclose(distances, distances[2] * np.array([0.2, 0.6, 1]), rtol=1e-4)  # one style: on a line


def test_all_styles_are_drawn_and_values_stay_within_the_range(digest):
    sample = jax.jit(jax.vmap(lambda key: corruptions.get(NAME).sampler(key, (32, 32, 3), 5.0)["mean"][0]))
    assert len(np.unique(sample(jax.random.split(KEY, 64)))) == STYLES
    corruption, image = corruptions.get(NAME), photographs(1, 32, 32)[0].astype(np.float32) / 255
    params = corruption.sample(KEY, image.shape, 5)
    saturated = np.asarray(corruption.apply(image, params | {"deviation": 1e6 * params["deviation"]}))
    assert (saturated.min(), saturated.max()) == (0, 1)


@pytest.mark.slow
def test_it_lowers_for_every_platform(digest):
    images = jax.ShapeDtypeStruct((2, 32, 32, 3), np.uint8)
    call = jax.jit(lambda key, images, severity: corruptions.corrupt(key, images, NAME, severity, style=digest))
    artifact = export.export(call, platforms=("cpu", "cuda", "tpu"))(KEY, images, np.int32(3))
    assert artifact.out_avals[0].shape == images.shape and artifact.out_avals[0].dtype == np.uint8


def test_weights_that_are_none_are_refused(file, digest, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=f"the weights 0000000000000000 for {NAME}, found {digest[:16]} in use"):
        corruptions.corrupt(KEY, photographs(2, 32, 32), NAME, 3, style="0" * 64)
    with pytest.raises(ValueError, match="others need a process of their own"):
        weights.use(write(tmp_path / "other.npz", seed=1))
    arrays = artifacts.read(file).arrays
    one_nan = np.where(np.arange(arrays["styles/mean"].size).reshape(arrays["styles/mean"].shape) == 1, np.nan, 1.0)
    for name, array, message in (
        ("styles/mean", one_nan, ".*NaN, infinity or float32 in styles/mean"),
        ("encoder/colors/bias", np.full(3, np.inf), ".*NaN, infinity or float32 in encoder/colors/bias"),
        ("styles/mean", np.zeros((4, 3)), "of style transfer"),
        ("encoder/colors/bias", np.zeros(4), "of style transfer"),
        ("more", np.zeros(1), "of style transfer"),
    ):
        artifacts.write(tmp_path / "wrong.npz", arrays | {name: array.astype(np.float32)}, {})
        with pytest.raises(DamagedFileError, match=rf"wrong\.npz: expected weights {message}"):
            weights.read(tmp_path / "wrong.npz")
    np.savez(tmp_path / "other.npz", **arrays)
    with pytest.raises(DamagedFileError, match=r"other\.npz: .*found none"):
        weights.read(tmp_path / "other.npz")
    monkeypatch.setattr(weights, "_used", [])
    with pytest.raises(ValueError, match=r"weights for structural/style_transfer, found none.*--config\.style"):
        weights.in_use()


def test_a_setting_brings_them_to_commands_and_workdirs_keep_the_name(file, digest, tmp_path):
    config = tiny.config(corruption="style_transfer")
    config.style = str(file)
    config.imports = ("projects.structural.style",)
    cli.check(config)
    cli.use_files(config)
    assert config.train.corruption_options.to_dict() == {NAME: {"style": digest}}
    model = study.model_config(config, "style_transfer", 0)
    assert model.imports == config.imports and model.train.corruption_options[NAME]["style"] == digest
    (tmp_path / "config.json").write_text(json.dumps(tiny.config().to_dict()))
    with trained_models.open_workdir(tmp_path, config) as read:
        assert read.train.corruption_options[NAME]["style"] == digest
    config.train.corruption_options = {NAME: {"style": "0" * 64}}
    with pytest.raises(SettingsError, match=r"config\.style: expected the style 0000"):
        cli.use_files(config)


def test_a_stylised_copy_is_made_whole_again_and_mixed_in(file, tmp_path):
    pictures = photographs(8, 32, 32)
    for number, picture in enumerate(pictures):
        folder = tmp_path / "plain" / ("train", "val")[number % 2] / ("left", "right")[number // 2 % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(folder / f"{number}.png")
    given = [f"--style={file}", "--imports=projects.structural.style", f"--corruptions={NAME},imagenet_c/contrast"]
    given += [f"--source={tmp_path / 'plain'}", f"--out={tmp_path / 'out'}", "--severities=5", "--layout=folders"]
    given += ["--jpeg_quality=none", "--batch_size=2"]
    assert command.main(given) == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["corruptions"][NAME]["options"] == {"style": weights.in_use().digest} and manifest["complete"]
    assert len(list((tmp_path / "out/contrast/5").rglob("*.png"))) == 8
    styled = tmp_path / "out" / "style_transfer" / "5"
    files = {path.relative_to(styled): path.read_bytes() for path in styled.rglob("*.png")}
    assert set(files) == {p.relative_to(tmp_path / "plain") for p in (tmp_path / "plain").rglob("*.png")}
    lost = sorted(files)[3]
    (styled / lost).unlink()
    assert command.main(given) == 0
    assert {path.relative_to(styled): path.read_bytes() for path in styled.rglob("*.png")} == files
    config = tiny.config(batch_size=2)
    config.dataset.update({"name": "image_folder", "data_dir": str(tmp_path / "plain"), "train_limit": 0})
    config.train.mix_in.update({"name": "image_folder", "data_dir": str(styled)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAXC_CACHE_DIR", str(tmp_path / "cache"))
        dataset, split, _ = study.load_data(config, meshes.data_mesh(), mixed=True)
    assert dataset.class_names == ("left", "right") and len(split) == 8
    expected = decode.read(styled / "train" / "left" / "0.png", 32)
    assert any((np.asarray(image) == expected).all() for image in split.images[4:])
