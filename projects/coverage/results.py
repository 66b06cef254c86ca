"""Computes from the answers of the study which corruptions each benchmark leaves uncovered; writes tables, figures, page.

    python -m projects.coverage.results --workdir=runs/coverage
    python -m projects.coverage.results --workdir=projects/coverage/cpu --out=docs/results/coverage --page=docs/coverage.md

The study may still be running: what follows from the models that have answered is written. Into --out (WORKDIR/results):

    models.csv                      models, clean accuracy, mean robustness R over all candidates
    candidates.csv                  R of the standard model on each candidate, its calibration error (ECE) and loss (NLL); gain
                                    in R of the model trained with the candidate, and of the best one trained with another
    mixtures.csv, mixtures.svg      does a model trained with a whole benchmark gain on each candidate outside of it?
    overlap.csv, overlap_long.csv, overlap.svg      overlaps of the candidates that a model was trained with
    confidence.csv                  do candidates that overlap spoil the standard model's confidence alike?
    benchmarks.csv                  is each candidate covered by a member of each benchmark?
    benchmark.json, stability.json  what Algorithm 1 selects from the candidates, and how often resamples select it

--page=FILE puts the tables between its lines `<!-- table NAME -->` and `<!-- end -->`.
"""

from runtime import command  # isort: skip

import dataclasses
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from absl import flags
from scipy import stats

from analysis import answers, figures, frames
from analysis.answers import Answers, Key
from analysis.confidence import cells
from analysis.frames import CLEAN, RANDOM, STANDARD, fixed, with_error
from analysis.overlap import study as overlap_study
from analysis.overlap.agreement import agreement
from analysis.overlap.measured import MeasuredOverlap, matrix_frame, pairs_frame
from analysis.overlap.uncertainty import held_noise
from analysis.references import qualified_members
from analysis.selection import algorithm
from analysis.selection.benchmark import UNDEFINED, measure_coverage, select_benchmark
from projects.coverage import (
    CONFIDENT,
    bank,  # noqa: F401  the answers name it
)
from runtime import files, workdirs
from training import augmentation

THRESHOLD = 0.1
LEVEL = 0.05
GAINS, LOSES, UNSHOWN = "gains", "loses", "not shown"
BENCHMARKS = {
    "imagenet_c": ("imagenet_c/",),
    "imagenet_noc": qualified_members("imagenet_noc"),
    "noc_candidates": ("noc/",),
    "laion_c": ("laion_c/",),
    "optics": ("optics/",),
    "camera": ("camera/",),
}
"""{benchmark: beginnings of the names of its members}."""


def members(benchmark: str, candidates: Iterable[str]) -> tuple[str, ...]:
    """Lists the candidates that belong to a benchmark; noc/salt_pepper and noc/pixelate are ImageNet-C's twins."""
    twins = ("imagenet_c/impulse_noise", "imagenet_c/pixelate") if benchmark == "noc_candidates" else ()
    return tuple(name for name in candidates if name.startswith(BENCHMARKS[benchmark]) or name in twins)


class Study(NamedTuple):
    """The answers of a study.

    Attributes:
      found: its answers.
      candidates: corruptions of the study, in their order.
      models: the study's models that answered under every condition.
      trained: candidates that a model was trained with for each of `seeds`.
      seeds: seeds that `trained` is complete for.
    """

    found: Answers
    candidates: tuple[str, ...]
    models: tuple[Key, ...]
    trained: tuple[str, ...]
    seeds: tuple[int, ...]

    def correct(self, name: str, corruption: str) -> np.ndarray:
        """Averages over the seeds of a model which images it answers correctly, float [N]."""
        at = 0 if corruption == CLEAN else RANDOM
        return np.mean([self.found.correct((*key, corruption, at)) for key in self.models if key[0] == name], axis=0)


