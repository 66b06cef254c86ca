"""One program in many processes, usually one for each host: who they are, what they agree on, what
process 0 tells.

Every process runs the same script and asks for the same computations in the same order; arrays lie
over the devices of all of them. Process 0 alone reads and writes a run's files and tells the others
what it found; only checkpoints are written by all (`training.checkpoint`). With a single process
each function here is a plain call that costs nothing.
"""

import itertools
import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from runtime.log import log

HEARTBEAT_SECONDS = 30
# Of a process that waits for another, which may be at work for long. One that died is found by its
# heartbeat.
_PATIENCE_MS = 24 * 3600 * 1000
_STATUS = re.compile(r"(ABORTED|CANCELLED|DEADLINE_EXCEEDED|FAILED_PRECONDITION|INTERNAL|UNAVAILABLE|UNKNOWN): ")

_calls = itertools.count()
_speaking = False
"""Whether this process is process 0 within a function of `from_main`: further calls there are its own."""


class ProcessError(RuntimeError):
    """Processes of one run disagree, or process 0 failed at what it does for all."""


def initialize(
    coordinator: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    heartbeat_seconds: int = HEARTBEAT_SECONDS,
) -> None:
    """Connects this process with the others of its run. To be called before JAX starts.

    Without arguments JAX finds the others in the environment: SLURM, Open MPI, Cloud TPU,
    Kubernetes.

    Args:
      coordinator: `HOST:PORT` of process 0, any free port.
      num_processes: how many there are.
      process_id: which one this is, 0 .. num_processes - 1.
      heartbeat_seconds: a process that was silent for so long is taken for dead, and the others
        end.

    Raises:
      ValueError: some arguments are given and others not, or the environment tells nothing.
    """
    given = (coordinator, num_processes, process_id)
    if any(value is not None for value in given) and None in given:
        raise ValueError(
            f"expected --coordinator, --num_processes and --process_id together, found {coordinator}, {num_processes} "
            f"and {process_id}"
        )
    # Its handler of SIGTERM would take the place of Python's (runtime.preemption).
    jax.config.update("jax_enable_preemption_service", False)
    # CPU programs in flight at the same time could meet each other's messages; on accelerators the
    # queue has an order.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    try:
        jax.distributed.initialize(
            *given,
            cluster_detection_method=None if coordinator is None else "deactivate",
            heartbeat_timeout_seconds=heartbeat_seconds,
            shutdown_timeout_seconds=heartbeat_seconds,
        )
    except ValueError as error:
        if coordinator is not None:
            raise
        raise ValueError(
            f"{error} --distributed found no SLURM, Open MPI, Cloud TPU or Kubernetes around it; without them give "
            "--coordinator=HOST:PORT --num_processes=N --process_id=I"
        ) from error


def _client():
    """JAX's key-value store between processes, None when there is one process. JAX has no public
    name for it.
    """
    from jax._src import distributed

    return distributed.global_state.client


def several() -> bool:
    """Says whether this process is one of many (that were told of each other, be it one only)."""
    return _client() is not None


def is_main() -> bool:
    """Says whether this process writes files and shows progress: process 0 of a run, or the only
    one.
    """
    return not several() or jax.process_index() == 0


def from_main(function: Callable[[], Any]) -> Any:
    """Gives the value of process 0's `function()` to all; its errors are raised in all. Others
    wait, however long.

    Args:
      function: without arguments; called on process 0 only. Returns bytes, or what JSON can hold.

    Raises:
      ProcessError: in the other processes, when `function` raised.
    """
    global _speaking
    client = _client()
    if client is None or _speaking:
        return function()
    key, failure = f"jax_corruptions/{next(_calls)}", None
    if jax.process_index() == 0:
        _speaking = True
        try:
            content = _pack(function())
        except Exception as error:  # noqa: BLE001 - raised again below, once the others know
            failure, content = error, b"e" + f"{type(error).__name__}: {error}".encode()
        finally:
            _speaking = False
        client.key_value_set_bytes(key, content)
    else:
        content = client.blocking_key_value_get_bytes(key, _PATIENCE_MS)
    client.wait_at_barrier(f"{key}/read", _PATIENCE_MS)
    if jax.process_index() == 0:
        client.key_value_delete(key)
    if failure is not None:
        raise failure
    return _unpack(content)


