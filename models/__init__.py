"""Image classifiers in Flax NNX: `build(name, num_classes)` gives a model.

`model(images, train)` returns (logits, features). The constructor of each family takes num_classes, `layers.Options` and
its own options. Families:

resnet.py        ResNets, ResNeXts; of 32x32 images: WRNs, and a small network for CPUs
fast_cifar.py    a plain network that learns in few steps
densenet.py      DenseNets; condensenet.py: CondenseNets, whose groups are learned
msdnet.py        MSDNets, with several exits; multigrid.py: multigrid networks
vit.py           vision transformers, DeiT's sizes among them
vgg.py           VGGs, AlexNet, SqueezeNets
efficientnet.py  EfficientNet-Lites

and their common parts:

layers.py        convolution, linear, dropout, normalisation of the input, pooling, initial values, `Options`
norms.py         BatchNorm, LayerNorm and GroupNorm
conv_cpu.py      convolutions whose gradients are fast on a CPU
torchvision.py   weights of torchvision, timm and other publishers as values of our models
torch_files.py   files of PyTorch weights as NumPy arrays; torch_pickles.py: the tensors of .pth files
costs.py         multiply-adds
"""

import difflib
import inspect
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from models import condensenet, densenet, efficientnet, fast_cifar, msdnet, multigrid, resnet, vgg, vit
from models.layers import INITS, Options, ShapesOnly, path_of

_FAMILIES = (resnet, densenet, condensenet, msdnet, multigrid, vgg, efficientnet, fast_cifar, vit)
_REGISTRY = {name: network for family in _FAMILIES for name, network in family.FAMILY.items()}
_SMALLEST = densenet.SMALLEST | condensenet.SMALLEST | vgg.SMALLEST | vit.SMALLEST
_SHARED = ("mean", "std", "init", "conv")  # options that all networks have


def names() -> tuple[str, ...]:
    """Lists the names that `build` knows."""
    return tuple(_REGISTRY)


def smallest_size(name: str) -> int:
    """Returns the side in pixels of the smallest images that a model takes."""
    return _SMALLEST.get(name, 8)


def options(name: str) -> tuple[str, ...]:
    """Lists the options that `build` takes for a model besides dtype, seed and image_size.

    Raises:
      ValueError: unknown name.
    """
    if name not in _REGISTRY:
        close = difflib.get_close_matches(name, _REGISTRY, 1, 0)
        raise ValueError(f"expected a model among {', '.join(names())}, found {name!r}; did you mean {close[0]!r}?")
    return tuple(_options(_REGISTRY[name]))


def build(
    name: str, num_classes: int, *, dtype: Any = None, seed: int = 0, image_size: int | None = None, **kwargs: Any
) -> nnx.Module:
    """Builds a model with freshly drawn parameters.

    Args:
      name: one of `names()`.
      num_classes: number of logits.
      dtype: type of the computation, e.g. `bfloat16`; None or "" is bfloat16 on accelerators and float32
        on CPU. Parameters, BatchNorm statistics and logits are float32 always.
      seed: seed of the initial parameters.
      image_size: side of the images in pixels, None if not known. Models take any from `smallest_size(name)` up;
        vision transformers the one that they were built for.
      **kwargs: mean, std (input normalisation; None takes ImageNet's, or CIFAR-10's for networks of 32x32 images), init
        (`he`: usual for the family, `xavier`, `goyal`; see layers.py), conv (`auto`, `cpu`, `xla`; see `layers.path_of`);
        dropout and memory_efficient where a family has them.

    Returns:
      nnx.Module called as `model(images, train, key=None)` on float [N, H, W, 3] in [0, 1] or uint8; it returns
      float32 logits [N, num_classes] and a dict of features, `penultimate` [N, C] among them. `key` draws the dropout;
      training with dropout > 0 needs it.

    Raises:
      ValueError: unknown name, option or value.
    """
    shared, own = _given(name, dtype, image_size, kwargs)
    return _REGISTRY[name](num_classes, Options(np.random.default_rng(seed), **shared), **own)


def abstract(
    name: str, num_classes: int, *, dtype: Any = None, image_size: int | None = None, **kwargs: Any
) -> nnx.Module:
    """Builds the same module with a jax.ShapeDtypeStruct in place of each array; nothing is drawn.

    It splits and counts as the real one does, and its forward pass runs under `jax.eval_shape`.
    """
    # Choices that depend on the platform are made before tracing.
    shared, own = _given(name, dtype, image_size, kwargs)
    return nnx.eval_shape(lambda: _REGISTRY[name](num_classes, Options(ShapesOnly(), **shared), **own))


def _given(name, dtype, image_size, given):
    """Checks the options of a model and makes the choices that depend on the platform: (`Options` without the generator,
    options of only this family).
    """
    known = options(name)
    if image_size is not None and image_size < smallest_size(name):
        raise ValueError(f"expected images of at least {smallest_size(name)} pixels for {name}, found {image_size}")
    if unknown := sorted(set(given) - set(known)):
        raise ValueError(f"expected options of {name} among {', '.join(known)}, found {', '.join(unknown)}")
    if given.get("init", "he") not in INITS:
        raise ValueError(f"expected init among {', '.join(INITS)}, found {given['init']!r}")
    if dtype is None or dtype == "":
        dtype = jnp.float32 if jax.default_backend() == "cpu" else jnp.bfloat16
    dtype = jnp.dtype(dtype)
    shared = {key: given[key] for key in _SHARED if key in given}
    own = {key: value for key, value in given.items() if key not in _SHARED}
    size = {"image_size": image_size} if "image_size" in _arguments(_REGISTRY[name]) else {}
    return shared | {"dtype": dtype, "conv": path_of(given.get("conv", "auto"), dtype)}, own | size


def _options(family):
    """Lists the options of the constructor that neither the name nor `build` fixes, then those that all networks have."""
    fixed = {"self", "num_classes", "options", "image_size", *getattr(family, "keywords", ())}
    return [*(name for name in _arguments(family) if name not in fixed), *_SHARED]


def _arguments(family):
    return inspect.signature(getattr(family, "func", family).__init__).parameters
