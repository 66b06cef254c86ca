"""One program in many processes, usually one for each host, and the signals that end it.

Every process runs the same script and asks for the same computations in the same order; arrays lie over the devices of
all of them. Only process 0 reads and writes a run's files and tells the others their content; only checkpoints are
written by all (`training.checkpoints`). With a single process each function here is a plain call that costs nothing.
"""

import contextlib
import itertools
import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from corruptions.files import digest_of_json
from runtime.log import log

HEARTBEAT_SECONDS = 30
# How long a process waits for a live process. A heartbeat finds a dead process much sooner.
_PATIENCE_MS = 24 * 3600 * 1000
_BLOCK = 1000  # lines that travel at once
_STATUS = re.compile(r"(ABORTED|CANCELLED|DEADLINE_EXCEEDED|FAILED_PRECONDITION|INTERNAL|UNAVAILABLE|UNKNOWN): ")

_calls = itertools.count()
_speaking = False
"""Whether this process is process 0 within a function of `from_main`: further calls there are its own."""


class ProcessError(RuntimeError):
    """Processes of one run disagree, or process 0 failed in work for all processes."""


def initialize(
    coordinator: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    heartbeat_seconds: int = HEARTBEAT_SECONDS,
) -> None:
    """Connects this process with the others of its run. Call it before JAX starts.

    Without arguments JAX finds the others in the environment: SLURM, Open MPI, Cloud TPU, Kubernetes.

    Args:
      coordinator: `HOST:PORT` of process 0, any free port.
      num_processes, process_id: number of processes, and the number of this one, from 0.
      heartbeat_seconds: a process silent for so long counts as dead, and the others end.

    Raises:
      ValueError: some arguments are missing, or the environment names no other process.
    """
    given = (coordinator, num_processes, process_id)
    if any(value is not None for value in given) and None in given:
        raise ValueError(
            f"expected --coordinator, --num_processes and --process_id together, found {coordinator}, {num_processes} "
            f"and {process_id}"
        )
    # The service's handler of SIGTERM would take the place of `watch_signals`.
    jax.config.update("jax_enable_preemption_service", False)
    # CPU programs in flight together could meet each other's messages; on accelerators the queue has an order.
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
    """Returns JAX's key-value store between processes, None if there is one process.

    JAX has no public name for it: `multihost_utils.broadcast_one_to_all` computes on devices, and takes arrays of a known shape.
    """
    from jax._src import distributed

    return distributed.global_state.client


def several() -> bool:
    """Checks whether JAX's processes were connected, even if there is only one."""
    return jax.distributed.is_initialized()


def is_main() -> bool:
    """Checks whether this is process 0 or the only process, which writes files and shows progress."""
    return not several() or jax.process_index() == 0


def from_main(function: Callable[[], Any]) -> Any:
    """Calls `function()` in process 0 and returns its value, bytes or JSON-ready, in every process.

    The other processes wait, however long. Where `function` raises, they raise a ProcessError, and process 0 the error.
    """
    global _speaking
    client = _client()
    if client is None or _speaking:
        return function()
    key, failure = f"jax_corruptions/{next(_calls)}", None
    if jax.process_index() == 0:
        _speaking = True
        try:
            value = function()
            content = b"b" + value if isinstance(value, bytes) else b"j" + json.dumps(value).encode()
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
    kind, body = content[:1], content[1:]
    if kind == b"e":
        raise ProcessError(f"process 0 found: {body.decode()}")
    return body if kind == b"b" else json.loads(body)


def on_main(function: Callable[[], Any]) -> Any:
    """Calls `function()` in process 0 while the others wait; returns its value there, None elsewhere. Raises as `from_main`."""
    values = []
    from_main(lambda: values.append(function()))
    return values[0] if values else None


def _compare(value: Any, function: Callable[[list[Any]], Any]) -> Any:
    """Calls `function` in process 0 with the JSON-ready values of all processes; returns its value, and raises, as `from_main`.

    With one process, or within a function of `from_main`, it is called with this process's value alone.
    """
    client = _client()
    if client is None or _speaking:
        return function([value])
    key = f"jax_corruptions/{next(_calls)}"
    client.key_value_set(f"{key}/{jax.process_index()}", json.dumps(value))
    names = [f"{key}/{process}" for process in range(jax.process_count())]
    return from_main(lambda: function([json.loads(client.blocking_key_value_get(n, _PATIENCE_MS)) for n in names]))


def all_equal(value: Any) -> bool:
    """Checks in every process whether all hold the same JSON-ready value."""
    return _compare(value, lambda values: all(other == values[0] for other in values))


def check_same(values: Mapping[str, Any]) -> None:
    """Checks that all processes hold the same JSON-ready values; else a ProcessError in all names each difference."""

    def compare(found):
        first = found[0]
        lines = [
            f"{name}: {first.get(name)!r} in process 0, {other.get(name)!r} in process {process}"
            for process, other in enumerate(found)
            for name in sorted(first.keys() | other.keys())
            if first.get(name) != other.get(name)
        ]
        if lines:
            lines[10:] = [f"... and {len(lines) - 10} more"] if len(lines) > 10 else []
            head = "expected the same command, config, variables and code in all processes, found:"
            raise ProcessError("\n  ".join([head, *lines]))

    _compare(values, compare)


