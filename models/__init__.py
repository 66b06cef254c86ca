"""Image classifiers in Flax NNX: `build(name, num_classes)` gives `model(images, train) -> (logits, features)`."""

import difflib
import inspect

import jax
import jax.numpy as jnp
import numpy as np

from models import fast_cifar, resnet, small_resnet, wide_resnet
from models.layers import INITS

_REGISTRY = small_resnet.FAMILY | fast_cifar.FAMILY | resnet.FAMILY | wide_resnet.FAMILY


def names():
    """Names that `build` knows, as a tuple."""
    return tuple(_REGISTRY)


def build(name, num_classes, *, dtype=None, seed=0, image_size=32, **kwargs):
    """A model with freshly drawn parameters.

    Args:
      name: one of `names()`.
      num_classes: number of logits.
      dtype: of the computation, e.g. `bfloat16`; None or "" is bfloat16 on accelerators and float32 on CPU. Parameters,
        BatchNorm statistics and logits are float32 always.
      seed: of the initial parameters.
      image_size: side of the images in pixels; at least 8. Models take any size from there up.
      **kwargs: mean, std (input normalisation), init (`he`, `xavier`, `goyal`), conv (`auto`, `cpu`, `xla`); for wide
        ResNets also dropout.

    Returns:
      nnx.Module called as `model(images, train, key=None)` on float [N, H, W, 3] in [0, 1] or uint8; it returns float32
      logits [N, num_classes] and a dict of features, `penultimate` [N, C] among them.

    Raises:
      ValueError: unknown name, option or value.
    """
    if name not in _REGISTRY:
        close = difflib.get_close_matches(name, _REGISTRY, 1, 0)
        raise ValueError(f"expected a model among {', '.join(names())}, found {name!r}; did you mean {close[0]!r}?")
    if image_size < 8:
        raise ValueError(f"expected images of at least 8 pixels, found {image_size}")
    family = _REGISTRY[name]
    known = _options(family)
    if unknown := sorted(set(kwargs) - set(known)):
        raise ValueError(f"expected options of {name} among {', '.join(known)}, found {', '.join(unknown)}")
    if kwargs.get("init", "he") not in INITS:
        raise ValueError(f"expected init among {', '.join(INITS)}, found {kwargs['init']!r}")
    return family(num_classes, rng=np.random.default_rng(seed), dtype=_resolve(dtype), **kwargs)


def _options(family):
    """Keyword arguments left to the caller: those of the constructor that the name does not fix."""
    constructor = getattr(family, "func", family).__init__
    fixed = {"self", "num_classes", "rng", "dtype", *getattr(family, "keywords", ())}
    return [name for name in inspect.signature(constructor).parameters if name not in fixed]


def _resolve(dtype):
    if dtype is None or dtype == "":
        return jnp.dtype(jnp.float32 if jax.default_backend() == "cpu" else jnp.bfloat16)
    return jnp.dtype(dtype)
