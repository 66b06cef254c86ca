"""Arrays that a compiler computes once, and loops and look-ups that it compiles well."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

_portable = jax.make_user_context(False)  # a part of the key of JAX's caches
_platform = jax.make_user_context("")  # the one that a function is traced for


def portable() -> contextlib.AbstractContextManager[Any]:
    """Makes a context in which corruptions are traced in one form, for any platform.

    Elsewhere JAX chooses among forms for a CPU, CUDA and a TPU when it compiles. Compilers that take JAX's own programs,
    such as jax2onnx, know no such choice. Pixels are those of the other forms but for rounding; on a CPU they may take
    several times as long.
    """
    return _portable(True)


def on_platform(name: str) -> contextlib.AbstractContextManager[Any]:
    """Makes a context in which corruptions are traced for one platform alone: `cpu`, `cuda` or `tpu`.

    The program is the one that a platform gets of all forms; tracing the forms of the others takes two fifths of the time.
    """
    return _platform(name)


def by_platform(*arrays: Any, default: Callable[..., Any], **forms: Callable[..., Any]) -> Any:
    """Computes the form of the platform that a program is compiled for, as `jax.lax.platform_dependent`; `default` in
    `portable`. In `on_platform` no other form is traced.
    """
    if _portable.value:
        return default(*arrays)
    if _platform.value:
        return forms.get(_platform.value, default)(*arrays)
    return jax.lax.platform_dependent(*arrays, default=default, **forms)


def loop(number: int, body: Callable[..., Any], start: Any, unroll: int | bool = 1) -> Any:
    """Computes `jax.lax.fori_loop(0, number, body, start, unroll=unroll)`; in `portable` without a loop."""
    if not _portable.value:
        return jax.lax.fori_loop(0, number, body, start, unroll=unroll)
    for k in range(number):
        start = body(k, start)
    return start


def stage(x: jax.Array) -> jax.Array:
    """Computes `x` once and keeps it in memory.

    XLA fuses an array into every array that reads it and then computes it again for each element read: many times
    over for a stencil after a stencil, or for a plane shared by three channels. TPUs and GPUs respect an optimization
    barrier. CPUs drop it before they fuse, but fuse nothing across the border of a loop: hence two rounds that change
    nothing, which the compiler cannot know.
    """

    def rounds(x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 2, lambda round_number, x: jnp.where(round_number > 1, jnp.zeros_like(x), x), x)

    return by_platform(x, cpu=rounds, default=jax.lax.optimization_barrier)


def stage_on_cpu(x: jax.Array) -> jax.Array:
    """Stages `x` on a CPU, and does nothing elsewhere."""
    return by_platform(x, cpu=stage, default=lambda x: x)


def by_channels(function: Callable[[slice], jax.Array]) -> jax.Array:
    """Computes `function(channels)`, [H, W, n], of red, green and blue.

    A CPU computes one channel after another: a single image takes half as long as with all at once. Others compute all
    at once: a TPU needs a quarter of the memory or less, by its compiler's model.
    """
    return by_platform(
        cpu=lambda: jnp.concatenate([function(slice(i, i + 1)) for i in range(3)], -1),
        default=lambda: function(slice(0, 3)),
    )


def varying_zeros(shape: Sequence[int], like: jax.Array) -> jax.Array:
    """Makes float32 zeros that differ between devices if `like` does, for the start of a loop.

    `jax.shard_map` requires a loop carry that varies over devices from the first iteration.
    """
    return jax.lax.full_like(like, 0, jnp.float32, tuple(shape))


def largest(count: jax.Array) -> jax.Array:
    """Returns a count, int32 >= 0; under `vmap`, except in `portable`, the largest of the batch, elementwise for arrays.

    For bounds on work that changes nothing where an image needs less of it: a `lax.cond` or a loop on a bound shared
    by the batch skips the work. On a bound per image it would always be done.
    """
    return count if _portable.value else _largest(count)


@jax.custom_batching.custom_vmap
def _largest(count: jax.Array) -> jax.Array:
    return count


@_largest.def_vmap
def _largest_of_batch(number: int, batched: Any, count: jax.Array) -> tuple[jax.Array, bool]:
    del number, batched
    return _largest(jnp.max(count, axis=0, initial=0)), False


def look_up(table: jax.Array, index: jax.Array) -> jax.Array:
    """Reads `table` [n] at each index, int32 [...] in 0..n-1: entries [...].

    Indices are flattened: a TPU's compiler takes three times as long for two axes.
    """
    return jnp.take(table, index.ravel(), mode="clip").reshape(index.shape)
