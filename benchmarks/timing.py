"""The timing harness of all benchmarks: repetitions behind a warm-up, medians and quartiles, memory, the machine; tables.

Every result is waited for (`jax.block_until_ready`). The first call of a work is its warm-up: it compiles and counts apart.
Then the work is repeated 20 times, or fewer times (at least 3) once they have taken a second. Several works are repeated in
turn, so that other load on the machine affects all works alike; a peer in a separate process is one of the works.
"""

import ctypes
import functools
import gc
import json
import os
import pathlib
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.experimental.compilation_cache import compilation_cache

from corruptions.core.dispatch import cpu_count
from models import costs
from runtime import artifacts, meshes
from runtime.files import write_atomically

REPETITIONS, SECONDS, FEWEST = 20, 1.0, 3
PEERS = pathlib.Path(__file__).with_name("peers")
_PROCESS = pathlib.Path("/proc/self")
PACKAGES = ("jax", "jaxlib", "flax", "optax", "numpy", "jax-cuda12-plugin", "jax-cuda13-plugin", "libtpu")
PEAK = {  # device_kind of JAX (the first prefix that fits) -> dense bfloat16 FLOP/s in the makers' data sheets
    **{"NVIDIA H100": 989e12, "NVIDIA H200": 989e12, "NVIDIA A100": 312e12},
    **{"TPU v4": 275e12, "TPU v5 lite": 197e12, "TPU v5e": 197e12, "TPU v5p": 459e12, "TPU v5": 459e12},
    **{"TPU v6 lite": 918e12, "TPU v6e": 918e12},
}
_SIDE = 2048  # side of the matrices whose product measures a CPU's peak


class Spent(NamedTuple):
    """Seconds of one call: by the clock, and CPU seconds of all threads."""

    wall: float
    cpu: float


class Times(NamedTuple):
    """Seconds of a work: its first call, and its repetitions [R]."""

    first: Spent
    wall: np.ndarray
    cpu: np.ndarray

    @property
    def seconds(self) -> list[float]:
        """Lower quartile, median and upper quartile by the clock."""
        return [float(value) for value in np.percentile(self.wall, (25, 50, 75))]

    @property
    def median(self) -> Spent:
        """Median of the repetitions."""
        return Spent(float(np.median(self.wall)), float(np.median(self.cpu)))

    @property
    def compiling(self) -> Spent:
        """Seconds that the first call took beyond the median."""
        return Spent(*(max(0.0, first - later) for first, later in zip(self.first, self.median)))

    def record(self, images: int) -> dict[str, Any]:
        """Makes a JSON-ready record for a work on a number of images."""
        return {
            "images_per_second": images / self.median.wall,
            "seconds": self.seconds,
            "cpu_seconds": self.median.cpu,
            "repetitions": len(self.wall),
            "compile_seconds": self.compiling.wall,
            "compile_cpu_seconds": self.compiling.cpu,
        }


def spend(work: Callable[[int], Any], turn: int) -> Spent:
    """Measures one call. A work that returns `Spent` measured itself, in another process."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = jax.block_until_ready(work(turn))
    return result if isinstance(result, Spent) else Spent(time.perf_counter() - wall, time.process_time() - cpu)


def measure(works: Mapping[str, Callable[[int], Any]], rounds: int = 0) -> dict[str, Times]:
    """Measures works in turn; a work takes the number of the repetition, 0 in its first call too.

    `rounds` is the number of repetitions of each; 0 follows the module's rule for the first work.
    """
    first = {name: spend(work, 0) for name, work in works.items()}
    leading, spent = next(iter(works)), {name: [] for name in works}

    def enough():
        times = spent[leading]
        by_rule = len(times) >= REPETITIONS or (len(times) >= FEWEST and sum(t.wall for t in times) >= SECONDS)
        return len(times) >= rounds if rounds else by_rule

    while not enough():
        for name, work in works.items():
            spent[name].append(spend(work, len(spent[name])))
    return {name: Times(first[name], *np.array(times).T) for name, times in spent.items()}


def keep_programs(keep: bool) -> None:
    """Switches JAX's cache of programs on disk: a program that is read from it takes no time to compile."""
    if jax.config.jax_enable_compilation_cache != keep:
        jax.config.update("jax_enable_compilation_cache", keep)
        compilation_cache.reset_cache()  # JAX reads the setting once


