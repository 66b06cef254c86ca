"""Describes TPUs and GPUs that this machine lacks to their compilers.

A GPU takes three tricks: JAX looks for a driver, does not know the platform's name without a device (jax-ml/jax issue
23971), and the compiler would time its kernels.
"""

import contextlib
import importlib.metadata
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from unittest import mock

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh

from benchmarks.timing import PEAK

LAUNCH = 3e-6  # least seconds of a GPU's kernel
# Without a device no kernel can be timed, and with Triton some products then find no tile.
_GPU_OPTIONS = {"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False}
# A GpuTargetConfigProto, from the maker's data sheets and CUDA's limits for compute capability 9.0.
_HOPPER = """
gpu_device_info {{
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152 shared_memory_per_core: 233472 threads_per_core_limit: 2048
  core_count: 132 fpus_per_core: 128 block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535 l2_cache_size: 52428800
  memory_bandwidth: {bandwidth:.0f} device_memory_size: {memory} clock_rate_ghz: 1.98 shared_memory_per_block_optin: 232448
  cuda_compute_capability {{ major: 9 feature_extension: ACCELERATED_FEATURES }} registers_per_core_limit: 65536 registers_per_block_limit: 65536
  device_vendor: "NVIDIA Corporation" name: "{name}" driver_version: "13.0.0" runtime_version: "12.8.0" compile_time_toolkit_version: "12.8.0" dnn_version: "9.10.0"
}}
platform_name: "CUDA" device_description_str: "{name}" dnn_version_info {{ major: 9 minor: 10 patch: 0 }} runtime_version {{ major: 12 minor: 8 patch: 0 }}
"""


class Target(NamedTuple):
    """A kind of chip."""

    backend: str  # answer of `jax.default_backend()` on it
    kind: str  # its name
    package: str  # distribution with its compiler
    install: str  # command that installs the compiler
    topologies: Mapping[int, str]  # {chips: name of a described machine with as many}
    host: int  # chips of one host
    peak: float  # FLOP/s in bfloat16
    bandwidth: float  # bytes a second of the large memory
    clock: float  # cycles a second of the compiler's estimates; 0 where it makes none
    memory: float  # bytes that JAX uses by default
    options: Mapping[str, str]  # other parts of the description

    @property
    def model(self) -> str:
        """How `seconds` come about, for a table's legend."""
        if self.clock:
            return f"the cycles that the compiler estimates, at {self.clock / 1e9:.2f} GHz; it estimates too few for gathers"
        floor = f"traffic at {self.bandwidth / 1e9:,.0f} GB/s and {LAUNCH * 1e6:.0f} microseconds a kernel"
        return f"a lower bound, {floor}, or the products at {self.peak / 1e12:.0f} TFLOP/s if these take longer"

    def seconds(self, costs: Mapping[str, float], flops: float) -> float:
        """Computes the time on a chip, by `model`, of a program with these `hlo.totals` and products."""
        if self.clock:
            return costs["cycles"] / self.clock
        return max(costs["traffic"] / self.bandwidth + LAUNCH * costs["kernels"], flops / self.peak)

    def compiler(self) -> str:
        """Names the compiler and its version; raises SystemExit where it is not installed."""
        try:
            return f"{self.package} {importlib.metadata.version(self.package)}"
        except importlib.metadata.PackageNotFoundError:
            expected = f"expected {self.package}, the compiler for {self.kind}"
            raise SystemExit(f"{expected}, found none; {self.install}") from None

    def mesh(self, models: int, chips: int) -> Mesh:
        """Describes a mesh ('model', 'data'); raises ValueError if no described machine has this number of chips."""
        self.compiler()
        machines = [number for number in self.topologies if number >= models * chips]
        if not machines:
            raise ValueError(f"expected at most {max(self.topologies)} chips, found {models * chips}")
        # A second process may compile at the same time; nothing asks for chips or a driver of this machine.
        for name in ("ALLOW_MULTIPLE_LIBTPU_LOAD", "TPU_SKIP_MDS_QUERY", "JAX_SKIP_CUDA_CONSTRAINTS_CHECK"):
            os.environ.setdefault(name, "1")
        platform, key = ("tpu", "topology_name") if self.backend == "tpu" else ("cuda", "topology")
        machine = {key: self.topologies[min(machines)]} | self.options
        with self.pretended():
            devices = topologies.get_topology_desc(platform=platform, **machine).devices[: models * chips]
        return Mesh(np.asarray(devices).reshape(models, chips), ("model", "data"))

    @contextlib.contextmanager
    def pretended(self) -> Iterator[None]:
        """While the block runs, `jax.default_backend()` answers as on the chip, and JAX knows the platform "cuda"."""
        from jax._src import xla_bridge  # no public name changes which platforms JAX knows

        jax.devices()  # JAX finds this machine's own platforms first
        own = xla_bridge.canonicalize_platform

        def canonical(platform):
            return "cuda" if platform in ("cuda", "gpu") else own(platform)

        backend = mock.patch.object(jax, "default_backend", lambda: self.backend)
        with backend, mock.patch.object(xla_bridge, "canonicalize_platform", canonical):
            yield

    def compile(self, program: Any) -> tuple[jax.stages.Compiled, float]:
        """Compiles a `programs.Program` on described chips: (compiled, CPU seconds of the compiler's threads)."""
        cached = jax.config.jax_enable_compilation_cache
        jax.config.update("jax_enable_compilation_cache", False)  # a program from the cache would take no time
        try:
            with self.pretended():
                lowered, started = program.lower(), time.process_time()
                compiled = lowered.compile(compiler_options=_GPU_OPTIONS if self.backend == "gpu" else None)
        finally:
            jax.config.update("jax_enable_compilation_cache", cached)
        return compiled, time.process_time() - started


def _gpu(kind, name, bandwidth, memory):
    install = "pip install -e '.[study]' 'jax[cuda12]', in an environment of its own"
    options = {"topology_name": "gpu", "target_config": _HOPPER.format(name=name, bandwidth=bandwidth, memory=memory)}
    machines = {1: "1x1x1", 8: "1x1x8"}  # JAX takes three quarters of the memory at its start
    return Target(
        "gpu", kind, "jax-cuda12-plugin", install, machines, 8, PEAK[kind], bandwidth, 0.0, 0.75 * memory, options
    )


_TPU = "libtpu", "pip install -e '.[study,compile-tpu]'"
_V5E = {1: "v5e:2x2", 4: "v5e:2x2", 8: "v5e:2x4", 16: "v5e:4x4"}
_V4 = {1: "v4:2x2x1", 4: "v4:2x2x1", 16: "v4:2x2x4"}
_ONE_DEVICE = {"chip_config_name": "megacore"}  # for the two cores of a chip
TARGETS = {
    "v5e": Target("tpu", "TPU v5e", *_TPU, _V5E, 8, PEAK["TPU v5e"], 819e9, 1.5e9, 15.75 * 2**30, {}),
    "v4": Target("tpu", "TPU v4", *_TPU, _V4, 4, PEAK["TPU v4"], 1228e9, 1.05e9, 30.75 * 2**30, _ONE_DEVICE),
    "h100": _gpu("NVIDIA H100", "NVIDIA H100 80GB HBM3", 3.35e12, 84_978_434_048),
    "h200": _gpu("NVIDIA H200", "NVIDIA H200 141GB HBM3e", 4.8e12, 151_397_597_184),
}
