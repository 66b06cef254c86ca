"""Computes from the answers of the study which corruptions each benchmark leaves uncovered; writes tables, figures, page.

    python -m projects.coverage.results --workdir=runs/coverage
    python -m projects.coverage.results --workdir=projects/coverage/cpu --out=docs/results/coverage --page=docs/coverage.md

The study may still be running: what follows from the models that have answered is written. Into --out (WORKDIR/results):

    models.csv                      models, clean accuracy, mean robustness R over all candidates
    candidates.csv                  R of the standard model on each candidate, its calibration error (ECE) and loss (NLL); gain
                                    in R of the model trained with the candidate, and of the best one trained with another
    mixtures.csv, mixtures.svg      does a model trained with a whole benchmark gain on each candidate outside of it?
    overlap.csv, overlap_long.csv, overlap.svg      overlaps of the candidates that a model was trained with
    published.csv                   do they agree with published overlaps?
    confidence.csv                  do candidates that overlap spoil the standard model's confidence alike?
    benchmark.json, stability.json  what Algorithm 1 selects from the candidates, and how often resamples select it
    benchmarks.csv, uncovered.csv   is each candidate covered by a member of each benchmark, and which is not?
    coverage.csv, coverage.svg      how many are, if only overlaps above a margin count?
    readings.csv, agreement.csv     do overlaps and training with the whole benchmark agree on it?
    balance.csv, alike.csv          how balanced are benchmarks, and which corruptions are alike?
    transfers.csv, asymmetry.csv    how much is transferred to each candidate, and do the two directions differ?
    crossed.csv, stability.csv      what is selected on one seed, measured on the other; sizes of what resamples select
    severities.csv                  do the ranges of severities reach R .95 and .50?

--page=FILE puts the tables between its lines `<!-- table NAME -->` and `<!-- end -->`, and numbers into its sentences
(`projects.coverage.page.value`).
"""

from runtime import command  # isort: skip

import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from absl import flags

from analysis import figures, frames
from analysis.overlap import study as overlap_study
from analysis.overlap.uncertainty import held_noise
from analysis.selection import algorithm
from projects.coverage import benchmarks, page, tables
from projects.coverage.tables import Study
from runtime import files
from runtime.log import log

ROOT = pathlib.Path(__file__).parents[2]
THRESHOLD = 0.1
OF_OVERLAPS = (
    "benchmarks", "uncovered", "coverage", "readings", "agreement", "balance", "alike", "transfers", "asymmetry", "crossed", "stability",
    "published", "confidence",
)  # fmt: skip
"""Tables that need overlaps."""


class Written(NamedTuple):
    """Tables of a study for a page: {name: Markdown}, and {name: frame}, from which the numbers in its sentences come."""

    texts: dict[str, str]
    numbers: dict[str, pd.DataFrame]


def write(study: Study, out: pathlib.Path) -> Written:
    """Writes every table and figure of a study."""
    out.mkdir(parents=True, exist_ok=True)
    origin = f"answers of {len(study.models)} models of projects.coverage under {len(study.candidates)} corruptions"
    variances = {name: tables.training_variance(study, name) for name in study.candidates}
    models, candidates = tables.models_frame(study), tables.candidates_frame(study, variances)
    mixtures, held = tables.mixtures_frame(study, variances), held_noise(1, len(study.several))
    frames.write(out / "models.csv", models, origin)
    for name, table in (("candidates", candidates), ("mixtures", mixtures)):
        frames.write(out / f"{name}.csv", table, f"{origin}; errors hold {held}")
    texts = {"models": page.models(models), "candidates": page.candidates(candidates)}
    made = {"models": models, "candidates": candidates, "mixtures": mixtures}
    if len(mixtures):
        figures.save(page.mixtures_figure(mixtures), out / "mixtures", ("svg",))
    if study.ranges:
        made["severities"] = benchmarks.severities_frame(ROOT / study.ranges, study.candidates)
        frames.write(out / "severities.csv", made["severities"], f"ranges of {study.ranges}")
        texts["severities"] = page.severities(made["severities"])
    of_overlaps = _write_overlaps(study, out, origin, mixtures) if len(study.trained) > 1 else Written({}, {})
    made |= of_overlaps.numbers
    if len(mixtures):
        texts["mixtures"] = page.mixtures(mixtures, made.get("agreement", pd.DataFrame({"benchmark": []})))
    return Written(texts | of_overlaps.texts, made)


