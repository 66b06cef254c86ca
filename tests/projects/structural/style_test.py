"""`structural/style_transfer` by name: with weights as any corruption, without them an error that
says where to get some; stylised copies, whole after damage, and mixed in."""

import hashlib
import importlib
import itertools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import export
from PIL import Image
from safetensors.numpy import save_file

import corruptions
from corruptions.assets import FROM_FILES, FromFile
from corruptions.core import registry
from corruptions.write import __main__ as command
from data import decode
from evaluation import trained_models
from models.layers import ShapesOnly
from projects.structural import adain, pictures, train_style_decoder, weights
from projects.structural.configs import style_decoder
from runtime import artifacts, meshes, workdirs
from runtime.files import DamagedFileError
from runtime.settings import SettingsError
from tests.projects.structural.style_reference import decoded, encoded, statistics
from tests.reference.photographs import photographs
from tests.refusing import refuses
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
    arrays[f"{last}/kernel"] = arrays[f"{last}/kernel"] * np.float32(2e-3)
    arrays[f"{last}/bias"] = np.full(3, 0.5, np.float32)
    mean, deviation = rng.uniform(1, 50, (2, STYLES, 4)).astype(np.float32)
    weights.write(path, adain.from_arrays(arrays), mean, deviation, 1, {"encoder": "random"})
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A file in use, and the corruption known for as long as this module's tests run."""
    with pytest.MonkeyPatch.context() as patch:
        registry.every()  # imports what registers
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


def test_the_flag_that_registers_it_is_said_where_the_name_is_not_known(unknown):
    config = tiny.config()
    config.eval.corruptions = (NAME,)
    refuses(lambda: cli.check(config), "eval.corruptions", "--imports=MODULE", kind=SettingsError)


def test_one_program_for_all_severities_and_one_style_for_an_image(digest):
    images, before = photographs(2, 32, 32), corruptions.core.batch._corrupt._cache_size()
    shown = [np.asarray(corruptions.corrupt(KEY, images, NAME, s, style=digest)) for s in range(1, 6)]
    assert corruptions.core.batch._corrupt._cache_size() == before + 1
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
    refuses(lambda: weights.use(write(tmp_path / "other.npz", seed=1)), "process of their own")
    arrays = artifacts.read(file).arrays
    one_nan = np.where(np.arange(arrays["styles/mean"].size).reshape(arrays["styles/mean"].shape) == 1, np.nan, 1.0)
    for name, array, message in (
        ("styles/mean", one_nan, ".*NaN, infinity or float32 in styles/mean"),
        ("encoder/colors/bias", np.full(3, np.inf), ".*NaN, infinity or float32 in encoder/colors/bias"),
        ("styles/mean", np.zeros((4, 3)), "of style transfer"),
        ("encoder/colors/bias", np.zeros(4), "of style transfer"),
        ("more", np.zeros(1), "of style transfer"),
        ("styles/deviation", -arrays["styles/deviation"], ".*negative deviations of styles"),
        ("styles/correction", np.array(0.5), ".*a correction of styles that is not 0 or 1"),
    ):
        artifacts.write(tmp_path / "wrong.npz", arrays | {name: array.astype(np.float32)}, {})
        with pytest.raises(DamagedFileError, match=rf"wrong\.npz: expected weights {message}"):
            weights.read(tmp_path / "wrong.npz")
    np.savez(tmp_path / "other.npz", **arrays)
    refuses(lambda: weights.read(tmp_path / "other.npz"), "other.npz", "none", kind=DamagedFileError)
    monkeypatch.setattr(weights, "_used", [])
    refuses(lambda: weights.in_use(), "none", "--config.style")


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
    refuses(lambda: cli.use_files(config), "expected the style 0000", kind=SettingsError)


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


WIDTHS = (3, 4, 5, 6)
# Where the port's two nn.Sequential have their convolutions.
ENCODER, DECODER = (0, 2, 5, 9, 12, 16, 19, 22, 25, 29), (1, 5, 8, 11, 14, 18, 21, 25, 28)


