"""Disturbances: kills, Ctrl-C, closed outputs, rivals and full disks; then the same command ends as if undisturbed."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import time

import numpy as np

from tests.torture import outcomes
from tests.torture.commands import CLOCK, Process, run
from tests.torture.outcomes import Outcome
from tests.torture.places import SCENARIOS, Place

_KILLED = {  # how often a command is chosen: small for slow ones
    **{"train": 3, "eval": 3, "overlap": 2, "judge": 2, "stream": 1, "write_npy": 5, "write_folders": 4},
    **{"calibrate": 1, "msd": 1, "adapt": 2, "select": 1, "report": 1, "folder": 2, "stored": 2},
    **{"sweep": 1, "schemes": 1, "features": 1, "decoder": 2, "styles": 3},
}
_INTERRUPTED = {
    **{"samples": 4, "train": 3, "stream": 1, "eval": 1, "overlap": 1, "write_npy": 1, "write_folders": 1},
    **{"calibrate": 1, "msd": 1, "adapt": 1, "sweep": 1, "schemes": 1, "features": 1, "decoder": 2, "styles": 2},
}
_TWICE = [name for name in _KILLED if name not in ("stream", "select", "report", "stored")]
_SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
_STATUS = {  # signal -> exit statuses of a process it ended
    signal.SIGKILL: (-signal.SIGKILL,),
    signal.SIGTERM: (-signal.SIGTERM, 128 + signal.SIGTERM),
    signal.SIGINT: (-signal.SIGINT, 128 + signal.SIGINT),
}
_AT_ONCE = 10.0  # CPU seconds from Ctrl-C to the end, where nothing is compiled
_STREAMS = ("2>&-", ">&-", ">&- 2>&-", "<&- >&- 2>&-", "| true", "2>&1 | true", "2>&1 >/dev/null | head -c 1")


def _chosen(rng, weights):
    shares = np.array(list(weights.values()), float)
    return str(rng.choice(list(weights), p=shares / shares.sum()))


def _finish(place, name, what, count, complaints, **options):
    """Lets the command end, and compares its files with those of an undisturbed run."""
    ending = run(place.argv(name), **options)
    if ending.status:
        return Outcome("lost", f"{what}: then status {ending.status}\n{ending.tail()}", count)
    return _compared(place, name, what, count, complaints)


def _compared(place, name, what, count=1, complaints=()):
    if wrong := place.differences(name):
        return Outcome(outcomes.kind(wrong), f"{what}: {'; '.join(wrong[:8])}", count)
    return Outcome("unclear" if complaints else "same", f"{what}{''.join(f': {c}' for c in complaints)}", count)


def kills(rng: np.random.Generator, place: Place, only: str = "") -> Outcome:
    """Ends a command two to eight times by SIGKILL, SIGTERM or Ctrl-C, at random moments."""
    name = only or _chosen(rng, _KILLED)
    facts = place.facts(name)
    place.begin(name)
    options = {"environment": place.environment(name), "anew": bool(rng.random() < 0.05)}
    count, story, complaints = 0, [], []
    for _ in range(int(rng.integers(2, 9))):
        number = _SIGNALS[rng.integers(len(_SIGNALS))]
        due, moment = _moment(rng, place, facts, options["anew"])
        ending = Process(place.argv(name), **options).wait(number, due)
        story.append(f"{signal.Signals(number).name} {moment}{'' if ending.disturbed else ' (too late)'}")
        count += ending.disturbed
        what = f"{name}{' anew' if options['anew'] else ''}: {'; '.join(story)}"
        if ending.hung:
            return Outcome("lost", f"{what}: hangs\n{ending.tail()}", count)
        if ending.disturbed and ending.status in _STATUS[number]:
            if ending.traceback and ending.before > 0.3:
                complaints = [f"a traceback after {story[-1]}\n{ending.tail(1500)}"]
        elif ending.status and not ending.importing:
            return Outcome("lost", f"{what}: status {ending.status}\n{ending.tail()}", count)
    return _finish(place, name, what, count, complaints, **options)


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


def interrupts(rng: np.random.Generator, place: Place, only: str = "") -> Outcome:
    """Interrupts a command that starts anew by Ctrl-C one to three times, half of them while it compiles.

    It must answer at once, and say how to continue.
    """
    name = only or _chosen(rng, _INTERRUPTED)
    facts, own = place.facts(name), place.environment(name)
    place.begin(name)
    story, complaints, count = [], [], 0
    for _ in range(int(rng.integers(1, 4))):
        compiles, twice = bool(rng.random() < 0.5), bool(rng.random() < 0.3)
        moment = float(rng.uniform(0, 2 * facts["seconds"] + (20 if compiles else 8)))
        environment = own | ({"JAX_ENABLE_COMPILATION_CACHE": "0"} if compiles else {})
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
        if ending.status not in (0, *_STATUS[signal.SIGINT]) or (ending.status and not ending.disturbed):
            return Outcome("lost", f"{what}: status {ending.status}\n{ending.tail()}", count)
        if not ending.disturbed:
            continue
        if ending.traceback and ending.before > 0.3:
            complaints.append(f"a traceback after {where}\n{ending.tail(1500)}")
        elif ending.status == 130 and "the same command continues" not in ending.output:
            complaints.append(f"no word on how to continue after {where}\n{ending.tail()}")
        if ending.after > _AT_ONCE and not compiles:
            complaints.append(f"{ending.after:.0f} CPU seconds from the signal to the end, {where}")
    return _finish(place, name, what, count, complaints, environment=own)


def streams(rng: np.random.Generator, place: Place, only: str = "") -> Outcome:
    """Runs a command with closed outputs, or outputs that nobody reads; it must end with the whole result."""
    name, closed = only or str(rng.choice(list(SCENARIOS))), str(rng.choice(_STREAMS))
    place.facts(name)
    place.begin(name)
    ending = Process(place.argv(name), environment=place.environment(name), streams=closed).wait()
    what = f"{name} {closed}"
    if ending.status or ending.hung or ending.traceback or "BrokenPipe" in ending.output:
        clear = not (ending.hung or ending.traceback or "BrokenPipe" in ending.output)
        return Outcome("lost" if clear else "unclear", f"{what}: status {ending.status}\n{ending.tail(1500)}")
    return _compared(place, name, what)


def rivals(rng: np.random.Generator, place: Place, only: str = "") -> Outcome:
    """Starts a command twice, the second a moment later; one of them must finish, with the result of one alone."""
    name = only or str(rng.choice(_TWICE))
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
        return _finish(place, name, what, 1, (), **options)
    return _compared(place, name, what)


def disks(rng: np.random.Generator, place: Place, only: str = "") -> Outcome:
    """Runs a command where a file system or the size of files leaves too little room, then with room."""
    name = only or str(rng.choice(list(SCENARIOS)))
    place.facts(name)
    place.begin(name)
    small = bool(rng.random() < 0.5)
    size = int(rng.choice([0, 10, 10 ** rng.uniform(1, 3), 10 ** rng.uniform(3, 6), 10 ** rng.uniform(3, 6)]))
    with contextlib.ExitStack() as stack:
        grow = stack.enter_context(_small_file_system(place.case, size)) if small else None
        if grow:
            return _fill(place, name, f"{name} with {size} bytes of room", grow)
        return _fill(place, name, f"{name} with files of {size} bytes at most", lambda: None, file_size=size)


def _fill(place, name, what, grow, **limit):
    options = {"environment": place.environment(name)}
    ending = run(place.argv(name), **options, **limit)
    what = f"{what}: status {ending.status}"
    if ending.hung or ending.status not in (0, 1) or ending.traceback:
        return Outcome("unclear", f"{what}\n{ending.tail(1500)}")
    if ending.status and str(place.case) not in ending.tail(1500):
        return Outcome("unclear", f"{what}\n{ending.tail()}")
    if not ending.status and (wrong := place.differences(name)):
        return Outcome("wrong", f"{what}: {'; '.join(wrong[:8])}\n{ending.tail(300)}")
    grow()
    found = _finish(place, name, what, 1, (), **options)
    return Outcome("refused", what) if ending.status and found.kind == "same" else found


@contextlib.contextmanager
def _small_file_system(folder: pathlib.Path, room: int):
    """Puts a folder on a file system of its own with so many bytes left; yields what makes it
    large, or None where this user may mount nothing."""
    pages = sum(4096 * (1 + -(-path.stat().st_size // 4096)) for path in folder.rglob("*"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={pages + 65536 + room}", "torture", folder]
    aside = folder.with_name("aside")
    shutil.rmtree(aside, ignore_errors=True)
    folder.rename(aside)
    folder.mkdir()
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        folder.rmdir()
        aside.rename(folder)
        yield None
        return
    try:
        shutil.copytree(aside, folder, dirs_exist_ok=True)
        yield lambda: subprocess.run(["mount", "-o", "remount,size=500m", folder], check=True)
    finally:
        subprocess.run(["umount", folder], check=True)
