"""Digests the files that a command left, without times, so that two runs can be compared."""

import hashlib
import json
import pathlib
import re
from collections.abc import Mapping

from runtime import files
from runtime.files import DamagedFileError
from training.checkpoints import digest as digest_of

_OF_THE_RUN = re.compile(  # records of process, time and speed: they must be there
    r"(^|/)(\.lock|\.checks\.json|\.stamps\.json|provenance\.json|timing\.json|compiles\.json|evaluation\.json)$"
    r"|(^|/)[\w.]+=[\w.]+\.log$"
)
_CHECKPOINT = re.compile(r"(^|/)checkpoints/\d+/(?!meta/metadata$)")  # its digest, in meta, tells of its content
_WHEN = re.compile(rb'"written": "[^"]*"')
_SEALED = re.compile(r'"(written|sha256)": ?"[^"]*"')  # text beside arrays, whose digest depends on the time too
_MINUTE = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d UTC")  # of the report, and of files it tells of
_SPEED = re.compile(rb'"images_per_second": [^,}]*')
_REMOVED = {  # file -> keys that tell of the run, and the digest that holds them
    "manifest.json": ("runs", "sha256"),
    "ranges.json": ("provenance", "sha256"),
}


def snapshot(folder: pathlib.Path) -> dict[str, str]:
    """Returns {relative path: digest} of the files that must come out alike; half-written files that were left count, too."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() or _CHECKPOINT.search(name):
            continue
        found[name] = "there" if _OF_THE_RUN.search(name) else hashlib.sha256(_content(path)).hexdigest()[:16]
    return found


def differences(found: Mapping[str, str], expected: Mapping[str, str]) -> list[str]:
    """Names of files that differ, with how."""
    lines = []
    for name in sorted(found.keys() | expected.keys()):
        if name not in found:
            lines.append(f"{name} is missing")
        elif name not in expected:
            lines.append(f"{name} is left over")
        elif found[name] != expected[name]:
            lines.append(f"{name} differs")
    return lines


def _content(path):
    content = path.read_bytes()
    if path.suffix == ".npz":
        try:
            arrays = files.read_arrays(path)
        except (DamagedFileError, OSError):
            return content
        texts = {
            name: _SEALED.sub("", str(arrays.pop(name))) for name in list(arrays) if arrays[name].dtype.kind == "U"
        }
        return repr((digest_of(arrays), texts)).encode()
    if path.suffix == ".html":
        return _MINUTE.sub(b"", content)
    if path.suffix == ".json":
        try:
            whole = json.loads(content)
        except ValueError:
            return content
        if isinstance(whole, dict):
            gone = _REMOVED.get(path.name, ("sha256",) if "written" in whole else ())
            content = json.dumps({key: value for key, value in whole.items() if key not in gone}).encode()
    return _SPEED.sub(b"", _WHEN.sub(b"", content)) if path.suffix in (".json", ".jsonl") else content
