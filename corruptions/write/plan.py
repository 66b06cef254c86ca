"""What is to be written: one manifest entry per corruption, with its severities, options and place."""

import collections
from collections.abc import Mapping

from corruptions import checks, registry
from corruptions.contract import Levels
from corruptions.imagenet_c import tables


def entries(names, severities, options, table, shape, suffix):
    """The manifest's entry of every corruption."""
    names = [names] if isinstance(names, str) else names
    known = [n for name in names for n in (registry.names(name) if name in registry.benchmarks() else (name,))]
    chosen = list(dict.fromkeys(registry.get(name) for name in known))
    if not chosen:
        raise ValueError("expected at least one corruption, found none")
    options = {registry.get(name).qualified_name: dict(given) for name, given in options.items()}
    if isinstance(severities, Mapping):
        severities = {registry.get(name).qualified_name: given for name, given in severities.items()}
    found = {}
    for corruption in chosen:
        given = options.get(corruption.qualified_name, {})
        if table is not None and "table" in corruption.options:
            given = {"table": table} | given
        checks.options(corruption, given)
        mine = severities.get(corruption.qualified_name) if isinstance(severities, Mapping) else severities
        found[corruption.qualified_name] = {
            "path": corruption.name + suffix,
            "severities": _severities(corruption, mine, given),
            "table": tables.table_for(shape, given.get("table")) if "table" in corruption.options else None,
            "options": given,
            "rounding": corruption.rounding,
            "written": [],
        }
    twins = [path for path, count in collections.Counter(e["path"] for e in found.values()).items() if count > 1]
    if twins:
        raise ValueError(f"several benchmarks have a corruption called {twins[0]}; write them to folders of their own")
    return found


def _severities(corruption, given, options):
    if given is None:
        levels = isinstance(corruption.scale, Levels)
        given = range(1, corruption.scale.count + 1) if levels else (0.0, 0.25, 0.5, 0.75, 1.0)
    found = [s if s == "random" or s != int(s) else int(s) for s in given]
    for severity in found:
        if severity != "random":
            corruption.scale.check(severity, options)
    if not found or len(set(found)) < len(found):
        raise ValueError(f"expected severities of {corruption.qualified_name} without repetition, found {list(given)}")
    return found
