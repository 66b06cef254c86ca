"""Errors of models on benchmarks as tables: errors.csv by corruption and seed, errors_summary.csv over seeds.

    errors.csv           a row for each model, seed, benchmark and corruption, and one for the `mean` of the benchmark
    errors_summary.csv   a row for each model, benchmark and measure, over the seeds of the model

All numbers are percent, `nan` where there is none.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from analysis import frames
from analysis.errors import scores
from analysis.errors.reference import NONE, ORIGINAL, Choice, Conditions
from analysis.errors.scores import ImageErrors, Row
from analysis.frames import CLEAN, RANDOM, with_error
from corruptions.scoring.values import Value, average

GAP = "gap"
LEVEL = 0.05  # level of the corrected p-values
_EXACT, _DRAWS = 16, 100_000  # of `sign_flips`
BINOMIAL, ALL_SIGNS, DRAWN_SIGNS = "exact binomial test", "all signs of the differences", f"{_DRAWS:,} drawn signs"
_ROUNDING = 1e-6  # share of a difference, or of the sum of all, that is rounding
MEASURES = ("mean_error", "mCE", "relative_mCE")
TITLES = {
    "mean_error": "mean error",
    "mCE": "mCE",
    "relative_mCE": "relative mCE",
    GAP: "minus mean error on imagenet_c",
}


class Summary(NamedTuple):
    """A number of one model, over its seeds, in percent."""

    model: str
    benchmark: str  # also `clean`; C-bar's of a gap
    severities: str  # `levels` or `random`
    measure: str  # `mean_error`, `mCE`, `relative_mCE`, or `gap` (mean error on C-bar minus that on ImageNet-C)
    mean: float  # over seeds
    se: float  # standard error of the mean, over test images
    std: float  # between seeds (n - 1), NaN of one seed
    seeds: int  # number of seeds
    reference: str  # name of the reference that it is relative to, or `none`
    mismatch: str  # differences from the reference's conditions, or `none`
    frost: str  # source of frost, where frost is among the corruptions, else `none`
    by_seed: tuple[Value, ...] = ()  # the `Value`s that were averaged


COLUMNS = Summary._fields[:-1]


def score(
    errors: ImageErrors,
    choice: Choice,
    conditions: Conditions,
    own: Mapping[str, Iterable[str]] | None = None,
    *,
    stored: bool = False,
) -> tuple[list[Row], list[Summary]]:
    """Scores every model and seed on every benchmark that its counts hold completely, see `scores.complete_benchmarks`.

    Returns (rows by corruption and their means, summaries over seeds).
    """
    keys = list(dict.fromkeys(cell[:2] for cell in errors.counts if (*cell[:2], CLEAN, 0) in errors.counts))
    rows: list[Row] = []
    of_model: dict[tuple[str, ...], list[tuple[Value, Row | None]]] = {}
    for key in keys:
        cells = [cell for cell in errors.counts if cell[:2] == key]
        drawn = {cell[2]: (errors.levels.get(cell),) for cell in cells if cell[3] == RANDOM}
        evaluated = scores.complete_benchmarks((cell[2:] for cell in cells), own, stored=stored, drawn=drawn)
        head = (key[0], CLEAN, NONE, "mean_error")
        of_model.setdefault(head, []).append((scores.clean_error(errors, key), None))
        means = {}
        for benchmark in evaluated:
            members = scores.rows(errors, key, benchmark, choice, conditions)
            rows += [_light(row) for row in members]
            if benchmark.name == scores.OTHERS:
                continue
            means[benchmark.name, benchmark.severities] = row = scores.mean(members, choice)
            rows.append(_light(row))
            for measure, value in zip(MEASURES, (row.error, row.ce, row.relative), strict=True):
                of_model.setdefault((key[0], *row[2:4], measure), []).append((value, row))
        for bar, plain in scores.gaps(evaluated):
            first, second = (means[benchmark.name, benchmark.severities] for benchmark in (bar, plain))
            value = Value.from_images(first.error.images - second.error.images, 100.0, paired=True)
            of_model.setdefault((key[0], *first[2:4], GAP), []).append((value, second))
    return rows, [summarise(head, found) for head, found in of_model.items()]


def summarise(head: tuple[str, str, str, str], found: Sequence[tuple[Value, Row | None]]) -> Summary:
    """Summarises the numbers of one model over its seeds.

    `head` is model, benchmark, severities and measure; `found` has for each seed its number and, of a benchmark, the
    row it stands in.
    """
    values = tuple(value for value, _ in found)
    row = found[0][1]
    whole = average(values)
    undefined = math.isnan(values[0].value)
    std = math.nan if undefined else frames.spread_over_seeds([value.value for value in values])
    normalised = row is not None and head[3] in ("mCE", "relative_mCE")
    about = (row.reference, row.mismatch) if normalised else (NONE, NONE)
    return Summary(*head, whole.value, whole.se, std, len(values), *about, NONE if row is None else row.frost, values)


def _light(row):
    """Drops a row's numbers by image, which would fill the memory for many models and corruptions."""
    return row._replace(**{name: getattr(row, name)._replace(images=None) for name in scores.FIELDS.values()})


