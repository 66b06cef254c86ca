"""An NVIDIA H200 that is not there, described to XLA's compiler for GPUs.

Three things stand in the way of compiling for a GPU without one: JAX looks for a driver, does not
know the name of the platform (jax-ml/jax issue 23971), and the compiler would try its kernels out.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import jax
from jax.experimental import topologies

H200_MEMORY = 151_397_597_184
_NAME = "NVIDIA H200 141GB HBM3e"
# A GpuTargetConfigProto, from the maker's data sheet and CUDA's limits for compute capability 9.0.
H200 = f"""
gpu_device_info {{
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152 shared_memory_per_core: 233472
  threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 4800000000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: {H200_MEMORY}
  shared_memory_per_block_optin: 232448
  cuda_compute_capability {{ major: 9 feature_extension: ACCELERATED_FEATURES }}
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  device_vendor: "NVIDIA Corporation" name: "{_NAME}"
  driver_version: "13.0.0" runtime_version: "12.8.0" compile_time_toolkit_version: "12.8.0" dnn_version: "9.10.0"
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 10 patch: 0 }}
runtime_version {{ major: 12 minor: 8 patch: 0 }}
device_description_str: "{_NAME}"
"""
"""As the compiler is told of it."""
# Without a device nothing can be tried out, and with Triton some products then find no tile.
OPTIONS = {"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False}
"""Of the compiler."""


def describe(topology: str) -> Sequence[Any]:
    """Describes H200s in one machine.

    Args:
      topology: `1x1xN`, N of them.
    """
    os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")
    with known():
        return topologies.get_topology_desc(
            platform="cuda", topology_name="h200", target_config=H200, topology=topology
        ).devices


@contextlib.contextmanager
def known() -> Iterator[None]:
    """While the block runs, JAX takes "cuda" for a platform without a device of it."""
    from jax._src import xla_bridge

    jax.devices()  # finds the platforms that are there, by their own names
    own = xla_bridge.canonicalize_platform

    def canonical(platform):
        return "cuda" if platform in ("cuda", "gpu") else own(platform)

    with mock.patch.object(xla_bridge, "canonicalize_platform", canonical):
        yield
