"""Renders the page of a report from `templates/page.html`, which escapes every value."""

import base64
import datetime
import json
import math
import pathlib
import shlex
from collections.abc import Mapping, Sequence

import jinja2
import markupsafe
import numpy as np

from analysis import figures
from analysis.frames import STANDARD, bare, fixed, percent, with_error
from analysis.report import further
from analysis.report.charts import Chart
from analysis.report.inputs import Study
from analysis.selection.algorithm import Selection
from analysis.selection.benchmark import near
from runtime.artifacts import short

_SECTIONS = (  # identity, entry in the contents, heading
    ("warnings", "Warnings", "Before you use these numbers"),
    ("study", "What was run", "What was run"),
    ("overlap", "Overlap", "Which corruptions overlap"),
    ("transfer", "Transfer", "Which way robustness transfers"),
    ("balance", "Balance", "How balanced the candidates are"),
    ("sweep", "Thresholds", "What each threshold selects"),
    ("benchmark", "Benchmark", "The selected benchmark"),
    ("further", "Further results", "Further results and files"),
)
_FLAGS = {"": "", "weak": "weak gain *", "invalid": "no gain !"}
_SETS = 10  # number of most frequent sets listed
_RARE = 0.5  # a member selected in a smaller share of the resamples is called unstable


def document(
    study: Study,
    charts: Mapping[str, Chart] | None = None,
    selections: Sequence[Selection] = (),
    samples: bytes | None = None,
    caption: str = "",
) -> str:
    """Renders the page as one self-contained HTML file.

    `study`, `charts` and `selections` are of `inputs.read`, `charts.draw` and `charts.sweep`; a missing chart is left
    out. `samples` is a PNG of sample images, or None; `caption` a sentence on them, or the reason for none.
    """
    parts, absent = further.parts(study)
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
            charts={name: markupsafe.Markup(chart.svg) for name, chart in (charts or {}).items()},
            formats=(*figures.FORMATS, "svg"),
            weak=study.weak(study.selection.members) if study.selection else [],
            tiles=_tiles(study),
            facts=_facts(study),
            command=_wrapped(study.provenance.get("command", "not recorded")),
            models=_models(study),
            pairs=_clear_pairs(study),
            held=study.errors.held,
            central=f"± is half the width of the central 68\N{NO-BREAK SPACE}% of {len(study.errors.unclipped_samples):,} "
            f"resamples ({study.errors.held}).",
            sweep=_sweep(study, selections),
            cards=[_card(study, name) for name in study.selection.members] if study.selection else [],
            won=_won(study),
            sets=study.stability.sets[:_SETS] if study.stability else (),
            samples=samples,
            caption=caption,
            warnings=listed,
            parts=parts,
            absent=absent,
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
    data_uri = lambda png: f"data:image/png;base64,{base64.b64encode(png).decode()}"  # noqa: E731
    environment.filters |= {"fixed": fixed, "percent": percent, "data_uri": data_uri}
    return environment


def _wrapped(command):
    """Breaks a command before each flag, as a shell takes it."""
    try:
        words = shlex.split(command)
    except ValueError:  # not a shell command
        return command
    return "".join(f" \\\n    {_quoted(w)}" if w.startswith("--") else f" {_quoted(w)}" for w in words).strip()


def _quoted(word):
    """Quotes only the value of a flag, and text with single quotes in double quotes."""
    flag, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    plain = "'" in value and not set(value) & set('"$`\\!')
    return shlex.quote(flag) * bool(flag) + equals + (f'"{value}"' if plain else shlex.quote(value) if value else "")


def _tiles(study):
    n, clear = len(study.names), study.clear
    typical = "weak"
    if clear:
        se = clear.errors.overlap[np.triu_indices(len(clear.overlap.names), 1)]
        typical = fixed(float(np.median(se)), 2)
    members = study.selection.members if study.selection else ()
    good = len(members) - len(study.weak(members))
    return (
        (with_error(study.overlap.clean_accuracy[0], study.errors.clean[0]), "clean accuracy of the standard model"),
        (
            f"{sum(not flag for flag in study.overlap.flags)} of {n}",
            "corruptions with a clear gain, whose overlaps count",
        ),
        (typical, "median standard error of their overlaps"),
        (len(members), "members of the benchmark")
        if good == len(members)
        else (f"{good} of {len(members)}", "selected corruptions with a clear gain"),
    )


