"""Shapes of JSON: the expected content of a file, written with types, and the first place where it differs.

{"range": [float], "capped": (bool, bool)}    an object with at least these keys
{str: float}                                  an object of any keys
[int]                                         a list, its items alike
(str, float)                                  a list of exactly these items
int, float, str, bool, NULL                   a number without a fraction, any number, ...
Either(float, NULL), Maybe(float)             one of several; a key that may be missing
"""

from typing import Any, NamedTuple

NULL = type(None)
_NAMES = {dict: "an object", list: "a list", str: "text", bool: "true or false", NULL: "null"}
_NAMES |= {int: "a whole number", float: "a number"}


class Either:
    """Any of several shapes."""

    def __init__(self, *shapes: Any) -> None:
        self.shapes = shapes


class Maybe(NamedTuple):
    """The value of a key that may be missing."""

    shape: Any


def mismatch(value: Any, shape: Any, where: str = "") -> str | None:
    """Says where a value differs from a shape, `expected a number as sizes.3, found null`; None if it fits."""
    if isinstance(shape, Either):
        problems = [mismatch(value, alternative, where) for alternative in shape.shapes]
        return None if None in problems else problems[0]
    if isinstance(shape, dict):
        return _wrong(dict, value, where) if not isinstance(value, dict) else _of_object(value, shape, where)
    if isinstance(shape, list | tuple):
        if not isinstance(value, list):
            return _wrong(list, value, where)
        if isinstance(shape, tuple) and len(value) != len(shape):
            return f"expected {len(shape)} items{_at(where)}, found {len(value)}"
        shapes = shape if isinstance(shape, tuple) else shape * len(value)
        return _first(mismatch(item, inner, _join(where, k)) for k, (item, inner) in enumerate(zip(value, shapes)))
    right = isinstance(value, int | float if shape is float else shape)
    if not right or (isinstance(value, bool) and shape is not bool):
        return _wrong(shape, value, where)
    return None


def _of_object(value, shape, where):
    if str in shape:
        return _first(mismatch(item, shape[str], _join(where, key)) for key, item in value.items())
    problems = []
    for key, inner in shape.items():
        if key in value:
            problems.append(mismatch(value[key], inner.shape if isinstance(inner, Maybe) else inner, _join(where, key)))
        elif not isinstance(inner, Maybe):
            problems.append(f"expected {_join(where, key)}, found nothing of that name")
    return _first(problems)


def _first(problems):
    return next((problem for problem in problems if problem), None)


def _wrong(shape, value, where):
    found = _NAMES.get(type(value), type(value).__name__)
    return f"expected {_NAMES[shape]}{_at(where)}, found {found if isinstance(value, dict | list) else repr(value)}"


def _join(where, key):
    return f"{where}.{key}" if where else str(key)


def _at(where):
    return f" as {where}" if where else ""
