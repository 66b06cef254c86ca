"""Mean error, CE and relative CE of a model on a benchmark, in percent, with standard errors.

For a corruption with errors E_s at S severities, a clean error E_0, and a reference with errors A_s and A_0:

    mean error     100 sum_s E_s / S
    CE             100 sum_s E_s / sum_s A_s
    relative CE    100 sum_s (E_s - E_0) / sum_s (A_s - A_0)

and for a benchmark their plain means over its corruptions (Hendrycks and Dietterich, 2019, define CE and relative CE;
Laugros et al. call the latter CE). All are means over test images of a number that each image gives, so their standard
errors are those of such a mean, standard deviation over sqrt(N): that an image is hard under several conditions is
accounted for. The reference's own sampling error is not. Relative CE is undefined where the reference loses less than
`LEAST` on average: it would be divided by little more than sampling error.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.answers import Answers
from analysis.errors.reference import FROST, NONE, Choice, Conditions
from analysis.frames import CLEAN, RANDOM, Counted, is_corruption
from corruptions.scoring import values
from corruptions.scoring.values import Divisors, Value, average

Severity = int | float | str
Cell = tuple[str, int, str, Severity]
"""(model, seed, corruption, severity)."""
LEVELS = "levels"
OTHERS = "others"
PLAIN = "imagenet_c"
OF_TFDS = "imagenet2012_corrupted"  # tfds' own corruptions of ImageNet, for which no errors are published
BAR = ("imagenet_c_bar", "cifar10_c_bar")
MEAN = "mean"
MEAN_ERROR, CE, RELATIVE = "mean_error", "CE", "relative_CE"
LEAST = 100 * values.LEAST
"""The smallest mean rise of a reference's error, in percent, that relative CE divides by."""
UNDEFINED = (
    f"Relative CE is undefined where the reference loses less than {LEAST:g} point on average, or where the corrupted and the clean "
    "images are not the same."
)
FIELDS = {MEAN_ERROR: "error", CE: "ce", RELATIVE: "relative"}
"""Measure of a corruption -> the field of its `Row`."""


class ImageErrors:
    """The images that each model answers wrongly, because errors on the same images are correlated.

    `counts` are the correct answers of every cell, `correct` {cell: bool [N], which images are answered correctly},
    `shown` {cell: digest of the images that were shown, "" where it is not known}, `levels` {cell: the levels that
    random severities were drawn from, where they are not all}.
    """

    def __init__(
        self,
        counts: Iterable[Counted],
        correct: Mapping[Cell, np.ndarray],
        shown: Mapping[Cell, str] | None = None,
        levels: Mapping[Cell, tuple[int, ...]] | None = None,
    ):
        self.counts = {(*key, *count[:2]): count for key, count in counts}
        self._correct, self.shown, self.levels = correct, shown or {}, levels or {}

    @classmethod
    def of(cls, answers: Answers, counts: Iterable[Counted] | None = None) -> "ImageErrors":
        """Takes the answers of a workdir; with `counts` only their cells, in their order."""
        counts = answers.counts if counts is None else list(counts)
        cells = [(*key, *count[:2]) for key, count in counts]
        correct = {cell: answers.correct(cell) for cell in cells}
        levels = {cell: drawn for cell in cells if (drawn := answers.record(cell).levels)}
        return cls(counts, correct, {cell: answers.shown(cell) for cell in cells}, levels)

    @classmethod
    def union(cls, parts: Iterable["ImageErrors"]) -> "ImageErrors":
        """Joins the errors of workdirs whose models, or seeds, differ."""
        counts: list[Counted] = []
        correct: dict[Cell, np.ndarray] = {}
        shown: dict[Cell, str] = {}
        levels: dict[Cell, tuple[int, ...]] = {}
        for part in parts:
            counts += [(cell[:2], count) for cell, count in part.counts.items()]
            correct |= part._correct
            shown |= part.shown
            levels |= part.levels
        return cls(counts, correct, shown, levels)

    def at_levels(self) -> dict[tuple[str, int, str], tuple[Severity, ...]]:
        """Lists the levels that each model was shown each corruption at: {(model, seed, corruption): levels}."""
        found: dict[tuple[str, int, str], list[Severity]] = {}
        for *key, severity in self.counts:
            found.setdefault(tuple(key), []).append(severity)
        return {key: _numbers(severities) for key, severities in found.items()}

    def sum(self, cells: Iterable[Cell]) -> np.ndarray:
        """Counts the wrong answers to each image under some conditions: float64 [N]."""
        return (1.0 - np.array([self._correct[cell] for cell in cells])).sum(axis=0)


