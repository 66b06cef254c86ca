"""Section of a report for results that not every study has, and for what is missing, the command
that makes it.

Errors, calibrated ranges, coverage, categories, mixtures, comparison with another study, distances of
augmentation schemes, sections of projects.
"""

from analysis.distances.results import mean_distances
from analysis.report.errors import errors_part
from analysis.report.html import Html, data_uri, join, missing, section, table, tag
from analysis.report.inputs import Study
from analysis.rounding import fixed, with_error
from analysis.shapes import CALIBRATED
from runtime.json_shapes import mismatch


def optional_section(study: Study) -> Html:
    """Shows what is there, then what to run for what is not, then the files."""
    benchmark = study.benchmark or {}
    present = (
        errors_part(study.error_summaries),
        _ranges(study.ranges),
        _coverage(study.coverage or benchmark.get("coverage")),
        _categories(benchmark.get("categories")),
        _mixtures(study.mixtures),
        _comparison(study.comparison),
        _distances(study.distances),
        _of_projects(study.sections),
    )
    commands = (
        None,  # overlap.py writes it, or did not yet
        ("Calibrated severity ranges (ranges.json).", f"python -m tools.calibrate --workdir={study.workdir}"),
        (
            "Which candidates a benchmark covers (coverage.json).",
            f"python select_noc.py --workdir={study.workdir} --coverage=imagenet_c",
        ),
        (
            "Categories of candidates.",
            f"python select_noc.py --workdir={study.workdir} --threshold={benchmark.get('threshold', 0.1):g} --categories",
        ),
        ("Models trained on whole benchmarks (mixtures.csv).", "python overlap.py --config.study.mixtures=..."),
        (
            "Comparison with another study of the same corruptions.",
            f"python -m tools.tables ... {study.workdir} --table=overlaps",
        ),
        (
            "Distances of augmentation schemes to corruptions (msd/msd.csv).",
            f"python -m tools.msd --config=configs/msd.py --workdir={study.workdir}",
        ),
        (
            "Whether corruptions predict natural shifts (natural_shift/section.json).",
            f"python eval.py --workdir={study.workdir} --config.eval.natural=...",
            f"python -m projects.natural_shift --workdirs={study.workdir} --out={study.workdir / 'natural_shift'}",
        ),
    )
    absent = [missing(*command) for part, command in zip(present, commands) if part is None and command]
    rows = [(name, (f"{size:,}", "number"), tag("code", digest[:16])) for name, size, digest in study.files]
    return section(
        "further",
        "Further results and files",
        *present,
        join((tag("h3", "Not in this workdir"), *absent)) if absent else None,
        tag("h3", "Files this report was made from"),
        table(("file", ("bytes", "number"), "SHA-256, first 16 digits"), rows),
    )


def _ranges(content):
    if content is None:
        return None
    rows = []
    for name, entry in content["corruptions"].items():
        bounds = [f"{value:.4g}" for value in entry["range"]]
        if mismatch(entry, CALIBRATED):
            rows.append((name, *_numbers(*bounds), "", *_numbers(*["\N{EN DASH}"] * 3), "given, not calibrated"))
            continue
        ends = [with_error(r, se) for r, se in zip(entry["robustness"], entry["robustness_se"])]
        notes = [f"{end} target out of reach" for end, capped in zip(("mild", "severe"), entry["capped"]) if capped]
        notes += [] if entry["monotone"] else ["R not monotone"]
        mean = with_error(entry["mean_robustness"], entry["mean_robustness_se"])
        rows.append((name, *_numbers(*bounds), entry["unit"], *_numbers(*ends, mean), "; ".join(notes)))
    header = ("corruption", *_numbers("mild", "severe"), "unit", *_numbers("R mild", "R severe", "R mean"), "notes")
    return join((tag("h3", "Severity ranges"), table(header, rows)))


def _coverage(content):
    if content is None:
        return None
    order = sorted(content["corruptions"].items(), key=lambda item: -(item[1]["overlap"] or 0))
    rows = [
        (
            name,
            *_numbers(with_error(row["overlap"], row["se"])),
            row["member"],
            *_numbers(fixed(row["p"], 3)),
            row["verdict"],
        )
        for name, row in order
    ]
    header = ("corruption", *_numbers("largest overlap"), "with member", *_numbers("p"), "verdict")
    text = f"By {', '.join(content['benchmark'])}. p is of “no overlap with any member”, corrected for their number."
    return join((tag("h3", "Coverage"), tag("p", text), table(header, rows)))


def _categories(content):
    if content is None:
        return None
    rows = [(number, ", ".join(names)) for number, names in enumerate(content, 1)]
    return join((tag("h3", "Categories of candidates"), table(("category", "corruptions"), rows)))


def _mixtures(rows):
    if rows is None:
        return None
    lines = [
        (
            row["mixture"],
            row["corruption"],
            "member" if row["member"] == "1" else "",
            *_numbers(fixed(float(row["relative_ce"]), 1)),
            *_numbers(with_error(float(row["relative_gain"]), float(row["relative_gain_se"]), sign=True)),
        )
        for row in rows
    ]
    header = ("trained on", "tested on", "", *_numbers("relative CE", "gain"))
    text = "Relative corruption error in percent of the standard model's, and what is gained over it."
    return join((tag("h3", "Models trained on whole benchmarks"), tag("p", text), table(header, lines)))


def _comparison(content):
    if content is None:
        return None
    matrices, benchmarks = (
        content["matrices"],
        [b for b in content["benchmarks"] if b["threshold"] == content["threshold"]],
    )
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
    title = tag("h3", f"{content['first']} compared with {content['second']}")
    return join((title, *(tag("p", fact) for fact in facts)))


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
        lines.append((scheme, *_numbers(*(fixed(value, 3) for value in average)), *ends))
    header = ("scheme", *_numbers("MSD", "MMD"), "nearest corruption, MSD", "farthest corruption, MSD")
    text = (
        "Between the features of augmented and of corrupted images in the standard model: the minimal sample distance, to "
        "the nearest single augmentation, and the distance of the means; both averaged over the corruptions."
    )
    title = tag("h3", "Distances of augmentation schemes to corruptions")
    return join((title, tag("p", text), table(header, lines)))


def _of_projects(sections):
    """Shows section.json of each project: title, sentences, a table, figures."""
    parts = []
    for content, pictures in sections:
        parts += [tag("h3", content["title"]), *(tag("p", fact) for fact in content["facts"])]
        header, *rows = [(*row[:1], *_numbers(*row[1:])) for row in (content["header"], *content["rows"])]
        if header and rows:
            parts.append(table(header, rows, label=content["title"]))
        for name, picture in pictures.items():
            parts.append(tag("p", tag("img", src=data_uri(picture), alt=f"{content['title']}: {name}")))
    return join(parts) if parts else None


def _numbers(*texts):
    return [(text, "number") for text in texts]
