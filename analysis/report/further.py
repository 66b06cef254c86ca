"""Values of the section of results that not every study has: errors, severity ranges, coverage, categories, mixtures,
comparison with another study, distances of augmentation schemes, results of projects.
"""

import math
from typing import NamedTuple

from analysis.distances.results import mean_distances
from analysis.errors.summary import NONE, TITLES, notes
from analysis.report.inputs import Study
from analysis.rounding import fixed, with_error
from analysis.shapes import CALIBRATED
from runtime.json_shapes import mismatch


class Table(NamedTuple):
    """A table: headings, rows of cells (the first is the heading of its row), columns of numbers, name."""

    header: tuple
    rows: list
    numbers: tuple[int, ...] = ()
    label: str = ""


class Part(NamedTuple):
    """A result: title, paragraphs, a table or None, pictures (name, PNG)."""

    title: str
    texts: tuple[str, ...] = ()
    table: Table | None = None
    pictures: tuple[tuple[str, bytes], ...] = ()


def values(study: Study) -> dict:
    """Makes the values of further.html: results that are there, and (text, commands) for the others."""
    benchmark = study.benchmark or {}
    workdir = study.workdir
    found = (
        (_errors(study.error_summaries), None),  # overlap.py writes them
        (
            _ranges(study.ranges),
            ("Calibrated severity ranges (ranges.json).", f"python -m tools.calibrate --workdir={workdir}"),
        ),
        (
            _coverage(study.coverage or benchmark.get("coverage")),
            (
                "Which candidates a benchmark covers (coverage.json).",
                f"python select_noc.py --workdir={workdir} --coverage=imagenet_c",
            ),
        ),
        (
            _categories(benchmark.get("categories")),
            (
                "Categories of candidates.",
                f"python select_noc.py --workdir={workdir} --threshold={benchmark.get('threshold', 0.1):g} --categories",
            ),
        ),
        (
            _mixtures(study.mixtures),
            ("Models trained on whole benchmarks (mixtures.csv).", "python overlap.py --config.study.mixtures=..."),
        ),
        (
            _comparison(study.comparison),
            (
                "Comparison with another study of the same corruptions.",
                f"python -m tools.tables ... {workdir} --table=overlaps",
            ),
        ),
        (
            _distances(study.distances),
            (
                "Distances of augmentation schemes to corruptions (msd/msd.csv).",
                f"python -m tools.msd --config=configs/msd.py --workdir={workdir}",
            ),
        ),
    )
    absent = [(text, commands) for part, missing in found if part is None and missing for text, *commands in (missing,)]
    if not study.sections:
        shifts = (
            f"python eval.py --workdir={workdir} --config.eval.natural=...",
            f"python -m projects.natural_shift --workdirs={workdir} --out={workdir / 'natural_shift'}",
        )
        absent.append(("Whether corruptions predict natural shifts (natural_shift/section.json).", shifts))
    parts = [part for part, _ in found if part is not None]
    return {"parts": [*parts, *(_of_project(*section) for section in study.sections)], "absent": absent}


def _errors(summaries):
    """Lists the errors of models on benchmarks that are defined, with notes on their conditions."""
    rows = [
        (
            summary.model,
            summary.benchmark if summary.severities == NONE else f"{summary.benchmark} ({summary.severities})",
            TITLES[summary.measure],
            with_error(summary.mean, summary.se),
            fixed(summary.std, 2),
            "" if summary.reference == NONE else summary.reference,
            "; ".join(notes(summary)),
        )
        for summary in summaries or ()
        if not math.isnan(summary.mean)
    ]
    if not rows:
        return None
    header = ("model", "benchmark", "measure", "percent", "std of seeds", "relative to", "note")
    text = "Top-1 errors, mean ± standard error over test images; all numbers are in errors_summary.csv."
    return Part("Errors", (text,), Table(header, rows, (3, 4), "Errors on benchmarks"))


def _ranges(content):
    if content is None:
        return None
    rows = []
    for name, entry in content["corruptions"].items():
        bounds = [f"{value:.4g}" for value in entry["range"]]
        if mismatch(entry, CALIBRATED):
            rows.append((name, *bounds, "", *["\N{EN DASH}"] * 3, "given, not calibrated"))
            continue
        ends = [with_error(r, se) for r, se in zip(entry["robustness"], entry["robustness_se"])]
        notes = [f"{end} target out of reach" for end, capped in zip(("mild", "severe"), entry["capped"]) if capped]
        notes += [] if entry["monotone"] else ["R not monotone"]
        mean = with_error(entry["mean_robustness"], entry["mean_robustness_se"])
        rows.append((name, *bounds, entry["unit"], *ends, mean, "; ".join(notes)))
    header = ("corruption", "mild", "severe", "unit", "R mild", "R severe", "R mean", "notes")
    return Part("Severity ranges", (), Table(header, rows, (1, 2, 4, 5, 6)))


