"""Sections of a report about the study itself: summary, what was run, its models, and what to be
careful about.
"""

import datetime
import json
import math

import numpy as np

from analysis.report import svg
from analysis.report.html import Html, join, section, table, tag
from analysis.report.inputs import Study
from analysis.report.warnings import warnings
from analysis.rounding import fixed, with_error
from analysis.tables import STANDARD

_FLAGS = {"": "", "weak": "weak gain *", "invalid": "no gain !"}


def title(study: Study) -> str:
    """Titles the page after the study."""
    return f"Overlap of {len(study.names)} corruptions on {setting(study.config, 'dataset', 'name')}"


def summary(study: Study) -> Html:
    """Writes the first lines: what was done, the benchmark, and the numbers behind it."""
    overlap, config, n = study.overlap, study.config, len(study.names)
    seeds = f"{len(study.seeds)} seeds" if len(study.seeds) > 1 else "one seed"
    what = tag(
        "p",
        f"A standard {setting(config, 'model', 'name')} and one trained under each of {n} corruptions, "
        f"{setting(config, 'train', 'epochs')} epochs, {seeds}, were shown the same {overlap.number:,} test images of "
        f"{setting(config, 'dataset', 'name')}, clean and under every corruption.",
        class_="lead",
    )
    selected = None
    if study.benchmark:
        labels = [study.labels[study.names.index(name)] for name in study.benchmark["members"]]
        members = join([tag("b", label) for label in labels], ", ")
        selected = tag(
            "p", f"Benchmark at an overlap of at most {study.benchmark['threshold']:g}: ", members, ".", class_="lead"
        )
    off = study.errors.overlap[np.triu_indices(n, 1)]
    typical = float(np.nanmedian(off)) if np.isfinite(off).any() else math.nan
    clear = sum(not flag for flag in overlap.flags)
    tiles = (
        (with_error(overlap.clean_accuracy[0], study.errors.clean[0]), "clean accuracy of the standard model"),
        (f"{clear} of {n}", "corruptions with a clear gain, whose overlaps count"),
        (fixed(typical, 2), "median standard error of an overlap"),
        (len(study.benchmark["members"]) if study.benchmark else "none yet", "members of the benchmark"),
    )
    cells = [tag("div", tag("b", value), tag("span", text)) for value, text in tiles]
    number = sum(serious for serious, _ in warnings(study))
    note = (
        tag("p", tag("a", f"{number} warning{'s' * (number > 1)}", href="#warnings"), " before you use these numbers.")
        if number
        else None
    )
    return join((what, selected, tag("div", *cells, class_="tiles"), note))


def study_section(study: Study) -> Html:
    """Shows what was run, and the table of models."""
    record, config = study.provenance, study.config
    train = config.get("train", {})
    facts = (
        ("dataset", f"{setting(config, 'dataset', 'name')}, {study.overlap.number:,} test images"),
        ("model", f"{setting(config, 'model', 'name')}{_model_options(config)}"),
        ("recipe", _recipe(train)),
        ("seeds", ", ".join(map(str, study.seeds))),
        ("severity", _severity(train)),
        ("device", record.get("device", "not recorded")),
        ("machine", record.get("machine", "not recorded")),
        ("revision", tag("code", record.get("git_revision", "not recorded"))),
        (
            "versions",
            ", ".join(f"{name} {version}" for name, version in record.get("versions", {}).items()) or "not recorded",
        ),
        ("command", tag("code", record.get("command", "not recorded"))),
        ("dates", _dates(study)),
        ("training", _training(study)),
    )
    listed = tag("dl", *(join((tag("dt", name), tag("dd", value))) for name, value in facts), class_="facts")
    stored = json.dumps(config, indent=2, sort_keys=True)
    return section(
        "study",
        "What was run",
        listed,
        tag("details", tag("summary", "All settings (config.json)"), tag("pre", stored)),
        tag("h3", "Models"),
        _models(study),
        tag(
            "p",
            "R is accuracy under a corruption over clean accuracy; “R standard” is that of the standard model, “R own” "
            "that of the model trained with the corruption; their difference is the gain G, which every overlap is divided "
            "by. Flagged: a gain below max(0.03, three standard errors).",
            class_="caption",
        ),
    )


def warnings_section(study: Study) -> Html:
    """Lists what to be careful about."""
    items = [tag("li", text, class_="serious" if serious else "note") for serious, text in warnings(study)]
    listed = tag("ul", *items, class_="warnings") if items else tag("p", "None.")
    return section("warnings", "What to be careful about", listed)


def _models(study):
    overlap, errors = study.overlap, study.errors
    values = [*overlap.robustness[0], *np.diag(overlap.robustness[1:])]
    low, high = math.floor(10 * min(values)) / 10, max(1.0, *values)
    clean = overlap.clean_accuracy
    rows = [(STANDARD, (with_error(clean[0], errors.clean[0]), "number"), *[("", "number")] * 4, "")]
    for k, name in enumerate(study.names):
        before, after = overlap.robustness[0, k], overlap.robustness[k + 1, k]
        rows.append(
            (
                name,
                (with_error(clean[k + 1], errors.clean[k + 1]), "number"),
                (with_error(before, errors.standard[k]), "number"),
                (with_error(after, errors.trained[k]), "number"),
                svg.pair(before, after, low, high),
                (with_error(overlap.gain[k], errors.gain[k], sign=True), "number"),
                (_FLAGS[overlap.flags[k]], "flag" if overlap.flags[k] else None),
            )
        )
    axis = tag("span", tag("i", fixed(low, 1)), tag("i", fixed(high, 1)), class_="ends")
    header = (
        "trained with",
        ("clean accuracy", "number"),
        ("R standard", "number"),
        ("R own", "number"),
        axis,
        ("gain", "number"),
        "flag",
    )
    return table(header, rows, class_="models")


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


def _model_options(config):
    rest = {key: value for key, value in config.get("model", {}).items() if key != "name" and value != ""}
    return "".join(f", {key} {value}" for key, value in rest.items())


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
    written = datetime.datetime.fromtimestamp((study.workdir / "overlap.csv").stat().st_mtime, datetime.UTC)
    texts = [f"overlap.csv of {written:%Y-%m-%d %H:%M} UTC"]
    if study.benchmark and study.benchmark.get("written"):
        texts.append(f"benchmark of {study.benchmark['written'][:16].replace('T', ' ')} UTC")
    return "; ".join(texts)


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


def setting(config: dict, *keys) -> object:
    """Looks up a value of the nested settings, as text shows it."""
    for key in keys:
        config = config.get(key, {}) if isinstance(config, dict) else {}
    return "(not recorded)" if isinstance(config, dict) else config
