"""Settings that must equal those stored with earlier results; what differs is named."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from runtime import files

# What was done before there was such a setting. Others that are not stored were off: 0, "", False,
# None or empty.
_BEFORE = {"train.batch_norm": "synchronised", "model.class_stride": 1, "dataset.resize": "crop"}
# Below these are options of corruptions, which may be on when nobody names them: half_normal=False
# changes pixels.
_OPTIONS = {"options", "corruption_options"}


class WorkdirError(RuntimeError):
    """A folder of results cannot be used as asked; nothing in it was changed."""


def claim(path: Path, settings: Mapping[str, Any], refusal: str, *, free: Iterable[str] = ()) -> None:
    """Stores `settings` in the JSON file `path`, after checking them against what an earlier run
    stored there.

    Raises:
      WorkdirError: they differ, see `check_equal`.
      DamagedFileError: the file is damaged.
    """
    if path.exists():
        stored = files.read_json(path, remedy="restore it or use another folder")
        check_equal(stored, settings, refusal, free=free)
    files.write_json(path, settings, sort_keys=True)


def check_equal(stored: Mapping[str, Any], asked: Mapping[str, Any], refusal: str, *, free: Iterable[str] = ()) -> None:
    """Checks that settings equal the stored ones. One that was stored before it existed may be
    asked for when off.

    Args:
      stored: nested settings as read from JSON.
      asked: the settings of now.
      refusal: what the error says before it lists the differences.
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
        if before.get(key) != now.get(key)
        and not (key not in before and _is_off(key, now[key]))
        and not any(key == name or key.startswith(f"{name}.") for name in free)
    ]


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Turns nested dicts into one: {"a.b.c": value}."""
    flat = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        flat |= flatten(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return flat


def _is_off(key: str, value: Any) -> bool:
    """Whether a setting that earlier runs did not know asks for what they did."""
    if _OPTIONS & set(key.split(".")):
        return False
    return value == _BEFORE[key] if key in _BEFORE else not value