def _facts(study):
    record, train = study.provenance, study.config.get("train", {})
    versions = ", ".join(f"{name} {version}" for name, version in record.get("versions", {}).items())
    options = {k: v for k, v in study.config.get("model", {}).items() if k != "name" and v not in ("", [], 0)}
    seconds = (study.timing or {}).get("training_seconds", {})
    total = sum(seconds.values())
    minutes = f"{total / 60:.0f} minutes" if total >= 120 else f"{total:.0f} s"
    return (
        ("dataset", f"{study.setting('dataset', 'name')}, {study.overlap.number:,} test images"),
        ("model", ", ".join([study.setting("model", "name"), *(f"{k} {v}" for k, v in options.items())])),
        ("recipe", _recipe(train)),
        ("seeds", ", ".join(map(str, study.whole.seeds))),
        ("severity", _severity(train)),
        ("training", f"{minutes} for {len(seconds)} models" if seconds else "not recorded (timing.json)"),
        ("device", record.get("device", "not recorded")),
        ("machine", record.get("machine", "not recorded")),
        ("revision", record.get("git_revision", "not recorded")),
        ("versions", versions or "not recorded"),
        ("dates", _dates(study)),
    )


def _models(study):
    """Lists the cells of the table of models: accuracies, R before and after training on the corruption, gain."""
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
    names = ("epochs", "batch_size", "learning_rate", "schedule", "milestones", "warmup_epochs", "momentum")
    names += ("weight_decay", "corrupted_fraction", "flip", "init_from")
    used = [(name, train[name]) for name in names if train.get(name) not in (None, "", 0, [], False)]
    used = [(name, value) for name, value in used if name != "milestones" or train.get("schedule") == "step"]
    return "; ".join(f"{name.replace('_', ' ')} {value}" for name, value in used) or "not recorded"


def _severity(train):
    options = train.get("corruption_options", {}).items()
    ranges = [f"{name} {o['range'][0]:g} to {o['range'][1]:g}" for name, o in options if o.get("range")]
    source = f"the ranges of the settings: {', '.join(ranges)}" if ranges else "published ranges"
    return f"drawn for each image, from {source}"


def _dates(study):
    """Reads the times of the last table and of the choice in the workdir's records: times of files change when it is
    copied.
    """
    entries = (study.provenance, *study.provenance.get("files", {}).values())
    last = max((str(entry.get("written", "")) for entry in entries), default="")
    times = {"results of": last, "benchmark chosen": study.chosen_at}
    return (
        "; ".join(f"{what} {time[:16].replace('T', ' ')} UTC" for what, time in times.items() if time) or "not recorded"
    )


def _clear_pairs(study):
    """Lists (first, second, overlap) of the five largest overlaps that are known well: no flag on either corruption,
    more than two standard errors above 0.
    """
    overlap, se = study.overlap, study.errors.overlap
    good = [k for k, flag in enumerate(overlap.flags) if not flag]
    pairs = [(i, j) for a, i in enumerate(good) for j in good[a + 1 :] if overlap.unclipped[i, j] > 2 * se[i, j]]
    pairs = sorted(pairs, key=lambda pair: -overlap.overlap[pair])[:5]
    return [(study.labels[i], study.labels[j], with_error(overlap.overlap[i, j], se[i, j])) for i, j in pairs]


def _sweep(study, selections):
    """Makes the table of thresholds: its header, and a row for each corruption in the order of the clusters."""
    means = ["weak" if study.is_weak(s) else bare(fixed(s.mean_overlap, 2)) for s in selections]
    rows = [{"name": "", "label": "members", "cells": [s.size for s in selections]}]
    rows.append({"name": "", "label": "mean overlap", "cells": means})
    for k in figures.cluster_order(study.overlap.overlap, study.overlap.flags):
        cells = ["●" if study.names[k] in s.members else "" for s in selections]
        label = study.labels[k] + figures.MARKS[study.overlap.flags[k]]
        rows.append({"name": study.names[k], "label": label, "cells": cells})
    return {
        "header": [bare(f"{s.threshold:g}") for s in selections],
        "kinds": ["own" if s.threshold == study.threshold else "" for s in selections],
        "rows": rows,
    }


def _card(study, name):
    overlap, errors, k = study.overlap, study.errors, study.names.index(name)
    others = [j for j, other in enumerate(study.names) if other in study.selection.members and j != k]
    others = [j for j in others if not overlap.flags[j]]
    largest = "weak" if overlap.flags[k] else "\N{EN DASH}"
    if others and not overlap.flags[k]:
        most = max(others, key=lambda j: overlap.overlap[k, j])
        largest = f"{with_error(overlap.overlap[k, most], errors.overlap[k, most])} ({study.labels[most]})"
    return (
        name,
        with_error(overlap.robustness[0, k], errors.standard[k]),
        with_error(overlap.gain[k], errors.gain[k], sign=True) + figures.MARKS[overlap.flags[k]],
        largest,
        percent(study.stability.members[name]),
    )


