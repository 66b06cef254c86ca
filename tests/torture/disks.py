"""Full disks: no file may grow beyond a size; the command says so, and continues when there is room."""

import numpy as np

from tests.torture import comparing
from tests.torture.commands import run
from tests.torture.outcomes import Outcome
from tests.torture.scenarios import SCENARIOS, Place


def case(rng: np.random.Generator, place: Place, only: str = "") -> Outcome:
    """Limits the size of files, by which a full disk is felt at any byte of any file; then lifts the limit."""
    name = only or str(rng.choice(list(SCENARIOS)))
    place.facts(name)
    place.begin(name)
    size = int(rng.choice([0, 10, 10 ** rng.uniform(1, 3), 10 ** rng.uniform(3, 6)]))
    ending = run(place.argv(name), environment=place.environment(name), file_size=size)
    what = f"{name} with files of {size} bytes at most: status {ending.status}"
    if ending.hung or ending.status not in (0, 1) or ending.traceback:
        return Outcome("unclear", f"{what}\n{ending.tail(1500)}")
    if ending.status and str(place.case) not in ending.tail(1500):
        return Outcome("unclear", f"{what}\n{ending.tail()}")
    if not ending.status and (wrong := place.differences(name)):
        return Outcome("wrong", f"{what}: {'; '.join(wrong[:8])}\n{ending.tail(300)}")
    again = run(place.argv(name), environment=place.environment(name))
    if again.status:
        return Outcome("lost", f"{what}, then {again.status}\n{again.tail()}")
    if wrong := place.differences(name):
        return Outcome(comparing.kind(wrong), f"{what}, then: {'; '.join(wrong[:8])}")
    return Outcome("refused" if ending.status else "same", what)
