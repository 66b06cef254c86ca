"""Plan of what is written: a manifest entry for each corruption, with severities and options."""

import collections
from collections.abc import Iterable, Mapping
from typing import Any

from corruptions import cbar, checks, imagenet_c, registry

_TABLE_FOR = {"imagenet_c": imagenet_c.table_for, "cbar": cbar.table_for}


def entries(
    names: str | Iterable[str],
    severities: Any,
    options: Mapping[str, Mapping[str, Any]],
    table: str | None,
    shape: tuple[int, ...],
    suffix: str,
) -> dict[str, dict[str, Any]]:
    """Makes the manifest's entry of every corruption."""
    members = _members([names] if isinstance(names, str) else names)
    options = {registry.get(name).qualified_name: dict(given) for name, given in options.items()}
    if isinstance(severities, Mapping):
        severities = {registry.get(name).qualified_name: given for name, given in severities.items()}
    planned = {}
    for corruption, (selected, benchmark) in members.items():
        given = options.get(corruption.qualified_name, {})
        ranges = table or cbar.BENCHMARK_TABLE.get(benchmark)  # a benchmark's levels belong to its own ranges
        if ranges is not None and "table" in corruption.options:
            given = {"table": ranges} | dict(given)
        checks.options(corruption.qualified_name, corruption.options, given)
        asked = severities.get(corruption.qualified_name) if isinstance(severities, Mapping) else severities
        asked = _severities(corruption, asked, given, selected)
        table_for = _TABLE_FOR.get(corruption.benchmark)
        planned[corruption.qualified_name] = {
            "path": corruption.name + suffix,
            "severities": asked,
            "levels": None if selected is None else [selected[severity - 1] for severity in asked],
            "table": table_for(shape, given.get("table")) if table_for and "table" in corruption.options else None,
            "options": given,
            "rounding": corruption.rounding,
            "written": [],
        }
    twins = [path for path, count in collections.Counter(e["path"] for e in planned.values()).items() if count > 1]
    if twins:
        raise ValueError(f"several benchmarks have a corruption called {twins[0]}; write them to folders of their own")
    return planned


def level(entry: Mapping[str, Any], severity: int | float | str) -> int | float | str | None:
    """Returns what `corruptions.corrupt` takes for a severity of an entry: None draws it."""
    if entry.get("levels") is not None:
        return entry["levels"][entry["severities"].index(severity)]
    return None if severity == "random" else severity


def _members(names):
    """The corruptions to write, each with the levels that are its benchmark's severities 1, 2, ...
    (or None) and the benchmark it was named by (or None).
    """
    members = {}
    for name in names:
        benchmark = name if name in registry.benchmarks() else None
        for member in registry.names(benchmark) if benchmark else (name,):
            selected = registry.selected_levels(member, benchmark) if benchmark else None
            corruption = registry.get(member)
            if members.setdefault(corruption, (selected, benchmark))[0] != selected:
                raise ValueError(
                    f"{corruption.qualified_name} is asked for with two selections of its levels; write them to folders "
                    "of their own"
                )
    if not members:
        raise ValueError("expected at least one corruption, found none")
    return members


def _severities(corruption, given, options, selected):
    if given is None:
        given = registry.severities(corruption) if selected is None else range(1, len(selected) + 1)
    checked = [s if s == "random" or s != int(s) else int(s) for s in given]
    for severity in checked:
        if selected is not None and severity not in range(1, len(selected) + 1):
            raise ValueError(
                f"expected severities 1..{len(selected)} of {corruption.qualified_name}, as its benchmark has them, found "
                f"{severity}"
            )
        if severity != "random":
            corruption.scale.check(severity, options)
    if not checked or len(set(checked)) < len(checked):
        raise ValueError(f"expected severities of {corruption.qualified_name} without repetition, found {list(given)}")
    return checked
