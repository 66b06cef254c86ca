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
    benchmarks.csv, balance.csv     is each candidate covered by a member of each benchmark, and how balanced are these?

--page=FILE puts the tables between its lines `<!-- table NAME -->` and `<!-- end -->`.
"""

from runtime import command  # isort: skip

import pathlib
from collections.abc import Sequence

import numpy as np
from absl import flags

from analysis import figures, frames
from analysis.overlap import study as overlap_study
from analysis.overlap.uncertainty import held_noise
from analysis.selection import algorithm
from projects.coverage import page, tables
from projects.coverage.tables import Study
from runtime import files
from runtime.log import log

THRESHOLD = 0.1


def write(study: Study, out: pathlib.Path) -> dict[str, str]:
    """Writes every table and figure of a study; returns {name: the table as Markdown} for a page."""
    out.mkdir(parents=True, exist_ok=True)
    origin = f"answers of {len(study.models)} models of projects.coverage under {len(study.candidates)} corruptions"
    variances = {name: tables.training_variance(study, name) for name in study.candidates}
    models, candidates = tables.models_frame(study), tables.candidates_frame(study, variances)
    mixtures, held = tables.mixtures_frame(study, variances), held_noise(1, len(study.several))
    frames.write(out / "models.csv", models, origin)
    for name, table in (("candidates", candidates), ("mixtures", mixtures)):
        frames.write(out / f"{name}.csv", table, f"{origin}; errors hold {held}")
    texts = {"models": page.models(models), "candidates": page.candidates(candidates)}
    if len(mixtures):
        texts |= {"mixtures": page.mixtures(mixtures), "outside": page.outside(mixtures)}
        figures.save(page.mixtures_figure(mixtures), out / "mixtures", ("svg",))
    if len(study.trained) > 1:
        texts |= _write_overlaps(study, out, origin)
    return texts


def _write_overlaps(study, out, origin):
    bits, seeds = study.found.study(study.trained)
    kept = [number for number, seed in enumerate(seeds) if seed in study.seeds]
    classes = study.found.conditions["classes"] or None
    measured = overlap_study.Study.of(study.trained, bits[kept], study.seeds, classes, tables.repeats(study))
    for sentence in measured.overlap.warnings:
        log.warning("%s.", sentence)
    origin = f"{origin}; errors hold {measured.errors.held}"
    overlap_study.write_matrix(out, measured, f"Overlap of {len(study.trained)} corruptions", origin, ("svg",))
    found = overlap_study.write_selection(out, measured, THRESHOLD)
    for name in ("benchmarks", "balance", "published", "confidence"):  # left by an earlier run
        files.remove(out / f"{name}.csv")
    if found is None or np.sum(~algorithm.undefined(measured.overlap.overlap)) < 3:
        log.info("Fewer than three candidates have defined overlaps: benchmarks are not compared yet.")
        return {}
    benchmarks = tables.members_of_all(study, found[0])
    made = {
        "benchmarks": tables.benchmarks_frame(measured, benchmarks),
        "balance": tables.balance_frame(measured, benchmarks),
        "published": tables.published_frame(measured.measured),
        "confidence": tables.confidence_frame(study, measured.measured),
    }
    for name, table in made.items():
        frames.write(out / f"{name}.csv", table, origin)
    texts = {name: getattr(page, name)(table) for name, table in made.items()}
    return texts | {"selected": page.selected(*found, measured.overlap)}


def define_flags() -> None:
    flags.DEFINE_string("workdir", None, "Workdir of the study (required).")
    flags.DEFINE_string("out", None, "Folder of the results; default WORKDIR/results.")
    flags.DEFINE_string("page", None, "Page whose tables are filled in.")


def main(argv: Sequence[str]) -> None:
    given = command.given(argv, {"workdir": "DIR"})
    written = write(tables.read(given.workdir), pathlib.Path(given.out or pathlib.Path(given.workdir) / "results"))
    for name, text in written.items():
        print(f"\n{name}\n\n{text}")
    if given.page:
        path = pathlib.Path(given.page)
        files.write_atomically(path, page.fill(path.read_text(encoding="utf-8"), written))


if __name__ == "__main__":
    define_flags()
    command.run(main)
