"""Weights of torchvision's models in ours: `load("resnet50", "resnet50-0676ba61.pth")`.

A family is described by how its modules are called there: regular expressions that turn the path of
one of our modules into torchvision's name. The arrays' names and layouts follow for all families:

* kernel -> weight: convolutions OIHW -> HWIO, linear layers [out, in] -> [in, out];
* BatchNorm: scale -> weight, mean -> running_mean, var -> running_var; `num_batches_tracked` is of
  no use here;
* linear layers read flattened maps channels first, as in PyTorch, so that nothing is permuted.
"""

import re

import jax
import numpy as np
from flax import nnx

import models
from models import torch_files
from models.vgg import VGG11, VGG19

_ARRAYS = {"kernel": "weight", "bias": "bias", "scale": "weight", "mean": "running_mean", "var": "running_var"}

_RESNET = (
    (r"^stem$", "conv1"),
    (r"^stem_norm$", "bn1"),
    (r"^stages\.(\d+)", lambda m: f"layer{int(m[1]) + 1}"),
    (r"\.norm(\d)$", r".bn\1"),
    (r"\.shortcut\.conv$", ".downsample.0"),
    (r"\.shortcut\.norm$", ".downsample.1"),
    (r"^head$", "fc"),
)

_DENSENET = (
    (r"^stem$", "features.conv0"),
    (r"^stem_norm$", "features.norm0"),
    (r"^blocks\.(\d+)\.(\d+)", lambda m: f"features.denseblock{int(m[1]) + 1}.denselayer{int(m[2]) + 1}"),
    (r"^transitions\.(\d+)", lambda m: f"features.transition{int(m[1]) + 1}"),
    (r"^norm$", "features.norm5"),
    (r"^head$", "classifier"),
)


def _vgg(sizes, batch_norm):
    """torchvision numbers all in `features`: a layer takes 2, 3 with BatchNorm, a pooling takes
    1."""
    places = 3 if batch_norm else 2

    def number(match):
        stage, layer = int(match[1]), int(match[2])
        return f"features.{sum(sizes[:stage]) * places + stage + layer * places + (match[3] == 'norm')}"

    return (
        (r"^stages\.(\d+)\.(\d+)\.(conv|norm)$", number),
        (r"^hidden\.(\d+)$", lambda m: f"classifier.{3 * int(m[1])}"),
        (r"^head$", "classifier.6"),
    )


_ALEXNET = (
    (r"^convs\.(\d+)$", lambda m: f"features.{(0, 3, 6, 8, 10)[int(m[1])]}"),
    (r"^hidden\.(\d+)$", lambda m: f"classifier.{1 + 3 * int(m[1])}"),
    (r"^head$", "classifier.6"),
)


def _squeezenet(pools):
    """`features`: convolution, ReLU, then Fire modules, a pooling before those numbered in
    `pools`."""
    return (
        (r"^stem$", "features.0"),
        (r"^fires\.(\d+)", lambda m: f"features.{2 + int(m[1]) + sum(pool <= int(m[1]) for pool in pools)}"),
        (r"^head$", "classifier.1"),
    )


_RESNETS = (
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152",
    "wide_resnet50_2",
    "resnext50",
    "resnext101",
)
_RULES = {
    **dict.fromkeys(_RESNETS, _RESNET),
    **dict.fromkeys(("densenet121", "densenet161", "densenet169", "densenet201"), _DENSENET),
    "vgg11": _vgg(VGG11, False),
    "vgg11_bn": _vgg(VGG11, True),
    "vgg19": _vgg(VGG19, False),
    "vgg19_bn": _vgg(VGG19, True),
    "alexnet": _ALEXNET,
    "squeezenet1_0": _squeezenet((0, 3, 7)),
    "squeezenet1_1": _squeezenet((0, 2, 4)),
}


def names():
    """Models whose weights can be imported, as a tuple."""
    return tuple(_RULES)


