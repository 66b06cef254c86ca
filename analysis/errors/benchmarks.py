"""Which benchmarks the counts of a model hold completely, at which severities."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import corruptions
from analysis.tables import CLEAN, NATURAL, OF_CLASSES, RANDOM

Severity = int | float | str
LEVELS = "levels"
OTHERS = "others"
PLAIN = "imagenet_c"
BAR = ("imagenet_c_bar", "cifar10_c_bar")


class Benchmark(NamedTuple):
    """Corruptions at severities, all of which a model was evaluated under.

    Attributes:
      name: of a registered benchmark, or of a study's own; `others` are corruptions of none.
      severities: `random`, or `levels` for every level that the benchmark has.
      members: {qualified name: its severities}, in published order.
    """

    name: str
    severities: str
    members: Mapping[str, tuple[Severity, ...]]


def complete(
    conditions: Iterable[tuple[str, Severity]],
    own: Mapping[str, Iterable[str]] | None = None,
    *,
    stored: bool = False,
) -> list[Benchmark]:
    """Lists the benchmarks that are there completely, then what is in none of them.

    Args:
      conditions: (corruption, severity) that a model was evaluated under.
      own: {name: corruptions} of benchmarks that are not registered, such as a study's.
      stored: of a dataset on disk, whose severities are 1, 2, ... where a benchmark selects levels.
    """
    there: dict[str, set[Severity]] = {}
    for corruption, severity in conditions:
        if corruption != CLEAN and not corruption.startswith((NATURAL, OF_CLASSES)):
            there.setdefault(corruption, set()).add(severity)
    by_name = {name: corruptions.names(name) for name in corruptions.benchmarks()}
    by_name |= {name: tuple(names) for name, names in (own or {}).items() if tuple(names) not in by_name.values()}
    benchmarks, covered = [], set()
    for name, of_benchmark in by_name.items():
        registered = name in corruptions.benchmarks()
        at_random = dict.fromkeys(of_benchmark, (RANDOM,))
        at_levels = {
            member: _levels(member, name, stored) if registered else _numbers(there.get(member, ()))
            for member in of_benchmark
        }
        for severities, members_at in ((LEVELS, at_levels), (RANDOM, at_random)):
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
    """Lists (C-bar, C) at the same kind of severities, between which a gap is asked for."""
    by_key = {(benchmark.name, benchmark.severities): benchmark for benchmark in benchmarks}
    return [
        (by_key[bar, severities], by_key[PLAIN, severities])
        for bar in BAR
        for severities in (LEVELS, RANDOM)
        if (bar, severities) in by_key and (PLAIN, severities) in by_key
    ]


def _levels(member, benchmark, stored):
    levels = tuple(corruptions.severities(member, benchmark))
    selected = stored and corruptions.selected_levels(member, benchmark) is not None
    return tuple(range(1, len(levels) + 1)) if selected else levels


def _numbers(severities):
    return tuple(sorted(s for s in severities if not isinstance(s, str)))


def _random(severities):
    return tuple(s for s in severities if s == RANDOM)
