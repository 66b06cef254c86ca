"""A case: a command is killed, the same command runs again, and must leave what a run leaves that was never killed."""

import contextlib
import signal
import subprocess

import numpy as np

from tests.torture.scenarios import LIMIT, Place


def at_change(place: Place, name: str, number: int) -> tuple[str, str] | None:
    """Kills a command right before its n-th change of files, and continues it.

    Returns (the change in words, what is wrong afterwards, "" if nothing); None where it has fewer changes.
    """
    place.facts(name)
    place.begin(name)
    log = place.folder / "changes"
    process = place.start(name, "-m", "tests.torture.dying", str(place.case), str(number), str(log))
    said, _ = process.communicate(LIMIT)
    changes = log.read_text().splitlines() if log.exists() else []
    if process.returncode == 0 and len(changes) < number:
        return None
    what = changes[-1].partition(" ")[2] if changes else "no change"
    if process.returncode != -signal.SIGKILL:
        return what, f"status {process.returncode} before the kill: {said[-1500:]}"
    return what, _continued(place, name)


def at_times(place: Place, name: str, seed: int) -> tuple[str, str]:
    """Kills a command one to four times at random moments, and continues it; returns (story, what is wrong)."""
    rng = np.random.default_rng([seed, *name.encode()])
    seconds = place.facts(name)["seconds"]
    place.begin(name)
    story = []
    for moment in rng.uniform(0, seconds, int(rng.integers(1, 5))):
        process = place.start(name)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(moment)
        process.kill()
        process.wait(LIMIT)
        story.append(f"{moment:.2f} s")
    return f"killed after {', '.join(story)}", _continued(place, name)


def _continued(place, name):
    return place.finish(name) or "; ".join(place.differences(name)[:8])