def read(workdir: str | pathlib.Path) -> Study:
    """Reads the answers of a study that has ended or is still running.

    Raises:
      FileNotFoundError, DamagedFileError: no answers, or damaged ones.
      ValueError: the standard model has not answered under every condition yet, or two corruptions are the same one,
        because training with them made the same network.
    """
    found = answers.read(workdir)
    candidates = overlap_study.corruptions_of(pathlib.Path(workdir), found)
    asked = {STANDARD, *candidates}
    keys = dict.fromkeys(
        (name, seed) for name, seed, *_ in found if name in asked or name.startswith(augmentation.MIXTURE)
    )
    models = tuple(key for key in keys if all((*key, name, RANDOM) in found for name in candidates))
    _refuse_twins(found, models)
    standard = [seed for name, seed in models if name == STANDARD]
    if not standard:
        raise ValueError(f"expected answers of the standard model to all corruptions, found none in {workdir}")
    of_seed = {seed: [name for name in candidates if (name, seed) in models] for seed in standard}
    first = of_seed[min(standard)]
    seeds = tuple(seed for seed in sorted(standard) if first and set(first) <= set(of_seed[seed]))
    return Study(found, candidates, models, tuple(first), seeds)


def _refuse_twins(found, models):
    """Raises ValueError if two models are the same network, by the digests that their answers name."""
    first = {}
    for key in models:
        digest = found.record((*key, CLEAN, 0)).models.get(key)
        if digest and (twin := first.setdefault(digest, key)) != key:
            raise ValueError(
                f"expected another network for each training, found one for {twin[0]} and {key[0]}, seed {key[1]}: the "
                "two corruptions are the same here; take one of them out of config.study.corruptions"
            )


def models_frame(study: Study) -> pd.DataFrame:
    """Tabulates each model: clean accuracy, its standard error over test images, mean R over the candidates."""
    rows = []
    for name, seed in study.models:
        clean = study.found.correct((name, seed, CLEAN, 0))
        of_all = [study.found.correct((name, seed, candidate, RANDOM)).mean() for candidate in study.candidates]
        se = frames.standard_error(clean.sum(), clean.size)
        rows.append((name, seed, clean.mean(), se, np.mean(of_all) / clean.mean()))
    return frames.of_rows(rows, ("model", "seed", "clean_accuracy", "se", "mean_robustness"))


def candidates_frame(study: Study) -> pd.DataFrame:
    """Tabulates each candidate c.

    R of the standard model is the mean over seeds, ECE and NLL are of the first seed. `own_gain` is the gain in R on c
    of the model trained with c. `best_other` is, of the models trained with another candidate, the one that gains most
    on c, and `best_gain`, `best_se` are its gain (see `gain`) and the error: chosen as the largest, it is on average too
    large. All four are missing without such a model.
    """
    clean, rows = study.correct(STANDARD, CLEAN).mean(), []
    for name in study.candidates:
        (confidence,) = study.found.confidence(name, RANDOM, [CONFIDENT]).values()
        measured = cells.measure(confidence)
        gains = {trained: gain(study, trained, name) for trained in study.trained}
        own, _ = gains.pop(name, (None, None))
        best = max(gains, key=gains.get, default=None)
        robustness = study.correct(STANDARD, name).mean() / clean
        rows.append((name, robustness, measured["ece"], measured["nll"], own, best, *gains.get(best, (None, None))))
    columns = ("corruption", "robustness", "ece", "nll", "own_gain", "best_other", "best_gain", "best_se")
    return frames.of_rows(rows, columns)


def gain(study: Study, model: str, corruption: str) -> tuple[float, float]:
    """Computes the gain in robustness of a model over the standard one, and its standard error.

    With the answers a of the model and s of the standard one, both 0 or 1, to image i under the corruption and, with
    index 0, to the clean image, and the clean accuracies A and S:

        gain = R - R_standard = mean(a) / A - mean(s) / S
        se   = deviation over images of  a / A - R a0 / A - (s / S - R_standard s0 / S),  over sqrt(N)

    (first order of the ratios; both models see the same images). The error holds test images only.
    """
    parts = []
    for name in (model, STANDARD):
        answered, clean = study.correct(name, corruption), study.correct(name, CLEAN)
        robustness = answered.mean() / clean.mean()
        parts.append((robustness, (answered - robustness * clean) / clean.mean()))
    (ours, of_image), (theirs, of_standard) = parts
    return ours - theirs, (of_image - of_standard).std(ddof=1) / np.sqrt(len(of_image))


