"""Predicts robustness to natural shifts from robustness to a synthetic benchmark, and judges the prediction.

Five answers, each with an interval over resampled models:

- drop: Pearson's r between the accuracy that models lose to the shift and to the benchmark (Laugros, Caplier, Ospici, "Using
  Synthetic Corruptions to Measure Robustness to Natural Distribution Shifts", BMVC 2021)
- spearman: Spearman's rho between the accuracies
- effective: Pearson's r between effective robustness to both, accuracy under a shift beyond the prediction of clean accuracy:

      beta(x) = sigma(slope logit(x) + intercept)        fitted only to the standard models
      ER(m)   = accuracy(m) - beta(clean(m))             in points, logit(p) = log(p / (100 - p)) of percent

  (Taori, Dave, Shankar, Carlini, Recht, Schmidt, "Measuring Robustness to Natural Distribution Shifts in Image
  Classification", NeurIPS 2020, and its code). Accuracies of exactly 0 or 100 have no logit and are left out of the fit.
- partial: the partial correlation of both logits given logit(clean), the accuracy on all clean images: Pearson's r between
  their residuals after lines in that logit
- residual: Pearson's r between the same residuals, but with the shift's line in the logit of the accuracy on clean images of
  its own classes. It is no partial correlation: the two lines subtract different numbers

The first two are high wherever a better model is better everywhere; the others are not. `partial` and `residual` are equal
where the shift has all classes. Elsewhere `partial` also counts the information of a benchmark on clean images of
the shift's classes, and `residual` does not. Any benchmark is to be compared
with only clean accuracy (`from_clean`): accuracy under a shift follows it closely.

A bootstrap sample of N models is a row of weights, and every statistic takes weights [R, N] (`analysis.correlation`).
"""

import itertools
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from analysis.correlation import ROUNDING, mean, pearson, present, spearman
from analysis.frames import CLEAN, percentile_interval
from projects.natural_shift.sources import Table


def estimate(values: ArrayLike, level: float = 0.95) -> dict[str, float]:
    """Makes {value, low, high} of values [1 + R]: the first one, and the interval of the others.

    The ends are NaN where fewer than half of the resamples define the statistic.
    """
    values = np.asarray(values, float)
    low, high = percentile_interval(values[1:], level, known=0.5)
    return {"value": float(values[0]), "low": low, "high": high}


def covariances(columns: ArrayLike, weights: ArrayLike) -> np.ndarray:
    """Computes the covariances of V columns [V, N] without NaN under weights [R, N]: [R, V, V]."""
    columns, weights = np.asarray(columns, float), np.asarray(weights, float)
    columns = columns - columns.mean(axis=1, keepdims=True)  # differences of large squares lose digits
    total = weights.sum(axis=1)[:, None]
    means = weights @ columns.T / total
    result = np.empty((len(weights), len(columns), len(columns)))
    for i, column in enumerate(columns):  # one at a time: [R, N] in memory, not [R, V, N]
        result[:, i] = (weights * column) @ columns.T / total - means[:, i, None] * means
    return result


def p_value(r: float, number: int) -> float:
    """Computes the two-sided p of r = 0 over `number` models, by Student's t; NaN below 3 models."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(2 * stats.t.sf(abs(r) * np.sqrt((number - 2) / np.float64(1 - r * r)), number - 2))


def line(x: ArrayLike, y: ArrayLike, weights: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Fits y = slope x + intercept by least squares under weights [R, N]: (slope [R], intercept [R]).

    Models where x or y is NaN take no part. NaN where fewer than two different x are left.
    """
    x, y, weights = present(x, y, weights)
    centre_x, centre_y = mean(x, weights), mean(y, weights)
    dx, dy = x - centre_x, y - centre_y
    variance = (weights * dx * dx).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        varies = variance > ROUNDING * (weights * x * x).sum(axis=-1)
        slope = np.where(varies, (weights * dx * dy).sum(axis=-1) / variance, np.nan)
    return slope, centre_y[..., 0] - slope * centre_x[..., 0]


FILTERED = "imagenet_a"  # images that one model gets wrong: two lines


def logit(percent: ArrayLike, floor: float = 0.0) -> np.ndarray:
    """Computes log(p / (100 - p)) of accuracies clipped to [floor, 100 - floor]; NaN at 0 and 100."""
    percent = np.clip(np.asarray(percent, float), floor, 100 - floor)
    inside = (percent > 0) & (percent < 100)
    safe = np.where(inside, percent, 50)
    return np.where(inside, np.log(safe / (100 - safe)), np.nan)