def process_memory(work: Callable[[], Any]) -> int | None:
    """Measures by how many bytes the process grows at most during a work; None on other systems than Linux."""
    if not (_PROCESS / "clear_refs").exists():
        jax.block_until_ready(work())
        return None
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # memory that earlier programs freed would hide this program's need
    (_PROCESS / "clear_refs").write_text("5")  # forgets the peak so far
    before = _kibibytes("VmRSS")
    jax.block_until_ready(work())
    return 1024 * max(0, _kibibytes("VmHWM") - before)


def _kibibytes(field):
    status = (_PROCESS / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith(f"{field}:"))


def program_memory(compiled: jax.stages.Compiled) -> int:
    """Adds up the bytes that a compiled program holds at most: arguments, results, temporaries."""
    of = compiled.memory_analysis()
    return of.argument_size_in_bytes + of.output_size_in_bytes + of.temp_size_in_bytes - of.alias_size_in_bytes


def machine() -> dict[str, Any]:
    """Describes the device and the code, JSON-ready: all that results may depend on."""
    device = jax.devices()[0]
    stats = device.memory_stats() or {}
    return {
        "device": device.device_kind if device.platform != "cpu" else processor(),
        "platform": device.platform,
        "devices": len(jax.devices()),
        "driver": device.client.platform_version,
        "memory_bytes": stats.get("bytes_limit"),
        "cores": cpu_count(),
        "system": platform.platform(),
        "versions": {name: found for name, found in artifacts.versions(PACKAGES).items() if found != "not installed"},
        "optimization_level": jax.config.jax_optimization_level,
        "revision": artifacts.git_revision(),
    }


def limits() -> dict[str, str]:
    """Reads power and clock limits of the first GPU from nvidia-smi; empty without it."""
    fields = (
        "driver_version,power.limit,power.max_limit,clocks.max.sm,clocks.max.mem,clocks.sm,temperature.gpu,memory.total"
    )
    if not shutil.which("nvidia-smi"):
        return {}
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader", "--id=0"]
    done = subprocess.run(command, capture_output=True, text=True)
    values = [value.strip() for value in done.stdout.split(",")]
    return dict(zip(fields.split(","), values)) if done.returncode == 0 else {}


def processor() -> str:
    """Names the CPU, on Linux; elsewhere its architecture."""
    information = pathlib.Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def title() -> str:
    """Describes the machine in a line, for the head of a table."""
    return (
        f"{processor()}, {os.cpu_count()} cores, {jax.devices()[0].device_kind}, JAX {jax.__version__}, "
        f"Python {platform.python_version()}, revision {artifacts.short(artifacts.git_revision())}"
    )


def training_flops(name: str, image_size: int = 32, num_classes: int = 10, **options: Any) -> int:
    """Counts the operations of a training step per image: three forward passes, less the first layer's input gradient.

    Multiplications and additions of convolutions and matrix products count one each. Elementwise work is not counted, as
    usual for a chip's utilisation.
    """
    forward = [2 * product.multiply_adds for product in costs.products(name, image_size, num_classes, **options)]
    return 3 * sum(forward) - forward[0]