class Benchmark(NamedTuple):
    """Corruptions and severities; a model was evaluated under all of them.

    Attributes:
      name: name of a registered benchmark, or of a study's own; `others` are corruptions of no benchmark.
      severities: `random`, or `levels` for every level that the benchmark has.
      members: {qualified name: its severities}, in published order.
    """

    name: str
    severities: str
    members: Mapping[str, tuple[Severity, ...]]


def complete_benchmarks(
    conditions: Iterable[tuple[str, Severity]],
    own: Mapping[str, Iterable[str]] | None = None,
    *,
    stored: bool = False,
    drawn: Mapping[str, Collection[tuple[int, ...] | None]] | None = None,
) -> list[Benchmark]:
    """Lists the benchmarks that were evaluated completely, then the conditions that belong to none of them.

    `conditions` are the (corruption, severity) that a model was evaluated under; `own` {name: corruptions} of
    benchmarks that are not registered, such as a study's; `stored` is True for a dataset on disk: where a benchmark
    selects levels, its severities are 1, 2, ...; `drawn` {corruption: the sets of levels that its random severities were
    drawn from, None for all}, where they are known: a benchmark is complete at its own levels alone.
    """
    import corruptions  # imports JAX, which a report does not need

    def at_random(member, registered, benchmark):
        asked = corruptions.selected_levels(member, benchmark) if registered else None
        return (RANDOM,) if drawn is None or set(drawn.get(member, (None,))) == {asked} else ()

    there: dict[str, set[Severity]] = {}
    for corruption, severity in conditions:
        if is_corruption(corruption):
            there.setdefault(corruption, set()).add(severity)
    by_name = {name: corruptions.names(name) for name in corruptions.benchmarks()}
    by_name |= {name: tuple(names) for name, names in (own or {}).items() if tuple(names) not in by_name.values()}
    by_name[OF_TFDS] = tuple(name.replace(PLAIN, OF_TFDS) for name in by_name[PLAIN])
    benchmarks, covered = [], set()
    for name, of_benchmark in by_name.items():
        registered = name in corruptions.benchmarks()
        at_levels = {
            member: _levels(member.replace(OF_TFDS, PLAIN), name, stored)
            if registered or name == OF_TFDS
            else _numbers(there.get(member, ()))
            for member in of_benchmark
        }
        drawn_from = {member: at_random(member, registered, name) for member in of_benchmark}
        for severities, members_at in ((LEVELS, at_levels), (RANDOM, drawn_from)):
            if members_at and all(row and set(row) <= there.get(member, set()) for member, row in members_at.items()):
                benchmarks.append(Benchmark(name, severities, members_at))
                covered |= {(member, severity) for member, row in members_at.items() for severity in row}
    rest = {name: {s for s in row if (name, s) not in covered} for name, row in there.items()}
    for severities, of_kind in ((LEVELS, _numbers), (RANDOM, _random)):
        members_at = {name: row for name in rest if (row := of_kind(rest[name]))}
        if members_at:
            benchmarks.append(Benchmark(OTHERS, severities, members_at))
    return benchmarks


def gaps(benchmarks: Iterable[Benchmark]) -> list[tuple[Benchmark, Benchmark]]:
    """Lists (C-bar, C) at the same kind of severities, whose difference is the gap."""
    by_key = {(benchmark.name, benchmark.severities): benchmark for benchmark in benchmarks}
    return [
        (by_key[bar, severities], by_key[PLAIN, severities])
        for bar in BAR
        for severities in (LEVELS, RANDOM)
        if (bar, severities) in by_key and (PLAIN, severities) in by_key
    ]


def _levels(member, benchmark, stored):
    import corruptions

    benchmark = benchmark.replace(OF_TFDS, PLAIN)
    levels = tuple(corruptions.severities(member, benchmark))
    selected = stored and corruptions.selected_levels(member, benchmark) is not None
    return tuple(range(1, len(levels) + 1)) if selected else levels


