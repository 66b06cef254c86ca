"""The conditions of errors, and the references that errors are divided by.

Errors under other conditions are not comparable.

    alexnet      AlexNet's published errors, for ImageNet at 224x224
    a file       JSON: name, clean, errors {corruption: {severity: error}}, conditions
    a workdir    one that eval.py or overlap.py has evaluated; its standard, or only, model

A reference that was named must hold, or its numbers are labelled; without one AlexNet's published errors are taken for
the corruptions that they hold for.
"""

import dataclasses
import os
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from analysis import answers, references
from analysis.frames import CLEAN, RANDOM, STANDARD, as_name
from runtime import files
from runtime.settings import SettingsError

Severity = int | float | str
ALEXNET = "alexnet"
PREPROCESSING = "shorter side 256, centre crop 224, bilinear (Pillow)"
REFUSE, LABEL = "refuse", "label"
NONE = "none"  # no reference, no severities, no difference
_SHAPE = (224, 224, 3)
_NAMES = {"imagenet_c/": "ImageNet-C", "noc/": "ImageNet-NOC"}
FROST = "imagenet_c/frost"
LISTED = "images of list"  # marks the name of a dataset of which only listed images were shown
PROCEDURAL, ORIGINAL = "procedural", "original_photographs"  # sources of frost
SHAPE = {  # of `Conditions` in JSON
    "dataset": str,
    "classes": int,
    "image_shape": [int],
    "preprocessing": str,
    "corruptions": {str: {}},
}
FIELDS = ("dataset", "classes", "image_shape", "preprocessing")
_SAID = {  # the settings' names, for sentences
    "image_shape": "image size",
    "table": "severity table",
    "range": "severity range",
    "levels": "levels",
    "options": "options",
    "frost": "frost",
    "version": "version of its pixels",
}
_SHAPE_OF_FILE = {"name": str, "clean": float, "errors": {str: {str: float}}, "conditions": SHAPE}
_SHAPE_OF_FILE |= {"stored": files.Maybe(bool)}


@dataclasses.dataclass(frozen=True)
class Conditions:
    """The conditions under which errors were measured; for JSON with `dataclasses.asdict`.

    Attributes:
      dataset: name of the dataset; "" where it is not known.
      classes: how many.
      image_shape: (H, W, 3).
      preprocessing: the test images' preprocessing before the corruption, in words; `none` for images as published, ""
        where it is not known.
      corruptions: {qualified name: see `of_corruption`}.
    """

    dataset: str
    classes: int
    image_shape: tuple[int, ...]
    preprocessing: str
    corruptions: Mapping[str, Mapping[str, Any]]

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> "Conditions":
        """Makes them from JSON of the shape `SHAPE`."""
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
    version: int | None = None,
) -> dict[str, Any]:
    """Describes the effect of a corruption on images of a shape, for JSON.

    Takes its static options, the levels that random severities are drawn from where a benchmark selects some, and the
    version of stored pixels; None is the present one.
    Returns the `table` of its severities, the `range` in use, `levels` drawn from, the source of `frost`, the other
    `options` (`Corruption.describe`) for images of a shape (H, W, 3), each where it has one, and the `version` of its
    pixels above 1; nothing for a name of no corruption.
    """
    import corruptions  # imports JAX, which a report does not need

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
    if (version := version or corruption.version) > 1:
        described["version"] = version
    return described


def versions(*found: Conditions) -> list[str]:
    """Names, in a sentence each, the corruptions with pixels of a version above 1 and those of another JPEG codec; else []."""
    described = [(name, of) for one in found for name, of in one.corruptions.items()]
    above = sorted({(name, of["version"]) for name, of in described if "version" in of})
    codecs = sorted({(name, of["options"]["codec"]) for name, of in described if "codec" in of.get("options", {})})
    return [
        f"{what}: {', '.join(f'{name} {which}' for name, which in these)}."
        for what, these in (("Pixels of a later version", above), ("Pixels of another JPEG codec", codecs))
        if these
    ]


def frost_source(digest: str | None) -> str:
    """Names the source of frost by the digest of its photographs; None are none."""
    if digest is None:
        return PROCEDURAL
    from corruptions import imagenet_c

    return ORIGINAL if digest == imagenet_c.ORIGINAL_PHOTOGRAPHS else f"photographs_{digest[:16]}"