def _won(study):
    """Finds the share of resamples that the selected set wins; None if none is listed."""
    sets, members = (study.stability.sets, set(study.selection.members)) if study.stability else ((), set())
    return next((share for listed, share in sets if set(listed) == members), None)


# Sentences on the limits of the numbers.


def warnings(study: Study) -> list[tuple[bool, str]]:
    """Lists (serious, sentence), serious ones first."""
    sentences = [(True, sentence) for sentence in (*study.overlap.warnings, study.other_code) if sentence]
    sentences += _near_threshold(study) + _selection(study) + _revisions(study) + _errors(study)
    return sorted(sentences, key=lambda sentence: not sentence[0])


def near_threshold(study: Study, names: Sequence[str]) -> list[tuple[str, str, float, float]]:
    """Lists (first, second, unclipped overlap, standard error) of the pairs, without a weak gain, that lie within two
    standard errors of the threshold.
    """
    known = [name for name in study.names if name in names and not study.weak((name,))]
    return near(known, study.names, study.overlap.unclipped, study.errors.overlap, study.threshold)


def _near_threshold(study):
    if study.selection is None:
        return []
    threshold, number = f"{study.threshold:g}", len(study.names)
    result = [
        (True, f"{first} and {second}, both members, may overlap more than {threshold}: {with_error(*value)} unclipped")
        for first, second, *value in near_threshold(study, study.selection.members)
    ]
    if every := near_threshold(study, study.names):
        note = (
            f"{len(every)} of {number * (number - 1) // 2} pairs lie within two standard errors of the threshold "
            f"{threshold}: chance decides which of their corruptions are selected (see the resampled selections)"
        )
        result.append((False, note))
    return result


def _selection(study):
    selection, result = study.selection, []
    if selection is None:
        return result
    asked = study.config.get("study", {}).get("threshold")
    if asked is not None and asked != study.threshold:
        result.append((False, f"the benchmark was selected at {study.threshold:g}, the study's threshold is {asked:g}"))
    if selection.ties:
        note = "other sets have the same size and mean overlap; the overlap before it is clipped at 0 chose among them"
        result.append((False, f"{len(selection.ties)} {note}"))
    if not selection.exact:
        result.append(
            (True, "the search for the benchmark gave up before proving that its mean overlap is the smallest")
        )
    if weak := study.weak(selection.members):
        result.append((True, f"selected although a weak gain leaves their overlaps unknown: {', '.join(weak)}"))
    if selection.dropped:
        result.append((True, f"left out of the selection, without a defined overlap: {', '.join(selection.dropped)}"))
    if rare := [name for name in selection.members if study.stability.members[name] < _RARE]:
        result.append((True, f"selected in fewer than half of the resamples, although members: {', '.join(rare)}"))
    return result


def _revisions(study):
    revision, result = str(study.provenance.get("git_revision", "unknown")), []
    if revision.endswith("+changes"):
        plain = revision.removesuffix("+changes")[:12]
        result.append((True, f"the code differed from its revision {plain} (uncommitted changes)"))
    runs = [study.provenance, *study.provenance.get("continued", [])]
    if later := {str(run.get("git_revision", "unknown")) for run in runs} - {revision}:
        listed = ", ".join(sorted(map(short, later)))
        result.append((True, f"the study was continued by other revisions than {revision[:12]}: {listed}"))
    devices = {str(run.get("device")) for run in runs} | {device for _, _, device in study.models}
    if len(devices) > 1:
        result.append((False, f"more than one device computed the results: {', '.join(sorted(devices))}"))
    if others := [trained_by for _, trained_by, _ in study.models if trained_by != revision]:
        counted = f"{len(others)} of {len(study.models)} models were trained by another revision than {revision[:12]}"
        result.append((True, f"{counted}: {', '.join(sorted(map(short, set(others))))}"))
    return result


def _errors(study):
    result = [(False, sentence) for sentence in study.omitted.values()]
    if len(study.whole.seeds) == 1:
        result.append((False, "one seed: standard errors are over the test images only and contain no training noise"))
    above = int(np.sum(np.triu(np.nan_to_num(study.clear.overlap.overlap), 1) > 1)) if study.clear else 0
    if above:
        result.append(
            (False, f"overlaps above 1 between corruptions with a clear gain (noise, or real synergy): {above}")
        )
    return result
