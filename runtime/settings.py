"""Settings and their sections: default, meaning and range, stated once; and the comparison with stored settings.

A section of a config is a frozen dataclass, its settings are its fields:

    @dataclasses.dataclass(frozen=True)
    class TrainSettings(Section):
        epochs: int = setting(40, "epochs of training", whole(0, 1_000_000))
        mix_in: MixInSettings = group(MixInSettings)

The default config, its checks, `--help` and docs/reference/settings.md are made from these fields.
"""

import dataclasses
import itertools
import json
import math
import re
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, NamedTuple, Self

from corruptions.core.errors import MissingAssets, UnknownCorruption
from corruptions.files import similar

MOST = 2**31 - 1  # largest count or index: an int32 on the device


class SettingsError(ValueError):
    """A setting is wrong; the message names it and the expected value."""


class WorkdirError(RuntimeError):
    """A folder of results cannot be used with these settings; nothing in it was changed."""


class WorkdirInUseError(WorkdirError):
    """Another process holds the folder."""


class Kind(NamedTuple):
    """The values that a setting takes."""

    expected: str  # these values in words, as errors and lists have it: `a whole number from 1 to 10`
    check: Callable[[Any], None]  # raises ValueError, whose text ends the error, for any other value


class Setting(NamedTuple):
    """One setting of a config."""

    default: Any  # its value in configs/default.py; None where configs lack it until it is set
    meaning: str  # its purpose and unit
    # expected, check: the values it takes, see `Kind`
    expected: str
    check: Callable[[Any], None]


def setting(default: Any, meaning: str, kind: Kind) -> Any:
    """Makes the field of a `Section` that holds a setting."""
    one = Setting(default, meaning, *kind)
    if isinstance(default, dict):
        return dataclasses.field(default_factory=default.copy, metadata={"setting": one})
    return dataclasses.field(default=default, metadata={"setting": one})


def group(section: type["Section"]) -> Any:
    """Makes the field of a `Section` that holds another section."""
    return dataclasses.field(default_factory=section, metadata={"section": section})


