"""What errors were measured under. Errors under other conditions are other errors."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

FROST = "imagenet_c/frost"
PROCEDURAL, ORIGINAL = "procedural", "original_photographs"  # sources of frost
SHAPE = {  # of `Conditions` in JSON
    "dataset": str,
    "classes": int,
    "image_shape": [int],
    "preprocessing": str,
    "corruptions": {str: {}},
}
FIELDS = ("dataset", "classes", "image_shape", "preprocessing")
_SAID = {  # as the settings call them, for sentences
    "image_shape": "image size",
    "table": "severity table",
    "range": "severity range",
    "levels": "levels",
    "options": "options",
    "frost": "frost",
}


@dataclasses.dataclass(frozen=True)
class Conditions:
    """What a set of errors was measured under; for JSON with `dataclasses.asdict`.

    Attributes:
      dataset: name of the dataset; "" where it is not known.
      classes: how many.
      image_shape: (H, W, 3).
      preprocessing: of the test images before the corruption, in words; `none` for images as they
        were published, "" where it is not known.
      corruptions: {qualified name: see `of_corruption`}.
    """

    dataset: str
    classes: int
    image_shape: tuple[int, ...]
    preprocessing: str
    corruptions: Mapping[str, Mapping[str, Any]]

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> "Conditions":
        """Makes them of what JSON kept, of `SHAPE`."""
        given = {field.name: content[field.name] for field in dataclasses.fields(cls)}
        return cls(**given | {"image_shape": tuple(content["image_shape"])})

    @property
    def frost(self) -> str:
        """Gives the source of frost, "" where it is not among the corruptions."""
        return str(self.corruptions.get(FROST, {}).get("frost", ""))


def of_corruption(
    name: str,
    shape: Sequence[int],
    options: Mapping[str, Any] | None = None,
    levels: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Says what a corruption does to images of a shape; JSON-ready.

    Args:
      name: of the corruption.
      shape: (H, W, 3) of the images.
      options: static ones it is given.
      levels: those that random severities are drawn from, where a benchmark selects some.

    Returns:
      `table` of its severities, `range` in use, `levels` drawn from, source of `frost`, and the other
      `options` (`Corruption.describe`), each where it has one; nothing for a name of no corruption.
    """
    import corruptions  # imports JAX, which a report does without

    try:
        corruption = corruptions.get(name)
    except ValueError:
        return {}
    used = corruption.describe(shape, options)
    described: dict[str, Any] = {key: used.pop(key) for key in ("table", "range") if key in used}
    if drawn := used.pop("levels", None) or levels:
        described["levels"] = list(drawn)
    if corruption.qualified_name == FROST:
        described["frost"] = frost_source(used.pop("photographs", None))
    if used:
        described["options"] = used
    return described


def frost_source(digest: str | None) -> str:
    """Names the source of frost by the digest of its photographs; None are none."""
    if digest is None:
        return PROCEDURAL
    from corruptions import imagenet_c

    return ORIGINAL if digest == imagenet_c.ORIGINAL_PHOTOGRAPHS else f"photographs_{digest[:16]}"


def differences(reference: Conditions, found: Conditions, names: Iterable[str]) -> dict[str, str]:
    """Compares conditions, those of the whole and those of some corruptions.

    Returns:
      {what: sentence}: `dataset`, or `imagenet_c/frost:frost`; the sentence tells both values. What
      is not known differs from everything.
    """
    different = {}
    for field in FIELDS:
        before, now = getattr(reference, field), getattr(found, field)
        if before != now or before in ("", 0, ()):
            different[field] = f"{_SAID.get(field, field)}: {_value(before)}, here {_value(now)}"
    for name in names:
        before, now = reference.corruptions.get(name), found.corruptions.get(name)
        if before is None or now is None:
            which = "the reference" if before is None else "here"
            different[f"{name}:unknown"] = f"{name}: conditions of {which} are not known"
            continue
        for key in sorted(before.keys() | now.keys()):
            if before.get(key) != now.get(key):
                values = f"{_value(before.get(key))}, here {_value(now.get(key))}"
                different[f"{name}:{key}"] = f"{name}, {_SAID.get(key, key)}: {values}"
    return different


def _value(value):
    if value in ("", 0, ()):
        return "not known"
    if value is None:
        return "its own"
    if isinstance(value, tuple):
        return "x".join(map(str, value[:2]))
    return " to ".join(f"{end:g}" for end in value) if isinstance(value, list) and len(value) == 2 else str(value)
