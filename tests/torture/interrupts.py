"""Ctrl-C at random moments of commands that start anew: an answer at once, and nothing lost."""

import signal

import numpy as np

from tests.torture import comparing
from tests.torture.commands import Process, run
from tests.torture.outcomes import Outcome
from tests.torture.places import Place

_WEIGHTS = (
    {"samples": 4, "train": 3}
    | dict.fromkeys(
        (
            "stream",
            "eval",
            "overlap",
            "write_npy",
            "write_folders",
            "calibrate",
            "msd",
            "adapt",
            "sweep",
            "schemes",
            "features",
        ),
        1,
    )
    | {"decoder": 2, "styles": 2}
)
_STATUSES = (130, -signal.SIGINT)
_AT_ONCE = 10.0  # CPU seconds from the signal to the end, where nothing is compiled


def case(rng: np.random.Generator, place: Place, only: str = "") -> Outcome:
    """Interrupts a command one to three times, half of the times while it compiles, then lets it finish."""
    names = list(_WEIGHTS)
    weights = np.array(list(_WEIGHTS.values()), float)
    name = only or str(rng.choice(names, p=weights / weights.sum()))
    facts = place.facts(name)
    place.begin(name)
    story, complaints, count = [], [], 0
    for _ in range(int(rng.integers(1, 4))):
        compiles, twice = bool(rng.random() < 0.5), bool(rng.random() < 0.3)
        moment = float(rng.uniform(0, 2 * facts["seconds"] + (20 if compiles else 8)))
        environment = place.environment(name) | ({"JAX_ENABLE_COMPILATION_CACHE": "0"} if compiles else {})
        process = Process(place.argv(name), environment=environment, anew=True)
        again = float(rng.uniform(0, 2)) if twice else None
        ending = process.wait(signal.SIGINT, lambda seconds, moment=moment: seconds >= moment, again)
        where = f"at {moment:.1f} s{' compiling' if compiles else ''}{' twice' if twice else ''}"
        story.append(where if ending.disturbed else f"{where} (too late)")
        count += ending.disturbed
        what = f"{name}: Ctrl-C {'; '.join(story)}"
        if ending.hung:
            return Outcome("lost", f"{what}: hangs\n{ending.tail()}", count)
        if ending.importing:
            continue
        if ending.status not in (0, *_STATUSES) or (ending.status and not ending.disturbed):
            return Outcome("lost", f"{what}: status {ending.status}\n{ending.tail()}", count)
        if not ending.disturbed:
            continue
        if ending.traceback and ending.before > 0.3:
            complaints.append(f"a traceback after {where}\n{ending.tail(1500)}")
        elif ending.status == 130 and "the same command continues" not in ending.output:
            complaints.append(f"no word on how to continue after {where}\n{ending.tail()}")
        if ending.after > _AT_ONCE and not compiles:
            complaints.append(f"{ending.after:.0f} CPU seconds from the signal to the end, {where}")
    ending = run(place.argv(name), environment=place.environment(name))
    if ending.status:
        return Outcome("lost", f"{what}: then status {ending.status}\n{ending.tail()}", count)
    if wrong := place.differences(name):
        return Outcome(comparing.kind(wrong), f"{what}: {'; '.join(wrong[:8])}", count)
    return Outcome("unclear" if complaints else "same", f"{what}{''.join(f': {c}' for c in complaints)}", count)
