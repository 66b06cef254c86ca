"""How the programs of tests are compiled: in a fraction of the time that users' programs take.

Compiling would be most of the suite's time. Without the slower of XLA's two makers of fused loops, without splitting a
program over threads and without LLVM's optimisations it is a third. Workers that share the cores compute each on one.
Where JAX_DISABLE_MOST_OPTIMIZATIONS is set, as it is for slow tests, everything is compiled as users' programs are.
"""

import importlib.metadata
import os
import sys

LEVEL = "JAX_DISABLE_MOST_OPTIMIZATIONS"
_FLAGS = "--xla_cpu_parallel_codegen_split_count=1 --xla_cpu_multi_thread_eigen=false"
if tuple(map(int, importlib.metadata.version("jaxlib").split(".")[:2])) < (0, 11):  # 0.12 ends a process that names it
    _FLAGS = f"--xla_cpu_use_fusion_emitters=false {_FLAGS}"


def apply() -> None:
    """Sets this up for a process that has not imported JAX, and but for LLVM's optimisations for
    the scripts it starts: most of them train, and their training takes longer without.
    """
    if LEVEL in os.environ:
        return
    assert "jax" not in sys.modules, "JAX reads how to compile when it is imported: apply this before"
    os.environ[LEVEL] = "1"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_FLAGS}".strip()
    import jax  # noqa: F401 - asks for the level, once

    del os.environ[LEVEL]


def environment() -> dict[str, str]:
    """Gives the environment of a script that compiles as the tests do: one that compiles much, or
    whose results are compared with a test's byte for byte.
    """
    return os.environ | {LEVEL: os.environ.get(LEVEL, "1")}