class Section:
    """Base of the sections of a config: frozen dataclasses of fields made by `setting` and `group`."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Makes the section of a part of a config, or of a stored config.json.

        Lists, which JSON makes of tuples, become tuples again; a missing setting has its default.
        """
        values = values.to_dict() if hasattr(values, "to_dict") else values
        found = {}
        for field in dataclasses.fields(cls):
            if field.name in values:
                value, section = values[field.name], field.metadata.get("section")
                found[field.name] = section.of(value) if section else _with_tuples(value)
        return cls(**found)

    @classmethod
    def settings(cls, prefix: str = "") -> dict[str, Setting]:
        """Lists {dotted key: setting} of the section, then of the sections within it."""
        fields = dataclasses.fields(cls)
        own = {f"{prefix}{f.name}": f.metadata["setting"] for f in fields if "setting" in f.metadata}
        for field in fields:
            if section := field.metadata.get("section"):
                own |= section.settings(f"{prefix}{field.name}.")
        return own

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Makes the nested dict of default values; settings without one are missing."""
        values = {}
        for field in dataclasses.fields(cls):
            section = field.metadata.get("section")
            value = section.defaults() if section else field.metadata["setting"].default
            if value is not None:
                values[field.name] = value
        return values


def _with_tuples(value):
    if isinstance(value, Mapping):
        return {key: _with_tuples(item) for key, item in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list | tuple) else value


def _kind(expected: str, accepts: Callable[[Any], bool]) -> Kind:
    def check(value):
        if not accepts(value):
            raise ValueError(f"expected {expected}, found {value!r}")

    return Kind(expected, check)


def whole(low: int = 0, high: int = MOST, *, but: int | None = None) -> Kind:
    """A whole number from `low` to `high`, without `but`."""
    most = f"2^{high.bit_length()} - 1" if high > MOST and high & (high + 1) == 0 else high
    expected = f"a whole number {f'of at least {low}' if high == MOST else f'from {low} to {most}'}"
    expected += "" if but is None else f" but {but}"

    def accepts(x):
        return isinstance(x, int) and not isinstance(x, bool) and low <= x <= high and x != but

    return _kind(expected, accepts)


def number(low: float, high: float = math.inf, *, above: bool = False, below: bool = False) -> Kind:
    """A finite number from `low` to `high`; with `above` without `low`, with `below` without `high`."""
    if high == math.inf:
        expected = f"a finite number {'above' if above else 'of at least'} {low:g}"
    else:
        expected = f"a number in {'(' if above else '['}{low:g}, {high:g}{')' if below else ']'}"

    def accepts(x):
        finite = isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x)
        return finite and low <= x <= high and not (above and x == low) and not (below and x == high)

    return _kind(expected, accepts)


SWITCH = _kind("True or False", lambda x: isinstance(x, bool))


def choice(*values: str) -> Kind:
    """One of a few words."""
    listed = ", ".join(map(repr, values[:-1])) + f" or {values[-1]!r}"
    return _kind(listed, lambda x: isinstance(x, str) and x in values)


def text(expected: str = "text") -> Kind:
    """Any text, the empty one too: a path, or a pattern of paths."""
    return _kind(expected, lambda x: isinstance(x, str))


def word(expected: str, check: Callable[[str], Any]) -> Kind:
    """Text for which `check` raises no ValueError; its error says which text was expected."""

    def check_word(value):
        if not isinstance(value, str):
            raise ValueError(f"expected {expected}, found {value!r}")
        check(value)

    return Kind(expected, check_word)


def several(item: Kind, least: int = 0, most: int | None = None, *, order: str = "distinct") -> Kind:
    """A tuple (or list) of `least` to `most` values of one kind; their order is `distinct`, `rising` or `any`."""
    counted = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
    kinds = {"distinct": "distinct values", "rising": "rising values", "any": "values"}[order]
    expected = f"a tuple of {counted + ' ' if least else ''}{kinds}, each {item.expected}"

    def check(values):
        if not isinstance(values, tuple | list):
            raise ValueError(f"expected {expected}, found {values!r}")
        for value in values:
            item.check(value)
        values = tuple(values)
        if order == "rising":
            ordered = all(a < b for a, b in itertools.pairwise(values))
        else:
            ordered = order == "any" or len(set(values)) == len(values)
        if not ordered or len(values) < least or (most is not None and len(values) > most):
            raise ValueError(f"expected {expected}, found {values!r}")

    return Kind(expected, check)


def or_empty(kind: Kind, empty: Any) -> Kind:
    """A value of `kind`, or `empty`."""

    def check(value):
        if value != empty:
            kind.check(value)

    return Kind(f"{kind.expected}, or {empty!r}", check)


def words(expected: str, check: Callable[[str], Any], least: int = 0) -> Kind:
    """A tuple of texts for each of which `check` raises no ValueError."""
    return several(word(expected, check), least, order="any")


def check(values: Mapping[str, Any], known: Mapping[str, Setting]) -> None:
    """Checks {dotted key: value}; a SettingsError has a line for each unknown key and each value that is not taken."""
    wrong = []
    for key, value in values.items():
        if key not in known:
            wrong.append(unknown(key, known))
            continue
        try:
            known[key].check(value)
        except (ValueError, OSError) as error:
            wrong.append(f"config.{key}: {error}{flag_for(error)}{of_percent(value, known[key].check)}")
    if wrong:
        raise SettingsError("\n".join(wrong))


def flag_for(error: Exception) -> str:
    """Names the flag that a library's error asks for, which has its name from the commands: '; --imports=MODULE', or ''."""
    if isinstance(error, UnknownCorruption) and error.unknown_prefix:
        return ": --imports=MODULE"
    return f"; --config.{error.name}=FOLDER" if isinstance(error, MissingAssets) else ""


def of_percent(text: Any, check: Callable[[float], Any]) -> str:
    """Suggests .1 for the text `10%` where `check` raises no ValueError for .1; else returns ''."""
    match = re.fullmatch(r"([\d.]+) ?%", str(text))
    try:
        share = float(match[1]) / 100 if match else math.nan
        check(share)
    except ValueError:
        return ""
    return f"; did you mean {share:g}?" if match else ""