def errors_frame(rows: Iterable[Row]) -> pd.DataFrame:
    """Makes the frame of errors.csv."""
    columns = ("model", "seed", "benchmark", "reference", "corruption", "mean_error", "CE", "CE_se", "relative_CE")
    columns += ("relative_CE_se", "mean_error_se", "severities", "mismatch", "frost")
    lines = (
        (*row[:3], row.reference, row.corruption, row.error.value, *row.ce[:2], *row.relative[:2], row.error.se)
        + (row.severities, row.mismatch, row.frost)
        for row in rows
    )
    return frames.of_rows(lines, columns)


def summary_frame(summaries: Iterable[Summary]) -> pd.DataFrame:
    """Makes the frame of errors_summary.csv."""
    return frames.of_rows((summary[:-1] for summary in summaries), COLUMNS)


def notes(summary: Summary) -> list[str]:
    """Lists the marks of a normalised number: frost that is not the original's, and conditions that differ."""
    if summary.reference == NONE:
        return []
    marks = [] if summary.frost in (NONE, ORIGINAL) else [f"frost {summary.frost.replace('_', ' ')}"]
    marks += [] if summary.mismatch == NONE else [f"other conditions than {summary.reference}: {summary.mismatch}"]
    return marks


def summary_text(summaries: Sequence[Summary], choice: Choice) -> str:
    """Writes a block for each model and a line for each benchmark, then the sentences of the choice."""
    lines = []
    for model in dict.fromkeys(summary.model for summary in summaries):
        of_model = [summary for summary in summaries if summary.model == model]
        seeds = f", mean of {of_model[0].seeds} seeds" if of_model[0].seeds > 1 else ""
        lines += ["", f"{model}, errors in percent{seeds}"]
        for benchmark, severities in dict.fromkeys(summary[1:3] for summary in of_model):
            of_benchmark = [summary for summary in of_model if summary[1:3] == (benchmark, severities)]
            parts = [value_text(summary) for summary in of_benchmark if not math.isnan(summary.mean)]
            where = CLEAN if benchmark == CLEAN else f"{benchmark} ({severities})"
            lines.append(f"  {where:32s} {'   '.join(parts)}")
    lines += [f"({sentence})" for sentence in choice.sentences()]
    return "\n".join(lines)


def value_text(summary: Summary) -> str:
    """Writes `mCE 76.7 ± 0.2 (std 0.4), frost procedural`."""
    spread = f" (std {summary.std:.2g})" if not math.isnan(summary.std) else ""
    text = f"{TITLES[summary.measure]} {with_error(summary.mean, summary.se)}{spread}"
    return text + "".join(f", {note}" for note in notes(summary))


# Differences between models on the same test images, corrected for their number.


class Difference(NamedTuple):
    """First minus second number of two models, its standard error over test images and, with several seeds, between
    seeds, and the two-sided p-value of "no difference".
    """

    value: float
    se: float
    p: float
    test: str  # the test that gave p, in words


