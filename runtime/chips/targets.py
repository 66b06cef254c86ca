"""Chips that are not there: how their compilers are told of them, and what their makers say of them."""

import contextlib
import dataclasses
import importlib.metadata
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

import jax
from jax.experimental import topologies

from runtime.chips import gpus
from runtime.chips.costs import Costs

_LAUNCH = 3e-6  # seconds that a kernel of a GPU takes at least
_ACCOUNT = 1  # of `seconds`: one more with every change of what it, `costs` or `hlo` count
# JAX's options that say how much time compilers may take, which all of their programs depend on.
EFFORT = ("jax_optimization_level", "jax_exec_time_optimization_effort", "jax_memory_fitting_effort")
# device_kind as JAX names it (the first part that fits) -> bfloat16 FLOP/s, dense, from the makers'
# data sheets
PEAK = {
    "NVIDIA H100": 989e12,
    "NVIDIA H200": 989e12,
    "NVIDIA A100": 312e12,
    "TPU v4": 275e12,
    "TPU v5 lite": 197e12,
    "TPU v5e": 197e12,
    "TPU v5p": 459e12,
    "TPU v5": 459e12,
    "TPU v6 lite": 918e12,
    "TPU v6e": 918e12,
}


@dataclasses.dataclass(frozen=True)
class Target:
    """A kind of chip.

    Attributes:
      backend: as `jax.default_backend()` answers there.
      kind: as `PEAK` lists it.
      compiler_package: the distribution that brings the compiler.
      remedy: how to install it.
      topologies: {chips: the name of a described machine with as many}.
      bandwidth: of the large memory, bytes a second.
      clock: cycles a second of the compiler's estimates; 0 where it makes none.
      memory: bytes that JAX may use by default.
      described: what else the compiler is told.
    """

    backend: str
    kind: str
    compiler_package: str
    remedy: str
    topologies: Mapping[int, str]
    bandwidth: float
    clock: float
    memory: float
    described: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def peak(self) -> float:
        """FLOP/s in bfloat16."""
        return PEAK[self.kind]

    @property
    def installed(self) -> bool:
        """Whether the compiler is there."""
        try:
            importlib.metadata.version(self.compiler_package)
        except importlib.metadata.PackageNotFoundError:
            return False
        return True

    @property
    def model(self) -> str:
        """Says where `seconds` come from."""
        if self.clock:
            return (
                f"the cycles that the compiler estimates, loops multiplied by their trips, at {self.clock / 1e9:.2f} GHz; "
                "gathers cost more than it believes"
            )
        return (
            f"a floor, for its compiler estimates no cycles: the kernels' traffic at {self.bandwidth / 1e9:,.0f} GB/s and "
            f"{_LAUNCH * 1e6:.0f} microseconds a kernel, or the products at {self.peak / 1e12:.0f} TFLOP/s, if that is more; a real "
            "one takes longer"
        )

    def seconds(self, costs: Costs, flops: float) -> float:
        """Computes how long a program takes on a chip, by `model`.

        Args:
          costs: of the program.
          flops: of its products, on one chip.
        """
        if self.clock:
            return costs.cycles / self.clock
        return max(costs.traffic / self.bandwidth + _LAUNCH * costs.kernels, flops / self.peak)

    def compiler(self) -> str:
        """Names the compiler and its version.

        Raises:
          SystemExit: it is not installed.
        """
        if not self.installed:
            raise SystemExit(
                f"expected {self.compiler_package}, the compiler for {self.kind}, found none; {self.remedy}"
            )
        return f"{self.compiler_package} {importlib.metadata.version(self.compiler_package)}"

    def account(self) -> str:
        """Writes all that a number of this chip depends on beside the program: its compiler, what that
        is told, how seconds are counted.

        Raises:
          SystemExit: the compiler is not installed.
        """
        told = (gpus.H200, gpus.OPTIONS) if self.backend == "gpu" else ()
        effort = [getattr(jax.config, name) for name in EFFORT]
        return repr((_ACCOUNT, self.compiler(), self, self.peak, _LAUNCH, told, effort))

    def devices(self, chips: int = 1) -> Sequence[Any]:
        """Describes that many chips.

        Raises:
          ValueError: no described machine has as many.
        """
        if chips not in self.topologies:
            raise ValueError(f"expected {' or '.join(map(str, self.topologies))} chips, found {chips}")
        if self.backend == "gpu":
            return gpus.describe(self.topologies[chips])[:chips]
        # A second process may compile at the same time, and nothing asks for the machine's own chips.
        os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")
        os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
        name = self.topologies[chips]
        return topologies.get_topology_desc(platform=self.backend, topology_name=name, **self.described).devices[:chips]

    @contextlib.contextmanager
    def pretended(self) -> Iterator[None]:
        """While the block runs, `jax.default_backend()` answers as it would on the chip, and JAX
        knows its platform.
        """
        platform = gpus.known() if self.backend == "gpu" else contextlib.nullcontext()
        with mock.patch.object(jax, "default_backend", lambda: self.backend), platform:
            yield

    def lower(self, function: Any, *args: Any, **static: Any) -> jax.stages.Lowered:
        """Lowers a jitted function for abstract arguments whose shardings name described chips."""
        with self.pretended():
            return function.lower(*args, **static)

    def compile(self, lowered: jax.stages.Lowered) -> tuple[jax.stages.Compiled, float]:
        """Compiles what `lower` gave: (program, CPU seconds of the compiler, of all its threads)."""
        with self.pretended(), _without_cache():
            started = time.process_time()
            compiled = lowered.compile(compiler_options=gpus.OPTIONS if self.backend == "gpu" else None)
        return compiled, time.process_time() - started


_TPU = "libtpu", "pip install -e '.[study,compile_tpu]'"
_CUDA = "jax-cuda12-plugin", "pip install -e '.[study]' 'jax[cuda12]', in an environment of its own"
TARGETS = {
    "tpu_v5e": Target(
        *("tpu", "TPU v5e", *_TPU, {1: "v5e:2x2", 4: "v5e:2x2", 8: "v5e:2x4", 16: "v5e:4x4"}),
        *(819e9, 1.5e9, 15.75 * 2**30),
    ),
    "tpu_v4": Target(  # its two cores are one device to JAX
        *("tpu", "TPU v4", *_TPU, {1: "v4:2x2x1", 4: "v4:2x2x1", 16: "v4:2x2x4"}),
        *(1228e9, 1.05e9, 30.75 * 2**30, {"chip_config_name": "megacore"}),
    ),
    # Of its memory JAX takes three quarters at the start.
    "h200": Target("gpu", "NVIDIA H200", *_CUDA, {1: "1x1x1", 8: "1x1x8"}, 4.8e12, 0.0, 0.75 * gpus.H200_MEMORY),
}


@contextlib.contextmanager
def _without_cache():
    """Compiles anew: a program out of a cache would take no time."""
    before = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", before)
