"""Weights of torchvision's models in ours: `load("resnet50", "resnet50-0676ba61.pth")`.

A family is described by how its modules are called there, and in other published files of the same
network (`names.py`). The arrays' names and layouts follow for all families:

* kernel -> weight: convolutions OIHW -> HWIO, linear layers [out, in] -> [in, out];
* BatchNorm: scale -> weight, mean -> running_mean, var -> running_var; `num_batches_tracked` is of
  no use here;
* linear layers read flattened maps channels first, as in PyTorch, so that nothing is permuted.
"""

import itertools

import jax
import numpy as np
from flax import nnx

import models
from models import torch_files
from models.torchvision.names import LAYOUTS, modern, torch_name


def names():
    """Models whose weights can be imported, as a tuple."""
    return tuple(LAYOUTS)


def load(name, path, *, class_stride=1, **options):
    """One of our models with torchvision's weights.

    Args:
      name: one of `names()`.
      path: a .safetensors, .pth or .pt file with torchvision's state_dict of this model, see
        `torch_files.read`; or with that of another publisher, see `names.LAYOUTS`.
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
    arrays = {modern(key): array for key, array in arrays.items() if not key.endswith("num_batches_tracked")}
    layout = _closest_layout(name, arrays)
    num_classes = -(-1000 // class_stride)
    for head, leaf in itertools.product(_heads(layout, arrays), ("kernel", "bias")):
        key = torch_name(layout, (*head, leaf))
        if key in arrays:
            arrays[key] = arrays[key][::class_stride]
            num_classes = len(arrays[key])
    refuse_others(name, source, arrays, shapes(name, num_classes, layout, **options))
    model = models.build(name, num_classes, **options)
    state = nnx.state(model)
    fill(_named(layout, state), arrays)
    nnx.update(model, state)
    return model, num_classes


def shapes(name, num_classes, layout=None, **options):
    """Lists {name: shape} of a model's arrays, without num_batches_tracked; `layout` is one of
    `names.LAYOUTS`, by default the first."""
    _check_name(name)
    layout = layout or LAYOUTS[name][0]
    return torch_shapes(_named(layout, nnx.state(models.abstract(name, num_classes, **options))))


def _heads(layout, arrays):
    """Where logits are made: at the end, or at each exit of a network of several."""
    exits = (("exits", number, "head") for number in itertools.count())
    return ("head",), *itertools.takewhile(lambda path: torch_name(layout, (*path, "kernel")) in arrays, exits)


def _closest_layout(name, arrays):
    """The layout in which the first convolution has its name among the arrays; else the first."""
    fitting = [layout for layout in LAYOUTS[name] if torch_name(layout, ("stem", "kernel")) in arrays]
    return (*fitting, LAYOUTS[name][0])[0]


def _named(layout, state):
    """{name: variable} of the parameters and statistics of a model."""
    flat = nnx.to_flat_state(state)
    return {torch_name(layout, path): variable for path, variable in flat if path[0] != "normalize"}


def _check_name(name):
    if name not in LAYOUTS:
        raise ValueError(f"expected a model whose weights can be imported ({', '.join(LAYOUTS)}), found {name!r}")


def torch_shapes(named):
    """{name: shape that PyTorch gives its array} of {name: variable of ours}."""
    return {name: _torch_shape(variable.get_value().shape) for name, variable in named.items()}


def fill(named, arrays):
    """Gives each of {name: variable} its array of PyTorch's, in our layout and the variable's dtype."""
    for name, variable in named.items():
        dtype = variable.get_value().dtype
        variable.set_value(jax.device_put(np.asarray(_our_layout(arrays[name]), dtype)))


def _torch_shape(shape):
    return (*shape[:1:-1], *shape[:2]) if len(shape) == 4 else shape[::-1]


def _our_layout(array):
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
