"""Results that not every study has: errors, severity ranges, coverage, categories, mixtures, a comparison with another
study, distances of augmentation schemes, and results of projects.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from analysis.calibration import ranges_frame
from analysis.distances.results import mean_distances
from analysis.errors.summary import NONE, TITLES, notes
from analysis.frames import fixed, with_error
from analysis.overlap.agreement import ONE_OF_NOISE
from analysis.report.inputs import Study


class Part(NamedTuple):
    """A result."""

    title: str  # heading
    text: str = ""  # paragraph, or ""
    # header, rows: cells of a table; the first one of a row is its heading.
    header: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()
    numbers: Sequence[int] = ()  # columns of the table that hold numbers
    pictures: Sequence[tuple[str, bytes]] = ()  # (name, PNG)


def parts(study: Study) -> tuple[list[Part], list[tuple[str, str]]]:
    """Lists the results of a study, and (result, command that makes it) of the others."""
    workdir = study.workdir
    calibrate, mixtures = (
        f"python -m tools.calibrate --workdir={workdir}",
        "python overlap.py --config.study.mixtures=...",
    )
    compare, msd = (
        "python -m tools.tables OTHER {} --table=overlaps",
        "python -m tools.msd --config=configs/msd.py --workdir={}",
    )
    found = (
        (_errors(study), None),
        (_coverage(study), None),
        (_categories(study), None),
        (_ranges(study), ("calibrated severity ranges", calibrate)),
        (_mixtures(study), ("models trained on whole benchmarks", mixtures)),
        (_comparison(study), ("comparison with another study", compare.format(workdir))),
        (_distances(study), ("distances of augmentation schemes", msd.format(workdir))),
    )
    there = [part for part, _ in found if part] + [_of_project(*section) for section in study.sections]
    absent = [missing for part, missing in found if missing and not part]
    titles = {content["title"] for content, _ in study.sections}
    if "Confidence" not in titles:
        absent.append(("calibration and confidence", f"python -m tools.confidence --workdir={workdir}"))
    if not titles - {"Confidence"}:
        command = f"python -m projects.natural_shift --workdirs={workdir} --out={workdir / 'natural_shift'}"
        absent.append(("correlation with natural shifts", f"{command} (after eval.py --config.eval.natural=...)"))
    return there, absent


def _errors(study):
    if not study.summaries:
        return None
    header = ("model", "benchmark", "measure", "percent", "std of seeds", "relative to", "note")
    rows = [
        (
            summary.model,
            summary.benchmark + ("" if summary.severities == NONE else f" ({summary.severities})"),
            TITLES[summary.measure],
            with_error(summary.mean, summary.se),
            fixed(summary.std, 2),
            "" if summary.reference == NONE else summary.reference,
            "; ".join(notes(summary)),
        )
        for summary in study.summaries
    ]
    keep = [k for k in range(len(header)) if k < 4 or any(row[k] not in ("", "\N{EN DASH}") for row in rows)]
    rows = [[row[k] for k in keep] for row in rows]
    text = "Top-1 errors, mean ± standard error over test images."
    return Part("Errors on benchmarks", text, [header[k] for k in keep], rows, (3, 4) if 4 in keep else (3,))


def _coverage(study):
    if not study.covering:
        return None
    flags = dict(zip(study.names, study.overlap.flags))
    rows = [
        (name, "weak", "", "", "weak gain")
        if flags[name] == "weak"
        else (name, with_error(row.overlap, row.se), row.member, fixed(row.p, 3), row.verdict)
        for name, row in sorted(study.coverage.items(), key=lambda item: -np.nan_to_num(item[1].overlap, nan=-1))
    ]
    text = (
        f"Coverage by {', '.join(study.covering)}. p is of “no overlap with any member”, corrected for their number; "
        "members with a weak gain do not count."
    )
    header = ("corruption", "largest overlap", "with", "p", "verdict")
    return Part("Coverage of the other candidates", text, header, rows, (1, 3))


def _categories(study):
    if not study.categories or any(study.weak(study.names)):
        return None
    rows = [(number, ", ".join(names)) for number, names in enumerate(study.categories, 1)]
    return Part("Categories of candidates", "", ("category", "corruptions"), rows)


def _ranges(study):
    if study.ranges is None:
        return None
    frame = ranges_frame(study.ranges)
    return Part("Severity ranges", "", list(frame.columns), frame.to_numpy().tolist(), (1, 2, 4, 5, 6))


def _mixtures(study):
    if not study.mixtures:
        return None
    rows = [
        (
            mixture,
            row.Index,
            "member" if row.Index in members else "",
            fixed(row.relative_ce, 1),
            with_error(row.relative_gain, row.relative_gain_se, sign=True),
        )
        for mixture, (gains, members) in study.mixtures.items()
        for row in gains.drop("mean").itertuples()
    ]
    text = "Relative corruption error in percent of the standard model's, and the gain over it."
    header = ("trained on", "tested on", "", "relative CE", "gain")
    return Part("Models trained on whole benchmarks", text, header, rows, (3, 4))


def _comparison(study):
    if study.compared is None:
        return None
    first, matrices, benchmark, seconds = study.compared
    low, high = matrices.spearman_interval
    text = (
        f"{matrices.pairs} pairs of corruptions: Spearman {fixed(matrices.spearman, 2)} (95 % interval {fixed(low, 2)} to "
        f"{fixed(high, 2)}), Pearson {fixed(matrices.pearson, 2)}, mean absolute difference "
        f"{fixed(matrices.mean_difference, 3)}; the root mean square difference is {fixed(matrices.standardised, 1)} standard "
        f"errors ({ONE_OF_NOISE}). Benchmarks at threshold {benchmark.threshold:g}: {', '.join(benchmark.first)}; and "
        f"{', '.join(benchmark.second)}. {len(benchmark.shared)} members are shared (Jaccard {benchmark.jaccard:.2f})."
    )
    text += f" Training took {seconds[0]:.0f} s and {seconds[1]:.0f} s." if seconds else ""
    return Part(f"{first} compared with {study.workdir.name}", text)


def _distances(study):
    if not study.distances:
        return None
    means, rows = mean_distances(study.distances), []
    for scheme in dict.fromkeys(row.scheme for row in study.distances):
        by_name = {name: both for (of_scheme, name), both in means.items() if of_scheme == scheme}
        nearest, farthest = (choose(by_name, key=lambda name: by_name[name][0]) for choose in (min, max))
        average = np.mean(list(by_name.values()), axis=0)
        ends = [f"{name} {fixed(by_name[name][0], 3)}" for name in (nearest, farthest)]
        rows.append((scheme, *(fixed(value, 3) for value in average), *ends))
    text = (
        "Between the features of augmented and of corrupted images in a model of the study: the minimal sample distance, "
        "to the nearest single augmentation, and the distance of the means; both averaged over the corruptions."
    )
    header = ("scheme", "MSD", "MMD", "nearest corruption, MSD", "farthest corruption, MSD")
    return Part("Distances of augmentation schemes to corruptions", text, header, rows, (1, 2))


def _of_project(content, pictures):
    header, rows = content["header"], content["rows"]
    numbers = tuple(range(1, len(header)))
    return Part(content["title"], " ".join(content["facts"]), header, rows, numbers, tuple(pictures.items()))
