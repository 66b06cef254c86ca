"""The answers of the study and their tables: one function for each CSV file of `projects.coverage.results`."""

import collections
import pathlib
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from analysis import answers, frames
from analysis.answers import PLAIN, Answers, Key
from analysis.confidence import cells
from analysis.errors.printed import PRINTED
from analysis.frames import CLEAN, RANDOM, STANDARD
from analysis.overlap import overlap_matrix
from analysis.overlap import study as overlap_study
from analysis.overlap.agreement import agreement
from analysis.overlap.measured import MeasuredOverlap
from analysis.overlap.uncertainty import Repeats
from analysis.references import (
    ALEXNET_IMAGENET_C,
    ALEXNET_IMAGENET_C_CLEAN,
    ALEXNET_NOC,
    ALEXNET_NOC_CLEAN,
    PREFIX,
)
from analysis.selection import algorithm
from analysis.selection.benchmark import COVERED
from corruptions.scoring.intervals import of_mean
from projects.coverage import (
    CONFIDENT,
    bank,  # noqa: F401  the answers name it
)
from projects.coverage.benchmarks import LEVEL, members
from runtime import workdirs
from training import augmentation

LEAST = 5
"""Number of models with several seeds from which the noise of trainings is estimated: fewer say too little about it."""
GAINS, LOSES, UNSHOWN = "gains", "loses", "not shown"


class Study(NamedTuple):
    """The answers of a study.

    Attributes:
      found: its answers.
      candidates: corruptions of the study, in their order.
      models: the study's models that answered under every condition.
      trained: candidates that a model was trained with for each of `seeds`.
      seeds: seeds that `trained` is complete for.
      ranges: the file of the severities, as the study's settings name it, or "".
    """

    found: Answers
    candidates: tuple[str, ...]
    models: tuple[Key, ...]
    trained: tuple[str, ...]
    seeds: tuple[int, ...]
    ranges: str = ""

    @property
    def several(self) -> tuple[str, ...]:
        """The standard model, mixtures and candidates that have several seeds; none if they are fewer than `LEAST`."""
        counts = collections.Counter(name for name, _ in self.models)
        found = tuple(name for name, count in counts.items() if count > 1)
        return found if len(found) >= LEAST else ()

    def answered(self, name: str, corruption: str) -> np.ndarray:
        """Marks the images that each training of a model answers correctly: bool [seeds, N], by ascending seed."""
        at = 0 if corruption == CLEAN else RANDOM
        return np.array([self.found.correct((*key, corruption, at)) for key in sorted(self.models) if key[0] == name])

    def correct(self, name: str, corruption: str) -> np.ndarray:
        """Averages `answered` over the seeds, float [N]."""
        return self.answered(name, corruption).mean(axis=0)


def read(workdir: str | pathlib.Path) -> Study:
    """Reads the answers of a study that has ended or is still running.

    Raises:
      FileNotFoundError, DamagedFileError: no answers, or damaged ones.
      ValueError: the standard model of the first seed has not answered under every condition yet, or two corruptions are
        the same one, because training with them made the same network.
    """
    found = answers.read(workdir).at_all_levels()
    candidates = overlap_study.corruptions_of(pathlib.Path(workdir), found)
    asked = {STANDARD, *candidates}
    keys = dict.fromkeys(
        (name, seed) for name, seed, *_ in found if name in asked or name.startswith(augmentation.MIXTURE)
    )
    models = tuple(key for key in keys if all((*key, name, RANDOM) in found for name in candidates))
    _refuse_twins(found, models)
    standard = [seed for name, seed in models if name == STANDARD]
    if CONFIDENT not in models:
        of = f"seeds {standard}" if standard else "none"
        raise ValueError(
            f"expected answers of the standard model of seed {CONFIDENT[1]} to all corruptions, found {of} in {workdir}"
        )
    of_seed = {seed: [name for name in candidates if (name, seed) in models] for seed in standard}
    first = of_seed[min(standard)]
    seeds = tuple(seed for seed in sorted(standard) if first and set(first) <= set(of_seed[seed]))
    ranges = workdirs.read_config(pathlib.Path(workdir)).get("ranges", "")
    return Study(found, candidates, models, tuple(first), seeds, ranges)


def repeats(study: Study) -> Repeats | None:
    """Gives the answers that tell the noise of trainings before the second seed is complete; None without any."""
    models = (STANDARD, *study.trained)
    names = [name for name in models if name in study.several]
    if len(study.seeds) > 1 or len(names) < LEAST:
        return None
    conditions = (CLEAN, *study.trained)
    bits = np.array([[study.answered(name, condition)[:2] for condition in conditions] for name in names])
    return Repeats(np.moveaxis(bits, 2, 0), tuple(map(models.index, names)))


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


