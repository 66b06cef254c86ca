"""Mean error, CE and relative CE of a model on a benchmark, in percent, with standard errors.

Of a corruption with errors E_s at S severities, a clean error E_0, and a reference with errors A_s
and A_0:

    mean error     100 sum_s E_s / S
    CE             100 sum_s E_s / sum_s A_s
    relative CE    100 sum_s (E_s - E_0) / sum_s (A_s - A_0)

and of a benchmark their plain means over its corruptions (`analysis.scores` has the sources). All
are means over test images of something that each image gives, so where the answers are stored their
standard errors are those of such a mean, standard deviation over sqrt(N): what the same images
share under different conditions counts. Without answers they are upper bounds from the counts. The
reference's own sampling error is not in them.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from analysis.errors.benchmarks import Benchmark
from analysis.errors.choice import Choice
from analysis.errors.conditions import FROST, Conditions
from analysis.errors.images import ImageErrors
from analysis.errors.summary import NONE
from analysis.tables import CLEAN

MEAN = "mean"
MEAN_ERROR, CE, RELATIVE = "mean_error", "CE", "relative_CE"
FIELDS = {MEAN_ERROR: "error", CE: "ce", RELATIVE: "relative"}
"""Measure of a corruption -> the field of its `Row`."""


class Value(NamedTuple):
    """A number in percent and its standard error; NaN where there is none.

    Attributes:
      value: the number.
      se: its standard error over test images.
      images: float64 [N], what each image gives, or None where answers are not stored; their mean
        is the number.
    """

    value: float = math.nan
    se: float = math.nan
    images: np.ndarray | None = None


class Row(NamedTuple):
    """Scores of one model and seed on one corruption of a benchmark, or on all (`mean`).

    Attributes:
      model, seed: which.
      benchmark: its name; severities: `levels` or `random`.
      corruption: qualified name, or `mean`.
      reference: its name, or `none`.
      mismatch: what differs from the reference's conditions, or `none`.
      frost: source of frost, where frost is among the corruptions, else `none`.
      error, ce, relative: `Value`s.
    """

    model: str
    seed: int
    benchmark: str
    severities: str
    corruption: str
    reference: str
    mismatch: str
    frost: str
    error: Value
    ce: Value
    relative: Value


def rows(
    errors: ImageErrors, key: tuple[str, int], benchmark: Benchmark, choice: Choice, conditions: Conditions
) -> list[Row]:
    """Scores a model on a benchmark: a row for each corruption, then one for the mean.

    Args:
      errors: answers and counts.
      key: (model, seed).
      benchmark: of `benchmarks.complete`.
      choice: of the reference.
      conditions: that the errors were measured under.
    """
    clean = (*key, CLEAN, 0)
    scored = []
    for name, severities in benchmark.members.items():
        cells = [(*key, name, severity) for severity in severities]
        reference = choice.of(name)
        divisor = None if reference is None else reference.of(name, severities)
        scaled = _scaled(errors, cells, clean, divisor, reference)
        label = NONE if divisor is None else reference.name
        frost = conditions.frost if name == FROST else ""
        scored.append(
            Row(
                *key,
                benchmark.name,
                benchmark.severities,
                name,
                label,
                NONE if divisor is None else choice.label([name], reference.name),
                frost or NONE,
                *scaled,
            )
        )
    return scored


def mean(members: Sequence[Row], choice: Choice) -> Row:
    """Averages the rows of a benchmark's corruptions; CE is undefined where one has none."""
    first = members[0]
    names = {row.reference for row in members}
    reference = first.reference if len(names) == 1 else NONE
    mismatch = choice.label([row.corruption for row in members], reference) if reference != NONE else NONE
    frost = next((row.frost for row in members if row.frost != NONE), NONE)
    head = first._replace(corruption=MEAN, reference=reference, mismatch=mismatch, frost=frost)
    values = [average([getattr(row, field) for row in members]) for field in FIELDS.values()]
    if reference == NONE:
        values[1:] = [Value(), Value()]
    return head._replace(error=values[0], ce=values[1], relative=values[2])


def average(values: Sequence[Value]) -> Value:
    """Averages numbers of the same images; without these the mean of the standard errors bounds
    that of the mean.
    """
    value = float(np.mean([number.value for number in values]))
    if any(number.images is None for number in values) or len({len(number.images) for number in values}) > 1:
        return Value(value, float(np.mean([number.se for number in values])))
    return of_images(np.mean([number.images for number in values], axis=0))


def difference(first: Value, second: Value) -> Value:
    """Subtracts numbers of the same images; without these the sum of the standard errors is a
    bound.
    """
    if first.images is None or second.images is None or len(first.images) != len(second.images):
        return Value(first.value - second.value, first.se + second.se)
    return of_images(first.images - second.images)


def of_images(images: np.ndarray) -> Value:
    """Makes the `Value` of what each image gives."""
    number = len(images)
    se = float(images.std(ddof=1) / math.sqrt(number)) if number > 1 else math.nan
    return Value(float(images.mean()), se, images)


def clean_error(errors: ImageErrors, key: tuple[str, int]) -> Value:
    """Gives the error of a model on clean images."""
    cell = (*key, CLEAN, 0)
    if errors.has([cell]):
        return of_images(100 * errors.sum([cell]))
    return Value(100 * errors.error(cell), 100 * errors.bound([cell]))


def _scaled(errors, cells, clean, divisor, reference):
    """(mean error, CE, relative CE) of one corruption."""
    number = len(cells)
    scale = math.nan if divisor is None else divisor.sum()
    drop = math.nan if divisor is None else (divisor - reference.clean).sum()
    scale, drop = (value if value > 0 else math.nan for value in (scale, drop))  # a reference that loses nothing
    if errors.has([*cells, clean]):
        wrong, base = errors.sum(cells), number * errors.sum([clean])
        values = [wrong / number, wrong / scale, (wrong - base) / drop]
        return [of_images(100 * value) if np.isfinite(value).all() else Value() for value in values]
    total, base = sum(map(errors.error, cells)), number * errors.error(clean)
    bound, base_bound = errors.bound(cells), number * errors.bound([clean])
    pairs = ((total, bound, number), (total, bound, scale), (total - base, math.hypot(bound, base_bound), drop))
    return [Value(100 * value / by, 100 * se / by) if math.isfinite(by) else Value() for value, se, by in pairs]
