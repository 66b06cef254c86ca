"""How well does robustness to a synthetic benchmark predict robustness to natural shifts?

Four answers, each with an interval over resampled models:

- drop: Pearson's r between the accuracy that models lose to the shift and to the benchmark
  (Laugros, Caplier, Ospici, "Using Synthetic Corruptions to Measure Robustness to Natural
  Distribution Shifts", BMVC 2021)
- Spearman's rho between the accuracies
- effective: Pearson's r between effective robustness to both (`analysis.natural_shift.effective`)
- partial: Pearson's r between what is left of the logits of both after lines in the logit of clean
  accuracy are subtracted: what the benchmark tells that clean accuracy does not

The first two are high wherever a better model is better everywhere; the last two are not.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from scipy import stats

from analysis.natural_shift import resampling
from analysis.natural_shift.effective import Line, effective_robustness, logit, pivot_of
from analysis.natural_shift.resampling import Estimate, estimate
from analysis.natural_shift.table import Shift, Table

FILTERED = "imagenet_a"  # images that one model gets wrong: two lines


class Prediction(NamedTuple):
    """A synthetic benchmark as a predictor of a natural shift.

    Attributes:
      shift, benchmark: names.
      models: of drop, accuracy, spearman and partial.
      drop: of accuracy, from the accuracy on all clean images.
      drop_p: of r = 0, two-sided, of that correlation.
      drop_matched: the natural drop taken from clean images of the same classes.
      published_units: the drop as the code of the BMVC paper computes it: clean accuracies as
        fractions, the others in percent; that is about `accuracy`.
      accuracy, spearman: between accuracies.
      partial: beyond clean accuracy; models of accuracy 0 or 100 are left out.
      partial_models: how many are left.
      effective: of effective robustness, over the shown models.
      shown: how many models that is.
    """

    shift: str
    benchmark: str
    models: int
    drop: Estimate
    drop_p: float
    drop_matched: Estimate
    published_units: Estimate
    accuracy: Estimate
    spearman: Estimate
    partial: Estimate
    partial_models: int
    effective: Estimate
    shown: int


def predict(
    table: Table,
    benchmarks: Mapping[str, np.ndarray],
    shifts: Iterable[str],
    complete: np.ndarray,
    weights: np.ndarray,
    of_complete: np.ndarray,
) -> list[Prediction]:
    """Judges benchmarks for natural shifts.

    Args:
      table: of N models.
      benchmarks: {name: accuracy, percent [N]}.
      shifts: natural shifts of the table.
      complete: bool [N], the models that are compared; effective robustness takes all shown ones
        that have both accuracies.
      weights: [R, N], of `resampling.draw`.
      of_complete: [R, complete models], of samples of those alone.

    Returns:
      A row for each benchmark and shift, shifts of a benchmark together.
    """
    shifts = tuple(shifts)
    effective = {shift: natural_robustness(table, shift, weights).robustness for shift in shifts}
    rows = []
    for benchmark, synthetic in benchmarks.items():
        of_benchmark = effective_robustness(synthetic, table.clean, table.standard, weights).robustness
        for shift in shifts:
            known = table.shown & ~np.isnan(effective[shift][0]) & ~np.isnan(of_benchmark[0])
            of_effective = resampling.pearson(of_benchmark, effective[shift], weights * known)
            fields = _of_accuracies(table, shift, synthetic, complete, of_complete)
            rows.append(
                Prediction(shift, benchmark, **fields, effective=estimate(of_effective), shown=int(known.sum()))
            )
    return rows


def _of_accuracies(table, shift, synthetic, complete, weights):
    """The fields of a `Prediction` that compare all complete models."""
    clean, synthetic = table.clean[complete], synthetic[complete]
    natural = Shift(table.natural[shift].accuracy[complete], table.natural[shift].clean[complete])
    drop = resampling.pearson(clean - natural.accuracy, clean - synthetic, weights)
    matched = resampling.pearson(natural.clean - natural.accuracy, clean - synthetic, weights)
    mixed_units = resampling.pearson(clean / 100 - natural.accuracy, clean / 100 - synthetic, weights)
    partial, partial_models = partial_correlation(natural, synthetic, clean, weights)
    return {
        "models": len(clean),
        "drop": estimate(drop),
        "drop_p": p_value(drop[0], len(clean)),
        "drop_matched": estimate(matched),
        "published_units": estimate(mixed_units),
        "accuracy": estimate(resampling.pearson(natural.accuracy, synthetic, weights)),
        "spearman": estimate(resampling.spearman(natural.accuracy, synthetic, weights)),
        "partial": estimate(partial),
        "partial_models": partial_models,
    }


def partial_correlation(
    natural: Shift, synthetic: np.ndarray, clean: np.ndarray, weights: np.ndarray, floor: float = 0.0
) -> tuple[np.ndarray, int]:
    """Correlates the residuals of logit(natural) and logit(synthetic) after lines in the logit of
    clean accuracy, of the same classes for each.

    With the same clean images for both this is the partial correlation given logit(clean).

    Args:
      natural, synthetic, clean: percent [N].
      weights: [R, N].
      floor: accuracies are raised to it; 0 leaves models of accuracy 0 or 100 out instead.

    Returns:
      (r [R], models that take part).
    """
    pairs = (natural.accuracy, natural.clean), (synthetic, clean)
    residuals = [residuals_of(*pair, weights, floor) for pair in pairs]
    known = ~np.isnan(residuals[0][0] + residuals[1][0])
    if not known.all():  # lines of the models that both know
        residuals = [residuals_of(*pair, weights * known, floor) for pair in pairs]
    return resampling.pearson(*residuals, weights), int((known & (weights[0] > 0)).sum())


def residuals_of(accuracy: np.ndarray, clean: np.ndarray, weights: np.ndarray, floor: float = 0.0) -> np.ndarray:
    """Computes what is left of logit(accuracy) after the line in logit(clean): [R, N]."""
    x, y = logit(clean, floor), logit(accuracy, floor)
    slope, intercept = resampling.line(x, y, weights)
    return y - slope[:, None] * x - intercept[:, None]


def natural_robustness(table: Table, shift: str, weights: np.ndarray):
    """Gives the effective robustness to a natural shift (`effective.Effective`), with two lines for
    ImageNet-A.
    """
    natural = table.natural[shift]
    pivot = pivot_of(natural.accuracy, natural.clean, table.standard) if shift == FILTERED else None
    return effective_robustness(natural.accuracy, natural.clean, table.standard, weights, pivot)


def natural_lines(table: Table, shift: str) -> tuple[Line, ...]:
    """Gives the lines of a shift alone."""
    return natural_robustness(table, shift, np.ones((1, len(table.models)))).lines


def p_value(r: float, number: int) -> float:
    """Computes the two-sided p of Pearson's r = 0 over `number` models (Student's t)."""
    if number < 3 or np.isnan(r):
        return float("nan")
    if abs(r) >= 1:
        return 0.0
    return float(2 * stats.t.sf(abs(r) * np.sqrt((number - 2) / (1 - r * r)), number - 2))
