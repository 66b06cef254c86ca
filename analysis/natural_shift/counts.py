"""A table of models from our own workdirs: counts.csv with rows of natural shifts.

    model,seed,natural/imagenet_r,0,...    on ImageNet-R
    model,seed,clean/imagenet_r,0,...      on clean test images of its 200 classes

Without a row of the second kind, clean images of the same classes are all clean images.
"""

import pathlib
from collections.abc import Mapping, Sequence

import numpy as np

from analysis.derived import read_counts
from analysis.errors.joint import record_of
from analysis.natural_shift.table import Shift, Table
from analysis.tables import CLEAN, NATURAL, OF_CLASSES, STANDARD

_ADAPTED = "+bn=test"  # such models have seen the test's images


def read_workdirs(paths: Sequence[pathlib.Path], types: Mapping[str, str] | None = None) -> Table:
    """Reads the models of some counts.csv.

    A model is called FOLDER/MODEL/SEED, with the last part of its workdir's name. Accuracies of a
    corruption are averaged over its severities, which must be the same for all models. Models
    adapted to the test's images are left out.

    Args:
      paths: of the tables, each in a folder of another name.
      types: {name: type}; lines are fitted to models of type `standard`. None takes the models
        called `standard`, which were trained without corruption or scheme.

    Raises:
      SettingsError: a module that the evaluation imported is not found.
      FileNotFoundError, ValueError: a broken table, folders of the same name, a model without clean
        images, or severities that differ.
    """
    folders = [path.parent.resolve().name for path in paths]
    if not paths or len(set(folders)) != len(paths):
        raise ValueError(f"expected tables in folders of different names, found {', '.join(folders) or 'none'}")
    cells = {}
    for path, folder in zip(paths, folders, strict=True):
        record_of(path.parent)  # for the names of benchmarks that modules of the user's registered
        for count in read_counts(path):
            if _ADAPTED not in count.model:
                name = f"{folder}/{count.model}/{count.seed}"
                of_model = cells.setdefault(name, {}).setdefault(count.corruption, {})
                of_model[count.severity] = 100 * count.correct / count.total
    if lacking := [name for name, cell in cells.items() if CLEAN not in cell]:
        raise ValueError(f"expected every model on clean images, found none of {', '.join(lacking[:5])}")
    models = tuple(cells)
    conditions = list(dict.fromkeys(condition for cell in cells.values() for condition in cell))
    columns = {condition: _column(cells, condition) for condition in conditions}
    natural = {}
    for name in (condition.removeprefix(NATURAL) for condition in conditions if condition.startswith(NATURAL)):
        natural[name] = Shift(columns[NATURAL + name], columns.get(OF_CLASSES + name, columns[CLEAN]))
    other = (CLEAN, *(NATURAL + name for name in natural), *(OF_CLASSES + name for name in natural))
    synthetic = {name: columns[name] for name in conditions if name not in other}
    if types is None:
        standard = np.array([name.split("/", 1)[1].rpartition("/")[0] == STANDARD for name in models])
    else:
        standard = np.array([types.get(name) == STANDARD for name in models])
    source = f"{len(paths)} workdirs" if len(paths) > 1 else folders[0]
    return Table(source, models, columns[CLEAN], natural, synthetic, standard, ~standard)


def _column(cells, condition):
    """Mean accuracy over severities, [N]."""
    severities = {name: set(cell[condition]) for name, cell in cells.items() if condition in cell}
    first, expected = next(iter(severities.items()))
    for name, found in severities.items():
        if found != expected:
            raise ValueError(
                f"expected {condition} at the same severities for all models, found {sorted(map(str, expected))} for "
                f"{first} and {sorted(map(str, found))} for {name}"
            )
    return np.array(
        [np.mean(list(cell[condition].values())) if condition in cell else np.nan for cell in cells.values()]
    )