def network():
    """A small network with biases that are not zero."""
    built = adain.StyleTransfer(WIDTHS, rng=np.random.default_rng(0))
    rng = np.random.default_rng(1)
    arrays = {name: np.asarray(array) for name, array in adain.arrays_of(built).items()}
    drawn = {name: rng.standard_normal(a.shape, np.float32) for name, a in arrays.items() if name.endswith("conv/bias")}
    return adain.from_arrays(arrays | drawn)


def test_outputs_are_those_of_the_formula_for_sides_that_are_no_multiples_of_8():
    built, rng = network(), np.random.default_rng(2)
    arrays = {name: np.asarray(array, np.float64) for name, array in adain.arrays_of(built).items()}
    images = rng.random((2, 17, 18, 3), np.float32)
    mean, deviation = rng.normal(50, 20, (2, 1, 1, 6)), rng.uniform(5, 50, (2, 1, 1, 6))
    maps = encoded(images.astype(np.float64), arrays)
    assert [m.shape[1:] for m in maps] == [(17, 18, 3), (9, 9, 4), (5, 5, 5), (3, 3, 6)]
    own = statistics(maps[-1], 1, 1e-5)
    target = deviation * (maps[-1] - own[0]) / own[1] + mean
    expected = decoded(0.3 * target + 0.7 * maps[-1], arrays)[:, :17, :18]
    call = nnx.jit(lambda built, *given: (built.encoder(given[0]), built(*given, jnp.float32(0.3))))
    found, styled = call(built, *(jnp.asarray(x, jnp.float32) for x in (images, mean, deviation)))
    for one, other in zip([*found, styled], [*maps, expected], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4 * np.abs(other).max())


@pytest.mark.parametrize("name", adain.READINGS)
def test_a_map_gets_the_statistics_of_the_style(name):
    reading, rng = adain.READINGS[name], np.random.default_rng(0)
    content, style = rng.random((2, 3, 4, 5), np.float32), rng.normal(2, 3, (2, 5, 3, 5)).astype(np.float32)

    @jax.jit
    def shown(content, style, alpha):
        wanted = adain.moments(style, reading.correction, reading.style_epsilon)
        same = adain.moments(content, reading.correction, adain.EPSILON)
        given = adain.adain(content, *wanted, alpha, reading.correction)
        return wanted, given, adain.adain(content, *same, jnp.float32(1), reading.correction)

    wanted, whole, same = shown(content, style, jnp.float32(1))
    np.testing.assert_allclose(wanted, statistics(style, reading.correction, reading.style_epsilon), rtol=1e-5)
    np.testing.assert_allclose(statistics(np.asarray(whole), reading.correction, 0), wanted, rtol=2e-3)
    np.testing.assert_allclose(same, content, atol=1e-5)
    none, part = (np.asarray(shown(content, style, jnp.float32(alpha))[1]) for alpha in (0, 0.25))
    np.testing.assert_array_equal(none, content)
    np.testing.assert_allclose(part, 0.25 * np.asarray(whole) + 0.75 * content, atol=1e-5)


def test_counts_are_those_of_the_published_network():
    arrays = adain.arrays_of(nnx.eval_shape(lambda: adain.StyleTransfer(rng=ShapesOnly())))
    for part, count in (("encoder", 3_505_740), ("decoder", 3_505_219)):
        assert sum(array.size for name, array in arrays.items() if name.startswith(part)) == count


def port_file(path, numbers, pairs, more=()):
    """A file as the port saves it: OIHW; `more` are layers that go on after those."""
    rng, arrays = np.random.default_rng(3), {}
    for number, (c_in, c_out) in zip([*numbers, *more], [*pairs, *[(6, 6)] * len(more)], strict=True):
        side = 1 if (c_in, c_out) == (3, 3) and number == 0 else 3
        arrays[f"{number}.weight"] = rng.standard_normal((c_out, c_in, side, side), np.float32)
        arrays[f"{number}.bias"] = rng.standard_normal(c_out, np.float32)
    save_file(arrays, path)
    return arrays