def paired(first: Sequence[Value], second: Sequence[Value]) -> Difference | None:
    """Compares two models by their numbers on the same images, one for each seed; None where images are not known.

    Each image's difference is averaged over seeds; the variance of their mean over N images is added to that of
    either model's mean over its seeds, where it has several. t with the degrees of freedom of Welch and
    Satterthwaite. With single seeds the difference is between trained networks, not between their recipes: the p-value is
    `sign_flips`, and with several seeds it is never below that.
    """
    images = [number.images for number in (*first, *second)]
    if any(row is None for row in images) or len({len(row) for row in images}) > 1 or len(images[0]) < 2:
        return None
    difference = np.mean(images[: len(first)], axis=0) - np.mean(images[len(first) :], axis=0)
    parts = [(difference.var(ddof=1) / len(difference), len(difference) - 1)]
    parts += [
        (np.var([number.value for number in values], ddof=1) / len(values), len(values) - 1)
        for values in (first, second)
        if len(values) > 1
    ]
    value, variance = float(difference.mean()), float(sum(part for part, _ in parts))
    p, test = sign_flips(difference)
    if len(parts) > 1 and variance > 0:
        freedom = variance**2 / sum(part**2 / degrees for part, degrees in parts)
        p = max(p, float(2 * special.stdtr(freedom, -abs(value) / math.sqrt(variance))))
        test += " and Welch's t over seeds"
    return Difference(value, math.sqrt(variance), p, test)


def sign_flips(differences: np.ndarray) -> tuple[float, str]:
    """Tests that differences [N] are as often of one sign as of the other: (two-sided p-value of their sum, test used).

    p is the share of the 2^k signs of the k differences that are not 0 whose sum is as far from 0. Where these have one
    size, as those of single answers, it is that of the binomial distribution, exact for any k (`BINOMIAL`). Else it is
    counted over `ALL_SIGNS` up to k = 16, and over `DRAWN_SIGNS` above. R. A. Fisher, "The Design of Experiments" (1935).
    """
    size = np.abs(differences)
    size = size[size > _ROUNDING * size.max(initial=0)]
    total, number = abs(float(np.sum(differences))), len(size)
    if not number or np.ptp(size) <= _ROUNDING * size.max():
        fewer = (number - round(total / float(size.mean()))) // 2 if number else 0
        from scipy import stats  # takes a second, and most commands do without

        return min(1.0, 2 * float(stats.binom.cdf(fewer, number, 0.5))), BINOMIAL
    least = total - _ROUNDING * float(size.sum())
    if number <= _EXACT:
        return float(np.mean(np.abs(_sums(size, np.arange(1 << number))) >= least)), ALL_SIGNS
    rng, sums = np.random.default_rng(0), np.zeros(_DRAWS)
    for start in range(0, number, 8):
        eight = size[start : start + 8]
        sums += _sums(eight, np.arange(1 << len(eight)))[rng.integers(1 << len(eight), size=_DRAWS, dtype=np.uint8)]
    return float((1 + np.sum(np.abs(sums) >= least)) / (1 + _DRAWS)), DRAWN_SIGNS


def _sums(size, numbers):
    """Sums of sizes [k] whose signs are the bits of numbers: 1 is plus, 0 minus."""
    return (2 * (numbers[:, None] >> np.arange(len(size)) & 1) - 1) @ size


def holm(values: Sequence[float]) -> list[float]:
    """Adjusts p-values for their number so that the chance of any false finding stays below the level.

    Sorted p_1 <= ... <= p_m become max over j <= i of min(1, (m - j + 1) p_j). Source: S. Holm, "A Simple Sequentially
    Rejective Multiple Test Procedure", 1979.
    """
    adjusted, largest = [0.0] * len(values), 0.0
    for rank, index in enumerate(np.argsort(values, kind="stable")):
        largest = max(largest, min(1.0, (len(values) - rank) * values[index]))
        adjusted[index] = largest
    return adjusted


def compare(models: Mapping[str, Sequence[Value]]) -> dict[tuple[str, str], Difference] | None:
    """Compares every two models, {name: a number for each seed}; None where answers are not stored."""
    found = {(a, b): paired(models[a], models[b]) for a, b in itertools.combinations(models, 2)}
    known = {pair: difference for pair, difference in found.items() if difference is not None}
    return known if len(known) == len(found) else None


def clearly_best(
    models: Mapping[str, Sequence[Value]], compared: Mapping[tuple[str, str], Difference] | None = None
) -> str | None:
    """Names the model whose mean is significantly smaller than every other mean, Holm-corrected over all pairs.

    Models are {name: a number for each seed}, the smaller, the better; `compared` is of `compare`, which is called where it
    is None. None where there is no such model, fewer than two, or answers are not stored.
    """
    compared = compare(models) if compared is None else compared
    if not compared:
        return None
    adjusted = dict(zip(compared, holm([difference.p for difference in compared.values()]), strict=True))
    best = min(models, key=lambda name: float(np.mean([number.value for number in models[name]])))
    return best if all(p < LEVEL for pair, p in adjusted.items() if best in pair) else None
