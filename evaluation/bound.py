"""Stored results that are bound to the code that corrupted their images.

    kept(path, made_from, measure, remedy, parts)   the arrays of a file with this origin, else measured and written
    read(path, parts, remedy, fits)                 the file, None where it does not fit or other code made it
    write(path, arrays, made_from, parts)
    otherwise(stored, part), stored_of(parts)       the same of a result that lies in another record

The record of a file holds the origin of each part (`corruptions.core.origin`) beside what it was made from. Equal code is
enough; where the code changed, a probe is made again: an edited comment costs no more. Files of earlier versions lack
origins, and are taken.
"""

import dataclasses
import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from corruptions.core import origin
from corruptions.core.origin import UNKNOWN, Origin, Probe
from evaluation import shown as images
from runtime import artifacts
from runtime.artifacts import Artifact
from runtime.log import log

_WARNED: set[pathlib.Path] = set()  # folders, in this process


class Part(NamedTuple):
    """A corruption, or a scheme, whose images a result follows from."""

    origin: Origin  # of what the present code makes; its probe does not count
    # of images by the present code: the same images and values as of a stored probe, if one is given
    probe: Callable[[Probe | None], Probe]


Parts = Mapping[str, Part]
"""{name within the file: part}."""


def of_shown(shown: "images.Shown") -> dict[str, Part]:
    """Gives the part of images under a condition, none of clean ones; its probe takes images that were shown."""
    if shown.origin is None:
        return {}
    return {shown.condition.corruption: Part(shown.origin, shown.probe)}


def otherwise(stored: Mapping[str, Any], part: Part, accepted: str | None = None) -> str:
    """Tells how the code corrupts otherwise than that of a stored origin, "" if it does not or nothing is stored.

    Args:
      stored: a record of origin, JSON-ready.
      part: what the present code makes.
      accepted: digest of code that was found equal before.
    """
    if not stored:
        return ""
    before = Origin.from_json(stored)
    known = origin.same_code(part.origin, before.code, accepted)
    probed = None if known else lambda: part.probe(before.probe)
    return "; ".join(origin.differences(before, part.origin, probed, "another workdir"))


def stored_of(parts: Parts) -> dict[str, Any]:
    """Gives {name: origin with its probe}, JSON-ready, of results that were measured now."""
    return {name: dataclasses.replace(part.origin, probe=part.probe(None)).to_json() for name, part in parts.items()}


def read(path: pathlib.Path, parts: Parts, remedy: str, fits: Callable[[dict[str, Any]], bool]) -> Artifact | None:
    """Reads a file; None, with one warning for the folder above its own, where the code corrupts otherwise now.

    Args:
      path, remedy: as of `runtime.artifacts.read`.
      parts: which images the file follows from.
      fits: whether the record, without origins, is that of what is asked; None is returned where it is not.
    """
    if not path.exists():
        return None
    arrays, record = artifacts.read(path, remedy)
    stored = record.pop(artifacts.ORIGINS, {})
    if not fits(record):
        return None
    current = refreshed(stored, parts, path.parents[1])
    if current is None:
        return None
    if current != stored:  # so that the probe is not made again
        artifacts.write(path, arrays, record | {artifacts.ORIGINS: current})
    return Artifact(arrays, record)


def refreshed(stored: Mapping[str, Any], parts: Parts, where: pathlib.Path) -> dict[str, Any] | None:
    """Compares stored origins; returns them with the present code, or None, with one warning for a folder."""
    current = dict(stored)
    for name, part in parts.items():
        if line := otherwise(before := stored.get(name, {}), part):
            _warn(where, name, line.partition(":")[0])
            return None
        if before and part.origin.code != UNKNOWN:
            current[name] = {**before, "code": part.origin.code}
    return current


def _warn(folder, name, field):
    if folder not in _WARNED:
        text = "%s holds results of images that are corrupted otherwise now (first, another %s of %s): they are measured again."
        log.warning(text, folder, field, name)
    _WARNED.add(folder)


def write(path: pathlib.Path, arrays: Mapping[str, np.ndarray], made_from: Mapping[str, Any], parts: Parts) -> None:
    """Writes arrays, the record of what they were made from, and the origins of the parts."""
    origins = stored_of(parts)
    artifacts.write(path, arrays, {**made_from} | ({artifacts.ORIGINS: origins} if origins else {}))


def kept(
    path: pathlib.Path,
    made_from: Mapping[str, Any],
    measure: Callable[[], Mapping[str, np.ndarray]],
    remedy: str,
    parts: Parts,
) -> Mapping[str, np.ndarray]:
    """Reads the arrays of an .npz file with this origin; without one it measures and writes them. Raises as `read`."""
    asked = json.loads(json.dumps(made_from))  # as it was stored: JSON turns tuples into lists
    if found := read(path, parts, remedy, lambda record: record == asked):
        return found.arrays
    arrays = measure()
    write(path, arrays, made_from, parts)
    return arrays