def candidates_frame(study: Study, variances: Mapping[str, float]) -> pd.DataFrame:
    """Tabulates each candidate c; `variances` are those of `training_variance` on each.

    R of the standard model is the mean over seeds, ECE and NLL are of the first seed. `own_gain` is the gain in R on c
    of the model trained with c. `best_other` is, of the models trained with another candidate, the one that gains most
    on c, and `best_gain`, `best_se` are its gain (see `gain`) and the error: chosen as the largest, it is on average too
    large. All four are missing without such a model.
    """
    clean, rows = study.correct(STANDARD, CLEAN).mean(), []
    for name in study.candidates:
        measured = cells.measure(study.found.confidence(name, RANDOM, [CONFIDENT])[*CONFIDENT, PLAIN])
        gains = {trained: gain(study, trained, name, variances[name]) for trained in study.trained}
        own, _ = gains.pop(name, (None, None))
        best = max(gains, key=gains.get, default=None)
        robustness = study.correct(STANDARD, name).mean() / clean
        rows.append((name, robustness, measured["ece"], measured["nll"], own, best, *gains.get(best, (None, None))))
    columns = ("corruption", "robustness", "ece", "nll", "own_gain", "best_other", "best_gain", "best_se")
    return frames.of_rows(rows, columns)


def gain(study: Study, model: str, corruption: str, variance: float) -> tuple[float, float]:
    """Computes the gain in robustness of a model over the standard one, and its standard error.

    With the answers a of the model and s of the standard one, means over their seeds, to image i under the corruption
    and, with index 0, to the clean image, and the clean accuracies A and S:

        gain = R - R_standard = mean(a) / A - mean(s) / S
        se^2 = variance over images of  a / A - R a0 / A - (s / S - R_standard s0 / S),  over N
               + V (1 / seeds of the model + 1 / seeds of the standard model)

    (first order of the ratios; both models see the same images). `variance` is V of `training_variance`.
    """
    parts = []
    for name in (model, STANDARD):
        clean = study.answered(name, CLEAN)
        robustness, of_image = _robustness(study.correct(name, corruption), clean.mean(axis=0))
        parts.append((robustness, of_image, variance / len(clean)))
    (ours, of_image, noise), (theirs, of_standard, of_trainings) = parts
    images = of_mean(of_image - of_standard, 1 / study.answered(STANDARD, CLEAN).mean(), paired=True) ** 2
    return (ours - theirs).item(), float(np.sqrt(images + noise + of_trainings))


def training_variance(study: Study, corruption: str) -> float:
    """Computes the variance V of the R of one training that other test images would show, pooled over `Study.several`.

        V = max(0, mean over models of  variance over seeds of R - mean over images of the variance over seeds of r, over N)

    with r of an image as in `gain`, a / A - R a0 / A. Variances over seeds are with n - 1; 0 where no model has several.
    """
    parts = []
    for name in study.several:
        robustness, of_image = _robustness(study.answered(name, corruption), study.answered(name, CLEAN))
        parts.append(robustness.var(ddof=1) - of_image.var(axis=0, ddof=1).mean() / of_image.shape[1])
    return max(0.0, float(np.mean(parts))) if parts else 0.0


def _robustness(answered, clean):
    """R [..., 1] of answers [..., N], and what each image adds to it in first order, [..., N]."""
    accuracy = clean.mean(axis=-1, keepdims=True)
    robustness = answered.mean(axis=-1, keepdims=True) / accuracy
    return robustness, (answered - robustness * clean) / accuracy


def mixtures_frame(study: Study, variances: Mapping[str, float]) -> pd.DataFrame:
    """Tests whether a model trained with a whole benchmark gains robustness to each candidate outside of it.

    p is two-sided normal on `gain` over its error, corrected for all rows of the table by Benjamini and Yekutieli (2001),
    which holds under any dependence. `variances` as in `candidates_frame`.
    """
    rows = []
    for mixture in dict.fromkeys(name for name, _ in study.models if name.startswith(augmentation.MIXTURE)):
        inside = members(augmentation.benchmark(mixture), study.candidates)
        rows += [(mixture, name, int(name in inside), *gain(study, mixture, name, v)) for name, v in variances.items()]
    table = frames.of_rows(rows, ("mixture", "corruption", "member", "gain", "se"))
    outside = table.member == 0
    p = 2 * stats.norm.sf(np.abs(table.gain / table.se.where(table.se > 0, np.inf)))  # no difference: p = 1
    table["p"] = np.nan
    if outside.any():
        table.loc[outside, "p"] = stats.false_discovery_control(p[outside], method="by")
    shown = np.where(table.gain > 0, GAINS, LOSES)
    table["verdict"] = np.where(~outside, "", np.where(table.p <= LEVEL, shown, UNSHOWN))
    return table


