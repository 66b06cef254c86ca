"""Tables of models made up here, for the tests of natural shifts."""

import csv
import dataclasses

import numpy as np
import pandas as pd

from projects.natural_shift.benchmarks import IMAGENET_C_CATEGORIES
from projects.natural_shift.sources import Table


def write(path, header, *rows):
    """Writes a table of comma-separated values; returns its path."""
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def sigmoid(x):
    return 100 / (1 + np.exp(-x))


def made_up(number=24, seed=0):
    """Models of which the first half is standard: ImageNet-R follows a line in logits, others
    exceed it by as much as they exceed the line of the corruptions.
    """
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 2, number)  # logit of clean accuracy
    standard = np.arange(number) < number // 2
    extra = np.where(standard, 0, rng.uniform(0, 1, number))
    names = [f"imagenet_c/{name}" for cluster in IMAGENET_C_CATEGORIES for name in cluster]
    synthetic = {name: sigmoid(0.8 * x - 1 + extra + rng.normal(0, 0.2, number)) for name in names}
    columns = {"clean": sigmoid(x), "natural/imagenet_r": sigmoid(0.6 * x - 2 + extra), "clean/imagenet_r": sigmoid(x)}
    columns["natural/imagenet_v2"] = sigmoid(0.9 * x - 0.5 + rng.normal(0, 0.1, number))
    columns |= {"clean/imagenet_v2": sigmoid(x)} | synthetic
    return Table("made up", pd.DataFrame(columns, index=[f"model{i}" for i in range(number)]), standard, ~standard)


def changed(table, **columns):
    """The table with other columns; `__` in a name stands for `/`."""
    columns = {name.replace("__", "/"): values for name, values in columns.items()}
    return dataclasses.replace(table, accuracy=table.accuracy.assign(**columns))
