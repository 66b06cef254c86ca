"""Kills: SIGKILL, SIGTERM or Ctrl-C at random moments of a command; then the same command continues."""

import signal

import numpy as np

from tests.torture import comparing
from tests.torture.commands import Process, run
from tests.torture.outcomes import Outcome
from tests.torture.places import Place

_WEIGHTS = {  # small for slow commands
    **{"train": 3, "eval": 3, "overlap": 2, "judge": 2, "stream": 1, "write_npy": 5, "write_folders": 4},
    **{"calibrate": 1, "msd": 1, "adapt": 2, "select": 1, "report": 1, "folder": 2, "stored": 2},
    **{"sweep": 1, "schemes": 1, "features": 1, "decoder": 2, "styles": 3},
}
_SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
_STATUS = {  # signal -> exit statuses of a process it ended
    signal.SIGKILL: (-signal.SIGKILL,),
    signal.SIGTERM: (-signal.SIGTERM, 128 + signal.SIGTERM),
    signal.SIGINT: (-signal.SIGINT, 128 + signal.SIGINT),
}


def case(rng: np.random.Generator, place: Place, only: str = "") -> Outcome:
    """Disturbs a command two to eight times, lets it finish, and compares with the undisturbed run."""
    names = list(_WEIGHTS)
    weights = np.array([_WEIGHTS[name] for name in names], float)
    name = only or str(rng.choice(names, p=weights / weights.sum()))
    facts = place.facts(name)
    place.begin(name)
    anew = rng.random() < 0.05
    kills, story, complaint = 0, [], ""
    options = {"environment": place.environment(name), "anew": anew}
    for _ in range(int(rng.integers(2, 9))):
        number = _SIGNALS[rng.integers(len(_SIGNALS))]
        due, moment = _moment(rng, place, facts, anew)
        ending = Process(place.argv(name), **options).wait(number, due)
        story.append(f"{signal.Signals(number).name} {moment}{'' if ending.disturbed else ' (too late)'}")
        kills += ending.disturbed
        what = f"{name}{' anew' if anew else ''}: {'; '.join(story)}"
        if ending.hung:
            return Outcome("lost", f"{what}: hangs\n{ending.tail()}", kills)
        if ending.disturbed and ending.status in _STATUS[number]:
            if ending.traceback and ending.before > 0.3:
                complaint = f"a traceback after {story[-1]}\n{ending.tail(1500)}"
        elif ending.status and not ending.importing:
            return Outcome("lost", f"{what}: status {ending.status}\n{ending.tail()}", kills)
    ending = run(place.argv(name), **options)
    what = f"{name}{' anew' if anew else ''}: {'; '.join(story)}"
    if ending.status:
        return Outcome("lost", f"{what}: then status {ending.status}\n{ending.tail()}", kills)
    wrong = place.differences(name)
    if wrong:
        return Outcome(comparing.kind(wrong), f"{what}: {'; '.join(wrong[:8])}", kills)
    if complaint:
        return Outcome("unclear", f"{what}: {complaint}", kills)
    return Outcome("same", what, kills)


def _moment(rng, place, facts, anew):
    """(function that says when, in words): at a time, or as soon as so many files have appeared."""
    if rng.random() < 0.5:
        seconds = float(rng.uniform(0, facts["seconds"] + (4 if anew else 0)))
        return (lambda passed: passed >= seconds), f"at {seconds:.2f} s"
    before = sum(1 for _ in place.case.rglob("*"))
    number = before + int(rng.integers(1, max(2, facts["paths"] - before + 1)))
    delay = float(rng.choice([0.0, rng.uniform(0, 0.05), rng.uniform(0, 0.3)]))
    reached = []

    def due(passed):
        if not reached and _count(place.case) >= number:
            reached.append(passed)
        return bool(reached) and passed >= reached[0] + delay

    return due, f"{1000 * delay:.0f} ms after path {number}"


def _count(folder):
    try:
        return sum(1 for _ in folder.rglob("*"))
    except OSError:  # a folder vanished while it was listed
        return 0
