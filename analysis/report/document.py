"""Renders the page of a report from the templates in `templates/`, which escape every value."""

import base64
import datetime
import json
import math
import pathlib
from collections.abc import Sequence

import jinja2
import numpy as np

from analysis import figures
from analysis.report import benchmark, further, matrices
from analysis.report.inputs import Study
from analysis.report.warnings import warnings
from analysis.rounding import fixed, percent, with_error
from analysis.selection.algorithm import Selection
from analysis.tables import STANDARD

_SECTIONS = (  # template, entry in the contents, heading
    ("study", "What was run", "What was run"),
    ("overlap", "Overlap", "Which corruptions overlap"),
    ("transfer", "Transfer", "Which way robustness transfers"),
    ("balance", "Balance", "How balanced the candidates are"),
    ("sweep", "Thresholds", "What each threshold selects"),
    ("benchmark", "Benchmark", "The selected benchmark"),
    ("warnings", "Warnings", "What to be careful about"),
    ("further", "Further results", "Further results and files"),
)
_FLAGS = {"": "", "weak": "weak gain *", "invalid": "no gain !"}


def document(study: Study, selections: Sequence[Selection] | None, strips) -> str:
    """Renders the page, one HTML file that needs nothing else.

    Args:
      study: from `analysis.report.inputs.read`.
      selections: benchmarks by threshold (`analysis.report.benchmark.sweep`), or None.
      strips: sample pictures (`analysis.report.samples.Strips`), or a sentence that says why there
        are none.
    """
    listed = warnings(study)
    return (
        _environment()
        .get_template("page.html")
        .render(
            study=study,
            title=f"Overlap of {len(study.names)} corruptions on {study.setting('dataset', 'name')}",
            made=f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC",
            sections=_SECTIONS,
            setting=study.setting,
            settings=json.dumps(study.config, indent=2, sort_keys=True),
            labels=dict(zip(study.names, study.labels)),
            kinds=figures.FORMATS,
            tiles=_tiles(study),
            facts=_facts(study),
            models=_models(study),
            warnings=listed,
            serious=sum(is_serious for is_serious, _ in listed),
            **matrices.values(study),
            **benchmark.values(study, selections, strips),
            **further.values(study),
        )
    )


def _environment():
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(pathlib.Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"fixed": fixed, "percent": percent, "data_uri": _data_uri}
    return environment


def _data_uri(png):
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _tiles(study):
    """Lists the large numbers at the top of the page, each with its caption."""
    n = len(study.names)
    pairs = study.errors.overlap[np.triu_indices(n, 1)]
    typical = float(np.nanmedian(pairs)) if np.isfinite(pairs).any() else math.nan
    clear = sum(not flag for flag in study.overlap.flags)
    return (
        (
            with_error(study.overlap.clean_accuracy[0], study.errors.clean[0]),
            "clean accuracy of the standard model",
        ),
        (f"{clear} of {n}", "corruptions with a clear gain, whose overlaps count"),
        (fixed(typical, 2), "median standard error of an overlap"),
        (len(study.benchmark["members"]) if study.benchmark else "none yet", "members of the benchmark"),
    )


def _facts(study):
    """Lists (name, value, whether the value is code)."""
    record, train = study.provenance, study.config.get("train", {})
    versions = ", ".join(f"{name} {version}" for name, version in record.get("versions", {}).items())
    options = {key: value for key, value in study.config.get("model", {}).items() if key != "name" and value != ""}
    return (
        ("dataset", f"{study.setting('dataset', 'name')}, {study.overlap.number:,} test images", False),
        ("model", ", ".join([study.setting("model", "name"), *(f"{k} {v}" for k, v in options.items())]), False),
        ("recipe", _recipe(train), False),
        ("seeds", ", ".join(map(str, study.seeds)), False),
        ("severity", _severity(train), False),
        ("device", record.get("device", "not recorded"), False),
        ("machine", record.get("machine", "not recorded"), False),
        ("revision", record.get("git_revision", "not recorded"), True),
        ("versions", versions or "not recorded", False),
        ("command", record.get("command", "not recorded"), True),
        ("dates", _dates(study), False),
        ("training", _training(study), False),
    )


def _models(study):
    """Values of the table of models: accuracies, R before and after training on the corruption, gain."""
    overlap, errors = study.overlap, study.errors
    before, after = overlap.robustness[0], np.diag(overlap.robustness[1:])
    low, high = math.floor(10 * min(*before, *after)) / 10, max(1.0, *before, *after)
    clean = [with_error(value, se) for value, se in zip(overlap.clean_accuracy, errors.clean)]
    rows = [
        {
            "name": name,
            "clean": clean[k + 1],
            "before": with_error(before[k], errors.standard[k]),
            "after": with_error(after[k], errors.trained[k]),
            "ends": [f"{2 + 116 * (value - low) / (high - low):.2f}" for value in (before[k], after[k])],
            "gain": with_error(overlap.gain[k], errors.gain[k], sign=True),
            "flag": _FLAGS[overlap.flags[k]],
        }
        for k, name in enumerate(study.names)
    ]
    return {"standard": STANDARD, "clean": clean[0], "low": fixed(low, 1), "high": fixed(high, 1), "rows": rows}


def _recipe(train):
    if not train:
        return "not recorded"
    schedule = f"{train.get('schedule')} schedule"
    if train.get("schedule") == "step":
        schedule += f" (epochs {', '.join(map(str, train.get('milestones', ())))})"
    elif train.get("warmup_epochs"):
        schedule += f" with {train['warmup_epochs']} of them to warm up"
    parts = [
        f"{train.get('epochs')} epochs of SGD",
        f"batches of {train.get('batch_size')}",
        f"learning rate {train.get('learning_rate')}",
        schedule,
        f"momentum {train.get('momentum')}",
        f"weight decay {train.get('weight_decay')}",
        f"{train.get('corrupted_fraction')} of each batch corrupted",
    ]
    parts += ["mirrored at random"] if train.get("flip") else []
    parts += [f"started from {train['init_from']}"] if train.get("init_from") else []
    return ", ".join(parts)


def _severity(train):
    options = train.get("corruption_options", {})
    ranges = [
        f"{name} {option['range'][0]:g} to {option['range'][1]:g}"
        for name, option in options.items()
        if option.get("range")
    ]
    return f"drawn for each image, from {'given' if ranges else 'published'} ranges" + (
        f": {', '.join(ranges)}" if ranges else ""
    )


def _dates(study):
    texts, table = [], study.workdir / "overlap.csv"
    if table.is_file():
        written = datetime.datetime.fromtimestamp(table.stat().st_mtime, datetime.UTC)
        texts.append(f"overlap.csv of {written:%Y-%m-%d %H:%M} UTC")
    if study.benchmark and study.benchmark.get("written"):
        texts.append(f"benchmark of {study.benchmark['written'][:16].replace('T', ' ')} UTC")
    return "; ".join(texts) or "not recorded"


def _training(study):
    seconds = (study.timing or {}).get("training_seconds")
    if not seconds:
        return "not recorded (timing.json)"
    total = sum(seconds.values())
    return (
        f"{total / 60:.0f} minutes for {len(seconds)} models"
        if total >= 120
        else f"{total:.0f} s for {len(seconds)} models"
    )