def unknown(key: str, known: Iterable[str]) -> str:
    """Says that there is no such key, and which known key is most like it."""
    group, _, name = key.rpartition(".")
    meant = sorted(
        abbreviated(name, known), key=lambda one: (not one.startswith(f"{group}."), not one.startswith("train."))
    )
    for one in meant or similar(key, known, 5, 0.5):
        if meant or similar(name, [one.rpartition(".")[2]], 1, 0.5):
            return f"there is no setting config.{key}; did you mean config.{one}?"
    return f"there is no setting config.{key}"


def abbreviated(name: str, known: Iterable[str]) -> list[str]:
    """Lists the known keys whose last parts have the initials `name`: `lr` of `train.learning_rate`."""
    initials = {key: "".join(word[:1] for word in key.rpartition(".")[2].split("_")) for key in known}
    return [key for key, letters in initials.items() if letters == name and len(name) > 1]


def lines(known: Mapping[str, Setting], values: Mapping[str, Any]) -> list[str]:
    """Lists settings with value, meaning and expected values, as `--help` shows them."""
    return [
        f"config.{key}{f'={values[key]!r}' if key in values else ''}: {one.meaning} ({one.expected})"
        for key, one in known.items()
    ]


def markdown(known: Mapping[str, Setting]) -> str:
    """Lists settings as Markdown: a table for each group, the part of a key before its last dot."""
    out, group_before = [], None
    for key, one in known.items():
        head, _, name = key.rpartition(".")
        if head != group_before:
            group_before = head
            out += ["", f"## {head or 'at the top'}", "", "| key | default | takes | meaning |", "|---|---|---|---|"]
        default = "of the model" if one.default is None else f"`{one.default!r}`"
        cells = (f"`{name}`", default, one.expected, one.meaning)
        out.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(out[1:]) + "\n"


# Settings that must equal those stored with earlier results.


_LATER = {"dataset.turn": False}
"""Settings that earlier versions lack, and the value that means what those did: a workdir records no such value."""


def recorded(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a nested dict of settings without those of `_LATER`: a workdir of an earlier version has equal ones."""
    return {
        key: {name: inner for name, inner in value.items() if _LATER.get(f"{key}.{name}", ...) != inner}
        if isinstance(value, Mapping)
        else value
        for key, value in config.items()
    }


def check_equal(stored: Mapping[str, Any], asked: Mapping[str, Any], refusal: str, *, free: Iterable[str] = ()) -> None:
    """Checks that the settings `asked` of a command equal those read from JSON, except dotted keys in or below `free`.

    A WorkdirError has `refusal`, then a line with both values for every dotted key that differs.
    """
    if lines := differences(stored, asked, free):
        raise WorkdirError("\n  ".join([f"{refusal}:", *lines]))


def differences(stored: Mapping[str, Any], asked: Mapping[str, Any], free: Iterable[str] = ()) -> list[str]:
    """Returns a line for every dotted key whose value differs, as `check_equal` compares them."""
    before, now = flatten(stored), flatten(json.loads(json.dumps(asked)))  # tuples become the lists they are stored as
    free = tuple(free)
    return [
        f"{key}: stored {before.get(key, 'nothing')!r}, asked {now.get(key, 'nothing')!r}"
        for key in sorted(before.keys() | now.keys())
        if before.get(key) != now.get(key) and not is_within(key, free)
    ]


def is_within(key: str, names: Iterable[str]) -> bool:
    """Returns True if a dotted key is one of `names`, or lies below one."""
    return any(key == name or key.startswith(f"{name}.") for name in names)


def flatten(tree: Mapping[str, Any], prefix: str = "", whole: Container[str] = ()) -> dict[str, Any]:
    """Turns nested dicts into one: {"a.b.c": value}; dicts at the dotted keys `whole` stay."""
    flat = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        inner = isinstance(value, Mapping) and name not in whole
        flat |= flatten(value, f"{name}.", whole) if inner else {name: value}
    return flat
