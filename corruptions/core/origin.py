"""The record of origin: what made a stored number, and whether a new one would be made alike.

    origin = make(data={"images": sha256}, seed=0, corruption="noc/hue", options={}, levels=None, dtype="uint8")
    differences(stored, origin, probed=lambda: probe(name, images, 0.5, key=key, index=index))   # [] or lines

Where the code changed, a probe decides: 1,024 stored values of four images spread over the set, corrupted, are computed
again and must be equal within one level in all but .1 %. So a change of a formula is noticed, and a change of a comment costs
nothing. Of a user's corruption the probe decides each time: its code may read data files, which no digest of code holds.
"""

import base64
import dataclasses
import importlib.metadata
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import jax
import numpy as np

from corruptions.core import dispatch, registry
from corruptions.core.batch import corrupt
from corruptions.core.code import UNKNOWN, code_digest, is_of_user
from corruptions.core.corruption import Corruption

__all__ = [
    "UNKNOWN", "Origin", "Probing", "code_digest", "differences", "make", "places_of", "probe", "probe_shown", "probed_places",
    "recorded", "same_probe", "values_of",
]  # fmt: skip

PROBED = 1024
"""The number of values in a probe."""
_LEVELS, _SHARE = (
    1,
    1e-3,
)  # values may differ by one level, and a share of them by more: other processors round otherwise
_GOLDEN = (5**0.5 - 1) / 2
_PACKAGES = ("jax", "jaxlib", "numpy", "jax-corruptions", "pillow")
Probe = Mapping[str, Any]
"""{"places": of the images in their set, "values": base64 of uint8 [about 1024]}, JSON-ready. Earlier versions took the first
images, and stored their number as "images"."""
_REMEDY = {  # what to do about a field that differs, beside using another folder
    "data": "give the same images, labels and index",
    "network": "give the network that was evaluated",
    "code": "use the code that made it",
    "version": "use the version that made it",
    "generator": "set jax_default_prng_impl as it was",
    "partitionable": "set jax_threefry_partitionable as it was",
}


@dataclasses.dataclass(frozen=True)
class Origin:
    """All that a stored number depends on. A field is `UNKNOWN` where an earlier version did not record it, None where it
    does not apply; values are JSON-ready.

    Attributes:
      data: {"images": sha256, "labels": ..., "index": ...}, or {"sample": ...} of names, sizes and some content.
      network: digest of its weights, or the name that the user gives it.
      code: `code_digest` of what computed it.
      probe: values of some images, see `probe`; compared where the code differs.
      corruption: qualified name, or `clean`.
      version: that of its record, raised when its pixels change.
      options: its static options.
      table: its severity table, where the image size decides.
      levels: those that random severities are drawn from.
      dtype, outputs, score: what the network takes and returns, and which number is stored.
      evaluator: its name and settings: superclasses, temperature, enhancement, adaptation.
      seed, generator, partitionable: of the random draws.
      codec, era: how encoded images were decoded, where the pixels depend on it.
      recorded: versions, revision, devices, cores, digest of the library's source: not compared by `differences`.
    """

    data: Any = UNKNOWN
    network: Any = UNKNOWN
    code: str = UNKNOWN
    probe: Any = UNKNOWN
    corruption: Any = UNKNOWN
    version: Any = UNKNOWN
    options: Any = UNKNOWN
    table: Any = UNKNOWN
    levels: Any = UNKNOWN
    dtype: Any = UNKNOWN
    outputs: Any = UNKNOWN
    score: Any = UNKNOWN
    evaluator: Any = UNKNOWN
    seed: Any = UNKNOWN
    generator: Any = UNKNOWN
    partitionable: Any = UNKNOWN
    codec: Any = UNKNOWN
    era: Any = UNKNOWN
    recorded: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Returns the fields that are known, JSON-ready: tuples as lists."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return json.loads(json.dumps({name: value for name, value in fields.items() if value != UNKNOWN}))

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """Reads what `to_json` returned; ValueError for a field that only a newer version can compare."""
        if new := sorted(set(fields) - {field.name for field in dataclasses.fields(cls)}):
            raise ValueError(
                f"expected a record of origin of this version, found {new[0]!r} in it: read it with a newer jax-corruptions"
            )
        return cls(**fields)


