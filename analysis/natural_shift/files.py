"""Results of tools.natural_shift in a folder.

natural_shift.md        the tables as printed
natural_shift.json      everything, with what it was made from
predictions.csv         benchmark,shift,measure,value,low,high,models
benchmarks.csv          categories,per_category,size,spread,benchmarks,shift,r,low,high
"""

import pathlib
from collections.abc import Mapping
from typing import Any

from analysis.lines import write_rows
from analysis.natural_shift.study import Study
from runtime.files import write_atomically, write_json

JSON = "natural_shift.json"
PREDICTIONS = ("benchmark", "shift", "measure", "value", "low", "high", "models")
BENCHMARKS = ("categories", "per_category", "size", "spread", "benchmarks", "shift", "r", "low", "high")
_MEASURES = {  # measure -> the field that counts its models
    "drop": "models",
    "drop_matched": "models",
    "accuracy": "models",
    "spearman": "models",
    "partial": "partial_models",
    "effective": "shown",
}
_UNITS = {"published_units": "models"}


def content(study: Study) -> dict[str, Any]:
    """Gives a study as JSON holds it: records as objects, estimates as [value, low, high]."""
    return {name: _plain(value) for name, value in study._asdict().items()}


def write_study(
    folder: pathlib.Path, study: Study, text: str, record: Mapping[str, Any], published_units: bool = False
) -> None:
    """Writes the four files.

    Args:
      folder: made when missing.
      study: what was found.
      text: as printed.
      record: what it was made from (`runtime.provenance.record_inputs`), and the command.
      published_units: with the correlations that repeat the published code's error in units, marked
        as such.
    """
    folder.mkdir(parents=True, exist_ok=True)
    comment = f"{study.source}, {study.resamples} resamples of the models"
    measures = _MEASURES | (_UNITS if published_units else {})
    predictions = [
        (row.benchmark, row.shift, measure, *getattr(row, measure), getattr(row, models))
        for row in (*study.benchmark, *study.corruptions)
        for measure, models in measures.items()
    ]
    write_rows(folder / "predictions.csv", PREDICTIONS, predictions, comment)
    bins = [
        (*row[:5], shift, *estimate)
        for row in study.bins
        for shift, estimate in {**row.correlation, "mean": row.mean}.items()
    ]
    write_rows(folder / "benchmarks.csv", BENCHMARKS, bins, comment)
    write_atomically(folder / "natural_shift.md", f"# Natural shifts\n\n{text}\n\nCommand: `{record['command']}`\n")
    write_json(folder / JSON, {**content(study), **record})


def _plain(value):
    """NamedTuples as objects, but for estimates; NaN as null."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        fields = value._asdict()
        if tuple(fields) == ("value", "low", "high"):
            return [_plain(part) for part in value]
        return {name: _plain(part) for name, part in fields.items()}
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and value != value else value