def _coverage(content):
    if content is None:
        return None
    order = sorted(content["corruptions"].items(), key=lambda item: -(item[1]["overlap"] or 0))
    rows = [
        (name, with_error(row["overlap"], row["se"]), row["member"], fixed(row["p"], 3), row["verdict"])
        for name, row in order
    ]
    header = ("corruption", "largest overlap", "with member", "p", "verdict")
    text = f"By {', '.join(content['benchmark'])}. p is of “no overlap with any member”, corrected for their number."
    return Part("Coverage", (text,), Table(header, rows, (1, 3)))


def _categories(content):
    if content is None:
        return None
    rows = [(number, ", ".join(names)) for number, names in enumerate(content, 1)]
    return Part("Categories of candidates", (), Table(("category", "corruptions"), rows))


def _mixtures(rows):
    if rows is None:
        return None
    lines = [
        (
            row["mixture"],
            row["corruption"],
            "member" if row["member"] == "1" else "",
            fixed(float(row["relative_ce"]), 1),
            with_error(float(row["relative_gain"]), float(row["relative_gain_se"]), sign=True),
        )
        for row in rows
    ]
    header = ("trained on", "tested on", "", "relative CE", "gain")
    text = "Relative corruption error in percent of the standard model's, and what is gained over it."
    return Part("Models trained on whole benchmarks", (text,), Table(header, lines, (3, 4)))


def _comparison(content):
    if content is None:
        return None
    matrices = content["matrices"]
    benchmarks = [b for b in content["benchmarks"] if b["threshold"] == content["threshold"]]
    low, high = matrices["spearman_interval"]
    facts = [
        f"{matrices['pairs']} pairs of corruptions: Spearman {fixed(matrices['spearman'], 2)} (95 % interval {fixed(low, 2)} to "
        f"{fixed(high, 2)}), Pearson {fixed(matrices['pearson'], 2)}, mean absolute difference "
        f"{fixed(matrices['mean_difference'], 3)}; the root mean square difference is {fixed(matrices['standardised'], 1)} standard "
        "errors, 1 being noise alone."
    ]
    facts += [
        f"Benchmarks at threshold {b['threshold']:g}: {', '.join(b['first'])}; and {', '.join(b['second'])}. "
        f"{len(b['shared'])} members are shared (Jaccard {b['jaccard']:.2f})."
        for b in benchmarks
    ]
    if content["training_seconds"]:
        first, second = content["training_seconds"]
        facts.append(f"Training took {first:.0f} s and {second:.0f} s.")
    return Part(f"{content['first']} compared with {content['second']}", tuple(facts))


def _distances(rows):
    if rows is None:
        return None
    means = mean_distances(rows)
    lines = []
    for scheme in dict.fromkeys(row.scheme for row in rows):
        by_name = {name: both for (of_scheme, name), both in means.items() if of_scheme == scheme}
        nearest, farthest = (choose(by_name, key=lambda name: by_name[name][0]) for choose in (min, max))
        average = [sum(both[k] for both in by_name.values()) / len(by_name) for k in range(2)]
        ends = [f"{name} {fixed(by_name[name][0], 3)}" for name in (nearest, farthest)]
        lines.append((scheme, *(fixed(value, 3) for value in average), *ends))
    header = ("scheme", "MSD", "MMD", "nearest corruption, MSD", "farthest corruption, MSD")
    text = (
        "Between the features of augmented and of corrupted images in the standard model: the minimal sample distance, to "
        "the nearest single augmentation, and the distance of the means; both averaged over the corruptions."
    )
    return Part("Distances of augmentation schemes to corruptions", (text,), Table(header, lines, (1, 2)))


def _of_project(content, pictures):
    """Shows the section.json of a project: title, sentences, a table, figures."""
    header, rows, title = content["header"], content["rows"], content["title"]
    table = Table(header, rows, tuple(range(1, len(header))), title) if header and rows else None
    return Part(title, tuple(content["facts"]), table, tuple(pictures.items()))