def test_files_of_the_port_are_taken_and_others_refused(tmp_path):
    down = [(3, 3), (3, 4), (4, 4), (4, 5), (5, 5), (5, 5), (5, 5), (5, 6)]
    encoder = port_file(tmp_path / "vgg.safetensors", ENCODER, [(3, 3), (3, 3), *down], more=(31, 34))
    decoder = port_file(tmp_path / "decoder.safetensors", DECODER, [pair[::-1] for pair in [(3, 3), *down][::-1]])
    built = network()
    adain.load_port(built, "encoder", tmp_path / "vgg.safetensors")
    adain.load_port(built, "decoder", tmp_path / "decoder.safetensors")
    taken = adain.arrays_of(built)
    names = ["encoder/colors", *(f"encoder/stages/{s}/{k}/conv" for s, n in enumerate((2, 2, 4, 1)) for k in range(n))]
    names += [f"decoder/stages/{s}/{k}/conv" for s, n in enumerate((1, 4, 2, 2)) for k in range(n)]
    given = [(encoder, number) for number in ENCODER] + [(decoder, number) for number in DECODER]
    for name, (arrays, number) in zip(names, given, strict=True):
        np.testing.assert_array_equal(taken[f"{name}/kernel"], arrays[f"{number}.weight"].transpose(2, 3, 1, 0))
        np.testing.assert_array_equal(taken[f"{name}/bias"], arrays[f"{number}.bias"])
    refuses(lambda: adain.load_port(built, "encoder", tmp_path / "decoder.safetensors"), "in PyTorch's port in")
    with pytest.raises(ValueError, match=r"decoder(.|\n)*wrong shape"):
        other = adain.StyleTransfer((3, 4, 5, 7), rng=np.random.default_rng(0))
        adain.load_port(other, "decoder", tmp_path / "decoder.safetensors")


@pytest.mark.parametrize("name", adain.READINGS)
def test_the_loss_of_style_is_zero_for_the_style_itself_and_sums_as_its_reading_says(name):
    rng, reading = np.random.default_rng(0), adain.READINGS[name]
    maps = [tuple(rng.random((2, 2, 1, 1, c), np.float32)) for c in (3, 5)]
    others = [tuple(rng.random((2, 2, 1, 1, c), np.float32)) for c in (3, 5)]
    assert train_style_decoder.style_loss(maps, maps, reading) == 0
    over = np.sum if reading.summed else np.mean
    squares = [np.square(a - b) for one, other in zip(maps, others) for a, b in zip(one, other)]
    expected = sum(over(square, -1).mean() for square in squares)
    np.testing.assert_allclose(train_style_decoder.style_loss(maps, others, reading), expected, rtol=1e-5)