def check_lines(what: str, lines: Sequence[str], remedy: str) -> None:
    """Checks that all processes hold the same lines, however many; else a ProcessError in all names the first that differs.

    Digests of blocks of lines are compared, then one block.
    """
    blocks = [lines[start : start + _BLOCK] for start in range(0, len(lines), _BLOCK)]

    def first_other(found):
        """Finds the first process whose block differs from that of process 0: (its number, place of the block), else None."""
        of_process = ([pair[0] != pair[1] for pair in itertools.zip_longest(found[0], other)] for other in found)
        return next(((process, unlike.index(True)) for process, unlike in enumerate(of_process) if any(unlike)), None)

    def refuse(found):
        pairs = itertools.zip_longest(found[0], found[process], fillvalue="nothing")
        here, there = next(pair for pair in pairs if pair[0] != pair[1])
        raise ProcessError(
            f"expected the same {what} in all processes, found {here} in process 0 and {there} in process {process}; {remedy}"
        )

    if differs := _compare([digest_of_json(block) for block in blocks], first_other):
        process, place = differs
        _compare(blocks[place] if place < len(blocks) else [], refuse)


def anyone(flag: Any) -> bool:
    """Checks whether `flag`, a bool of each process, is true in any process."""
    return bool(_any_process(flag)) if several() else bool(flag)


def anyone_before(flag: Callable[[], bool]) -> Callable[[], bool]:
    """Returns a function that all processes call once per block: was `flag()` true in any of them at the call before?

    The answer is one call late, so that no process waits for it. With a single process the function is `flag` itself.
    """
    if not several():
        return flag
    asked = []

    def ask():
        asked.append(_any_process(flag()))
        return len(asked) > 1 and bool(asked.pop(0))

    return ask


def _any_process(flag):
    """Returns a bool [] on the device, the same in all processes, without waiting for the device."""
    mesh = Mesh(np.asarray(jax.devices()), ("devices",))
    flags = np.full(jax.device_count(), bool(flag))
    sharding = NamedSharding(mesh, PartitionSpec("devices"))
    return jax.jit(jnp.any)(jax.make_array_from_callback(flags.shape, sharding, lambda index: flags[index]))


def fetch(array: jax.Array | np.ndarray) -> np.ndarray:
    """Brings an array to the host of every process. If each holds only a part, all must call this."""
    if isinstance(array, jax.Array) and not array.is_fully_addressable and not array.is_fully_replicated:
        return multihost_utils.process_allgather(array, tiled=True)
    return np.asarray(array)


def lost_another(error: BaseException) -> bool:
    """Checks whether an error in a run of many processes looks like a lost connection between them."""
    return several() and bool(_STATUS.match(str(error)))


def abandon(error: BaseException, status: int = 1) -> NoReturn:
    """Ends this process with `status` after `error`; one of many does not wait for the others, as JAX does at exit."""
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
        os._exit(status)
    raise SystemExit(status) from error


# Signals. Schedulers send SIGTERM before they take a machine away. After SIGTERM or Ctrl-C training saves its state and
# ends with status 143 or 130; a second Ctrl-C ends the process at once. Outside of training, where finished parts are
# files already, both signals end the process at once. If one of many processes gets the signal, all save together at
# the end of the next block.
#
# Python calls handlers of signals only in the main thread, which may wait for the device or the compiler for minutes.
# So a thread answers: the signal itself writes its number to a pipe.


class Watch:
    """The signals that `came` so far; calling it tells every process whether the run ends.

    `stopping` names at a signal the next action of the process, `saved` at a second Ctrl-C the work that is saved.
    """

    def __init__(self) -> None:
        self.came: list[int] = []
        self.stopping: Callable[[], str] = lambda: "stopping after this step"
        self.saved: Callable[[], str] = lambda: "the same command continues from the last checkpoint"
        self._asked: Callable[[], bool] = anyone_before(lambda: bool(self.came))

    def __call__(self) -> bool:
        return self._asked()

    def passed(self, arrays: Any = ()) -> bool:
        """Waits for arrays; returns False as soon as a signal came. Many processes wait to the end."""
        if several():
            jax.block_until_ready(arrays)
            return True
        pause = 1e-4
        while not self.came and not all(leaf.is_ready() for leaf in jax.tree.leaves(arrays)):
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        return not self.came

    def leave(self) -> NoReturn:
        """Raises KeyboardInterrupt if Ctrl-C came, else SystemExit with status 143: SIGTERM came, perhaps to another."""
        if signal.SIGINT in self.came:
            raise KeyboardInterrupt
        raise SystemExit(128 + signal.SIGTERM)


@contextlib.contextmanager
def watch_signals() -> Iterator[Watch]:
    """Yields a `Watch`; within the block SIGTERM and a first Ctrl-C do not end the process.

    Outside the main thread Python allows no handler: the signals keep their meaning, and the answer is always no.
    """
    watched = Watch()
    if threading.current_thread() is not threading.main_thread():
        yield watched
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    thread = threading.Thread(target=_answer, args=(reading, watched), daemon=True)
    thread.start()
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda one, _: watched.came.append(one)) for number in numbers}
    pipe_before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield watched
    finally:
        signal.set_wakeup_fd(pipe_before)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(writing)
        thread.join()
    if anyone(watched.came):  # the signal came in the last block: the run is finished, but nothing else should begin
        watched.leave()


def _answer(reading: int, watched: Watch) -> None:
    """Answers each signal on standard error; ends the process at a second Ctrl-C."""
    answered: list[int] = []
    with open(reading, "rb", buffering=0) as numbers:
        while number := numbers.read(1):
            name = {signal.SIGTERM: "SIGTERM", signal.SIGINT: "Ctrl-C"}.get(number[0])
            if name is None:
                continue
            if number[0] == signal.SIGINT and signal.SIGINT in answered:
                log.error("Ended at once by a second Ctrl-C; %s.", watched.saved())
                sys.stdout.flush()
                os._exit(128 + signal.SIGINT)
            if not answered:
                time.sleep(0.05)  # the main thread may just have begun the next steps
                log.warning("%s: %s. (A second Ctrl-C ends at once.)", name, watched.stopping())
            answered.append(number[0])
