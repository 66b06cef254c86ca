"""Frost: drawn textures at any size, and photographs of a folder or of the original package, cropped as drawn."""

import functools
import hashlib
import importlib.util
import math
import shutil
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

import corruptions
from corruptions import imagenet_c
from corruptions.imagenet_c import frost, use_photographs
from tests.reference.photographs import photograph
from tests.refusing import refuses

frost_files = sys.modules["corruptions.imagenet_c.frost"]  # the module, whose name the corruption has taken


@pytest.mark.parametrize(
    "shape", [(16, 47), (130, 230), *(pytest.param(shape, marks=pytest.mark.slow) for shape in ((40, 20), (70, 100)))]
)
def test_any_size(shape):
    textures = np.asarray(frost.sample(jax.random.key(0), (*shape, 3), 2)["texture"])
    assert textures.shape == (*shape, 3) and textures.std() > 5
    assert textures.min() >= 0 and textures.max() <= 255


@pytest.fixture
def folder(tmp_path):
    for k, (height, width) in enumerate(((330, 400), (345, 360), (320, 500))):
        Image.fromarray(photograph(height, width, seed=k)).save(tmp_path / f"frost{k + 1}.png")
    (tmp_path / "notes.txt").write_text("not a texture")
    return tmp_path


def reference_resize(texture, scale):
    """Bilinear at (o + 1/2) / scale - 1/2, by SciPy in float64."""
    axes = [(np.arange(round(size * scale)) + 0.5) / scale - 0.5 for size in texture.shape[:2]]
    places = np.meshgrid(*axes, indexing="ij")
    return np.stack(
        [ndimage.map_coordinates(c, places, order=1, mode="nearest") for c in np.moveaxis(texture, -1, 0)], -1
    )


@pytest.mark.parametrize(("side", "scale"), [(299, 1), (224, 1), (64, 0.3), (32, 0.2)])
def test_folder_textures_are_cropped_as_drawn(folder, side, scale):
    digest = use_photographs(folder)
    textures = [photograph(h, w, seed=k).astype(float) for k, (h, w) in enumerate(((330, 400), (345, 360), (320, 500)))]
    if scale < 1:
        textures = [reference_resize(texture, scale) for texture in textures]
    if scale == 0.2:  # plain decimation
        np.testing.assert_allclose(textures[0], photograph(330, 400, seed=0)[2::5, 2::5], atol=1e-6)
    sample = jax.jit(functools.partial(frost.sample, photographs=digest), static_argnums=1)
    image, seen = photograph(side, side, seed=7), set()
    for seed in range(6):
        params = sample(jax.random.key(seed), image.shape, 1 + seed % 5)
        index, row, column = np.asarray(params["origin"]).tolist()
        seen.add((index, row, column))
        expected = textures[index][row : row + side, column : column + side]
        assert expected.shape == image.shape
        np.testing.assert_allclose(params["texture"], expected, atol=0.501)  # rounded to 8 bits
    assert len({index for index, _, _ in seen}) > 1 and len(seen) >= 5


def test_folder_draws_are_uniform(folder):
    sample = functools.partial(frost.sample, photographs=use_photographs(folder))
    draw = jax.jit(jax.vmap(lambda i: sample(jax.random.key(i), (32, 32, 3), 1)["origin"]))
    index, row, column = np.asarray(draw(jnp.arange(3000))).T
    np.testing.assert_allclose(np.bincount(index) / 3000, 1 / 3, atol=0.04)
    for k, (height, width) in enumerate(((66, 80), (69, 72), (64, 100))):
        for values, places in ((row[index == k], height - 32), (column[index == k], width - 32)):
            counts = np.bincount(values, minlength=places)
            assert len(counts) == places and counts.min() > 0  # the last place is never drawn, as in the original
            assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < places + 6 * np.sqrt(2 * places)


def test_errors_of_folders(tmp_path, folder):
    refuses(lambda: use_photographs(tmp_path / "absent"), "no folder at", kind=FileNotFoundError)
    empty = tmp_path / "empty"
    empty.mkdir()
    refuses(lambda: use_photographs(empty), "image files", kind=FileNotFoundError)
    (empty / "._frost1.png").write_bytes(b"of macOS")
    refuses(lambda: use_photographs(empty), "image files", kind=FileNotFoundError)
    (empty / "frost1.png").write_bytes(b"no picture")
    refuses(lambda: use_photographs(empty), "frost1.png cannot be read")


def test_small_textures_are_enlarged_for_large_images(folder):
    """Bicubic, to 1.1 times the larger ratio of sides, as imagecorruptions does; larger photographs are not enlarged."""
    shape, digest, files = (340, 700, 3), use_photographs(folder), sorted(folder.glob("*.png"))
    sample = jax.jit(lambda key: frost.sample(key, shape, 1, photographs=digest))
    for seed in range(6):
        params = sample(jax.random.key(seed))
        file, row, column = (int(v) for v in params["origin"])
        with Image.open(files[file]) as picture:
            factor = 1.1 * max(340 / picture.height, 700 / picture.width)
            sides = [math.ceil(factor * side) for side in picture.size]
            enlarged = np.asarray(
                picture.convert("RGB").resize(sides, Image.Resampling.BICUBIC) if factor > 1.1 else picture
            )
        np.testing.assert_array_equal(params["texture"], enlarged[row : row + 340, column : column + 700])


