"""PyTorch weights as NumPy arrays: `.safetensors` without PyTorch, `.pth`, `.pt` by its safe loader.

A `.pth` file is a pickle, and a pickle can run any program. It is only handed to `torch.load(weights_only=True)`,
which builds tensors and plain containers and refuses everything else. This module never unpickles.
"""

import pathlib
import re

import numpy as np

_PICKLES = (".pth", ".pt", ".pth.tar")
_ENTRIES = ("state_dict", "model_state_dict", "model")  # keys of the weights in files of training scripts
_PREFIXES = ("module.", "model.")  # prefixes of the names in a model that was wrapped in another
_SAFE_SINCE = (2, 6)  # earlier versions allowed to circumvent weights_only (CVE-2025-32434)
_CONVERT = """python -c "import torch, safetensors.torch as s; w = torch.load('{path}', weights_only=True); \
w = next((w[k] for k in {entries} if k in w), w); s.save_file(w, '{new}')\""""


def read(path):
    """Reads {name: NumPy array} of a file of weights, .safetensors, .pth or .pt, in its own dtypes and layouts.

    Training scripts often save more than the weights and wrap the model: an entry `state_dict`,
    `model_state_dict` or `model` is opened, and `module.` or `model.` before every name is dropped.

    Raises:
      FileNotFoundError: no such file.
      ValueError: another kind of file, a damaged one, or one with something besides tensors.
      RuntimeError: a .pth file, and PyTorch is missing or too old to be safe; says how to convert the file.
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
    torch = _torch(path)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # noqa: BLE001 - the loader raises many kinds for damaged and for unsafe files
        # PyTorch's own text advises to load the file without the check, which would run the code in it.
        raise ValueError(
            f"{path} is refused by torch.load(weights_only=True) ({type(error).__name__}): expected only tensors and plain "
            "containers, found other objects or a damaged file; get the weights as a plain state_dict or .safetensors"
        ) from None
    content = _unwrapped(content)
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected a state_dict, names with tensors, found {type(content).__name__}")
    if numbers := [name for name in content if not isinstance(name, str)]:
        found = f"{str(numbers[0])[:40]} of type {type(numbers[0]).__name__}"
        raise ValueError(f"{path}: expected names of tensors, found the key {found}")
    if strange := [name for name, value in content.items() if not isinstance(value, torch.Tensor)]:
        raise ValueError(f"{path}: expected only tensors, found others at {', '.join(strange[:5])}")
    for name, value in content.items():
        kinds = {"quantised": value.is_quantized, "meta": value.is_meta, "nested": value.is_nested}
        kinds[str(value.layout).removeprefix("torch.")] = value.layout != torch.strided
        if odd := [kind for kind, is_it in kinds.items() if is_it]:
            raise ValueError(f"{path}: expected dense tensors with values, found a {odd[0]} one at {name}")
    return {name: _array(value) for name, value in content.items()}


def _array(tensor):
    """NumPy has no bfloat16 or float8 that PyTorch knows of; float32 holds every value of smaller types."""
    small = tensor.is_floating_point() and tensor.element_size() < 4
    return np.asarray((tensor.float() if small else tensor).detach())


def _unwrapped(content):
    """Finds the names and tensors in the content of a training script's file, at most as deep as there are entries."""
    for _ in _ENTRIES:
        if isinstance(content, dict):
            content = next((content[k] for k in _ENTRIES if isinstance(content.get(k), dict)), content)
    return content


def _torch(path):
    convert = "convert it once, where PyTorch is installed, and import the .safetensors file:\n  " + _CONVERT.format(
        path=path, new=path.with_suffix(".safetensors").name, entries=_ENTRIES
    )
    try:
        import torch
    except ImportError as error:
        raise RuntimeError(f"reading {path} needs PyTorch (pip install torch); or {convert}") from error
    if tuple(map(int, re.findall(r"\d+", torch.__version__)[:2])) < _SAFE_SINCE:
        least = ".".join(map(str, _SAFE_SINCE))
        raise RuntimeError(f"expected PyTorch {least} or newer for {path}, found {torch.__version__}; or {convert}")
    return torch