def differences(reference: Conditions, found: Conditions, names: Iterable[str]) -> dict[str, str]:
    """Compares the conditions of two evaluations: of the images, and of some corruptions.

    Returns {what: sentence}: `dataset`, or `imagenet_c/frost:frost`; the sentence tells both values. What is not known
    differs from everything.
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
            first = 1 if key == "version" else None
            if before.get(key) != now.get(key):
                values = f"{_value(before.get(key, first))}, here {_value(now.get(key, first))}"
                different[f"{name}:{key}"] = f"{name}, {_SAID.get(key, key)}: {values}"
    return different


def unlike(first: Conditions, found: Conditions) -> dict[str, str]:
    """Compares the conditions of two evaluations that share a table, as `differences`: of the images, and of the corruptions
    that both have. What is unknown of both is alike.
    """
    shared = sorted(first.corruptions.keys() & found.corruptions.keys())
    same = [key for key in FIELDS if getattr(first, key) == getattr(found, key)]
    return {key: text for key, text in differences(first, found, shared).items() if key not in same}


def _value(value):
    if value in ("", 0, ()):
        return "not known"
    if value is None:
        return "its own"
    if isinstance(value, tuple):
        return "x".join(map(str, value[:2]))
    return " to ".join(f"{end:g}" for end in value) if isinstance(value, list) and len(value) == 2 else str(value)


@dataclasses.dataclass(frozen=True)
class Reference:
    """Errors of a reference network.

    Attributes:
      name: for labels, no white space.
      clean: top-1 error on clean images, in [0, 1].
      errors: {qualified corruption: {severity: top-1 error}}.
      conditions: that the errors hold for.
      stored: they are of a dataset on disk, where levels that a benchmark selects are called 1, 2, ...
    """

    name: str
    clean: float
    errors: Mapping[str, Mapping[Severity, float]]
    conditions: Conditions
    stored: bool = False

    def of(self, corruption: str, severities: tuple[Severity, ...]) -> np.ndarray | None:
        """Gives the errors at some severities, float64 [S]; None where one is missing."""
        of_corruption = self.errors.get(corruption, {})
        return np.array([of_corruption[s] for s in severities]) if all(s in of_corruption for s in severities) else None


def alexnet() -> tuple[Reference, ...]:
    """Gives AlexNet's published errors, those on ImageNet-C and those on the candidates of ImageNet-NOC."""
    return (
        _published(
            "imagenet_c/", references.ALEXNET_IMAGENET_C, references.ALEXNET_IMAGENET_C_CLEAN, references.LEVELS
        ),
        _published("noc/", references.ALEXNET_NOC, references.ALEXNET_NOC_CLEAN, (RANDOM,)),
    )


def _published(prefix, published, clean, severities):
    """AlexNet's errors on the corruptions of a prefix, {plain name: error at each severity}."""
    errors = {prefix + name: dict(zip(severities, row, strict=True)) for name, row in published.items()}
    of_each = {name: of_corruption(name, _SHAPE) for name in errors}
    if FROST in of_each:
        of_each[FROST]["frost"] = ORIGINAL
    measured_under = Conditions("imagenet", 1000, _SHAPE, PREPROCESSING, of_each)
    return Reference(f"AlexNet:{_NAMES[prefix]}", clean, errors, measured_under)


def read(asked: str | os.PathLike[str]) -> tuple[Reference, ...]:
    """Reads what `config.eval.reference` names, `alexnet`, a file or a workdir.

    Raises FileNotFoundError where there is no such thing, ValueError for a file or workdir that is no reference.
    """
    if str(asked) == ALEXNET:
        return alexnet()
    path = pathlib.Path(files.local(asked, "config.eval.reference"))
    if path.is_dir():
        return (of_workdir(path),)
    if path.is_file():
        return (of_file(path),)
    raise FileNotFoundError(f"expected a reference ({ALEXNET}, a file or an evaluated workdir), found no {path}")


def of_file(path: pathlib.Path) -> Reference:
    """Reads the JSON of a reference, as `write` writes it; DamagedFileError, or ValueError for errors outside [0, 1]."""
    content = files.read_json(path, remedy="write it with tools.tables --write_reference", shape=_SHAPE_OF_FILE)
    errors = {
        name: {_severity(text): _fraction(path, value) for text, value in row.items()}
        for name, row in content["errors"].items()
    }
    clean = _fraction(path, content["clean"])
    measured_under = Conditions.read(content["conditions"])
    return Reference(content["name"], clean, errors, measured_under, content.get("stored", False))


def of_workdir(folder: pathlib.Path) -> Reference:
    """Takes the errors of an evaluated workdir: of its standard, or only, model, averaged over seeds.

    Raises FileNotFoundError where nothing was evaluated, ValueError where it does not say under which conditions, or it
    is not clear which model is meant.
    """
    found = answers.read(folder)
    models = list(dict.fromkeys(model for (model, _), _ in found.counts))
    if len(models) != 1 and STANDARD not in models:
        raise ValueError(
            f"expected one model or one called {STANDARD} in {folder}, found {', '.join(models)}; write the one "
            "that is meant to a file: python -m tools.tables WORKDIR --write_reference=FILE --models=NAME"
        )
    return _averaged(folder, found, STANDARD if STANDARD in models else models[0])


def of_model(folder: pathlib.Path, model: str) -> Reference:
    """Takes the errors of one model of an evaluated workdir, averaged over its seeds; raises ValueError as
    `of_workdir`.
    """
    return _averaged(folder, answers.read(folder), model)


