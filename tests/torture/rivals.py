"""Rivals: two commands work on one folder at the same time."""

import time

import numpy as np

from tests.torture import comparing
from tests.torture.commands import CLOCK, Process, run
from tests.torture.outcomes import Outcome
from tests.torture.places import Place

_NAMES = ("train", "eval", "overlap", "judge", "write_npy", "write_folders", "calibrate", "msd", "adapt", "folder")
_NAMES += ("sweep", "schemes", "features", "decoder", "styles")


def case(rng: np.random.Generator, place: Place, only: str = "") -> Outcome:
    """Starts a command twice, the second a moment later; one of them must finish, with the result of one alone."""
    name = only or str(rng.choice(_NAMES))
    facts = place.facts(name)
    place.begin(name)
    delay = float(rng.choice([0.0, rng.uniform(0, facts["seconds"])]))
    options = {"environment": place.environment(name)}
    first = Process(place.argv(name), **options)
    began = CLOCK.tick()
    while CLOCK.tick() - began < delay:
        first.running()
        time.sleep(0.005)
    second = Process(place.argv(name), **options)
    while second.running():  # both are read, or one would wait for a reader
        first.running()
        time.sleep(0.005)
    endings = [second.wait(), first.wait()]
    what = f"{name} twice, the second after {delay:.2f} s: statuses {[ending.status for ending in endings]}"
    for ending in endings:
        if ending.hung or ending.status not in (0, 1) or ending.traceback:
            return Outcome("unclear", f"{what}\n{ending.tail(1500)}")
        if ending.status and "another" not in ending.output and "in use" not in ending.output:
            return Outcome("unclear", f"{what}\n{ending.tail()}")
    if all(ending.status for ending in endings):
        return Outcome("lost", f"{what}\n{endings[0].tail()}\n{endings[1].tail()}")
    wrong = place.differences(name)
    if wrong and all(line.endswith("is left over") for line in wrong):  # output of the refused run
        ending = run(place.argv(name), **options)
        wrong = [f"status {ending.status}"] if ending.status else place.differences(name)
    if wrong:
        return Outcome(comparing.kind(wrong), f"{what}: {'; '.join(wrong[:8])}")
    return Outcome("same", what)
