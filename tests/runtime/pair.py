"""Two processes of one run over loopback, each as if it were a host."""

import contextlib
import socket
import subprocess
import sys
import time

import pytest

from tests import compiling, processes
from tests.processes import ROOT

PATIENCE = 250  # seconds; an idle machine takes about ten


def environment(devices, **more):
    own = {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": str(devices), "PYTHONPATH": str(ROOT)}
    return compiling.environment() | own | more


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


class Pair:
    """Starts two processes with one device each, in separate folders, like hosts without a shared disk.

    `more` are variables of their environment. The second process has `differently` among its arguments, and the
    variables `other`.
    """

    def __init__(self, folder, *command, differently=(), other=(), heartbeat=10, **more):
        self.folders = [folder / "host0", folder / "host1"]
        join = ["--num_processes=2", f"--coordinator=127.0.0.1:{free_port()}", f"--heartbeat_seconds={heartbeat}"]
        self._processes = []
        for process, place in enumerate(self.folders):
            place.mkdir(parents=True, exist_ok=True)
            own = [f"--process_id={process}", *(differently if process else ())]
            shared = environment(1, **{"JAX_CORRUPTIONS_CHECKPOINTS": str(folder / "shared")} | more)
            shared |= dict(other) if process else {}
            words = [sys.executable, *command, *join, *own]
            self._processes.append(processes.Process(words, cwd=place, env=shared, output=place / "output"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self._processes:
            process.kill()
            process.wait()

    def send(self, process, what):
        self._processes[process].send_signal(what)

    def wait_for(self, condition):
        limit = time.monotonic() + PATIENCE
        while not condition():
            alive = all(process.poll() is None for process in self._processes)
            assert alive and time.monotonic() < limit, self.output()
            time.sleep(0.01)

    def wait(self, limit=PATIENCE):
        """Exit statuses of both."""
        end = time.monotonic() + limit
        with contextlib.suppress(subprocess.TimeoutExpired):
            return [process.wait(max(0.1, end - time.monotonic())) for process in self._processes]
        pytest.fail(f"still running after {limit} s\n{self.output()}")

    def output(self, process=None):
        chosen = self.folders if process is None else [self.folders[process]]
        return "\n".join(f"-- {place.name}\n{(place / 'output').read_text()[-50000:]}" for place in chosen)
