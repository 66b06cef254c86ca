"""Kills commands at each of their changes of files, and at random moments, and says what held.

    python -m tests.torture                                # all commands, hours; again it continues
    python -m tests.torture --command=train                # one
    python -m tests.torture --sample=8                     # eight changes of each command, the same each time
    python -m tests.torture --command=train --at=17        # one case again; its files stay in OUT/case

A case is a command and the number of the change that it dies at. Each is a line of OUT/references/CODE/log.jsonl.
The changes of one process come in one order, but Orbax's threads may swap two of theirs.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main(argv=None):
    """The command; the exit status is 1 when a case failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.torture", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--command", help="only this one")
    parser.add_argument("--at", type=int, help="only the change of this number")
    parser.add_argument("--kills", type=int, default=3, help="cases of random moments, of each command")
    parser.add_argument("--sample", type=int, help="only so many changes of each command, drawn by its name")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "torture")
    given = parser.parse_args(argv)
    for name, value in (
        *(("JAX_PLATFORMS", "cpu"), ("OPENBLAS_NUM_THREADS", "1"), ("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")),
        ("JAX_COMPILATION_CACHE_DIR", str(given.out.resolve() / "programs")),
    ):
        os.environ.setdefault(name, value)
    from runtime.files import locked
    from tests.torture.scenarios import SCENARIOS, Place

    if given.command and given.command not in SCENARIOS:
        parser.error(f"expected --command among {', '.join(SCENARIOS)}, found {given.command}")
    if given.at is not None and not (given.command and given.at > 0):
        parser.error("expected --at=N, N at least 1, with --command=NAME")
    given.out.mkdir(parents=True, exist_ok=True)
    with locked(given.out):
        place = Place(given.out)
        if given.at:
            return _one(place, given.command, given.at)
        records = _all(place, [given.command] if given.command else list(SCENARIOS), given)
    print(_table(records, place))
    return int(any(record["wrong"] for record in records))


def _one(place, name, number):
    from tests.torture import crashes

    found = crashes.at_change(place, name, number)
    print("it ends before" if found is None else f"{found[0]}: {found[1] or 'as if never killed'}")
    return int(bool(found and found[1]))


def _all(place, names, given):
    """Runs the cases that the log lacks; returns the records of all."""
    from tests.torture import crashes

    place.references.mkdir(parents=True, exist_ok=True)
    log = place.references / "log.jsonl"
    known = {}
    for line in log.read_text().splitlines() if log.exists() else []:
        record = json.loads(line)
        known[record["command"], record["kind"], record["at"]] = record
    found = []

    def case(kind, name, at, run):
        record = known.get((name, kind, at))
        if record is None:
            done = run(place, name, at)
            what, wrong = done or ("", "")
            record = {"command": name, "kind": kind, "at": at, "what": what, "wrong": wrong, "ends": done is None}
            with open(log, "a") as file:
                file.write(json.dumps(record) + "\n")
            if wrong:
                print(f"--command={name} --at={at} ({kind}), {what}: {wrong}", flush=True)
        if not record["ends"]:
            found.append(record)
        return record

    for name in names:
        try:
            changes = place.facts(name)["changes"]
        except RuntimeError as error:  # the command fails without a kill, or leaves other files each time
            print(error, flush=True)
            found.append({"command": name, "kind": "without a kill", "at": 0, "wrong": str(error)})
            continue
        for number in _chosen(name, changes, given.sample):
            case("change", name, number, crashes.at_change)
        for number in range(given.kills):
            case("moments", name, number, crashes.at_times)
        print(f"{name}: {sum(r['command'] == name for r in found)} cases", file=sys.stderr, flush=True)
    return found


def _chosen(name, changes, sample):
    """Numbers of the changes at which a command dies: all, or a sample, with the first and the last."""
    if sample is None or sample >= changes:
        return list(range(1, changes + 1))
    between = random.Random(name).sample(range(2, changes), max(0, sample - 2))
    return sorted({1, changes, *between})


def _table(records, place):
    """Returns the Markdown table: a row for each command."""
    lines = ["| command | changes | killed at a change | at random moments | failed |", "|---|---|---|---|---|"]
    by_command = collections.defaultdict(list)
    for record in records:
        by_command[record["command"]].append(record)
    for name, of in by_command.items():
        changes = sum(record["kind"] == "change" for record in of)
        failed = ", ".join(f"{r['kind']} {r['at']}" for r in of if r["wrong"]) or "none"
        moments = sum(record["kind"] == "moments" for record in of)
        every = "" if any(record["kind"] == "without a kill" for record in of) else place.facts(name)["changes"]
        lines.append(f"| {name} | {every} | {changes} | {moments} | {failed} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
