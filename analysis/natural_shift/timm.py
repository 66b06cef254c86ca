"""The result tables of PyTorch Image Models: many models on natural shifts, none under corruptions.

Source: github.com/huggingface/pytorch-image-models, Apache-2.0, folder results: a file
`results-SET.csv` for each test set, with the columns model, img_size, top1 and others.
"""

import pathlib

import numpy as np

from analysis.natural_shift.table import Shift, Table
from analysis.natural_shift.testbed import read_rows

_CLEAN = "imagenet"
_SHIFTS = {  # name -> (its file, that of clean images of the same classes)
    "imagenet_v2": ("imagenetv2-matched-frequency", _CLEAN),
    "imagenet_a": ("imagenet-a", "imagenet-a-clean"),
    "imagenet_r": ("imagenet-r", "imagenet-r-clean"),
    "imagenet_sketch": ("sketch", _CLEAN),
    "imagenet_real": ("imagenet-real", _CLEAN),
}


def read_timm(folder: pathlib.Path, types: dict[str, str] | None = None) -> Table:
    """Reads the result files that are in a folder.

    A model that was tested at two image sizes counts once, at the size that the file of clean
    images lists last: two lines of one model are not independent.

    Args:
      folder: with results-imagenet.csv and some of the others.
      types: {model: type}; lines are fitted to those of type `standard`.

    Raises:
      FileNotFoundError, ValueError: no table of clean images, or none of a shift; a broken table.
    """
    clean = _read(folder, _CLEAN)
    sizes = {model: size for model, size in clean}  # the last one stays
    keys = tuple(sizes.items())
    known = {name: _read(folder, name) for pair in _SHIFTS.values() for name in pair if _path(folder, name).is_file()}
    natural = {
        name: Shift(*(_column(known[part], keys) for part in pair))
        for name, pair in _SHIFTS.items()
        if all(part in known for part in pair)
    }
    if not natural:
        raise FileNotFoundError(f"expected results of natural shifts in {folder}, found none of {', '.join(_SHIFTS)}")
    models = tuple(model for model, _ in keys)
    standard = np.array([(types or {}).get(model) == "standard" for model in models])
    return Table(f"timm results in {folder.name}", models, _column(clean, keys), natural, {}, standard, ~standard)


def timm_files(folder: pathlib.Path) -> list[pathlib.Path]:
    """Lists the result files in a folder that `read_timm` reads."""
    names = dict.fromkeys([_CLEAN, *(name for pair in _SHIFTS.values() for name in pair)])
    return [path for name in names if (path := _path(folder, name)).is_file()]


def _path(folder, name):
    return folder / f"results-{name}.csv"


def _read(folder, name):
    """{(model, image size): top-1 in percent}."""
    rows = read_rows(_path(folder, name), "model", "img_size", "top1")
    return {(row["model"], row["img_size"]): float(row["top1"]) for row in rows}


def _column(results, keys):
    return np.array([results.get(key, np.nan) for key in keys])
