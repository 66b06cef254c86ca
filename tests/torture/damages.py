"""Damages: a file of a workdir, a written dataset or a cache is broken or edited; then a command meets it.

Afterwards the command must refuse and name what is wrong, or end with the numbers of an undamaged run.
"""

import json
import pathlib
import re

import numpy as np

from tests.torture import outcomes
from tests.torture.commands import run
from tests.torture.outcomes import Outcome
from tests.torture.places import Place, remove

# Kind of folder that is damaged -> the commands that may read it.
_MEETS = {
    "train": ("train", "eval", "adapt"),
    "eval": ("eval",),
    "overlap": ("overlap", "calibrate", "msd", "select", "report"),
    "decoder": ("decoder", "styles"),
    **{name: (name,) for name in ("calibrate", "msd", "write_npy", "write_folders", "stored", "folder", "select")},
    **{name: (name,) for name in ("sweep", "schemes", "features", "styles")},
}
_NUMBER = re.compile(rb"(?<![\w.-])\d+(\.\d+)?(?![\w-])")


def case(rng: np.random.Generator, place: Place, only: str = "") -> Outcome:
    """Damages one file of a finished scenario and runs a command on it."""
    stands = only or str(rng.choice(list(_MEETS)))
    command = str(rng.choice(_MEETS[stands]))
    place.put_result(stands)
    place.facts(command)  # makes references, in the case's folder
    place.put_result(stands)
    path = _pick(rng, place.case)
    name = path.relative_to(place.case).as_posix()
    before = outcomes.snapshot(place.case)
    done = damage(rng, path)
    what = f"{command} after {done} in {name}"
    left = outcomes.snapshot(place.case)
    damaged = {f"{name} "} | {f"{other} " for other in before if before[other] != left.get(other)}  # two, of a swap
    ending = run(place.argv(command), environment=place.environment(command))
    if ending.hung:
        return Outcome("unclear", f"{what}: hangs\n{ending.tail()}")
    if ending.status:
        if ending.status < 0 or ending.traceback:
            return Outcome("unclear", f"{what}: status {ending.status}\n{ending.tail(1500)}")
        named = any(part in ending.output for part in _names(name))
        return Outcome("refused" if named else "unclear", f"{what}: {ending.tail()}")
    expected = _expected(place, stands, command)
    found = outcomes.snapshot(place.case)
    wrong = [line for line in outcomes.differences(found, expected) if not line.startswith(tuple(damaged))]
    if wrong:
        return Outcome("wrong", f"{what}: {'; '.join(wrong[:8])}\n{ending.tail(300)}")
    if found.get(name) == expected.get(name):
        return Outcome("same", what)
    if found.get(name) == left.get(name):
        return Outcome("unread", what)
    return Outcome("wrong", f"{what}: {name} was written again, with other content\n{ending.tail(300)}")


def _expected(place, stands, command):
    """The snapshot where the command ran on the undamaged result."""
    if command == stands:
        return place.facts(stands)["snapshot"]
    return place.facts(stands)["snapshot"] | place.facts(command)["snapshot"]


def _names(name):
    """Lists the words that may name a damaged file in a message: its name, its stem, the folders above."""
    path = pathlib.PurePosixPath(name)
    parts = [part for part in path.parts if part not in ("work", "out")]
    return [part for part in (*parts, path.stem) if len(part) > 3] + [str(path.parent)]


def _pick(rng, folder):
    """A file: first a kind, then one of the kind, so that the many files of checkpoints do not hide the others."""
    kinds = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != ".lock":
            inside = next((part for part in path.parts if part in ("checkpoints", "cache", "out", "answers")), "")
            name = path.name if path.suffix in (".json", ".csv") else ""
            kinds.setdefault((inside, path.suffix, name), []).append(path)
    keys = list(kinds)
    found = kinds[keys[rng.integers(len(keys))]]
    return found[rng.integers(len(found))]


def damage(rng: np.random.Generator, path: pathlib.Path) -> str:
    """Damages one file; returns in words how."""
    content = path.read_bytes()
    ways = ["delete", "empty", "truncate", "zero", "flip", "swap"]
    if path.suffix == ".json":
        ways += ["type", "key", "edit", "edit", "edit"]
    if path.suffix in (".csv", ".jsonl"):
        ways += ["edit", "edit", "edit", "line"]
    if re.fullmatch(r"\d+", path.parent.name) or path.parent.name == "state":
        ways.append("folder")
    way = str(rng.choice(ways))
    changed, what = _changed(rng, path, content, way)
    if changed is None:
        return what
    if changed == content:
        path.unlink()
        return "the loss"
    path.write_bytes(changed)
    return what


def _changed(rng, path, content, way):
    """(new content, in words); None where the file is dealt with already."""
    size = len(content)
    if way == "delete" or not size:
        path.unlink()
        return None, "the loss"
    if way == "folder":
        remove(path.parent)
        return None, f"the loss of {path.parent.name}/"
    if way == "empty":
        return b"", "emptying"
    if way == "truncate":
        length = int(rng.integers(size))
        return content[:length], f"truncation to {length} of {size} bytes"
    if way == "zero":
        begin, length = int(rng.integers(size)), int(rng.integers(1, 600))
        return content[:begin] + bytes(min(length, size - begin)) + content[begin + length :], f"zeros at {begin}"
    if way == "flip":
        place, bit = int(rng.integers(size)), int(rng.integers(8))
        flipped = bytearray(content)
        flipped[place] ^= 1 << bit
        return bytes(flipped), f"a flipped bit {bit} at {place} of {size}"
    if way == "swap":
        others = [other for other in sorted(path.parent.iterdir()) if other.suffix == path.suffix and other != path]
        others = [other for other in others if other.is_file()]
        if not others:
            path.unlink()
            return None, "the loss"
        other = others[rng.integers(len(others))]
        mine, its = content, other.read_bytes()
        other.write_bytes(mine)
        return its, f"swapping with {other.name}"
    if way == "type":
        value = [b"[]", b"{}", b"3", b"null", b'"text"'][rng.integers(5)]
        return value, f"the content {value.decode()}"
    if way == "line":
        lines = content.splitlines(keepends=True)
        gone = int(rng.integers(len(lines)))
        return b"".join(lines[:gone] + lines[gone + 1 :]), f"the loss of line {gone + 1}"
    if way == "key":
        return _without_key(rng, content)
    return _edited(rng, content)


def _without_key(rng, content):
    try:
        whole = json.loads(content)
        key = list(whole)[rng.integers(len(whole))]
        del whole[key]
    except (ValueError, TypeError):
        return b"{}", "the content {}"
    return json.dumps(whole).encode(), f"the loss of the key {key}"


def _edited(rng, content):
    found = list(_NUMBER.finditer(content))
    if not found:
        return b"", "emptying"
    one = found[rng.integers(len(found))]
    number = one.group().decode()
    new = str(round(float(number) + float(rng.choice([0.25, -0.1, 3.5])), 4)) if "." in number else str(int(number) + 1)
    edited = content[: one.start()] + new.encode() + content[one.end() :]
    return edited, f"the edit {number} -> {new} at {one.start()}"