NAMES = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg", "frost6.jpg")


@pytest.fixture
def release(tmp_path, monkeypatch):
    """A folder of six files, of which the first five stand in for ImageNet-C's."""
    (tmp_path / "release").mkdir()
    for number, name in enumerate(NAMES):
        Image.new("RGB", (60, 50), (10 * number, 100, 200)).save(tmp_path / "release" / name)
    files = [(tmp_path / "release" / name).read_bytes() for name in NAMES[:5]]
    originals = tuple(hashlib.sha256(content).hexdigest() for content in files)
    monkeypatch.setattr(frost_files, "_USED", {})
    monkeypatch.setattr(frost_files, "_ORIGINALS", originals)
    monkeypatch.setattr(frost_files, "ORIGINAL_PHOTOGRAPHS", hashlib.sha256("\n".join(originals).encode()).hexdigest())
    return tmp_path / "release"


def install(release, folder, package, below):
    (folder / package / below).parent.mkdir(parents=True)
    (folder / package / "__init__.py").touch()
    shutil.copytree(release, folder / package / below)


def files_drawn(digest):
    draw = jax.vmap(lambda i: frost.sample(jax.random.key(i), (32, 32, 3), 1, photographs=digest)["texture"][0, 0, 0])
    return set(np.round(np.asarray(jax.jit(draw)(jnp.arange(300)))).astype(int).tolist())


def test_of_the_folder_as_released_the_five_are_drawn(release, caplog):
    digest = use_photographs(release)
    assert digest == frost_files.ORIGINAL_PHOTOGRAPHS and "frost6.jpg" in caplog.text
    assert len(files_drawn(digest)) == 5
    (release / "frost3.png").unlink()
    others = use_photographs(release)
    assert others != digest and len(files_drawn(others)) == 5  # of other folders every file
    caplog.clear()
    (release / "frost6.jpg").unlink()
    use_photographs(release)
    assert not caplog.records


@pytest.mark.parametrize(("package", "below"), [("imagecorruptions", "frost"), ("corrupt_tta", "assets/frost")])
def test_the_original_photographs_are_found_in_installed_packages(package, below, release, tmp_path, monkeypatch):
    """One word names the photographs, and records replace it by the digest; a sixth file is not read."""
    install(release, tmp_path / "site", package, below)
    monkeypatch.syspath_prepend(tmp_path / "site")
    digest = use_photographs("original")
    assert imagenet_c.used_photographs() == (digest,) and digest == frost_files.ORIGINAL_PHOTOGRAPHS
    images = np.stack([photograph(32, 32, seed=k) for k in range(2)])
    found = corruptions.corrupt(jax.random.key(0), images, "imagenet_c/frost", 3, photographs="original")
    expected = corruptions.corrupt(jax.random.key(0), images, "imagenet_c/frost", 3, photographs=digest)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.uint8 and (np.asarray(found) != images).any((1, 2, 3)).all()
    assert frost.describe((32, 32, 3), {"photographs": "original"}) == {"table": "cifar", "photographs": digest}
    monkeypatch.setattr(frost_files, "_USED", {})
    Image.new("RGB", (60, 50)).save(tmp_path / "site" / package / below / "frost1.png")
    refuses(lambda: use_photographs("original"), "others")


def test_photographs_of_torch_uncertainty_are_named_as_what_they_are(release, tmp_path, monkeypatch, caplog):
    install(release, tmp_path / "site", "torch_uncertainty_assets", "frost")
    monkeypatch.syspath_prepend(tmp_path / "site")
    folder = tmp_path / "site/torch_uncertainty_assets/frost"
    (folder / "frost1.png").unlink()
    with pytest.raises(FileNotFoundError, match=f"imagecorruptions-imaug.*{folder}.*encoded again"):
        use_photographs("original")
    digest = use_photographs(folder)
    assert not caplog.records
    monkeypatch.setattr(frost_files, "_OTHERS_DIGEST", digest)
    assert use_photographs(folder) == digest and "encoded again" in caplog.text


def test_without_the_package_the_message_names_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(frost_files, "_USED", {})
    refuses(lambda: imagenet_c.use_photographs("original"), "or name a folder", kind=FileNotFoundError)


def test_procedural_frost_says_so_once(caplog):
    frost_files._say_procedural.cache_clear()
    for shape in ((32, 32, 3), (33, 32, 3)):
        jax.eval_shape(lambda key, shape=shape: frost.sample(key, shape, 1), jax.random.key(0))
    (line,) = caplog.messages
    assert line.startswith("imagenet_c/frost draws procedural ice") and "\n" not in line