def mixtures_frame(study: Study) -> pd.DataFrame:
    """Tests whether a model trained with a whole benchmark gains robustness to each candidate outside of it.

    p is two-sided normal on `gain` over its error, corrected for all rows of the table by Benjamini and Yekutieli (2001),
    which holds under any dependence.
    """
    rows = []
    for mixture in dict.fromkeys(name for name, _ in study.models if name.startswith(augmentation.MIXTURE)):
        inside = members(augmentation.benchmark(mixture), study.candidates)
        rows += [(mixture, name, int(name in inside), *gain(study, mixture, name)) for name in study.candidates]
    table = frames.of_rows(rows, ("mixture", "corruption", "member", "gain", "se"))
    outside = table.member == 0
    p = 2 * stats.norm.sf(np.abs(table.gain / table.se.where(table.se > 0, np.inf)))  # no difference: p = 1
    table["p"] = np.nan
    if outside.any():
        table.loc[outside, "p"] = stats.false_discovery_control(p[outside], method="by")
    shown = np.where(table.gain > 0, GAINS, LOSES)
    table["verdict"] = np.where(~outside, "", np.where(table.p <= LEVEL, shown, UNSHOWN))
    return table


def confidence_frame(study: Study, measured: MeasuredOverlap) -> pd.DataFrame:
    """Tests whether candidates that overlap spoil the confidence of the standard model alike.

    Over pairs of the candidates that a model was trained with, rank correlation (Spearman) of the overlap with two
    likenesses of their effects: `loss`, the correlation over test images of the two rises in the loss (NLL) from the clean
    image; `ece`, minus the distance of the two calibration errors. Intervals resample candidates
    (`analysis.overlap.agreement`). Empty for fewer than three candidates whose overlaps are defined.
    """
    columns = ("likeness", "pairs", "spearman", "low", "high")
    if np.sum(~algorithm.undefined(measured.overlap)) < 3:
        return frames.of_rows([], columns)
    (clean,) = study.found.confidence(CLEAN, 0, [CONFIDENT]).values()
    shown = [one for name in measured.names for one in study.found.confidence(name, RANDOM, [CONFIDENT]).values()]
    ece = np.array([cells.measure(one)["ece"] for one in shown])
    alike = {
        "loss": np.corrcoef([one.loss - clean.loss for one in shown]),
        "ece": -np.abs(ece[:, None] - ece),
    }
    rows = []
    for name, matrix in alike.items():
        found = agreement(measured, MeasuredOverlap(measured.names, matrix, matrix))
        rows.append((name, found.pairs, found.spearman, *found.spearman_interval))
    return frames.of_rows(rows, columns)


def benchmarks_frame(measured: overlap_study.Study) -> pd.DataFrame:
    """Tests whether a member of each benchmark covers each other candidate (`analysis.selection.benchmark`)."""
    names, rows = measured.overlap.names, []
    for benchmark in BENCHMARKS:
        inside = members(benchmark, names)
        if inside and len(inside) < len(names):
            samples = measured.errors.unclipped_samples
            covered = measure_coverage(measured.overlap.unclipped, names, inside, samples=samples)
            rows += [(benchmark, name, *row) for name, row in covered.items() if row.verdict != UNDEFINED]
    columns = ("benchmark", "corruption", "overlap", "with_member", "se", "p", "p_uncovered", "verdict", "members")
    return frames.of_rows(rows, columns)


