"""Everything that tools.natural_shift asks of a table of models, in one record."""

from collections.abc import Sequence
from typing import NamedTuple

from analysis.natural_shift import baseline, prediction, resampling
from analysis.natural_shift.baseline import FromClean, Together
from analysis.natural_shift.benchmarks import Bin, Effects, Leader, compare_benchmarks, leaders
from analysis.natural_shift.effective import Line
from analysis.natural_shift.prediction import Prediction
from analysis.natural_shift.table import Table
from analysis.selection.nk_benchmarks import Clusters


class Study(NamedTuple):
    """Results of a table; parts that it does not allow are empty.

    Attributes:
      source: of the table.
      models: in the table; complete: with all accuracies that are compared.
      standard: models that lines are fitted to; shown: whose effective robustness is compared.
      shifts: natural shifts.
      members: corruptions of the benchmark.
      resamples: behind every interval.
      from_clean: clean accuracy as the predictor.
      together: pairs of shifts beyond clean accuracy.
      lines: {shift: its lines}.
      benchmark: the mean over the members as the predictor, for each shift.
      corruptions: each member as the predictor, for each shift.
      leaders: members by the drop correlation, averaged over shifts.
      categories: of the members, empty where nobody knows them.
      bins, effects: (n, k) benchmarks made of these.
    """

    source: str
    models: int
    complete: int
    standard: int
    shown: int
    shifts: tuple[str, ...]
    members: tuple[str, ...]
    resamples: int
    from_clean: list[FromClean]
    together: list[Together]
    lines: dict[str, tuple[Line, ...]]
    benchmark: list[Prediction]
    corruptions: list[Prediction]
    leaders: list[Leader]
    categories: tuple[tuple[str, ...], ...]
    bins: tuple[Bin, ...]
    effects: Effects | None


def study(
    table: Table,
    shifts: Sequence[str] = (),
    benchmark: Sequence[str] = (),
    clusters: Clusters = (),
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> Study:
    """Compares what predicts natural robustness.

    Args:
      table: of models.
      shifts: natural shifts; none takes the usual ones that are there.
      benchmark: corruptions or benchmarks; none takes ImageNet-C, else all.
      clusters: categories of the corruptions, for (n, k) benchmarks; none compares none.
      resamples: of the models, behind the intervals.
      seed: of all draws.

    Raises:
      ValueError: names that the table does not know, fewer than 4 models, or categories of other
        corruptions.
    """
    shifts, members = table.shifts(shifts), table.members(benchmark)
    if clusters and sorted(members) != sorted(name for cluster in clusters for name in cluster):
        raise ValueError(f"expected categories of the benchmark's {len(members)} corruptions, found others")
    complete = table.complete(shifts, members)
    weights = resampling.draw(len(table.models), resamples, seed)
    # Samples of the complete models, not what samples of all models leave of them.
    of_complete = resampling.draw(int(complete.sum()), resamples, seed)
    results = Study(
        table.source,
        len(table.models),
        int(complete.sum()),
        int(table.standard.sum()),
        int(table.shown.sum()),
        shifts,
        members,
        resamples,
        baseline.from_clean(table, shifts, complete, of_complete),
        baseline.together(table, shifts, complete, of_complete),
        {shift: prediction.natural_lines(table, shift) for shift in shifts},
        *([], [], [], (), (), None),
    )
    if not members:
        return results
    synthetic = {name: table.synthetic[name] for name in members}
    mean = {"mean": table.mean(members)}
    drops = {name: (table.clean - column)[complete] for name, column in synthetic.items()}
    natural = {shift: (table.clean - table.natural[shift].accuracy)[complete] for shift in shifts}
    bins, effects = (), None
    if clusters:
        bins, effects = compare_benchmarks(drops, natural, clusters, of_complete, seed=seed)
    return results._replace(
        benchmark=prediction.predict(table, mean, shifts, complete, weights, of_complete),
        corruptions=prediction.predict(table, synthetic, shifts, complete, weights, of_complete),
        leaders=leaders(drops, natural, of_complete),
        categories=tuple(map(tuple, clusters)),
        bins=bins,
        effects=effects,
    )