def make(*, imports: Iterable[str] = (), recording: Mapping[str, Any] | None = None, **fields: Any) -> Origin:
    """Makes the record of origin of a number that this process computes.

    The generator of random draws, the code and what is only recorded are found here.

    Args:
      imports: the user's modules that take part, beside those that registered the corruption.
      recording: more to record, such as a revision.
      **fields: of `Origin`; a field that is not given is unknown, and so is not compared.
    """
    settings: Any = jax.config  # whose attributes are made at import, unknown to type checkers
    found = {"generator": settings.jax_default_prng_impl, "partitionable": settings.jax_threefry_partitionable}
    name = None if fields.get("corruption", UNKNOWN) == UNKNOWN else fields["corruption"]
    found["code"] = code_digest(imports, name)
    if name not in (None, "clean"):
        found["version"] = registry.get(name).version
    noted = recorded() | {"library": code_digest((), "clean")} | dict(recording or {})
    made = Origin(**found | fields | {"recorded": noted})
    return Origin.from_json(made.to_json())  # as it would be read


def recorded() -> dict[str, Any]:
    """Describes this process: versions, devices and cores. Numbers may differ in their last bits between two of these."""
    device = jax.devices()[0]
    return {
        "versions": {name: _version(name) for name in _PACKAGES} | {"python": sys.version.split()[0]},
        "device": f"{jax.local_device_count()} x {device.device_kind} ({device.platform})",
        "cores": dispatch.cpu_count(),
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def differences(
    stored: Origin,
    requested: Origin,
    probed: Callable[[], Probe] | None = None,
    remedy: str = "use another folder",
) -> list[str]:
    """Compares two records of origin; returns a line `field: stored ..., requested ...; what to do` for each difference.

    Fields that are unknown in one of them, and `recorded`, are not compared. Of data, options and evaluator each key is
    compared.

    Args:
      stored, requested: the records.
      probed: computes the probe of the requested one, see `probe`; called where `same_code` is False and the stored one has
        a probe. Without it, another code is not compared here: the caller has other means.
      remedy: what works beside asking for what is stored.
    """
    before, now = stored.to_json(), requested.to_json()
    lines = []
    for name in (field.name for field in dataclasses.fields(Origin) if field.name not in ("code", "probe", "recorded")):
        if name in before and name in now:
            lines += [
                f"{field}: stored {_short(old)}, requested {_short(new)}; {_REMEDY.get(name, 'ask for the same')} or {remedy}"
                for field, old, new in _unequal(name, before[name], now[name])
            ]
    if lines or probed is None or stored.probe in (UNKNOWN, None) or same_code(requested, stored.code):
        return lines
    if same_probe(stored.probe, probed()):
        return []
    codes = f"stored {_short(stored.code)}, requested {_short(requested.code)}"
    files = ""
    if stored.code == requested.code:
        codes, files = f"the stored one, {_short(stored.code)}", ", so that a file it reads has changed"
    return [f"code: {codes}, which corrupts with {stored.corruption} otherwise{files}; {_REMEDY['code']} or {remedy}"]


def _unequal(name, old, new):
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _unequal(f"{name}.{key}", old.get(key), new.get(key))
    elif old != new:
        yield name, old, new


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) == 64 and set(text) <= set("0123456789abcdef"):  # a digest
        return text[:12]
    return text if len(text) <= 100 else f"{text[:97]}..."


def same_code(requested: Origin, *stored: str | None) -> bool:
    """Whether equal code tells that pixels are equal: its digest is known, and one of those stored, and the corruption is no
    user's, which may read other files.
    """
    if requested.code == UNKNOWN or requested.code not in stored:
        return False
    return requested.corruption in (UNKNOWN, None) or not is_of_user(requested.corruption)


def probe(
    corruption: str | Corruption,
    images: Any,
    severity: float | None,
    *,
    key: jax.Array,
    index: Any,
    options: Mapping[str, Any],
    stored: Probe | None = None,
    fetch: Callable[[Any], np.ndarray] = np.asarray,
) -> dict[str, Any]:
    """Corrupts some images of a set, see `probed_places`, and returns 1,024 of their values.

    Args:
      corruption, severity, key: as of `corrupt`.
      images: uint8 [N, H, W, C].
      index: [N].
      options: static options of the corruption.
      stored: a stored probe, whose images and values are taken.
      fetch: brings some of the images to the host.
    """

    def show(places: np.ndarray) -> Any:
        return corrupt(key, fetch(images[places]), corruption, severity, index=np.asarray(index)[places], **options)

    return probe_shown(show, len(images), severity, stored)


