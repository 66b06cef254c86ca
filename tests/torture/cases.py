"""Draws cases, runs them, logs each, and ends with the table."""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import sys
import zlib
from collections.abc import Callable, Iterator

import numpy as np

from runtime.artifacts import git_revision
from runtime.files import locked
from tests.torture import commands, damages, disturbances, fuzz, hostile, outcomes, views
from tests.torture.commands import Worker
from tests.torture.outcomes import Outcome
from tests.torture.places import Place

_ON_FILES = {
    **{name: getattr(disturbances, name) for name in ("kills", "rivals", "disks", "interrupts", "streams")},
    **{"damages": damages.case, "settings": hostile.settings},
}
_IN_WORKER = {"fuzz": fuzz.case, "images": hostile.images, "calls": hostile.calls}
_IN_WORKER |= {"clips": views.clips, "each": views.each}
_UNITS = {
    **{"kills": "kills", "damages": "damages", "interrupts": "signals", "fuzz": "pictures", "clips": "frames"},
    **{"each": "images", "calls": "calls", "images": "files"},
}
_SHARES = {  # share of the time
    **{"kills": 26, "damages": 18, "interrupts": 15, "streams": 7, "disks": 5, "rivals": 4},
    **{"fuzz": 10, "clips": 5, "each": 5, "images": 2, "settings": 2, "calls": 1},
}
ATTACKS = tuple(_SHARES)


def generator(attack: str, seed: int, number: int) -> np.random.Generator:
    """Returns the generator that decides a case."""
    return np.random.default_rng([seed, number, zlib.crc32(attack.encode())])


class Torture:
    """One folder of logs, references and the case at hand, and the seed of all its cases."""

    def __init__(self, folder: pathlib.Path, seed: int, run_case: Callable[[str, np.random.Generator], Outcome]):
        self._folder, self._seed, self._run_case = folder, seed, run_case
        self._revision = git_revision()[:12]

    def records(self) -> list[dict]:
        """Reads the logs of this folder for this seed; a case that was run again counts by its last record."""
        found = {}
        for attack in ATTACKS:
            path = self._folder / f"{attack}.jsonl"
            for line in path.read_text().splitlines() if path.exists() else []:
                record = _parsed(line)
                if record and record["base"] == self._seed:
                    found[attack, record["seed"]] = record
        return list(found.values())

    def run(self, minutes: float, attacks: tuple[str, ...]) -> None:
        """Runs cases of the attack that is furthest behind its share, until all took so many minutes."""
        spent = dict.fromkeys(attacks, 0.0)
        numbers = dict.fromkeys(attacks, 0)
        for record in self.records():
            if record["attack"] in spent:
                spent[record["attack"]] += record["seconds"]
                numbers[record["attack"]] = max(numbers[record["attack"]], record["seed"] + 1)
        while sum(spent.values()) < 60 * minutes:
            attack = min(attacks, key=lambda name: spent[name] / _SHARES[name])
            spent[attack] += self._logged(attack, numbers[attack])
            numbers[attack] += 1

    def run_failed_again(self) -> None:
        """Runs every case that failed again, after the code was mended."""
        for record in self.records():
            if record["kind"] in outcomes.FAILURES:
                self._logged(record["attack"], record["seed"])

    def case(self, attack: str, number: int) -> Outcome:
        """Runs one case."""
        return self._run_case(attack, generator(attack, self._seed, number))

    def _logged(self, attack, number):
        """Runs a case, adds it to the log and returns its seconds."""
        began = commands.CLOCK.tick()
        try:
            outcome = self.case(attack, number)
        except RuntimeError as error:  # no reference: the undisturbed command fails, or its files vary
            outcome = Outcome("unclear", str(error)[:3000])
        seconds = commands.CLOCK.tick() - began
        record = {"attack": attack, "base": self._seed, "seed": number, "revision": self._revision}
        record |= dataclasses.asdict(outcome) | {"seconds": round(seconds, 2)}
        with open(self._folder / f"{attack}.jsonl", "a") as file:
            file.write("\n" * _cut(file.name) + json.dumps(record) + "\n")
        if outcome.kind in outcomes.FAILURES:
            print(f"{attack}:{number} {outcome.kind}: {outcome.what}", flush=True)
        return seconds

    def summary(self) -> str:
        """Writes summary.md and returns it."""
        table = outcomes.summary(self.records(), _UNITS)
        (self._folder / "summary.md").write_text(table)
        return table


@contextlib.contextmanager
def running(folder: pathlib.Path) -> Iterator[Callable[[str, np.random.Generator], Outcome]]:
    """Yields what runs a case in `folder`: (attack, generator) -> Outcome."""
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder.resolve() / "programs"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    place, worker = Place(folder), Worker(_IN_WORKER)

    def run_case(attack, rng):
        if attack in _ON_FILES:
            return _ON_FILES[attack](rng, place)
        return worker.case(attack, rng, folder / "worker")

    try:
        yield run_case
    finally:
        commands.end_all()
        worker.close()


def _cut(path):
    """Tells whether the last line of a log is incomplete."""
    content = pathlib.Path(path).read_bytes()
    return bool(content) and not content.endswith(b"\n")


def _parsed(line):
    try:
        return json.loads(line)
    except ValueError:  # left by a torture that was killed
        return None


def main(argv, description) -> int:
    """The command; the exit status is 1 when a case failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.torture", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=pathlib.Path, default=commands.ROOT / "build" / "torture")
    parser.add_argument("--attacks", default=",".join(ATTACKS), help=f"some of {','.join(ATTACKS)}")
    parser.add_argument("--only", help="ATTACK:NUMBER, a case again; its files stay in OUT/case")
    parser.add_argument("--failed", action="store_true", help="run the cases of the log that failed again")
    flags = parser.parse_args(argv)
    attacks = tuple(flags.attacks.split(","))
    if unknown := set(attacks) - set(ATTACKS):
        parser.error(f"expected attacks among {','.join(ATTACKS)}, found {','.join(sorted(unknown))}")
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell started this with Ctrl-C switched off
        signal.signal(number, signal.default_int_handler)
    flags.out.mkdir(parents=True, exist_ok=True)
    with locked(flags.out), running(flags.out) as run_case:
        torture = Torture(flags.out, flags.seed, run_case)
        if flags.only:
            return _again(torture, flags.only, parser)
        try:
            if flags.failed:
                torture.run_failed_again()
            else:
                torture.run(flags.minutes, attacks)
        except KeyboardInterrupt:
            print("stopped; the same command continues", file=sys.stderr)
    print(torture.summary())
    return int(any(record["kind"] in outcomes.FAILURES for record in torture.records()))


def _again(torture, only, parser):
    attack, _, number = only.partition(":")
    if attack not in ATTACKS or not number.isdecimal():
        parser.error(f"expected --only=ATTACK:NUMBER with an attack among {','.join(ATTACKS)}, found {only}")
    outcome = torture.case(attack, int(number))
    print(f"{outcome.kind}: {outcome.what}")
    return int(outcome.kind in outcomes.FAILURES)