@functools.cache
def peak_flops() -> tuple[float, str]:
    """Returns the peak of all devices, FLOP/s, and its source; raises ValueError for an accelerator that is not listed."""
    devices = jax.devices()
    if devices[0].platform == "cpu":
        each = meshes.batch_sharding(meshes.data_mesh())
        matrices = jax.device_put(np.ones((len(devices), _SIDE, _SIDE), np.float32), each)
        product = jax.jit(lambda a: a @ a)
        least = float(measure({"": lambda _: product(matrices)}, 5)[""].wall.min())
        source = f"float32 products of {_SIDE} x {_SIDE} matrices, one on each of {len(devices)} JAX devices, measured"
        return 2 * len(devices) * _SIDE**3 / least, source
    kind = devices[0].device_kind
    for name, value in PEAK.items():
        if kind.startswith(name):
            return value * len(devices), f"{value / 1e12:.0f} TFLOP/s in bfloat16 for each {kind}, its maker's number"
    raise ValueError(f"expected a device among {', '.join(PEAK)}, found {kind!r}")


PEER_COLUMNS = ("torch images/s", "torch CPU images/s", "ours / torch", "CPU, ours / torch")


def on_cores(given: Any, script: str) -> tuple[int, "Peer | None"]:
    """Keeps this process to --threads cores and starts the script of --peer_python there: (threads, peer or None)."""
    if given.threads:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.threads])  # the peer inherits it
    meshes.use_all_cores()
    threads = len(os.sched_getaffinity(0))
    return threads, Peer(given.peer_python, script, f"--threads={threads}") if given.peer_python else None


class Peer:
    """A script of benchmarks/peers in a Python that has its packages, which answers JSON lines with JSON lines.

    A context manager; `hello` is its first line, such as {"version": ...}.
    """

    def __init__(self, python: str, script: str, *arguments: str):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen([python, str(PEERS / script), *arguments], **pipes)
        self.hello = self._read()

    def spend(self, **request: Any) -> Spent | None:
        """Asks for a measurement: None where the peer lacks the work; raises RuntimeError where the peer ended."""
        print(json.dumps(request), file=self._process.stdin, flush=True)
        answer = self._read()
        return Spent(*answer) if answer else None

    def _read(self):
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"expected an answer of {self._process.args}, found exit code {self._process.wait()}")
        return json.loads(line)

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait()


def markdown(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Writes a table."""
    head, *lines = ("| " + " | ".join(map(str, line)) + " |\n" for line in (header, *rows))
    return "".join([head, "|" + "---|" * len(header) + "\n", *lines])


def columns_of(text: str, *names: str) -> list[tuple[str, ...]]:
    """Reads columns of the table of a page by their titles, a tuple a row."""
    header, *rows = _cells(text)
    return [tuple(row[header.index(name)] for name in names) for row in rows]


def _cells(text):
    lines = (line for line in text.splitlines() if line.startswith("| "))
    return [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in lines]


def continued(
    out: str, top: str, header: Sequence[str], names: Sequence[str], measure: Callable[[str], Sequence[object]]
) -> list[list[str]]:
    """Measures the rows that a table lacks, prints each and writes it to the file at once; returns the cells of all rows.

    `out` is the Markdown file to write or to continue; "" only prints. `top` is the text above the table, which tells
    machine and sizes; a file with another one is refused (ValueError). `names` are the first cells, `measure` gives the
    others. Rows of other names stay in the file, after these.
    """
    path, empty = pathlib.Path(out), f"{top}\n{markdown(header, [])}"
    text = path.read_text() if out and path.exists() else empty
    if not text.startswith(empty):
        raise ValueError(
            f"expected measurements of this machine, revision and size in {out}, found others: remove it, or give another --out"
        )
    rows = {cells[0]: cells for cells in _cells(text.removeprefix(empty))}
    for name in names:
        if name not in rows:
            rows[name] = [name, *map(str, measure(name))]
            print(*rows[name], sep=" | ", flush=True)
            if out:
                order = dict.fromkeys((*(n for n in names if n in rows), *rows))
                write_atomically(path, f"{top}\n{markdown(header, [rows[n] for n in order])}")
    return [rows[name] for name in names]
