"""What the forms of a corrupted dataset on disk share.

A layout writes blocks (one corruption at one severity) aside, records a complete block in the
manifest, and only then gives files their names; so whatever has its name is complete, and a killed
run loses at most the block it was in.
"""

import logging
import os
import pathlib
from typing import Any

from corruptions.write import checks, files, manifests
from corruptions.write.manifests import Manifest
from corruptions.write.sources import Source

Entry = dict[str, Any]  # of one corruption in the manifest
Severity = int | float | str

_log = logging.getLogger("corruptions.write")


def token(severity: Severity) -> str:
    """Formats a severity as it appears in paths: `3`, `0.25` or `random`."""
    return f"{severity:g}" if isinstance(severity, float) else str(severity)


class Layout:
    """A folder that is being written.

    Attributes:
      folder: of the dataset.
      manifest: of the dataset; `record` keeps it up to date on disk.
      source: clean images.
      everything: whether files that are there are compared as a whole, not by sampled blocks.
      checks: see `corruptions.write.checks`.
    """

    suffix: str

    def __init__(self, folder: str | os.PathLike, manifest: Manifest, source: Source, everything: bool = False) -> None:
        self.folder = pathlib.Path(folder)
        self.manifest = manifest
        self.source = source
        self.everything = everything
        self.checks = checks.load(self.folder)

    def record(self, entry: Entry, severity: Severity, path: str | None, facts: dict[str, Any] | None) -> None:
        checks.save(self.folder, self.checks)
        entry["written"] = [other for other in entry["severities"] if other in (*entry["written"], severity)]
        if path is not None:
            self.manifest["files"][path] = facts
        manifests.save(self.folder, self.manifest)

    def refuse_foreign(self, path: pathlib.Path) -> None:
        if path.exists():
            raise files.WriteError(f"{path} is there and was not written by this program; move it away")

    def say(self, damage: checks.Damage) -> None:
        what = "written again" if damage.severities else "left as it is"
        _log.warning("%s; %s", damage.line, what)
