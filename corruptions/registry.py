"""Names of corruptions and of the benchmarks made of them."""

from corruptions import checks
from corruptions.contract import Corruption

_CORRUPTIONS: dict[str, Corruption] = {}
_BENCHMARKS: dict[str, tuple[str, ...]] = {}


def register(corruption):
    """Adds a corruption under its qualified name and returns it."""
    if corruption.qualified_name in _CORRUPTIONS:
        raise ValueError(f"corruption {corruption.qualified_name!r} is registered already")
    _CORRUPTIONS[corruption.qualified_name] = corruption
    return corruption


def register_benchmark(name, members):
    """Names an ordered list of corruptions (qualified names)."""
    missing = [m for m in members if m not in _CORRUPTIONS]
    if missing:
        raise ValueError(f"benchmark {name!r} names corruptions that are not registered: {missing}")
    _BENCHMARKS[name] = tuple(members)


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
