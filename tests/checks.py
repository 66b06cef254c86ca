"""Checks that need several devices, and so a process of their own: named functions of a module."""

import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Mapping

import jax

from tests import compiling

ROOT = pathlib.Path(__file__).resolve().parents[1]


def check(module: str, *names: str, devices: int) -> None:
    """Runs functions of a module, one after the other, in a process with virtual CPU devices."""
    done = subprocess.run(
        [sys.executable, "-m", module, *names],
        cwd=ROOT,
        env=compiling.environment() | {"JAX_NUM_CPU_DEVICES": str(devices)},
        capture_output=True,
        text=True,
        timeout=290,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[: len(names)] == [f"{name} done" for name in names]


def run_named(checks: Mapping[str, Callable[[], None]]) -> None:
    """Runs what the command line names, in the process that `check` starts."""
    assert jax.device_count() == int(os.environ["JAX_NUM_CPU_DEVICES"]), jax.devices()
    for name in sys.argv[1:]:
        checks[name]()
        print(f"{name} done")