def effective_robustness(
    accuracy: np.ndarray, clean: np.ndarray, fitted: np.ndarray, weights: np.ndarray, pivot: float | None = None
) -> tuple[np.ndarray, list[dict]]:
    """Fits the line of the standard models and subtracts it.

    Args:
      accuracy: under the shift, percent [N].
      clean: on clean images of the same classes, percent [N].
      fitted: bool [N], the models that the line is fitted to.
      weights: [R, N], from `analysis.correlation.draw`.
      pivot: a clean accuracy at which one line ends and another begins; None fits one line.

    Returns:
      (effective robustness [R, N] in points, NaN where an accuracy is unknown; lines of all models: part ("", `below` or
      `above` the pivot), slope, intercept, r2, models, dropped (models of accuracy 0 or 100)).
    """
    parts = {"": np.ones(len(clean), bool)} if pivot is None else {"below": clean < pivot, "above": clean > pivot}
    x, y = logit(clean), logit(accuracy)
    robustness, lines = np.full(weights.shape, np.nan), []
    for part, inside in parts.items():
        fit = weights * (fitted & inside)
        slope, intercept = line(x, y, fit)
        expected = 100 / (1 + np.exp(-(slope[:, None] * x + intercept[:, None])))
        robustness = np.where(inside, accuracy - expected, robustness)
        known = fitted & inside & ~np.isnan(accuracy) & ~np.isnan(clean)
        used = int((known & ~np.isnan(x + y)).sum())
        r2 = float(pearson(x, y, fit[:1])[0] ** 2)
        numbers = {"slope": float(slope[0]), "intercept": float(intercept[0]), "r2": r2}
        lines.append({"part": part, **numbers, "models": used, "dropped": int(known.sum()) - used})
    return robustness, lines


def pivot_of(accuracy: np.ndarray, clean: np.ndarray, fitted: np.ndarray) -> float | None:
    """Finds the clean accuracy of the fitted model that a shift was filtered with, whose accuracy is exactly 0.

    ImageNet-A keeps the images that a ResNet-50 gets wrong, so models below and above it follow two lines. None without
    such a model.
    """
    zero = fitted & (accuracy == 0) & ~np.isnan(clean)
    return float(clean[zero].max()) if zero.any() else None


def natural_robustness(table: Table, shift: str, weights: np.ndarray) -> tuple[np.ndarray, list[dict]]:
    """Gives the `effective_robustness` to a natural shift, with two lines for ImageNet-A."""
    accuracy, clean = table.shift(shift)
    pivot = pivot_of(accuracy, clean, table.standard) if shift == FILTERED else None
    return effective_robustness(accuracy, clean, table.standard, weights, pivot)


def lines(table: Table, shifts: Iterable[str]) -> pd.DataFrame:
    """Tabulates the lines of the standard models: shift, and the columns of `effective_robustness`."""
    ones = np.ones((1, len(table.accuracy)))
    return pd.DataFrame([{"shift": s, **row} for s in shifts for row in natural_robustness(table, s, ones)[1]])


def predict(
    table: Table,
    benchmarks: Mapping[str, np.ndarray],
    shifts: Iterable[str],
    complete: np.ndarray,
    weights: np.ndarray,
    of_complete: np.ndarray,
) -> pd.DataFrame:
    """Judges benchmarks as predictors of natural shifts.

    Args:
      table: table of N models.
      benchmarks: {name: accuracy, percent [N]}.
      shifts: natural shifts of the table.
      complete: bool [N], the models that are compared; effective robustness takes all shown models with both accuracies.
      weights: [R, N], from `analysis.correlation.draw`.
      of_complete: [R, complete models], resamples of only the complete models.

    Returns:
      Rows benchmark, shift, measure, value, low, high, models. Measures: drop (from the accuracy on all clean images),
      drop_matched (the natural drop from clean images of the same classes), accuracy, spearman, partial, residual, effective,
      published_units (the drop as the code of the BMVC paper computes it, with clean accuracies as fractions and the others
      in percent; nearly `accuracy`).
    """
    shifts, rows = tuple(shifts), []
    natural_excess = {shift: natural_robustness(table, shift, weights)[0] for shift in shifts}
    clean, number = table[CLEAN][complete], int(complete.sum())
    for benchmark, accuracy in benchmarks.items():
        excess = effective_robustness(accuracy, table[CLEAN], table.standard, weights)[0]
        synthetic = accuracy[complete]
        for shift in shifts:
            natural, matched = (column[complete] for column in table.shift(shift))
            shown = table.shown & ~np.isnan(natural_excess[shift][0]) & ~np.isnan(excess[0])
            mixed = pearson(clean / 100 - natural, clean / 100 - synthetic, of_complete)
            measures = {
                "drop": (pearson(clean - natural, clean - synthetic, of_complete), number),
                "drop_matched": (pearson(matched - natural, clean - synthetic, of_complete), number),
                "accuracy": (pearson(natural, synthetic, of_complete), number),
                "spearman": (spearman(natural, synthetic, of_complete), number),
                "partial": residual_correlation(natural, clean, synthetic, clean, of_complete),
                "residual": residual_correlation(natural, matched, synthetic, clean, of_complete),
                "effective": (pearson(excess, natural_excess[shift], weights * shown), int(shown.sum())),
                "published_units": (mixed, number),
            }
            head = {"benchmark": benchmark, "shift": shift}
            rows += [head | {"measure": m, **estimate(r), "models": n} for m, (r, n) in measures.items()]
    return pd.DataFrame(rows)


