"""Settings and what is known of each: meaning, type, range and unit. Settings are checked and
listed by it.
"""

import dataclasses
import difflib
import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

MOST = 2**31 - 1  # of whole numbers that count or number something: an int32 on the device


class SettingsError(ValueError):
    """A setting that was asked for is wrong; the message alone says which and what was expected."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """What is known of a setting.

    Attributes:
      meaning: what it is for, with its unit.
      expected: the values it takes, as errors and lists say it: `a whole number from 1 to 10`.
      check: raises ValueError, whose text ends the error, for any other value.
    """

    meaning: str
    expected: str
    check: Callable[[Any], None]


def _setting(meaning: str, expected: str, accepts: Callable[[Any], bool]) -> Setting:
    def check(value):
        if not accepts(value):
            raise ValueError(f"expected {expected}, found {value!r}")

    return Setting(meaning, expected, check)


def whole(meaning: str, low: int = 0, high: int = MOST, *, but: int | None = None) -> Setting:
    """A whole number from `low` to `high`, without `but`."""
    expected = f"a whole number {f'of at least {low}' if high == MOST else f'from {low} to {_power(high)}'}"
    expected += "" if but is None else f" but {but}"
    return _setting(meaning, expected, lambda x: _is_whole(x) and low <= x <= high and x != but)


def number(meaning: str, low: float, high: float = math.inf, *, above: bool = False, below: bool = False) -> Setting:
    """A finite number from `low` to `high`, with `above` without `low`, with `below` without
    `high`.
    """
    if high == math.inf:
        expected = f"a finite number {'above' if above else 'of at least'} {low:g}"
    else:
        expected = f"a number in {'(' if above else '['}{low:g}, {high:g}{')' if below else ']'}"

    def accepts(x):
        finite = isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x)
        return finite and low <= x <= high and not (above and x == low) and not (below and x == high)

    return _setting(meaning, expected, accepts)


def switch(meaning: str) -> Setting:
    """True or False."""
    return _setting(meaning, "True or False", lambda x: isinstance(x, bool))


def choice(meaning: str, *values: str) -> Setting:
    """One of a few words."""
    listed = ", ".join(map(repr, values[:-1])) + f" or {values[-1]!r}"
    return _setting(meaning, listed, lambda x: isinstance(x, str) and x in values)


def text(meaning: str, what: str = "text") -> Setting:
    """Any text, the empty one too: a path, or a pattern of paths."""
    return _setting(meaning, what, lambda x: isinstance(x, str))


def word(meaning: str, expected: str, check: Callable[[str], Any]) -> Setting:
    """Text that `check` takes; it raises ValueError, which says what was expected, for any
    other.
    """

    def check_word(value):
        if not isinstance(value, str):
            raise ValueError(f"expected {expected}, found {value!r}")
        check(value)

    return Setting(meaning, expected, check_word)


def several(
    meaning: str, item: Setting, least: int = 0, most: int | None = None, *, order: str = "distinct"
) -> Setting:
    """A tuple (or list) of values that `item` takes.

    Args:
      meaning: of the setting.
      item: takes each value; its own meaning is not used.
      least, most: how many there are.
      order: `distinct`, `rising` or `any`.
    """
    counted = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
    kinds = {"distinct": "distinct values", "rising": "rising values", "any": "values"}[order]
    expected = f"a tuple of {counted + ' ' if least else ''}{kinds}, each {item.expected}"

    def check(values):
        if not isinstance(values, tuple | list):
            raise ValueError(f"expected {expected}, found {values!r}")
        for value in values:
            item.check(value)
        values = tuple(values)
        ordered = {"distinct": len(set(values)) == len(values), "any": True}
        rising = order == "rising" and all(a < b for a, b in itertools.pairwise(values))
        if not (least <= len(values) and (most is None or len(values) <= most) and (rising or ordered.get(order))):
            raise ValueError(f"expected {expected}, found {values!r}")

    return Setting(meaning, expected, check)


def or_empty(setting: Setting, empty: Any, meaning: str) -> Setting:
    """What `setting` takes, or `empty`, which asks for `meaning`."""

    def check(value):
        if value != empty or type(value) is not type(empty):
            setting.check(value)

    return Setting(f"{setting.meaning}; {empty!r} is {meaning}", f"{setting.expected}, or {empty!r}", check)


def names(meaning: str, what: str, check: Callable[[str], Any], least: int = 0) -> Setting:
    """A tuple of names, each of which `check` takes (ValueError otherwise)."""
    return several(meaning, word("", what, check), least, order="any")


def check(settings: Mapping[str, Any], known: Mapping[str, Setting], prefix: str = "config.") -> None:
    """Checks flat settings, {dotted key: value}.

    Raises:
      SettingsError: a key that is not known, or a value that is not taken; a line for each.
    """
    wrong = []
    for key, value in settings.items():
        if key not in known:
            wrong.append(unknown(key, known, prefix))
            continue
        try:
            known[key].check(value)
        except (ValueError, OSError) as error:
            wrong.append(f"{prefix}{key}: {error}")
    if wrong:
        raise SettingsError("\n".join(wrong))


def unknown(key: str, known: Iterable[str], prefix: str = "config.") -> str:
    """Says that there is no such key, with the likeliest that is meant."""
    close = difflib.get_close_matches(key, list(known), 1, 0.5)
    return f"there is no setting {prefix}{key}" + (f"; did you mean {prefix}{close[0]}?" if close else "")


def lines(known: Mapping[str, Setting], values: Mapping[str, Any], prefix: str = "config.") -> list[str]:
    """Lists keys, each with what it takes, its value and its meaning, as `--help` shows them."""
    return [
        f"{prefix}{key}{f'={values[key]!r}' if key in values else ''}: {setting.meaning} ({setting.expected})"
        for key, setting in known.items()
    ]


def markdown(known: Mapping[str, Setting], values: Mapping[str, Any]) -> str:
    """Lists keys as Markdown: a table for each group, the part of a key before its last dot."""
    out, group = [], None
    for key, setting in known.items():
        head, _, name = key.rpartition(".")
        if head != group:
            group = head
            out += ["", f"## {head or 'at the top'}", "", "| key | default | takes | meaning |", "|---|---|---|---|"]
        default = f"`{values[key]!r}`" if key in values else "of the model"
        cells = (f"`{name}`", default, setting.expected, setting.meaning)
        out.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(out[1:]) + "\n"


def _is_whole(x):
    return isinstance(x, int) and not isinstance(x, bool)


def _power(x):
    return f"2^{x.bit_length()} - 1" if x > MOST and x & (x + 1) == 0 else x
