"""From counts to arrays: one step between counts.csv and every score."""

import pathlib
from collections.abc import Iterable, Sequence

import numpy as np

from analysis import scores
from analysis.lines import write_rows
from analysis.tables import CLEAN, RANDOM, SCORES_HEADER, STANDARD, Count


def accuracies(
    counts: Iterable[Count], names: Sequence[str], severity: int | float | str | None = RANDOM
) -> tuple[np.ndarray, int, tuple[int, ...]]:
    """Arranges the accuracies of a study for `analysis.overlap.overlap_matrix`.

    Args:
      counts: iterable of `analysis.tables.Count`; models, corruptions and seeds besides those
        needed are ignored.
      names: the study's corruptions: models `standard` and one by each name, all shown clean images
        and every corruption.
      severity: which rows to take; None pools all severities of a corruption (mean accuracy over
        them), which must then be the same for every model and seed.

    Returns:
      (accuracy float64 [seeds, 1 + n, 1 + n], number int, seeds): row 0 is the standard model,
      column 0 the clean images; `number` is the count of test images (the smallest, when they
      differ); seeds are those of the standard model for which every model is complete.

    Raises:
      ValueError: a measurement is missing for every seed, by name; or pooled severities differ.
    """
    names = tuple(names)
    cells, totals = {}, []
    for count in counts:
        if severity is not None and count.corruption != CLEAN and count.severity != severity:
            continue
        cell = cells.setdefault((count.seed, count.model, count.corruption), {})
        cell[count.severity] = (count.correct / count.total, count.total)
    started = sorted({seed for seed, model, _ in cells if model == STANDARD})
    complete, missing = [], {}
    for seed in started:
        absent = [
            (model, condition)
            for model in (STANDARD, *names)
            for condition in (CLEAN, *names)
            if (seed, model, condition) not in cells
        ]
        missing[seed] = absent
        if not absent:
            complete.append(seed)
    if not complete:
        what = "; ".join(
            f"seed {seed} lacks {len(absent)}, first model {absent[0][0]} on {absent[0][1]}"
            for seed, absent in missing.items()
        )
        raise ValueError(
            f"expected counts of standard and {len(names)} models on clean and {len(names)} "
            f"corruptions at severity {severity!r}, found {what or 'no row of the standard model'}"
        )
    accuracy = np.empty((len(complete), 1 + len(names), 1 + len(names)))
    for s, seed in enumerate(complete):
        for m, model in enumerate((STANDARD, *names)):
            for c, condition in enumerate((CLEAN, *names)):
                cell = cells[seed, model, condition]
                expected = cells[complete[0], STANDARD, condition]
                if set(cell) != set(expected):
                    raise ValueError(
                        f"expected severities {sorted(map(str, expected))} of {condition} for every "
                        f"model, found {sorted(map(str, cell))} for {model}, seed {seed}"
                    )
                accuracy[s, m, c] = np.mean([value for value, _ in cell.values()])
                totals.extend(total for _, total in cell.values())
    return accuracy, min(totals), tuple(complete)


def score_rows(counts: Iterable[Count]) -> list[tuple]:
    """Derives the rows of scores.csv, one for each count and in its order: accuracy, error, R with
    their SEs.

    R of clean images is 1 with SE 0 by definition.

    Raises:
      ValueError: a model and seed without a clean row, or with clean accuracy 0.
    """
    counts = list(counts)
    clean = {(c.model, c.seed): c for c in counts if c.corruption == CLEAN}
    rows = []
    for count in counts:
        base = clean.get((count.model, count.seed))
        if base is None:
            raise ValueError(
                f"expected a clean row of model {count.model!r}, seed {count.seed} (R is relative to it), found none"
            )
        value = scores.accuracy(count.correct, count.total)
        value_se = scores.standard_error(count.correct, count.total)
        base_value = scores.accuracy(base.correct, base.total)
        ratio = scores.robustness(value, base_value)
        ratio_se = scores.robustness_standard_error(value, base_value, count.total, base.total)
        if count.corruption == CLEAN:
            ratio_se = np.float64(0)
        rows.append((*count, value, value_se, 1 - value, value_se, ratio, ratio_se))
    return rows


def write_scores(path: str | pathlib.Path, counts: Iterable[Count], comment: str | None = None) -> None:
    """Writes scores.csv, derived from counts, atomically."""
    write_rows(path, SCORES_HEADER, score_rows(counts), comment)