def residual_correlation(
    natural: np.ndarray,
    natural_clean: np.ndarray,
    synthetic: np.ndarray,
    synthetic_clean: np.ndarray,
    weights: np.ndarray,
    floor: float = 0.0,
) -> tuple[np.ndarray, int]:
    """Correlates the residuals of logit(natural) and logit(synthetic), each after the line in the logit of its clean accuracy.

    With the same clean accuracy for both this is the partial correlation given its logit. Accuracies are in percent [N],
    weights [R, N]; a floor of 0 leaves models of accuracy 0 or 100 out. Returns (r [R], models that take part).
    """
    pairs = (natural, natural_clean), (synthetic, synthetic_clean)
    left = [residuals(*pair, weights, floor) for pair in pairs]
    known = ~np.isnan(left[0][0] + left[1][0])
    if not known.all():  # lines of the models that both know
        left = [residuals(*pair, weights * known, floor) for pair in pairs]
    return pearson(*left, weights), int((known & (weights[0] > 0)).sum())


def residuals(accuracy: np.ndarray, clean: np.ndarray, weights: np.ndarray, floor: float = 0.0) -> np.ndarray:
    """Computes the residuals of logit(accuracy) after the line in logit(clean): [R, N]."""
    x, y = logit(clean, floor), logit(accuracy, floor)
    slope, intercept = line(x, y, weights)
    return y - slope[:, None] * x - intercept[:, None]


def from_clean(table: Table, shifts: Iterable[str], complete: np.ndarray, weights: np.ndarray) -> pd.DataFrame:
    """Judges clean accuracy as a predictor: rows shift, measure, value, low, high, models.

    Measures: pearson and spearman with the accuracy on all clean images, r2 of logits with clean images of the same classes.
    Models `complete`, bool [N], are compared under weights [R, complete models].
    """
    rows, all_clean = [], table[CLEAN][complete]
    for shift in shifts:
        accuracy, clean = (column[complete] for column in table.shift(shift))
        measures = {
            "pearson": pearson(accuracy, all_clean, weights),
            "spearman": spearman(accuracy, all_clean, weights),
            "r2": pearson(logit(accuracy), logit(clean), weights) ** 2,
        }
        inside = int(np.isfinite(logit(accuracy) + logit(clean)).sum())  # accuracies of 0 and 100 % have no logit
        numbers = dict.fromkeys(measures, int(complete.sum())) | {"r2": inside}
        rows += [{"shift": shift, "measure": m, **estimate(r), "models": numbers[m]} for m, r in measures.items()]
    return pd.DataFrame(rows)


def together(table: Table, shifts: Iterable[str], complete: np.ndarray, weights: np.ndarray) -> pd.DataFrame:
    """Correlates the residuals of every pair of shifts after the lines in the clean accuracy of their classes, near 1 where
    they measure the same; arguments as in `from_clean`. Rows first, second, value, low, high.
    """
    left = {s: residuals(*(column[complete] for column in table.shift(s)), weights) for s in shifts}
    rows = [
        {"first": a, "second": b, **estimate(pearson(left[a], left[b], weights))}
        for a, b in itertools.combinations(left, 2)
    ]
    return pd.DataFrame(rows, columns=["first", "second", "value", "low", "high"])
