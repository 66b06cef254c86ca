"""PyTorch weights as NumPy arrays, without PyTorch: `.safetensors`, `.pth`, `.pt`.

A `.pth` file is a pickle, and a pickle can run any program: `torch_pickles` reads the tensors and plain containers of one, and
refuses everything else.
"""

import pathlib

import numpy as np

from models import torch_pickles

_PICKLES = (".pth", ".pt", ".pth.tar")
_ENTRIES = ("state_dict", "model_state_dict", "model")  # keys of the weights in files of training scripts
_PREFIXES = ("module.", "model.")  # prefixes of the names in a model that was wrapped in another


def read(path):
    """Reads {name: NumPy array} of a file of weights, .safetensors, .pth or .pt, in its own dtypes and layouts.

    Training scripts often save more than the weights and wrap the model: an entry `state_dict`,
    `model_state_dict` or `model` is opened, and `module.` or `model.` before every name is dropped.

    Raises:
      FileNotFoundError: no such file.
      ValueError: another kind of file, a damaged one, or one with something besides tensors.
    """
    path = pathlib.Path(path).expanduser()
    if not path.name.endswith((".safetensors", *_PICKLES)):
        raise ValueError(f"expected weights in a .safetensors, .pth or .pt file, found {path}")
    if not path.is_file():
        raise FileNotFoundError(f"expected a file of weights, found no file {path}")
    arrays = _read_safetensors(path) if path.suffix == ".safetensors" else _read_pickle(path)
    while found := [prefix for prefix in _PREFIXES if arrays and all(name.startswith(prefix) for name in arrays)]:
        arrays = {name.removeprefix(found[0]): array for name, array in arrays.items()}
    return arrays


def _read_safetensors(path):
    import ml_dtypes  # noqa: F401 - makes bfloat16 known to NumPy
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return load_file(path)
    except (SafetensorError, AttributeError) as error:  # AttributeError: a type that NumPy lacks, such as float8
        raise ValueError(f"{path} is no readable safetensors file: {error}") from error


def _read_pickle(path):
    try:
        content = _unwrapped(torch_pickles.load(path))
    except ValueError as error:
        raise ValueError(
            f"{path}: expected only tensors and plain containers, found a damaged file, or {error}"
        ) from None
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected a state_dict, names with tensors, found {type(content).__name__}")
    if numbers := [name for name in content if not isinstance(name, str)]:
        found = f"{str(numbers[0])[:40]} of type {type(numbers[0]).__name__}"
        raise ValueError(f"{path}: expected names of tensors, found the key {found}")
    if strange := [name for name, value in content.items() if not isinstance(value, np.ndarray)]:
        raise ValueError(f"{path}: expected only tensors, found others at {', '.join(strange[:5])}")
    return {name: _array(value) for name, value in content.items()}


def _array(values):
    """float32 in place of bfloat16 and float16, all of whose values it holds."""
    return values.astype(np.float32) if values.dtype.itemsize == 2 and values.dtype.kind in "fV" else values


def _unwrapped(content):
    """Finds the names and tensors in the content of a training script's file, at most as deep as there are entries."""
    for _ in _ENTRIES:
        if isinstance(content, dict):
            content = next((content[k] for k in _ENTRIES if isinstance(content.get(k), dict)), content)
    return content