def _pack(value):
    return b"b" + value if isinstance(value, bytes) else b"j" + json.dumps(value).encode()


def _unpack(content):
    kind, body = content[:1], content[1:]
    if kind == b"e":
        raise ProcessError(f"process 0 found: {body.decode()}")
    return body if kind == b"b" else json.loads(body)


def on_main(function: Callable[[], Any]) -> Any:
    """Calls `function()` on process 0 while the others wait; returns its value there and None
    elsewhere.

    Raises:
      ProcessError: in the other processes, when `function` raised.
    """
    values = []
    from_main(lambda: values.append(function()))
    return values[0] if values else None


def check_same(values: Mapping[str, Any]) -> None:
    """Checks that all processes hold the same values, a dict of what JSON can hold.

    Raises:
      ProcessError: in all processes; names what differs, and where.
    """
    client = _client()
    if client is None:
        return
    key = f"jax_corruptions/{next(_calls)}"
    client.key_value_set(f"{key}/{jax.process_index()}", json.dumps(values))

    def compare():
        first, lines = json.loads(json.dumps(values)), []
        for process in range(1, jax.process_count()):
            other = json.loads(client.blocking_key_value_get(f"{key}/{process}", _PATIENCE_MS))
            lines += [
                f"{name}: {first.get(name)!r} in process 0, {other.get(name)!r} in process {process}"
                for name in sorted(first.keys() | other.keys())
                if first.get(name) != other.get(name)
            ]
        if lines:
            more = [f"... and {len(lines) - 10} more"] if len(lines) > 10 else []
            raise ProcessError(
                "expected the same command, config and code in all processes, found:\n  "
                + "\n  ".join(lines[:10] + more)
            )

    on_main(compare)


def anyone(flag: Any) -> bool:
    """Says whether `flag`, a bool of each process, is true in any of them."""
    return bool(_any_process(flag)) if several() else bool(flag)


def anyone_before(flag: Callable[[], bool]) -> Callable[[], bool]:
    """Returns a function for all processes to call once per block: was `flag()` true in any, at the
    call before?

    The answer is one call late, so that nobody waits for it; with a single process it is `flag()`
    of now.
    """
    if not several():
        return flag
    asked = []

    def ask():
        asked.append(_any_process(flag()))
        return len(asked) > 1 and bool(asked.pop(0))

    return ask


def _any_process(flag):
    """bool [] on the device, the same in all processes; does not wait for the device."""
    mesh = Mesh(np.asarray(jax.devices()), ("devices",))
    flags = np.full(jax.device_count(), bool(flag))
    sharding = NamedSharding(mesh, PartitionSpec("devices"))
    return _any(jax.make_array_from_callback(flags.shape, sharding, lambda index: flags[index]))


_any = jax.jit(jnp.any)


def fetch(array: jax.Array | np.ndarray) -> np.ndarray:
    """Brings an array to the host of every process, also when each holds only a part; then all must
    call this.
    """
    if isinstance(array, jax.Array) and not array.is_fully_addressable and not array.is_fully_replicated:
        return multihost_utils.process_allgather(array, tiled=True)
    return np.asarray(array)


def lost_another(error: BaseException) -> bool:
    """Says whether an error in a run of many processes looks like one of the connections between
    them.
    """
    return several() and bool(_STATUS.match(str(error)))


def abandon(error: BaseException) -> NoReturn:
    """Ends this process with status 1 after `error`; with many, without the meeting at exit JAX
    would wait for.
    """
    if lost_another(error):
        log.error(
            "Another process of this run has probably stopped, its own output tells why; this one cannot go on "
            "alone. Start all of them again with the same commands: they continue from the last checkpoint."
        )
    if several():
        sys.stdout.flush()
        sys.stderr.flush()
        if jax.process_index() == 0:
            time.sleep(1)  # without the coordinator the others are aborted: let them say their own errors
        os._exit(1)
    raise SystemExit(1) from error
