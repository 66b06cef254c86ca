"""Workdirs with made-up answers: so many images answered correctly, the first ones."""

import numpy as np
import pandas as pd

from analysis import answers
from analysis.frames import Count
from corruptions.scoring.conditions import Condition


def write_answers(folder, counts, conditions=None, shown="these", **said):
    """Writes the answers that add up to some counts, measured under `Conditions`; returns the folder.

    What else the records say goes to `about`.
    """
    by_condition = {}
    for count in counts:
        by_condition.setdefault((count.corruption, count.severity), []).append(count)
    for (corruption, severity), of_condition in by_condition.items():
        number = of_condition[0].total
        by_model = {(count.model, count.seed): np.arange(number) < count.correct for count in of_condition}
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


def read_counts(path):
    """Reads counts.csv: a list of `Count`."""
    return [
        Count(*row[:3], Condition(row[2], row[3]).label, *row[4:])
        for row in pd.read_csv(path, dtype={"severity": str}).itertuples(index=False, name=None)
    ]
