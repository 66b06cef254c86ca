"""Compares the files of a command with an undisturbed command's, byte by byte; outcomes of cases, and their table."""

import collections
import dataclasses
import hashlib
import json
import pathlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from runtime import files
from runtime.files import DamagedFileError
from training.checkpoints import digest as digest_of

_OF_THE_RUN = re.compile(  # records of process, time and speed
    r"(^|/)(\.lock|\.checks\.json|provenance\.json|timing\.json|compiles\.json|evaluation\.json)$|(^|/)checkpoints/\d+/"
    r"|(^|/)[\w.]+=[\w.]+\.log$"
)
_WHEN = re.compile(rb'"written": "[^"]*"')
_SEALED = re.compile(r'"(written|sha256)": ?"[^"]*"')  # text beside arrays, whose digest depends on the time too
_MINUTE = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d UTC")  # of the report, and of files it tells of
_REMOVED = {  # file -> keys that tell of the run, and the digest that holds them
    "manifest.json": ("runs", "sha256"),
    "ranges.json": ("provenance", "sha256"),
}


def snapshot(folder: pathlib.Path) -> dict[str, str]:
    """Returns {relative path: digest} of the files that must come out alike.

    Checkpoints count by their number and the step of the last, whose state final.json holds by its digest: a run that
    was stopped within a block of steps has saved that step. Half-written files that were left behind are compared too.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir():
            if path.name == "checkpoints":
                names = sorted(child.name for child in path.iterdir())
                found[name] = f"{len(names)}, {max(names, key=lambda name: (len(name), name), default='none')}"
        elif not _OF_THE_RUN.search(name):
            found[name] = hashlib.sha256(_content(path)).hexdigest()[:16]
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


def kind(lines: list[str]) -> str:
    """Names the outcome of a case with these differences."""
    return "litter" if all(line.endswith("is left over") and ".part-" in line for line in lines) else "wrong"


def _content(path):
    content = path.read_bytes()
    if path.name == "metrics.jsonl":
        return _sums(content)
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
    if path.name in _REMOVED:
        try:
            whole = json.loads(content)
            kept = {key: value for key, value in whole.items() if key not in _REMOVED[path.name]}
            return json.dumps(kept, sort_keys=True).encode()
        except (ValueError, AttributeError):
            return content
    return _WHEN.sub(b"", content) if path.suffix == ".json" else content


def _sums(content):
    """Last step, and sums over all steps, of a metrics.jsonl; a run that was stopped within a block has a line more."""
    sums, before = collections.Counter(), 0
    try:
        for line in map(json.loads, content.splitlines()):
            step = line.pop("step")
            line.pop("images_per_second", None)
            for name, value in line.items():
                sums[name] += (step - before) * value
            before = step
        return f"{before} { ({name: round(total, 2) for name, total in sums.items()}) }".encode()
    except (ValueError, KeyError, TypeError, AttributeError):  # a damaged file
        return content


KINDS = {  # outcome -> its column of the table
    "same": "as undisturbed",  # or every property holds
    "refused": "refused clearly",  # by a message that names what is wrong
    "unread": "damage not read",  # the same result, by commands that do not read what was damaged
    "litter": "files left over",  # the same result beside half-written files
    "unclear": "unclear",  # a traceback, a message without a name, a hang
    "lost": "lost",  # the same command does not finish any more
    "wrong": "silently wrong",  # status 0 and another result
}
FAILURES = ("unclear", "lost", "wrong")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How one case ended: the kind, the case in words, and the number of kills, pictures or damages it held."""

    kind: str
    what: str
    count: int = 1

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"expected an outcome among {', '.join(KINDS)}, found {self.kind!r}")


def summary(records: Iterable[Mapping[str, Any]], units: Mapping[str, str]) -> str:
    """Returns the Markdown table of logged cases: a row for each attack; `units` names what each attack counts."""
    by_attack = collections.defaultdict(list)
    for record in records:
        by_attack[record["attack"]].append(record)
    lines = [
        f"| attack | cases | units | {' | '.join(KINDS.values())} | seeds of failures | minutes |",
        "|---|" + "---|" * (len(KINDS) + 4),
    ]
    for attack, found in by_attack.items():
        counts = collections.Counter(record["kind"] for record in found)
        failed = [f"{r['seed']} ({r['kind']})" for r in found if r["kind"] in FAILURES]
        shown = ", ".join(failed[:20]) + (f" and {len(failed) - 20} more" if len(failed) > 20 else "")
        cells = [attack, len(found), f"{sum(r['count'] for r in found):,} {units.get(attack, '')}"]
        cells += [counts[kind] for kind in KINDS] + [shown, f"{sum(r['seconds'] for r in found) / 60:.0f}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"
