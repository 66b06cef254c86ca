"""Closed outputs: a command whose output nobody reads, or which has none, leaves the results of any other."""

import numpy as np

from tests.torture import comparing
from tests.torture.commands import Process
from tests.torture.outcomes import Outcome
from tests.torture.places import Place
from tests.torture.scenarios import SCENARIOS

_STREAMS = ("2>&-", ">&-", ">&- 2>&-", "<&- >&- 2>&-", "| true", "2>&1 | true", "2>&1 >/dev/null | head -c 1")


def case(rng: np.random.Generator, place: Place, only: str = "") -> Outcome:
    """Runs a command with closed or abandoned streams; it must end with status 0 and the whole result."""
    name, streams = only or str(rng.choice(list(SCENARIOS))), str(rng.choice(_STREAMS))
    place.facts(name)
    place.begin(name)
    ending = Process(place.argv(name), environment=place.environment(name), streams=streams).wait()
    what = f"{name} {streams}"
    if ending.hung or ending.traceback or "BrokenPipe" in ending.output:
        return Outcome("unclear", f"{what}: status {ending.status}\n{ending.tail(1500)}")
    if ending.status:
        return Outcome("lost", f"{what}: status {ending.status}\n{ending.tail(1500)}")
    if wrong := place.differences(name):
        return Outcome(comparing.kind(wrong), f"{what}: {'; '.join(wrong[:8])}\n{ending.tail(300)}")
    return Outcome("same", what)
