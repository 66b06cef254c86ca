"""Names of corruptions and of the benchmarks made of them."""

from corruptions import checks
from corruptions.contract import Corruption, Levels

_CORRUPTIONS: dict[str, Corruption] = {}
# Benchmark -> its members in published order -> the levels it selects, or None where it takes all severities.
_BENCHMARKS: dict[str, dict[str, tuple[int, ...] | None]] = {}
_FRACTIONS = (0.0, 0.25, 0.5, 0.75, 1.0)


def register(corruption):
    """Adds a corruption under its qualified name and returns it."""
    if corruption.qualified_name in _CORRUPTIONS:
        raise ValueError(f"corruption {corruption.qualified_name!r} is registered already")
    _CORRUPTIONS[corruption.qualified_name] = corruption
    return corruption


def register_benchmark(name, members, levels=None):
    """Names an ordered list of corruptions (qualified names).

    Args:
      name: of the benchmark.
      members: qualified names, in published order.
      levels: for every member, which of its levels are the benchmark's severities 1, 2, ...; None where the benchmark
        has the severities of its members.
    """
    missing = [m for m in members if m not in _CORRUPTIONS]
    if missing:
        raise ValueError(f"benchmark {name!r} names corruptions that are not registered: {missing}")
    _BENCHMARKS[name] = {member: None if levels is None else tuple(levels[member]) for member in members}


def benchmarks():
    """Names of all benchmarks, in order of registration."""
    return tuple(_BENCHMARKS)


def names(benchmark=None):
    """Qualified names of all corruptions, or of a benchmark's members in its published order.

    Raises:
      ValueError: an unknown benchmark.
    """
    if benchmark is None:
        return tuple(_CORRUPTIONS)
    return tuple(_members(benchmark))


def severities(name, benchmark=None):
    """The severities of a corruption in a table of results, mildest first.

    Args:
      name: a corruption.
      benchmark: one that it is a member of.

    Returns:
      A tuple: the levels that are the benchmark's severities 1, 2, ... where it selects some (`cifar10_c_bar` takes the
      levels 1, 5, 8, 9 and 10 of `cbar/sparkles`); else every level of the corruption, or fractions 0, 1/4 .. 1 of its
      range.

    Raises:
      ValueError: an unknown name or benchmark, or a corruption that is no member of it.
    """
    corruption = get(name)
    if benchmark is not None and (selected := selected_levels(corruption, benchmark)) is not None:
        return selected
    scale = corruption.scale
    return tuple(range(1, scale.count + 1)) if isinstance(scale, Levels) else _FRACTIONS


def selected_levels(name, benchmark):
    """The levels of a member that are a benchmark's severities 1, 2, ..., or None where the benchmark has them all.

    Raises:
      ValueError: as `severities`.
    """
    corruption, members = get(name), _members(benchmark)
    if corruption.qualified_name not in members:
        raise ValueError(f"expected a member of {benchmark}, found {corruption.qualified_name}")
    return members[corruption.qualified_name]


def _members(benchmark):
    if benchmark not in _BENCHMARKS:
        raise ValueError(
            f"unknown benchmark {benchmark!r}{checks.suggest(benchmark, _BENCHMARKS)}; known: {', '.join(_BENCHMARKS)}"
        )
    return _BENCHMARKS[benchmark]


def get(name):
    """The corruption called `name`: qualified (`imagenet_c/fog`), or unqualified when that is unique (`fog`).

    Raises:
      ValueError: an unknown name (with suggestions), or an unqualified name that several benchmarks use.
    """
    if isinstance(name, Corruption):
        return name
    if name in _CORRUPTIONS:
        return _CORRUPTIONS[name]
    found = [c for c in _CORRUPTIONS.values() if name in _spellings(c)]
    if len(found) == 1:
        return found[0]
    if found:
        choices = " or ".join(repr(c.qualified_name) for c in found)
        raise ValueError(f"corruption name {name!r} is used by several benchmarks; say {choices}")
    known = [s for c in _CORRUPTIONS.values() for s in (c.qualified_name, c.name)]
    raise ValueError(f"unknown corruption {name!r}{checks.suggest(name, known)}; see corruptions.names()")


def _spellings(corruption):
    spellings = (corruption.name, *corruption.aliases)
    return spellings + tuple(f"{corruption.benchmark}/{s}" for s in spellings)