def write(study: Study, out: pathlib.Path) -> dict[str, str]:
    """Writes every table and figure of a study; returns {name: the table as Markdown} for a page."""
    out.mkdir(parents=True, exist_ok=True)
    origin = f"answers of {len(study.models)} models of projects.coverage under {len(study.candidates)} corruptions"
    models, candidates, mixtures = models_frame(study), candidates_frame(study), mixtures_frame(study)
    for name, table in (("models", models), ("candidates", candidates), ("mixtures", mixtures)):
        frames.write(out / f"{name}.csv", table, origin)
    texts = {"models": _models_text(models), "candidates": _candidates_text(candidates)}
    if len(mixtures):
        texts |= {"mixtures": _mixtures_text(mixtures), "outside": _outside_text(mixtures)}
        figures.save(_mixtures_figure(mixtures), out / "mixtures", ("svg",))
    if len(study.trained) > 1:
        texts |= _write_overlaps(study, out, origin)
    return texts


def _write_overlaps(study, out, origin):
    bits, seeds = study.found.study(study.trained)
    kept = [number for number, seed in enumerate(seeds) if seed in study.seeds]
    measured = overlap_study.Study.of(study.trained, bits[kept], study.seeds)
    overlap, se = measured.overlap, measured.errors.overlap
    frames.write(out / "overlap.csv", matrix_frame(overlap.names, overlap.overlap), origin)
    frames.write(out / "overlap_long.csv", pairs_frame(overlap, se), origin)
    benchmarks = benchmarks_frame(measured)
    frames.write(out / "benchmarks.csv", benchmarks, origin)
    confidence = confidence_frame(study, measured.measured)
    frames.write(out / "confidence.csv", confidence, origin)
    picture = figures.heatmap(
        overlap.overlap,
        overlap.names,
        flags=overlap.flags,
        se=se,
        title=f"Overlap of {len(overlap.names)} corruptions",
        notes=[f"standard errors: {held_noise(overlap.seeds)}"],
        tree=True,
    )
    figures.save(picture, out / "overlap", ("svg",))
    content = select_benchmark(measured.measured, out / "benchmark.json", THRESHOLD)
    samples = measured.errors.unclipped_samples
    stability = algorithm.stability(np.maximum(samples, 0), overlap.names, THRESHOLD, unclipped=samples)
    workdirs.write_json(out / "stability.json", dataclasses.asdict(stability) | {"sets": stability.sets[:20]})
    selected = [(name, f"{100 * stability.members.get(name, 0):.0f} %") for name in content["members"]]
    return {
        "benchmarks": _benchmarks_text(benchmarks),
        "confidence": _confidence_text(confidence),
        "selected": frames.markdown(frames.of_rows(selected, ("selected", "of resamples"))),
    }


def _models_text(table):
    rows = [
        (name, str(len(of_name)), fixed(of_name.clean_accuracy.mean(), 3), fixed(of_name.mean_robustness.mean(), 3))
        for name, of_name in table.groupby("model", sort=False)
    ]
    return frames.markdown(frames.of_rows(rows, ("trained with", "seeds", "clean accuracy", "mean R")))


def _candidates_text(table):
    rows = []
    for row in table.itertuples():
        own = "-" if pd.isna(row.own_gain) else fixed(row.own_gain, 2, sign=True)
        best = ("-", "-")
        if not pd.isna(row.best_gain):
            best = (row.best_other, with_error(row.best_gain, row.best_se, sign=True))
        rows.append((row.corruption, fixed(row.robustness, 2), fixed(row.ece, 3), fixed(row.nll, 2), own, *best))
    columns = ("corruption", "R", "ECE", "NLL", "own gain", "best other model", "its gain")
    return frames.markdown(frames.of_rows(rows, columns))


def _confidence_text(table):
    likeness = {"loss": "correlation of the rises in loss over images", "ece": "nearness of the calibration errors"}
    rows = [
        (likeness[row.likeness], str(row.pairs), fixed(row.spearman, 2), f"{fixed(row.low, 2)} to {fixed(row.high, 2)}")
        for row in table.itertuples()
    ]
    return frames.markdown(frames.of_rows(rows, ("likeness", "pairs", "rank correlation with overlap", "95 %")))


