"""Conditions: clean images, and corruptions at severities, as names and a text ask for them.

list_conditions(("imagenet_c/fog",), "1,3")  ->  clean, fog at level 1, fog at level 3
list_conditions(("imagenet_noc",), "random") ->  clean, eight corruptions at severities drawn per
image
"""

import collections
import dataclasses
import numbers
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from corruptions.core import registry
from corruptions.core.corruption import Corruption
from corruptions.core.errors import Refused
from corruptions.core.keys import seed_key
from corruptions.core.severity import Levels

CLEAN = "clean"
RANDOM = "random"


@dataclasses.dataclass(frozen=True)
class Condition:
    """A corruption at a severity; as text `imagenet_c/fog 3`."""

    corruption: str  # qualified name, or `clean`
    severity: str  # a level, a fraction, or `random`, as text ("0" for clean)
    # Those that random severities are drawn from, where a benchmark selects some; None is the corruption's own
    # distribution.
    levels: tuple[int, ...] | None = None

    def __str__(self) -> str:
        return " ".join(map(str, (self.corruption, self.severity, *(self.levels or ()))))

    @property
    def value(self) -> int | float | None:
        """Gives the severity as `corruptions.corrupt` takes it: None draws one for each image."""
        if self.severity == RANDOM:
            return None
        return int(self.severity) if self.severity.isdigit() else float(self.severity)

    @property
    def label(self) -> int | float | str:
        """Gives the severity as tables hold it: `random`, a level or a fraction (0 for clean)."""
        return RANDOM if self.value is None else self.value

    @property
    def stem(self) -> str:
        """Names the file of the condition, see `file_stem`."""
        return file_stem(self.corruption, self.severity, self.levels)


def file_stem(corruption: str, severity: str | int | float, levels: Iterable[int] | None = None) -> str:
    """Names the file of a condition, without `.npz`: imagenet_c.fog-3, cbar.lines-random-1-4-7."""
    return "-".join(map(str, (corruption.replace("/", "."), severity, *(levels or ()))))


CLEAN_IMAGES = Condition(CLEAN, "0")
Severities = str | int | float | Iterable[int | float]


def list_conditions(
    names: Iterable[str], severities: Severities, options: Mapping[str, Mapping[str, Any]] = types.MappingProxyType({})
) -> list[Condition]:
    """Lists clean images and every corruption at every severity, each once.

    Args:
      names: corruptions or benchmarks.
      severities: `random` or `levels`: drawn from, or each of, `corruptions.severities` (those a
        benchmark has selected, else every level; for a range any fraction, or 0, 1/4 .. 1); or
        numbers: 3, (1, 3, 5) or "1,3,5", levels or fractions of the corruption. For a benchmark that
        selects levels they are its severities: `imagenet_c_bar` at 5 is `cbar/sparkles` at level 10.
      options: qualified name -> the corruption's options; `interpolate` admits numbers between levels.

    Raises:
      ValueError: an unknown name or severity; a corruption at random severities of two different
        selections, which tables of results could not tell apart.
    """
    names, severities = tuple(names), _as_text(severities)
    conditions = [CLEAN_IMAGES]
    for name in names:
        benchmark = name if name in registry.benchmarks() else None
        for member in expand([name]):
            levels = registry.selected_levels(member, benchmark) if benchmark and severities == RANDOM else None
            of_member = _severities(member, benchmark, severities, options.get(member, {}))
            conditions += [Condition(member, str(severity), levels) for severity in of_member]
    conditions = list(dict.fromkeys(conditions))
    at_random = collections.Counter(c.corruption for c in conditions if c.severity == RANDOM)
    if twice := [name for name, count in at_random.items() if count > 1]:
        expected = f"one selection of the random severities of {twice[0]}"
        hint = "evaluate each by itself, into a folder of its own, or with severity=levels"
        raise Refused("corruptions", expected, f"those of two benchmarks among {', '.join(names)}", hint)
    return conditions


@dataclasses.dataclass(frozen=True, eq=False)
class Conditions:
    """The conditions of an evaluation, as `corruptions.evaluate` describes the arguments of these names.

    Raises ValueError and TypeError where they are not as described.

    Attributes:
      corruptions: as a list.
      options: by qualified names.
      listed: the conditions, each once, `clean` first.
    """

    corruptions: str | Sequence[str] = ("imagenet_c",)
    severity: Severities = "levels"
    options: Mapping[str, Mapping[str, Any]] | None = None
    seed: int = 0
    listed: Sequence[Condition] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        given = self.corruptions
        asked = [given] if isinstance(given, str | Corruption) else list(given)
        options = registry.qualified_options(self.options or {})
        seed_key(self.seed)  # refuses a wrong seed
        found = {"corruptions": asked, "options": options, "listed": list_conditions(asked, self.severity, options)}
        for name, value in found.items():
            object.__setattr__(self, name, value)

    def of_benchmarks(self) -> dict[str, list[Condition]]:
        """Lists the conditions of each benchmark that is asked for, without clean images."""
        names = [name for name in self.corruptions if name in registry.benchmarks()]
        return {name: list_conditions([name], self.severity, self.options or {})[1:] for name in names}


def expand(names: Iterable[str]) -> tuple[str, ...]:
    """Replaces benchmarks by their members; qualified names, each once, in order. Raises ValueError for an unknown
    name, or a record that is not registered.
    """
    members: list[str] = []
    for name in names:
        members += registry.names(name) if name in registry.benchmarks() else (name,)
    return tuple(dict.fromkeys(registry.registered(name).qualified_name for name in members))


def _severities(name: str, benchmark: str | None, text: str, options: Mapping[str, Any]) -> Sequence[int | float | str]:
    if text == RANDOM:
        return [RANDOM]
    if text == "levels":
        return registry.severities(name, benchmark)
    corruption = registry.get(name)
    severities = _numbers(text, whole=isinstance(corruption.scale, Levels))
    if benchmark and (selected := registry.selected_levels(name, benchmark)):
        known: dict[int | float, int] = dict(enumerate(selected, 1))
        if unknown := [severity for severity in severities if severity not in known]:
            raise Refused("severity", f"severities 1..{len(known)} of {benchmark}", unknown[0])
        return [known[severity] for severity in severities]
    for severity in severities:
        corruption.check_severity(severity, options)
    return severities


def _as_text(severities: Severities) -> str:
    if isinstance(severities, str):
        return severities
    values = list(severities) if isinstance(severities, Iterable) else [severities]
    if not values or any(isinstance(value, bool) or not isinstance(value, numbers.Real) for value in values):
        expected = 'severity "levels", "random" (each image draws its own), 3 or (1, 3, 5)'
        raise Refused("severity", expected, repr(severities))
    return ",".join(map(str, values))


def _numbers(text: str, whole: bool) -> list[int | float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise Refused("severity", "a severity random, levels, or numbers like 1,3,5", repr(text)) from None
    return [int(value) if whole and value.is_integer() else value for value in values]
