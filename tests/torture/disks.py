"""Full disks: a small file system, or a limit on the size of files; the command says so, and continues given room."""

import contextlib
import os
import pathlib
import shutil
import subprocess

import numpy as np

from tests.torture import comparing
from tests.torture.commands import run
from tests.torture.outcomes import Outcome
from tests.torture.places import Place
from tests.torture.scenarios import SCENARIOS


def case(rng: np.random.Generator, place: Place, only: str = "") -> Outcome:
    """Runs a command where there is too little room, then the same command with room."""
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
    ending = run(place.argv(name), environment=place.environment(name), **limit)
    what = f"{what}: status {ending.status}"
    if ending.hung or ending.status not in (0, 1) or ending.traceback:
        return Outcome("unclear", f"{what}\n{ending.tail(1500)}")
    if ending.status and str(place.case) not in ending.tail(1500):
        return Outcome("unclear", f"{what}\n{ending.tail()}")
    if not ending.status and (wrong := place.differences(name)):
        return Outcome("wrong", f"{what}: {'; '.join(wrong[:8])}\n{ending.tail(300)}")
    grow()
    again = run(place.argv(name), environment=place.environment(name))
    if again.status:
        return Outcome("lost", f"{what}, then {again.status}\n{again.tail()}")
    if wrong := place.differences(name):
        return Outcome(comparing.kind(wrong), f"{what}, then: {'; '.join(wrong[:8])}")
    return Outcome("refused" if ending.status else "same", what)


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