def load(name, path, *, class_stride=1, **options):
    """One of our models with torchvision's weights.

    Args:
      name: one of `names()`.
      path: a .safetensors, .pth or .pt file with torchvision's state_dict of this model, see
        `torch_files.read`.
      class_stride: keep the logits of every so many-th class; 10 makes a model of ImageNet-100,
        every tenth class of ImageNet by WordNet ID, the order of torchvision's logits.
      **options: of `models.build`: dtype, mean, std, conv ...

    Returns:
      (model, num_classes): an nnx.Module as of `models.build` and the number of its logits, that of
      the file divided by the stride and rounded up.

    Raises:
      ValueError: unknown name, unreadable file, or one whose names or shapes are not exactly those
        of the model; one message lists what is missing, unexpected and of the wrong shape.
      FileNotFoundError, RuntimeError: see `torch_files.read`.
    """
    _check_name(name)
    return from_state_dict(name, torch_files.read(path), class_stride=class_stride, source=path, **options)


def from_state_dict(name, arrays, *, class_stride=1, source="state_dict", **options):
    """`load` from {torchvision's name: array}; `source` names it in errors."""
    _check_name(name)
    if class_stride < 1:
        raise ValueError(f"expected a class_stride of at least 1, found {class_stride}")
    arrays = {_modern(key): array for key, array in arrays.items() if not key.endswith("num_batches_tracked")}
    for leaf in ("kernel", "bias"):
        key = _torch_name(name, ("head", leaf))
        if key in arrays:
            arrays[key] = arrays[key][::class_stride]
    num_classes = len(arrays[key]) if key in arrays else -(-1000 // class_stride)
    refuse_others(f"torchvision's {name}", source, arrays, shapes(name, num_classes))
    model = models.build(name, num_classes, **options)
    state = nnx.state(model)
    for key, variable in _named(name, state).items():
        variable.set_value(jax.device_put(np.asarray(our_layout(arrays[key]), np.float32)))
    nnx.update(model, state)
    return model, num_classes


def shapes(name, num_classes):
    """Lists {torchvision's name: shape} of a model's arrays, without num_batches_tracked."""
    _check_name(name)
    variables = _named(name, nnx.state(models.abstract(name, num_classes)))
    return {key: torch_shape(variable.get_value().shape) for key, variable in variables.items()}


def _named(name, state):
    """{torchvision's name: variable} of the parameters and statistics of a model."""
    flat = nnx.to_flat_state(state)
    return {_torch_name(name, path): variable for path, variable in flat if path[0] != "normalize"}


def _check_name(name):
    if name not in _RULES:
        raise ValueError(f"expected a model whose weights can be imported ({', '.join(_RULES)}), found {name!r}")


def _torch_name(name, path):
    """("stages", 0, 1, "conv2", "kernel") -> "layer1.1.conv2.weight"."""
    module = ".".join(map(str, path[:-1]))
    for pattern, replacement in _RULES[name]:
        module = re.sub(pattern, replacement, module)
    return f"{module}.{_ARRAYS[path[-1]]}"


def _modern(key):
    """DenseNet files of 2017 write `norm.1` for `norm1`, `conv.2` for `conv2`."""
    return re.sub(r"(denselayer\d+\.(?:norm|conv))\.(\d)\.", r"\1\2.", key)


def torch_shape(shape):
    """The shape torchvision gives an array of ours of this shape."""
    return (*shape[:1:-1], *shape[:2]) if len(shape) == 4 else shape[::-1]


def our_layout(array):
    """An array of torchvision's in our layout."""
    return array.transpose(2, 3, 1, 0) if array.ndim == 4 else array.T


def refuse_others(what, source, arrays, expected):
    """Refuses (ValueError) arrays that have not exactly the names and shapes of `expected`, the
    weights of `what`."""
    given = {key: np.shape(array) for key, array in arrays.items()}
    missing = sorted(expected.keys() - given)
    unexpected = sorted(given.keys() - expected)
    wrong = [
        f"{key}: expected {list(shape)}, found {list(given[key])}"
        for key, shape in sorted(expected.items())
        if key in given and given[key] != shape
    ]
    lists = {"missing": missing, "unexpected": unexpected, "of the wrong shape": wrong}
    if any(lists.values()):
        text = "\n".join(f"  {what} ({len(some)}): {_listed(some)}" for what, some in lists.items() if some)
        raise ValueError(f"expected the weights of {what} in {source}, found names or shapes differ:\n{text}")


def _listed(names, most=20):
    rest = f", ... and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
