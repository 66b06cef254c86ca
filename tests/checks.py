"""Checks that need several devices, and so a process of their own: named functions of a module."""

import os
import sys
from collections.abc import Callable, Mapping

import jax

from tests import compiling, processes


def check(module: str, *names: str, devices: int) -> None:
    """Runs functions of a module, one after the other, in a process with virtual CPU devices."""
    environment = compiling.environment() | {"JAX_NUM_CPU_DEVICES": str(devices)}
    done = processes.run([sys.executable, "-m", module, *names], env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[: len(names)] == [f"{name} done" for name in names]


def run_named(checks: Mapping[str, Callable[[], None]]) -> None:
    """Runs what the command line names, in the process that `check` starts."""
    assert jax.device_count() == int(os.environ["JAX_NUM_CPU_DEVICES"]), jax.devices()
    for name in sys.argv[1:]:
        checks[name]()
        print(f"{name} done")
