"""How often XLA compiled each of our programs, so that a program that is compiled twice is
noticed.
"""

import collections
import contextlib
import os
import pathlib
from collections.abc import Iterator

import jax

_EVENT = "/jax/core/compile/backend_compile_duration"


@contextlib.contextmanager
def counting() -> Iterator[collections.Counter[str]]:
    """Yields a Counter that grows while the context lasts: name of the jitted function -> times it
    was compiled.

    A program that comes out of the compilation cache on disk counts too, since without it the cache
    would be asked as often. Names are as JAX has them, without the `jit(...)` around.
    """
    counts = collections.Counter()

    def listen(event, duration, **details):
        del duration
        if event == _EVENT:
            counts[details["fun_name"].removeprefix("jit(").removesuffix(")")] += 1

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield counts
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def cache_folder() -> pathlib.Path:
    """Names the folder for what any process may use again."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "jax-corruptions"


def enable_compilation_cache() -> None:
    """Keeps compiled programs between processes, unless the user configured JAX's cache otherwise.

    Small ones too, which JAX by itself compiles anew: a study runs some eighty, a few kB each.
    """
    if jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "xla"))
        if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
