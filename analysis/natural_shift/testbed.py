"""The public table of the ImageNet testbed: 338 models under 213 settings, top-1 in percent.

Source: github.com/modestyachts/imagenet-testbed, MIT (Taori, Dave, Shankar, Carlini, Recht,
Schmidt, NeurIPS 2020): robustness_top1s.csv, and of plotting/model_types.py a table `model,type`.
"""

import csv
import pathlib

import numpy as np

from analysis.natural_shift.table import Shift, Table
from analysis.references import BENCHMARKS, PREFIX

KINDS = ("on-disk", "in-memory")
STANDARD = "standard"
_SHIFTS = {  # name -> (its column, that of clean images of the same classes)
    "imagenet_v2": ("imagenetv2-matched-frequency-format-val", "val"),
    "imagenet_a": ("imagenet-a", "val-on-imagenet-a-classes"),
    "imagenet_r": ("imagenet-r", "val-on-imagenet-r-classes"),
    "imagenet_sketch": ("imagenet-sketch", "val"),
    "objectnet": ("objectnet-1.0-beta", "val-on-objectnet-classes"),
    "vid_robust": ("imagenet-vid-robust_pm0", "val-on-vid-robust-classes"),
    "ytbb_robust": ("ytbb-robust_pm0", "val-on-ytbb-robust-classes"),
}
_CORRUPTIONS = (*BENCHMARKS["imagenet_c"], *BENCHMARKS["imagenet_c_extra"])
_PGD = ("pgd.l2.eps0.1", "pgd.l2.eps0.5", "pgd.linf.eps0.5", "pgd.linf.eps2")
_OTHER_DATA = ("aws", "batch64", "subsample")  # in names of models that no line is fitted to
_NOT_SHOWN = "subsample"


def read_testbed(path: pathlib.Path, types: pathlib.Path | None = None, kind: str = "on-disk") -> Table:
    """Reads the testbed's table.

    Corruptions get our names, averaged over the severities 1 to 5; `pgd` is the mean of the four
    attacks. Lines are fitted to models of type `standard` whose name contains none of `aws`,
    `batch64`, `subsample`; shown are the others, without `subsample`.

    Args:
      path: robustness_top1s.csv.
      types: a CSV file with the header `model,type`; without it no model counts as standard.
      kind: of ImageNet-C: `on-disk`, the released JPEG files, or `in-memory`, without their
        compression (glass_blur has none).

    Raises:
      FileNotFoundError, ValueError: no such file, another table, or a model without a type.
    """
    if kind not in KINDS:
        raise ValueError(f"expected a kind of ImageNet-C of {', '.join(KINDS)}, found {kind!r}")
    models, columns = read_columns(path)
    synthetic = {}
    for name in _CORRUPTIONS:
        settings = [f"imagenet-c.{name}.{severity}_{kind}" for severity in range(1, 6)]
        if all(setting in columns for setting in settings):
            synthetic[PREFIX["imagenet_c"] + name] = np.mean([columns[setting] for setting in settings], axis=0)
    for name in ("stylized_imagenet", "greyscale"):
        if name in columns:
            synthetic[name] = columns[name]
    if all(name in columns for name in _PGD):
        synthetic["pgd"] = np.mean([columns[name] for name in _PGD], axis=0)
    natural = {n: Shift(columns[a], columns[c]) for n, (a, c) in _SHIFTS.items() if a in columns and c in columns}
    if "val" not in columns or not natural:
        raise ValueError(
            f"{path}: expected the columns val and {', '.join(a for a, _ in _SHIFTS.values())}, found none"
        )
    of_type = read_types(types) if types else {}
    if lacking := [name for name in models if types and name not in of_type]:
        raise ValueError(f"{types}: expected a type of every model, found none of {', '.join(lacking[:5])}")
    usual = np.array([of_type.get(name) == STANDARD for name in models])
    fitted = usual & [not any(part in name for part in _OTHER_DATA) for name in models]
    shown = ~usual & [_NOT_SHOWN not in name for name in models]
    return Table(f"{path.name}, ImageNet-C {kind}", models, columns["val"], natural, synthetic, fitted, shown)


def read_columns(path: pathlib.Path, key: str = "model") -> tuple[tuple[str, ...], dict[str, np.ndarray]]:
    """Reads a CSV file of numbers: (entries of the column `key`, {other column: float64 [N]});
    empty cells are NaN.

    Raises:
      FileNotFoundError: no such file.
      ValueError: another table, a line of another width, or a cell that is no number.
    """
    rows = read_rows(path, key)
    columns = {}
    for name in rows[0]:
        if name == key:
            continue
        try:
            columns[name] = np.array([float(row[name]) if row[name] else np.nan for row in rows])
        except ValueError as error:
            raise ValueError(f"{path}, column {name}: expected numbers, found {error}") from None
    return tuple(row[key] for row in rows), columns


def read_rows(path: pathlib.Path, *keys: str) -> list[dict[str, str]]:
    """Reads a CSV file with the columns `keys` and others: a dictionary for each line.

    Raises:
      FileNotFoundError: no such file.
      ValueError: a column is missing, the table is empty, or a line has another width.
    """
    if not path.is_file():
        raise FileNotFoundError(f"expected a table at {path}, found no file")
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file, strict=True)
        try:
            rows = list(reader)
        except csv.Error as error:
            raise ValueError(f"{path}, line {reader.line_num}: expected a CSV table, found {error}") from None
    if not rows or not set(keys) <= set(reader.fieldnames):
        raise ValueError(f"{path}: expected lines with the columns {', '.join(keys)}, found {reader.fieldnames}")
    for number, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise ValueError(f"{path}, line {number}: expected {len(reader.fieldnames)} fields, found another number")
    return rows


def read_types(path: pathlib.Path) -> dict[str, str]:
    """Reads a table `model,type`: {model: type}."""
    return {row["model"]: row["type"] for row in read_rows(path, "model", "type")}
