"""Compiled programs: the first call of each runs alone, and a process keeps a bounded number of them, taken from disk where
`program_store` has them.

On a CPU, XLA gives each compiled program memory maps of its own: 2 for a single product, 140 for a large corruption.
Linux allows a process 65,530 maps (`vm.max_map_count`); one more, and the compiler dies of a segmentation fault: after
some 460 large programs, as many image sizes need. So maps are counted after new programs were compiled, and at half the
limit programs are dropped. JAX compiles them again when they are needed.
"""

import contextlib
import functools
import pathlib
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from corruptions.core import program_store
from corruptions.primitives import staging

# Programs that have been called, hence compiled; a lock for each program that is called for the first time.
_compiled: set[Hashable] = set()
_first_calls: dict[Hashable, threading.Lock] = {}
QUICK_TO_COMPILE = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
    "xla_llvm_disable_expensive_passes": True,
}
"""Options of a compiler with which a CPU compiles in 40 % less time, to programs that may run slower."""
_SLOW_COMPILE = 2.0  # seconds until a message on a terminal

_MAPS = pathlib.Path("/proc/self/maps")
_LIMIT = pathlib.Path("/proc/sys/vm/max_map_count")
_EVERY = 16  # programs between two counts of maps: a count takes 1 ms for 1,000 maps, 16 programs add at most 2,240
_COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"
_clear_caches: list[Callable[[], Any]] = [_compiled.clear, _first_calls.clear]
# Programs that JAX took from its own cache: what `serialize` makes of one cannot run (jaxlib 0.10.2, CPU).
_TAKEN_EVENT = "/jax/compilation_cache/cache_hits"
_taken = 0
_compiles = 0
_counted_at = 0


def jitted(function: Callable[..., Any], static: Sequence[str] = (), **settings: Any) -> "Program":
    """Makes `jax.jit` of a function with static arguments, whose programs `bound_programs` drops.

    Static arguments are given by name. On a CPU the programs of its concrete arrays are kept on disk (`program_store`).
    """
    return Program(function, static, settings)


class Program:
    """A function of `jitted`: `(*arrays, **static)`. It has the attributes of `jax.jit`'s, such as `lower`."""

    def __init__(self, function: Callable[..., Any], static: Sequence[str], settings: Mapping[str, Any]) -> None:
        compiled: Any = jax.jit(function, static_argnames=static, **settings)
        self._compiled = compiled
        self._name, self._settings = f"{function.__module__}.{function.__qualname__}", dict(settings)
        self._ready: dict[Hashable, Callable[..., Any]] = {}
        _clear_caches.extend([compiled.clear_cache, self._ready.clear])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiled, name)

    def __call__(self, *arrays: Any, **static: Any) -> Any:
        leaves, tree = jax.tree.flatten(arrays)
        types = program_store.types(leaves)
        kept = types is not None and program_store.folder() is not None
        context = program_store.context() if kept else None
        if context is None:
            return self._compiled(*arrays, **static)
        program = tuple(static.items()), tree, types, context
        ready = self._ready.get(program)
        if ready is None:
            ready = self._ready.setdefault(program, self._made(arrays, static, str((tree, types))))
        return ready(*arrays)

    def _made(self, arrays: tuple[Any, ...], static: dict[str, Any], described: str) -> Callable[..., Any]:
        """Returns the program of these arrays: from disk, or compiled and put there where that is possible."""
        entry = program_store.entry(self._name, self._settings, static, described)
        if entry is None:
            return functools.partial(self._compiled, **static)
        found = program_store.load(entry)
        if found is not None:
            with contextlib.suppress(jax.errors.JaxRuntimeError):  # an entry that cannot run is made again
                jax.block_until_ready(found(*arrays))
                return found
        taken = _taken
        with staging.on_platform("cpu"):  # no other has a folder of programs
            found = self._compiled.lower(*arrays, **static).compile()
        if _taken == taken:
            program_store.store(entry, found)
        return found


@contextlib.contextmanager
def first_call(program: Hashable) -> Iterator[None]:
    """Runs the first call of a program, which compiles it, alone: threads that start together would each compile it.

    A terminal gets a message when that takes more than two seconds.
    """
    if program in _compiled:
        yield
        return
    with _first_calls.setdefault(program, threading.Lock()):
        told = threading.Timer(_SLOW_COMPILE, print, ("compiling (once) ...",), {"file": sys.stderr, "flush": True})
        told.daemon = True
        if program not in _compiled and sys.stderr is not None and sys.stderr.isatty():
            told.start()
        try:
            yield
        finally:
            told.cancel()
        _compiled.add(program)


@functools.cache
def compiles_with(platform: str | None, *options: tuple[str, Any]) -> bool:
    """Tells whether the compiler of a platform, None for the default one, knows options (name, value); versions differ."""
    try:
        with jax.default_device(jax.local_devices(backend=platform)[0]):
            jax.jit(jnp.negative, compiler_options=dict(options)).lower(0.0).compile()
    except Exception:  # noqa: BLE001 - backends disagree on the type
        return False
    return True


def memory_maps() -> int | None:
    """Counts the memory maps of this process; None where the system does not tell."""
    if not _MAPS.exists():
        return None
    with _MAPS.open("rb") as lines:
        return sum(1 for _ in lines)


def most_maps() -> int:
    """Returns the number of memory maps at which programs are dropped: half the kernel's limit."""
    return int(_LIMIT.read_text()) // 2 if _LIMIT.exists() else 65530 // 2


def bound_programs(most: int | None = None) -> bool:
    """Drops compiled programs when this process holds too many memory maps.

    `corrupt` and `augment` call it; long work that compiles much besides may do so too. It costs nothing unless 16
    programs were compiled since the last count, or one if `most` is given. The library drops all its own programs
    first, because JAX cannot name the oldest; if that is not enough, it drops the programs of the whole process
    (`jax.clear_caches`). Arrays and running programs stay.

    `most` is the number of maps not to exceed, by default `most_maps()`. Returns whether programs were dropped; False
    where maps cannot be counted.
    """
    global _counted_at
    if _compiles - _counted_at < (_EVERY if most is None else 1):
        return False
    _counted_at = _compiles
    most = most_maps() if most is None else most
    maps = memory_maps()
    if maps is None or maps < most:
        return False
    for clear_cache in _clear_caches:
        clear_cache()
    # Half the bound, or the few programs that are left would soon reach it again.
    if (memory_maps() or 0) > most // 2:
        jax.clear_caches()
    return True


def _count_compile(event: str, duration_secs: float, **details: Any) -> None:
    global _compiles
    del duration_secs, details
    _compiles += event == _COMPILE_EVENT


def _count_taken(event: str, **details: Any) -> None:
    global _taken
    del details
    _taken += event == _TAKEN_EVENT


jax.monitoring.register_event_duration_secs_listener(_count_compile)
jax.monitoring.register_event_listener(_count_taken)
