"""Chips that are not there: how their compilers are told of them, and what their makers say of them."""

import contextlib
import dataclasses
import importlib.metadata
import os
import time
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import jax
from jax.experimental import topologies

from benchmarks.flops import PEAK


@dataclasses.dataclass(frozen=True)
class Target:
    """A kind of chip.

    Attributes:
      platform: as JAX lowers for it.
      kind: as `flops.PEAK` lists it.
      topologies: {chips: the name of a described machine with as many}.
      bandwidth: of the large memory, bytes a second.
      clock: cycles a second.
    """

    platform: str
    kind: str
    topologies: dict[int, str]
    bandwidth: float
    clock: float

    @property
    def peak(self) -> float:
        """FLOP/s in bfloat16."""
        return PEAK[self.kind]

    def compiler(self) -> str:
        """Names the compiler and its version.

        Raises:
          SystemExit: it is not installed.
        """
        try:
            return f"libtpu {importlib.metadata.version('libtpu')}"
        except importlib.metadata.PackageNotFoundError:
            raise SystemExit(
                f"expected libtpu, the compiler for {self.kind}, found none; pip install -e '.[study,compile_tpu]'"
            ) from None

    def devices(self, chips: int = 1) -> Sequence[Any]:
        """Describes that many chips.

        Raises:
          ValueError: no described machine has as many.
        """
        if chips not in self.topologies:
            raise ValueError(f"expected {' or '.join(map(str, self.topologies))} chips, found {chips}")
        # A second process may compile at the same time, and nothing asks for the machine's own chips.
        os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")
        os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
        described = topologies.get_topology_desc(platform=self.platform, topology_name=self.topologies[chips])
        return described.devices[:chips]

    def compile(self, function: Callable, *args: Any) -> tuple[jax.stages.Compiled, float]:
        """Compiles a jitted function for abstract arguments whose shardings name described chips.

        `jax.default_backend()` answers for the chip while it is traced, as it would there.

        Returns:
          (program, CPU seconds of the compiler, of all its threads).
        """
        with mock.patch.object(jax, "default_backend", lambda: self.platform):
            lowered = function.lower(*args)
        with _without_cache():
            started = time.process_time()
            compiled = lowered.compile()
        return compiled, time.process_time() - started


TARGETS = {
    "tpu_v5e": Target("tpu", "TPU v5e", {1: "v5e:2x2", 4: "v5e:2x2", 16: "v5e:4x4"}, 819e9, 1.5e9),
    "tpu_v4": Target("tpu", "TPU v4", {1: "v4:2x2x1", 4: "v4:2x2x1", 16: "v4:2x2x4"}, 1228e9, 1.05e9),
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
