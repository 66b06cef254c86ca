"""Whether a dataset that was begun is completed by the same pixels.

The manifest records for each block the code that computed it (`code.code_digest`) and a probe: some values of a few
images. Where the code is another one now, the same values are computed again. Of a block that version 0.2 wrote, the
first image is read from its file.
"""

import functools
from typing import Any

import numpy as np

from corruptions.core.batch import corrupt
from corruptions.core.code import UNKNOWN, code_digest
from corruptions.core.keys import named_key
from corruptions.core.many_sizes import corrupt_each
from corruptions.core.origin import Origin, Probing, differences, probe_shown, recorded, same_code, values_of
from corruptions.files import WriteError
from corruptions.write import manifests
from corruptions.write.layouts import LOG, Layout
from corruptions.write.manifests import Entry, Manifest, Severity, token
from corruptions.write.sources import Source

_ORIGINS, _ACCEPTED = "origins", "accepted"
_FIRST = 16  # images of a block of version 0.2 that are compared at random severities
_LOSSY = 0.05  # largest mean difference in levels after JPEG, where a value one level off changes a block by a few


class Notes:
    """Records which code computes a block, and a probe of its corrupted images, with the last of them."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._probing = Probing(0, None)

    def add(self, name: str, entry: Entry, severity: Severity, start: int, images: Any) -> None:
        """Takes the corrupted images, uint8 [n, H, W, 3] or a list, that come from `start` on in a block."""
        if start == 0:
            self._probing = Probing(self._number, manifests.level(entry, severity))
        end = start + len(images)
        self._probing.keep(np.arange(start, end), images)
        if end == self._number:
            entry.setdefault(_ORIGINS, {})[token(severity)] = {
                "code": code_digest(corruption=name),
                "version": recorded()["versions"]["jax-corruptions"],
                "probe": self._probing.values(),
            }


def refuse_other_pixels(layout: Layout, images: np.ndarray | Source, names: list[str]) -> None:
    """Raises WriteError where a finished block of a corruption has other pixels than it would get now.

    Nothing is computed where the code of the library is the one that wrote the block.
    """
    for name in names:
        entry, now = layout.manifest["corruptions"][name], Origin(corruption=name, code=code_digest(corruption=name))
        for severity in entry["written"]:
            stored = entry.setdefault(_ORIGINS, {}).setdefault(token(severity), {})
            if same_code(now, stored.get("code"), *stored.get(_ACCEPTED, ())):
                continue
            if "probe" in stored:
                again = functools.partial(_probe, layout, images, name, severity, stored["probe"])
                before = Origin(corruption=name, code=stored["code"], probe=stored["probe"])
                lines = differences(before, now, again)
            else:
                lines = _of_files(layout, images, name, severity, stored)
            if lines:
                raise WriteError(f"{layout.folder}, {name} at severity {severity}: {lines[0]}")
            if now.code not in (UNKNOWN, stored.get("code"), *stored.get(_ACCEPTED, ())):
                stored.setdefault(_ACCEPTED, []).append(now.code)


def _of_files(layout, images, name, severity, stored):
    """Compares the first images of a block of version 0.2 with those of now, and records their probe."""
    entry = layout.manifest["corruptions"][name]
    number = min(_FIRST if manifests.level(entry, severity) is None else 1, layout.manifest["images"])
    written = layout.first(entry, severity, number)
    if not written:
        LOG.warning(
            "%s, %s at severity %s: no record of the code that wrote it; not compared", layout.folder, name, severity
        )
        return []
    corrupted = _corrupted(layout, images, name, severity, np.arange(number))
    now = [layout.as_written(image) for image in corrupted]
    apart = [abs(old.astype(int) - new).astype(float) for old, new in zip(written, now, strict=True)]
    wrong = max(x.mean() for x in apart) > _LOSSY if layout.lossy else max((x > 1).mean() for x in apart) > 1e-3
    if not wrong:
        stored |= {"code": UNKNOWN, "probe": values_of(corrupted, range(number))}
    return wrong and [
        "code: of another version, which corrupts otherwise; use the version that wrote it or another folder"
    ]


def _probe(layout, images, name, severity, stored):
    show = functools.partial(_corrupted, layout, images, name, severity)
    return probe_shown(show, layout.manifest["images"], None, stored)


def _corrupted(layout, images, name, severity, places):
    """Corrupts the images at some places as a block would."""
    entry = layout.manifest["corruptions"][name]
    key, level = named_key(layout.manifest["seed"], name), manifests.level(entry, severity)
    if isinstance(images, Source):
        return list(corrupt_each(key, images.read(places.tolist()), name, level, index=places, **entry["options"]))
    return np.asarray(corrupt(key, np.asarray(images[places]), name, level, index=places, **entry["options"]))


def several(manifest: Manifest) -> list[str]:
    """Lists the corruptions whose blocks are of several codes, a line each."""
    lines = []
    for name, entry in manifest["corruptions"].items():
        by_code: dict[str, list[str]] = {}
        for severity in map(token, entry["written"]):
            stored = entry.get(_ORIGINS, {}).get(severity, {})
            made = f"code {stored.get('code', UNKNOWN)[:12]} of jax-corruptions {stored.get('version', UNKNOWN)}"
            by_code.setdefault(made, []).append(severity)
        if len(by_code) > 1:
            told = "; ".join(f"{', '.join(severities)} by {made}" for made, severities in by_code.items())
            lines.append(f"{name}: severities {told}: a probe found no difference")
    return lines
