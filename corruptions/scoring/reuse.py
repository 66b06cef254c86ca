"""Whether stored per-image results are those that a call of `evaluate` would compute: what made them is compared, the
classifier is asked again about 32 images, and where code changed a probe of the corruption decides.
"""

import dataclasses
import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from corruptions import files
from corruptions.core.origin import UNKNOWN, Origin, Probe, differences, places_of, same_code
from corruptions.scoring.conditions import CLEAN_IMAGES, Condition
from corruptions.scoring.confidence import decode
from corruptions.scoring.folder import Folder, Result
from corruptions.scoring.test_set import Part

_ASKED = 32  # images that the classifier is asked about again
_CLOSE = 0.01  # largest difference of two confidences of one classifier, on another machine or in another batch
_ACCEPTED = "accepted.json"
_OF_CONDITION = ("corruption", "version", "options", "table", "levels", "code", "probe")
_ELSE = "use another folder"
_REMEDY = f"use the code that made it or {_ELSE}"


class Seen(NamedTuple):
    """What a pass over the test set shows.

    Attributes:
      digests: sha256 of images, labels and index.
      number: the number of images.
      shape: (H, W, C) of the first.
      taken: {place: image}, each a part, of those that were asked for.
    """

    digests: Mapping[str, str]
    number: int
    shape: Sequence[int]
    taken: Mapping[int, Part]

    def at(self, places: Iterable[int]) -> list[tuple[Part, list[int]]]:
        """Joins the images at some places by their shape: (images, their places)."""
        by_shape: dict[tuple[int, ...], list[int]] = {}
        for place in map(int, places):
            by_shape.setdefault(self.taken[place].images.shape[1:], []).append(place)
        return [(_joined([self.taken[place] for place in of_one]), of_one) for of_one in by_shape.values()]


def look(parts: Iterable[Part], folder: Folder) -> Seen:
    """Reads the test set once; takes the images that the stored results of the folder are compared by."""
    hashes = {name: files.Digest() for name in ("images", "labels", "index")}
    probes = (origin.probe for origin in folder.origins.values())
    wanted = {int(place) for probe in probes if probe not in (UNKNOWN, None) for place in places_of(probe)}
    wanted.update(map(int, asked_again(folder.number)))
    taken: dict[int, Part] = {}
    start, shape = 0, None
    for part in parts:  # a test set without images is refused there
        arrays = part.images, part.labels.astype(np.int64), part.index.astype(np.uint64)
        for content, array in zip(hashes.values(), arrays, strict=True):
            content.add(array)
        end = start + len(part.labels)
        # Copies: loaders reuse their memory.
        taken |= {place: part.rows(np.array([place - start])) for place in wanted if start <= place < end}
        start, shape = end, shape or part.images.shape[1:]
    return Seen({name: str(content) for name, content in hashes.items()}, start, shape or (), taken)


def asked_again(number: int) -> np.ndarray:
    """Lists the places of the images, among `number`, that the classifier is asked about again."""
    return np.unique(np.linspace(0, number - 1, _ASKED).astype(int)) if number else np.zeros(0, int)


def _joined(parts):
    images, labels, index = (np.concatenate([getattr(p, n) for p in parts]) for n in ("images", "labels", "index"))
    return Part(images, labels, index, parts[0].size)


Ask = Callable[[Condition, Part], Any]
"""From a condition and images to `(correct, confidence)` of the classifier."""
Probed = Callable[[Condition, Probe], Probe]
"""From a condition and a stored probe to that of its corruption now."""