def readings_frame(benchmarks: pd.DataFrame, mixtures: pd.DataFrame) -> pd.DataFrame:
    """Puts the two answers to "does the benchmark cover this candidate?" side by side, a row for each candidate outside of it.

    `by_overlap` is the verdict of `projects.coverage.benchmarks.benchmarks_frame`, a model trained with one member each;
    `by_training` that of `mixtures_frame`, a model trained with all of them.
    """
    trained = mixtures[mixtures.member == 0].assign(benchmark=mixtures.mixture.map(augmentation.benchmark))
    trained = trained.rename(columns={"verdict": "by_training", "se": "gain_se"})
    overlaps = benchmarks.rename(columns={"verdict": "by_overlap", "se": "overlap_se"})
    left = ["benchmark", "corruption", "overlap", "overlap_se", "with_member", "transfer", "by_overlap"]
    right = ["benchmark", "corruption", "gain", "gain_se", "by_training"]
    return overlaps[left].merge(trained[right], on=["benchmark", "corruption"])


def agreement_frame(readings: pd.DataFrame) -> pd.DataFrame:
    """Counts for each benchmark, and for `all`, the candidates that it covers by overlap, and those of them on which training
    with all of it `gains`, is `not_shown` to, or `loses`; `loses_of_all` of the covered and the others, `only_training` those of
    the others on which it gains.
    """
    rows = []
    everything = readings.assign(benchmark="all")
    for benchmark, of in pd.concat([readings, everything]).groupby("benchmark", sort=False):
        covered = of.by_overlap == COVERED
        counts = [(covered & (of.by_training == verdict)).sum() for verdict in (GAINS, UNSHOWN, LOSES)]
        of_all = (of.by_training == LOSES).sum(), (~covered & (of.by_training == GAINS)).sum()
        rows.append((benchmark, len(of), covered.sum(), *counts, *of_all))
    columns = ("outside", "covered", "gains", "not_shown", "loses", "loses_of_all", "only_training")
    return frames.of_rows(rows, ("benchmark", *columns))


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
    clean, *shown = (
        study.found.confidence(name, at, [CONFIDENT])[*CONFIDENT, PLAIN]
        for name, at in ((CLEAN, 0), *((name, RANDOM) for name in measured.names))
    )
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


def published_frame(measured: MeasuredOverlap) -> pd.DataFrame:
    """Compares the overlaps with published ones of ResNet-18 on ImageNet-100 (`published_overlap`).

    Correlations over the pairs of a benchmark, whose members must all have a model; intervals resample corruptions.
    A benchmark of which fewer than three members have defined overlaps has no row.
    """
    rows = []
    for benchmark in ("imagenet_c", "imagenet_noc"):
        theirs = published_overlap(benchmark)
        if not set(theirs.names) <= set(measured.names):
            continue
        ours = measured.ordered(theirs.names)
        if np.sum(~algorithm.undefined(ours.overlap)) >= 3:
            found = agreement(ours, theirs)
            spearman = (found.spearman, *found.spearman_interval)
            rows.append((benchmark, found.pairs, *spearman, found.pearson, *found.pearson_interval))
    columns = ("spearman", "low", "high", "pearson", "pearson_low", "pearson_high")
    return frames.of_rows(rows, ("benchmark", "pairs", *columns))


def published_overlap(benchmark: str) -> MeasuredOverlap:
    """Computes the overlaps behind Table 7 (imagenet_c) or 8 (imagenet_noc) of "Increasing the Coverage and Balance ...".

    The tables print relative CE in percent, from which

        error = clean error + CE / 100 * (error of AlexNet - clean error of AlexNet),   R = (1 - error) / (1 - clean error)
    """
    table, reference, reference_clean = {
        "imagenet_c": ("Table 7", ALEXNET_IMAGENET_C, ALEXNET_IMAGENET_C_CLEAN),
        "imagenet_noc": ("Table 8", ALEXNET_NOC, ALEXNET_NOC_CLEAN),
    }[benchmark]
    [printed] = [one for one in PRINTED if one.source == f"Increasing the Coverage and Balance, {table}"]
    rows = np.array([row[:-1] for row in printed.rows.values()], float) / 100
    clean, ce = rows[:, :1], rows[:, 1:]
    lost = np.array([np.mean(reference[name]) for name in printed.columns]) - reference_clean
    names = tuple(PREFIX[benchmark] + name for name in printed.columns)
    found = overlap_matrix(1 - np.hstack([clean, clean + ce * lost]), names=names)
    return MeasuredOverlap(names, found.overlap, found.unclipped)
