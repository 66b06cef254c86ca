"""Workdirs with made-up answers: so many images answered correctly, the first ones."""

import numpy as np
import pandas as pd

from analysis import answers
from corruptions import Count
from corruptions.scoring.conditions import Condition


def write_answers(folder, counts, conditions=None, shown="these", **said):
    """Writes the answers that add up to some counts, measured under `Conditions`; returns the folder.

    What else the records say goes to `about`.
    """
    by_condition = {}
    for key, count in counts:
        by_condition.setdefault(count[:2], {})[key] = count
    for (corruption, severity), of_condition in by_condition.items():
        number = next(iter(of_condition.values())).total
        by_model = {key: np.arange(number) < count.correct for key, count in of_condition.items()}
        of = {"images": shown}, about(conditions, corruption) | said
        answers.write(folder / answers.FOLDER, by_model, answers.Record(corruption, severity, None, number, *of))
    return folder


def about(conditions, corruption):
    """Makes the description of the conditions in a file's record."""
    if conditions is None:
        return {}
    names = ("dataset", "classes", "image_shape", "preprocessing")
    found = {name: getattr(conditions, name) for name in names} | {"image_shape": list(conditions.image_shape)}
    described = conditions.corruptions.get(corruption)
    return found if described is None else found | {"described": dict(described)}


def counted(model, seed, *count):
    """Makes a row of counts.csv."""
    return (model, seed), Count(*count)


def cell_of(row):
    """Gives (model, seed, corruption, severity) of a row of counts.csv."""
    return *row[0], *row[1][:2]


def read_counts(path):
    """Reads counts.csv."""
    return [
        counted(*row[:3], Condition(row[2], row[3]).label, *row[4:])
        for row in pd.read_csv(path, dtype={"severity": str}).itertuples(index=False, name=None)
    ]
