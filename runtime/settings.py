"""Settings that must equal those stored with earlier results; every difference is named."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from runtime import files


class WorkdirError(RuntimeError):
    """A folder of results cannot be used with these settings; nothing in it was changed."""


def claim(path: Path, settings: Mapping[str, Any], refusal: str, *, free: Iterable[str] = ()) -> None:
    """Stores `settings` in the JSON file `path`, after checking them against what an earlier run stored there.

    Raises:
      WorkdirError: they differ, see `check_equal`.
      DamagedFileError: the file is damaged.
    """
    if path.exists():
        stored = files.read_json(path, remedy="restore it or use another folder")
        check_equal(stored, settings, refusal, free=free)
    files.write_json(path, settings, sort_keys=True)


def check_equal(stored: Mapping[str, Any], asked: Mapping[str, Any], refusal: str, *, free: Iterable[str] = ()) -> None:
    """Checks that settings equal the stored ones.

    Args:
      stored: nested settings as read from JSON.
      asked: the settings of this command.
      refusal: text of the error before the list of differences.
      free: dotted keys that may differ; those below them may too.

    Raises:
      WorkdirError: they differ; names every dotted key with both values.
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


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Turns nested dicts into one: {"a.b.c": value}."""
    flat = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        flat |= flatten(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return flat