def test_styles_are_read_as_stored_or_turned(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("JAXC_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "styles").mkdir()
    picture = np.random.default_rng(0).integers(0, 256, (16, 16, 3)).astype(np.uint8)
    orientation = Image.Exif()
    orientation[0x0112] = 6
    Image.fromarray(picture).save(tmp_path / "styles" / "a.png", exif=orientation)
    for _ in range(2):  # the second time from the cache
        caplog.clear()
        styles, described = pictures.styles(str(tmp_path / "styles"), 0, 16, 0)
        assert "1 files" in caplog.text and "turn" in caplog.text
        np.testing.assert_array_equal(styles[0], picture)
    turned, of_turned = pictures.styles(str(tmp_path / "styles"), 0, 16, 0, turn=True)
    np.testing.assert_array_equal(turned[0], np.rot90(picture, -1))
    assert of_turned != described


def test_styles_are_the_centres_of_what_is_large_enough(tmp_path_factory, tmp_path, monkeypatch):
    monkeypatch.setenv("JAXC_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    (tmp_path / "deep").mkdir()
    picture = np.zeros((20, 40, 3), np.uint8)
    picture[:, 10:30] = 200
    Image.fromarray(picture).save(tmp_path / "deep" / "wide.png")
    Image.fromarray(picture[:15, :15]).save(tmp_path / "small.png")
    (tmp_path / "broken.jpg").write_bytes(b"none")
    styles, described = pictures.styles(str(tmp_path), 0, 16, 0)
    assert styles.shape == (1, 16, 16, 3) and (styles[:, :, 1:-1] == 200).all() and described["pictures"] == 1
    refuses(lambda: pictures.styles(str(tmp_path), 0, 24, 0), "none")
    refuses(lambda: pictures.styles(str(tmp_path / "gone"), 0, 24, 0), "no folder", kind=FileNotFoundError)
    monkeypatch.setattr(pictures, "_PIECE", 2)
    for number in range(5):
        Image.fromarray(np.full((20, 20, 3), number, np.uint8)).save(tmp_path / f"{number}.png")
    styles, described = pictures.styles(str(tmp_path), 0, 16, 0)
    assert isinstance(styles, np.memmap) and described["pictures"] == 6  # not in memory, however many there are
    assert styles[:, 8, 8, 0].tolist() == [0, 1, 2, 3, 4, 200]
    assert described["sha256"] == hashlib.sha256(np.ascontiguousarray(styles)).hexdigest()


def config(**adain):
    asked = style_decoder.get_config("smoke")
    asked.adain.update({"widths": (4, 4, 8, 8), "drawn": 6, "batch_size": 4, "steps": 6} | adain)
    return asked


def test_a_workdir_is_bound_to_what_the_files_hold(tmp_path, monkeypatch):
    (tmp_path / "styles").mkdir()
    encoder = ["vgg.pth, sha256 1"]
    monkeypatch.setattr(train_style_decoder, "build", lambda asked, seed: (None, {"encoder": encoder[-1]}))
    monkeypatch.setattr(train_style_decoder, "write", lambda path, *given: path.touch())
    asked = config(styles=str(tmp_path / "styles"), steps=0)

    def run(level):
        Image.fromarray(np.full((32, 32, 3), level, np.uint8)).save(tmp_path / "styles" / "one.png")
        train_style_decoder.run(asked, tmp_path / "run")

    run(10)
    run(10)
    refuses(lambda: run(20), "adain.made_from.styles.sha256: stored", kind=workdirs.WorkdirError)
    encoder.append("vgg.pth, sha256 2")
    refuses(lambda: run(10), "'vgg.pth, sha256 1', asked", kind=workdirs.WorkdirError)


@pytest.mark.slow
def test_a_stopped_run_ends_in_the_same_weights_and_lowers_the_loss(tmp_path, monkeypatch):
    monkeypatch.setattr(train_style_decoder, "_EVERY", 2)
    whole = train_style_decoder.run(config(), tmp_path / "whole")
    rows, calls = train_style_decoder._rows, []

    def stopping(*given):
        calls.append(given)
        if len(calls) > 6:
            raise KeyboardInterrupt
        return rows(*given)

    monkeypatch.setattr(train_style_decoder, "_rows", stopping)
    with pytest.raises(KeyboardInterrupt):
        train_style_decoder.run(config(), tmp_path / "stopped")
    monkeypatch.setattr(train_style_decoder, "_rows", rows)
    again = train_style_decoder.run(config(), tmp_path / "stopped")
    assert weights.read(again).digest == weights.read(whole).digest
    _, made_from = artifacts.read(whole)
    assert made_from["encoder"] == "random values, seed 0" and made_from["styles"]["pictures"] == 6
    longer = train_style_decoder.run(config(steps=60), tmp_path / "longer")
    lines = (longer.parent / "metrics.jsonl").read_text().splitlines()
    totals = [line["content_loss"] + 10 * line["style_loss"] for line in map(json.loads, lines)]
    assert np.mean(totals[-5:]) < 0.8 * np.mean(totals[:5])