def _called(member, severities, benchmark, stored):
    """Gives the severities of a member of a benchmark as errors on a dataset on disk, or on generated images, call them."""
    import corruptions

    registered = benchmark.severities == LEVELS and benchmark.name in corruptions.benchmarks()
    return _levels(member, benchmark.name, stored) if registered else severities


def _numbers(severities):
    return tuple(sorted(s for s in severities if not isinstance(s, str)))


def _random(severities):
    return tuple(s for s in severities if s == RANDOM)


class Row(NamedTuple):
    """Scores of one model and seed on one corruption (its qualified name) of a benchmark, or on all (`mean`).

    `severities` are `levels` or `random`. `reference` is its name, `mismatch` what differs from its conditions, `frost`
    the source of frost where that is among the corruptions; `none` where there is none.
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
    """Scores a model, (model, seed), on one of `complete_benchmarks`: a row for each corruption.

    `conditions` are those that the errors were measured under.
    """
    clean = (*key, CLEAN, 0)
    scored = []
    for name, severities in benchmark.members.items():
        cells = [(*key, name, severity) for severity in severities]
        reference, divisor = choice.of(name), None
        if reference is not None:
            divisor = reference.of(name, _called(name, severities, benchmark, reference.stored))
        by = (NONE, NONE) if divisor is None else (reference.name, choice.label([name], reference.name))
        frost = (conditions.frost if name == FROST else "") or NONE
        values = _scaled(errors, cells, clean, divisor, reference)
        scored.append(Row(*key, benchmark.name, benchmark.severities, name, *by, frost, *values))
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


def clean_error(errors: ImageErrors, key: tuple[str, int]) -> Value:
    """Gives the error of a model on clean images."""
    return Value.from_images(100 * errors.sum([(*key, CLEAN, 0)]), 100.0)


def _scaled(errors, cells, clean, divisor, reference):
    """(mean error, CE, relative CE) of one corruption."""
    number = len(cells)
    divisors = Divisors() if divisor is None else Divisors.from_errors(divisor, reference.clean)
    wrong, base = errors.sum(cells) / number, errors.sum([clean])
    base = base if len(wrong) == len(base) else math.nan  # stored images may differ from the clean images
    return divisors.measures(wrong, base, unit=100.0)


def resilience(
    errors: Mapping[str, float | Sequence[float]],
    clean: float,
    baseline: Mapping[str, float | Sequence[float]],
    baseline_clean: float,
) -> pd.DataFrame:
    """Scores one model of a camera benchmark against a baseline, a row for each corruption and a last row `mean`.

    An error lies in [0, 1]: RoboDepth's DEE, (absolute relative error - delta_1 + 1) / 2, or RoboBEV's 1 - NDS. It is
    averaged over the severities of a corruption before anything is divided.

    CE_c = E_c / B_c, RR_c = (1 - E_c) / (1 - E_clean), relative CE_c = (E_c - E_clean) / (B_c - B_clean), each times
    100 (S. Xie et al., RoboBEV; L. Kong et al., RoboDepth). Means over corruptions are mCE, mRR and RmCE.

    Args:
      errors: {corruption: error in [0, 1], or one for each severity}.
      clean: error on clean images.
      baseline, baseline_clean: of the baseline, for the same corruptions.

    The columns are `error`, `CE`, `RR`, `relative CE`, which is NaN where the baseline loses nothing. Raises ValueError
    for corruptions that one of the two lacks, or an error that is not in [0, 1].
    """
    if set(errors) != set(baseline) or not errors:
        odd = sorted(set(errors) ^ set(baseline))
        raise ValueError(
            f"expected errors of the same corruptions for the model and the baseline, found {odd} in one alone"
        )
    ours, theirs = (np.array([np.mean(table[name]) for name in errors]) for table in (errors, baseline))
    everything = np.concatenate([ours, theirs, [clean, baseline_clean]])
    outside = ~((everything >= 0) & (everything <= 1))
    if outside.any():
        raise ValueError(f"expected errors in [0, 1], found {everything[outside][0]}")
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(theirs > baseline_clean, (ours - clean) / (theirs - baseline_clean), np.nan)
    columns = {"error": ours, "CE": 100 * ours / theirs, "RR": 100 * (1 - ours) / (1 - clean)}
    table = pd.DataFrame(columns | {"relative CE": 100 * relative}, index=list(errors))
    table.loc["mean"] = table.mean(skipna=False)
    return table
