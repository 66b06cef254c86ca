"""How often XLA compiled each of our programs, so that a program that is compiled twice is noticed."""

import collections
import contextlib

import jax

_EVENT = "/jax/core/compile/backend_compile_duration"


@contextlib.contextmanager
def counting():
    """Yields a Counter that grows while the context lasts: name of the jitted function -> times it was compiled.

    A program that comes out of the compilation cache on disk counts too, since without it the cache would be asked as
    often. Names are as JAX has them, without the `jit(...)` around.
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