def probe_shown(
    show: Callable[[np.ndarray], Any], number: int, severity: float | None, stored: Probe | None = None
) -> dict[str, Any]:
    """Returns the probe of what `show` makes of the images at some places, int [n], of a set of `number` images; `stored` as of
    `probe`.
    """
    places = probed_places(number, severity) if stored is None else places_of(stored)
    places = places[places < number]
    return values_of(show(places), places if stored is None else stored.get("places"))


class Probing:
    """Keeps the images of a probe while a set of `number` corrupted images is shown, part by part; see `probed_places`."""

    def __init__(self, number: int, severity: Any) -> None:
        self.places = probed_places(number, severity)
        self._kept: dict[int, tuple[np.ndarray, Any]] = {}  # by the first place

    def keep(self, places: np.ndarray, images: Any) -> None:
        """Takes corrupted images, uint8 [n, H, W, C] or a list, that have these places, int [n], in the set."""
        rows = np.unique(places, return_index=True)[1]  # copies of the last image may fill a batch
        if (rows := rows[np.isin(places[rows], self.places)]).size:
            some = images[rows] if hasattr(images, "dtype") else [np.array(images[row]) for row in rows]
            self._kept[int(places[rows[0]])] = places[rows], some

    def values(self, fetch: Callable[[Any], Iterable[Any]] = list) -> dict[str, Any] | None:
        """Returns the probe; None where it takes no images, or not all of them were shown. `fetch` as of `probe`."""
        parts = self._kept.values()
        images = {place: image for places, some in parts for place, image in zip(places.tolist(), fetch(some))}
        if not images or len(images) < len(self.places):
            return None
        return values_of([images[place] for place in self.places.tolist()], self.places)


def probed_places(number: int, severity: Any) -> np.ndarray:
    """Returns the places of the images that a probe takes among `number`: at equal distances, from the first to the last.

    They are 4, as some may be blank, and 16 of random severities (None), where few would show few severities.
    """
    return np.unique(np.linspace(0, number - 1, min(number, 16 if severity is None else 4)).round().astype(int))


def places_of(stored: Probe) -> np.ndarray:
    """Returns the places of the images of a stored probe: of an earlier version those of the first images."""
    return np.asarray(stored["places"] if "places" in stored else range(stored["images"]), int)


def values_of(corrupted: Any, places: Sequence[int] | np.ndarray | None) -> dict[str, Any]:
    """Returns the probe of corrupted images, uint8 [n, H, W, 3] or a list: some 1,024 values that follow from the sizes.

    Args:
      corrupted: the images.
      places: their places in the set, for as many values of each; None takes values of all together, as earlier
        versions did of the first images.
    """
    images = [np.asarray(image).ravel() for image in corrupted]
    if wrong := [image.dtype for image in images if image.dtype != np.uint8]:
        raise TypeError(f"expected corrupted images uint8, found {wrong[0]}")
    head: dict[str, Any] = {"images": len(images)}
    taken = images
    if places is None:
        taken = [np.concatenate(images)]
    else:
        head = {"places": [int(place) for place in places]}
    each = PROBED // len(taken)
    # Multiples of the golden ratio lie evenly at any number, in every channel.
    shares = (np.arange(PROBED) * _GOLDEN % 1)[: each * len(taken)].reshape(len(taken), each)
    values = [flat[np.sort((share * flat.size).astype(int))] for flat, share in zip(taken, shares, strict=True)]
    return head | {"values": base64.b64encode(np.concatenate(values).tobytes()).decode()}


def same_probe(stored: Probe, now: Probe) -> bool:
    """Whether two probes are equal within one level in all but .1 % of the values."""
    if not np.array_equal(places_of(stored), places_of(now)):
        return False
    old, new = (np.frombuffer(base64.b64decode(one["values"]), np.uint8).astype(int) for one in (stored, now))
    return old.shape == new.shape and bool((np.abs(old - new) > _LEVELS).mean() <= _SHARE)
