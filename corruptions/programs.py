"""Compiled programs a process keeps: few enough for the kernel.

On a CPU, XLA gives each compiled program memory maps of its own: 2 for a single product, 140 for a
large corruption. Linux allows a process 65,530 maps (`vm.max_map_count`), and one that asks for
more dies of a segmentation fault inside the compiler: after some 460 large programs, which many
image sizes reach. So the maps are counted after new programs were compiled, and programs are
forgotten when half the limit is reached; what is needed again is compiled again.
"""

import pathlib

import jax

_MAPS = pathlib.Path("/proc/self/maps")
_LIMIT = pathlib.Path("/proc/sys/vm/max_map_count")
_EVERY = 16  # programs between two counts, which take 1 ms for 1,000 maps: no more than 2,240 maps
_COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"
_FORGET: list = []
_compiles = 0
_counted_at = 0


def memory_maps():
    """The number of memory maps of this process, or None where the system does not tell."""
    if not _MAPS.exists():
        return None
    with _MAPS.open("rb") as lines:
        return sum(1 for _ in lines)


def most_maps():
    """The number of memory maps at which programs are dropped: half of what the kernel allows a
    process.
    """
    return int(_LIMIT.read_text()) // 2 if _LIMIT.exists() else 65530 // 2


def on_drop(forget):
    """Has `forget()`, which drops compiled programs of this library, called when there are too
    many.
    """
    _FORGET.append(forget)


def bound(most=None):
    """Forgets compiled programs when this process holds too many memory maps.

    `corrupt` and `augment` call it; long work that compiles much besides may do so too. It costs
    nothing unless 16 programs were compiled since maps were counted, or one where `most` is given.
    The library's own programs go first, all of them, for JAX cannot name the oldest; then, where
    that is not enough, those of the whole process (`jax.clear_caches`). Arrays and programs that
    run at the moment stay as they are.

    Args:
      most: the number of maps not to exceed; by default `most_maps()`.

    Returns:
      Whether programs were forgotten; False where maps cannot be counted.
    """
    global _counted_at
    if _compiles - _counted_at < (_EVERY if most is None else 1):
        return False
    _counted_at = _compiles
    most = most_maps() if most is None else most
    if not _MAPS.exists() or memory_maps() < most:
        return False
    for forget in _FORGET:
        forget()
    # Half the bound, or the few programs that are left would have everything forgotten again soon.
    if memory_maps() > most // 2:
        jax.clear_caches()
    return True


def _count_compile(event, duration_secs, **details):
    global _compiles
    del duration_secs, details
    _compiles += event == _COMPILE_EVENT


jax.monitoring.register_event_duration_secs_listener(_count_compile)