def reusable(
    folder: Folder, requested: Mapping[Condition, Origin], seen: Seen, ask: Ask, probed: Probed
) -> dict[Condition, Result]:
    """Returns the stored results of the requested conditions.

    Raises ValueError where anything stored has another origin than what is requested: other images, options or draws,
    another classifier, or a requested corruption whose code corrupts otherwise.
    """
    of_corruption = {origin.corruption: dataclasses.replace(origin, levels=UNKNOWN) for origin in requested.values()}
    unknown: dict[str, Any] = dict.fromkeys(_OF_CONDITION, UNKNOWN)
    of_all = dataclasses.replace(next(iter(requested.values())), **unknown)
    for condition, stored in folder.origins.items():
        _refuse(folder, differences(stored, of_corruption.get(condition.corruption, of_all)))
    if folder.results and (of_all.network == UNKNOWN or folder.network != of_all.network):  # no name that both have
        _refuse_other_network(folder, of_all.network, requested, seen, ask)
    accepted = _read_accepted(folder)
    before = dict(accepted)
    for condition, stored in folder.origins.items():
        origin, name = of_corruption.get(condition.corruption), files.digest_of_json([str(condition), stored.to_json()])
        if origin is None or same_code(origin, stored.code, accepted.get(name)):
            continue
        lines: Any = []
        if stored.probe != UNKNOWN:
            lines = differences(stored, origin, functools.partial(probed, condition, stored.probe))
        elif result := folder.read(condition):  # of version 0.2
            wrong = _answered_otherwise(condition, result, seen, ask)
            lines = wrong and [
                f"code: stored of an earlier version, requested one that differs in {condition}: {wrong}; {_REMEDY}"
            ]
        _refuse(folder, lines)
        accepted[name] = origin.code
    if accepted != before:
        files.replace(folder.path / _ACCEPTED, json.dumps(accepted).encode())
    return {condition: result for condition, result in folder.results.items() if condition in requested}


def _refuse(folder, lines):
    if lines:
        others = ", ".join(line.partition(":")[0] for line in lines[1:])
        more = f" ({others} differ too)" if others else ""
        raise ValueError(f"{folder.path} holds results that this call would not compute: {lines[0]}{more}")


def _refuse_other_network(folder, name, requested, seen, ask):
    """Asks the classifier again about images whose answers are stored; clean ones, where they are stored."""
    if name == UNKNOWN and isinstance(folder.network, str) and folder.network != UNKNOWN:
        own = f"Classifier(predict, network={folder.network!r})"
        _refuse(folder, [f"network: stored {folder.network!r}, requested no name; give {own} or {_ELSE}"])
    condition = next((one for one in (CLEAN_IMAGES, *requested) if folder.read(one)), None)
    if condition is None:
        _refuse(folder, [f"network: stored no results under these conditions, by which it is compared; {_ELSE}"])
    if wrong := _answered_otherwise(condition, folder.read(condition), seen, ask):
        what = f"network: stored another, requested one that answers otherwise: {wrong}; give the one that was evaluated or {_ELSE}"
        _refuse(
            folder, [f"{what}, and where predict draws or adapts give it a name: Classifier(predict, network='NAME')"]
        )


def _answered_otherwise(condition, result, seen, ask):
    """Says how many answers differ from the stored ones, "" where none does."""
    differ = []
    for part, places in seen.at(asked_again(seen.number)):
        stored = None if result.confidence is None else result.confidence[places]
        differ.append(differing(result.correct[places], stored, *ask(condition, part)[:2]))
    return in_words(np.concatenate(differ))


def differing(correct: np.ndarray, confidence: np.ndarray | None, *again: np.ndarray) -> np.ndarray:
    """Finds the images, bool [n], to which one classifier would not answer so differently on another machine.

    The stored answers are `correct` and `confidence.STORED`, None where there is none; `again` are the same of now.
    """
    found: np.ndarray = correct != again[0]
    if confidence is not None:
        old, new = decode(confidence, correct), decode(again[1], again[0])
        close = np.isclose(old.top, new.top, rtol=0, atol=_CLOSE, equal_nan=True)
        found = found | (old.predicted != new.predicted) | ~close
    return found


def in_words(found: np.ndarray) -> str:
    """Describes the images that `differing` found in words; "" if it found none."""
    if not found.any():
        return ""
    return f"{found.sum()} of {found.size} images have another class, or a confidence more than {_CLOSE} off"


def _read_accepted(folder):
    """Reads which code a probe found equal to that of a result: {digest of its origin: code}; none where the file is damaged."""
    try:
        found = json.loads((folder.path / _ACCEPTED).read_text())
        return {str(name): str(code) for name, code in found.items()}
    except (OSError, ValueError, AttributeError, RecursionError):
        return {}