def _write_overlaps(study, out, origin, mixtures):
    bits, seeds = study.found.study(study.trained)
    kept = [number for number, seed in enumerate(seeds) if seed in study.seeds]
    classes = study.found.conditions["classes"] or None
    measured = overlap_study.Study.of(study.trained, bits[kept], study.seeds, classes, tables.repeats(study))
    for sentence in measured.overlap.warnings:
        log.warning("%s.", sentence)
    origin = f"{origin}; errors hold {measured.errors.held}"
    overlap_study.write_matrix(out, measured, f"Overlap of {len(study.trained)} corruptions", origin, ("svg",))
    found = overlap_study.write_selection(out, measured, THRESHOLD)
    for name in OF_OVERLAPS:  # left by an earlier run
        files.remove(out / f"{name}.csv")
    figures.remove(out, ["coverage"], ("svg",))
    if found is None or np.sum(~algorithm.undefined(measured.overlap.overlap)) < 3:
        log.info("Fewer than three candidates have defined overlaps: benchmarks are not compared yet.")
        return Written({}, {})
    of = benchmarks.members_of_all(study.candidates, study.trained, found[0])
    accuracy = dict(zip(study.seeds, bits[kept].mean(axis=-1), strict=True))
    covered = benchmarks.benchmarks_frame(measured, of)
    readings = tables.readings_frame(covered, mixtures)
    sets = files.read_json(out / "benchmark.json", kind=None)["number_of_sets"]
    made = {
        "benchmarks": covered,
        "coverage": benchmarks.coverage_frame(measured, of),
        "readings": readings,
        "agreement": tables.agreement_frame(readings),
        "balance": benchmarks.balance_frame(measured, of, [*accuracy.values()]),
        "alike": benchmarks.alike_frame(measured),
        "transfers": benchmarks.transfers_frame(measured),
        "asymmetry": benchmarks.asymmetry_frame(measured),
        "crossed": benchmarks.crossed_frame(study.trained, accuracy, THRESHOLD),
        "stability": benchmarks.stability_frame(found[1], found[0], sets),
        "uncovered": benchmarks.uncovered_frame(covered),
        "published": tables.published_frame(measured.measured),
        "confidence": tables.confidence_frame(study, measured.measured),
    }
    for name in OF_OVERLAPS:
        frames.write(out / f"{name}.csv", made[name], origin)
    figures.save(page.coverage_figure(made["coverage"]), out / "coverage", ("svg",))
    texts = {name: getattr(page, name)(made[name]) for name in OF_OVERLAPS if hasattr(page, name)}
    return Written(texts | {"selected": page.selected(*found, measured.overlap)}, made)


def define_flags() -> None:
    flags.DEFINE_string("workdir", None, "Workdir of the study (required).")
    flags.DEFINE_string("out", None, "Folder of the results; default WORKDIR/results.")
    flags.DEFINE_string("page", None, "Page whose tables are filled in.")


def main(argv: Sequence[str]) -> None:
    given = command.given(argv, {"workdir": "DIR"})
    written = write(tables.read(given.workdir), pathlib.Path(given.out or pathlib.Path(given.workdir) / "results"))
    for name, text in written.texts.items():
        print(f"\n{name}\n\n{text}")
    if given.page:
        path = pathlib.Path(given.page)
        files.write_atomically(path, page.fill(path.read_text(encoding="utf-8"), *written))


if __name__ == "__main__":
    define_flags()
    command.run(main)