def _averaged(folder, found, model):
    cells: dict[tuple[str, Severity], list[float]] = {}
    for (name, _), count in found.counts:
        if name == model:
            cells.setdefault(count[:2], []).append(count.error)
    if (CLEAN, 0) not in cells:
        raise ValueError(f"expected a model {model} with clean images in {folder}, found none")
    clean = float(np.mean(cells.pop((CLEAN, 0))))
    errors: dict[str, dict[Severity, float]] = {}
    for (corruption, severity), values in cells.items():
        errors.setdefault(corruption, {})[severity] = float(np.mean(values))
    name = as_name(f"{folder.resolve().name}:{model}")
    return Reference(name, clean, errors, conditions_of(folder, found), found.stored)


def conditions_of(folder: pathlib.Path, found: answers.Answers) -> Conditions:
    """Gives the conditions that the answers of a workdir were measured under; ValueError if these do not tell them."""
    measured = Conditions.read(found.conditions)
    if not measured.image_shape:
        raise ValueError(
            f"{folder} does not tell under which conditions its errors were measured: run eval.py or overlap.py there "
            "again"
        )
    return measured


def write(path: str | os.PathLike[str], reference: Reference) -> None:
    """Writes a reference as JSON."""
    errors = {name: {str(s): error for s, error in row.items()} for name, row in reference.errors.items()}
    files.write_json(path, dataclasses.asdict(reference) | {"errors": errors})


def _severity(text):
    number = re.fullmatch(r"\d+", text)
    try:
        return int(text) if number else float(text)
    except ValueError:
        return text


def _fraction(path, value):
    if not 0 <= value <= 1:
        raise ValueError(f"{path}: expected errors in [0, 1], found {value!r}")
    return float(value)


@dataclasses.dataclass(frozen=True)
class Choice:
    """The references that errors are divided by.

    Attributes:
      references: references, each for other corruptions.
      different: {reference's name: {what: sentence}}, see `differences`; with a label.
      unusable: {corruption: sentence} why no reference was taken for it; only where none was named.
    """

    references: tuple[Reference, ...] = ()
    different: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    unusable: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def of(self, corruption: str) -> Reference | None:
        """Gives the reference of a corruption, or None."""
        if corruption in self.unusable:
            return None
        return next((reference for reference in self.references if corruption in reference.errors), None)

    def label(self, corruptions: Iterable[str], name: str) -> str:
        """Writes the differences for some corruptions, for a column of a table: `dataset;noc/hue:range`, or `none`."""
        names = set(corruptions)
        keys = [key for key in self.different.get(name, {}) if key in FIELDS or key.rpartition(":")[0] in names]
        return ";".join(keys) or NONE

    def sentences(self) -> list[str]:
        """Writes a line for each reason why numbers are marked or missing."""
        marked = [
            f"errors relative to {name} hold for other conditions: {'; '.join(sentences.values())}"
            for name, sentences in self.different.items()
            if sentences
        ]
        reasons = list(dict.fromkeys(self.unusable.values()))
        told = reasons[:2] + ([f"and {len(reasons) - 2} more"] if len(reasons) > 2 else [])
        return marked + ([f"no CE or mCE by AlexNet's published errors: {'; '.join(told)}"] if told else [])


def choose(asked: str, mismatch: str, found: Conditions) -> Choice:
    """Finds the reference for errors measured under the conditions `found`.

    `asked` is `config.eval.reference`: `alexnet`, a file, a workdir, or "" for AlexNet's errors where they hold;
    `mismatch` is `config.eval.reference_mismatch`: `refuse` or `label`, of a reference that was named. Raises
    SettingsError where conditions differ and are not to be labelled, and names each difference; FileNotFoundError or
    ValueError where the reference cannot be read.
    """
    if not asked:
        return _where_they_hold(alexnet(), found)
    references = read(asked)
    different = {}
    for reference in references:
        if names := [name for name in reference.errors if name in found.corruptions]:
            different[reference.name] = differences(reference.conditions, found, names)
    wrong = [f"{name}: {sentence}" for name, by_key in different.items() for sentence in by_key.values()]
    if wrong and mismatch == REFUSE:
        head = f"config.eval.reference={asked}: expected errors under the conditions of the reference, found others:"
        remedy = "take a reference that fits, or --config.eval.reference_mismatch=label, which marks the numbers"
        raise SettingsError("\n  ".join([head, *wrong, remedy]))
    return Choice(references, different)


def _where_they_hold(references, found):
    unusable = {}
    for reference in references:
        names = [name for name in reference.errors if name in found.corruptions]
        different = differences(reference.conditions, found, names)
        general = [different[field] for field in FIELDS if field in different]
        for name in names:
            of_corruption = [text for key, text in different.items() if key.rpartition(":")[0] == name]
            if general or of_corruption:
                unusable[name] = "; ".join(general or of_corruption)
    return Choice(references, {}, unusable)