def _mixtures_text(table):
    """Counts the verdicts on the candidates outside of each mixture."""
    rows = []
    for mixture, of_mixture in table[table.member == 0].groupby("mixture", sort=False):
        counted = of_mixture.verdict.value_counts()
        numbers = (str(counted.get(verdict, 0)) for verdict in (GAINS, UNSHOWN, LOSES))
        mean = fixed(of_mixture.gain.mean(), 3, sign=True)
        rows.append((augmentation.benchmark(mixture), str(len(of_mixture)), *numbers, mean))
    columns = ("trained with all of", "candidates outside", *(GAINS, UNSHOWN, LOSES), "mean gain in R")
    return frames.markdown(frames.of_rows(rows, columns))


def _outside_text(table):
    """Lists the candidates outside of each mixture that its model does not gain on, worst first."""
    left = table[(table.member == 0) & (table.verdict != GAINS)].sort_values(["mixture", "gain"])
    rows = [
        (augmentation.benchmark(row.mixture), row.corruption, with_error(row.gain, row.se, sign=True), row.verdict)
        for row in left.itertuples()
    ]
    return frames.markdown(frames.of_rows(rows, ("trained with all of", "corruption", "gain in R", "verdict")))


def _benchmarks_text(table):
    rows = []
    for benchmark, of_benchmark in table.groupby("benchmark", sort=False):
        for verdict, of_verdict in of_benchmark.groupby("verdict"):
            names = ", ".join(of_verdict.corruption)
            rows.append((benchmark, verdict, str(len(of_verdict)), names))
    return frames.markdown(frames.of_rows(rows, ("benchmark", "verdict", "number", "candidates")))


def _mixtures_figure(table):
    names = list(dict.fromkeys(table.corruption))
    panels = []
    for mixture, of_mixture in table.groupby("mixture", sort=False):
        of = of_mixture.set_index("corruption").loc[names]
        mark = ["" if row.member == 0 else "member" for row in of.itertuples()]
        title = f"gain in R, {augmentation.benchmark(mixture)}"
        panels.append(figures.Panel(title, of.gain.to_numpy(), texts=mark, se=of.se.to_numpy()))
    figure, _ = figures.bars(names, panels, title="Models trained with a whole benchmark")
    return figure


def fill(page: str, tables: Mapping[str, str]) -> str:
    """Puts Markdown tables between the lines `<!-- table NAME -->` and `<!-- end -->` of a page.

    Raises:
      ValueError: the page asks for a table that the study does not have yet; names it and those there are.
    """

    def put(match):
        if match[1] not in tables:
            raise ValueError(f"expected one of the tables {', '.join(tables)} in the page, found {match[1]!r}")
        return f"<!-- table {match[1]} -->\n\n{tables[match[1]]}\n\n<!-- end -->"

    return re.sub(r"<!-- table (\w+) -->.*?<!-- end -->", put, page, flags=re.S)


def define_flags() -> None:
    flags.DEFINE_string("workdir", None, "Workdir of the study (required).")
    flags.DEFINE_string("out", None, "Folder of the results; default WORKDIR/results.")
    flags.DEFINE_string("page", None, "Page whose tables are filled in.")


def main(argv: Sequence[str]) -> None:
    command.refuse_positional(argv)
    given = flags.FLAGS
    if not given.workdir:
        raise ValueError("expected --workdir=DIR, the workdir of python -m projects.coverage, found none")
    tables = write(read(given.workdir), pathlib.Path(given.out or pathlib.Path(given.workdir) / "results"))
    for name, text in tables.items():
        print(f"\n{name}\n\n{text}")
    if given.page:
        page = pathlib.Path(given.page)
        files.write_atomically(page, fill(page.read_text(encoding="utf-8"), tables))


if __name__ == "__main__":
    define_flags()
    command.run(main)
