"""Control over what the compiler computes once and what it computes again."""

import jax
import jax.numpy as jnp


def stage(x: jax.Array) -> jax.Array:
    """Computes `x` once and keeps it in memory.

    XLA fuses an array into every array that reads it and then works it out again for each element
    read: for a stencil after a stencil, or a plane shared by three channels, many times over.
    (`lax.optimization_barrier` does not stop it: on CPUs it is gone before fusion.) Nothing is
    fused across the border of a loop, hence this one: two rounds that change nothing, which the
    compiler cannot know. TPUs and GPUs keep to the barrier, and are spared the loop.
    """

    def rounds(x):
        return jax.lax.fori_loop(0, 2, lambda round_number, x: jnp.where(round_number > 1, jnp.zeros_like(x), x), x)

    return jax.lax.platform_dependent(x, cpu=rounds, default=jax.lax.optimization_barrier)


def in_turn(*arrays: jax.Array) -> tuple[jax.Array, ...]:
    """Has a TPU compute all of these arrays before anything that is made of what this returns.

    Work that could be done at the same time, as several look-ups, then keeps less in memory.
    Elsewhere it changes nothing: the compilers there fuse that work.
    """

    def one_after_another(*arrays):
        return jax.lax.optimization_barrier(arrays)

    return jax.lax.platform_dependent(*arrays, tpu=one_after_another, default=lambda *arrays: arrays)


def stage_on_cpu(x: jax.Array) -> jax.Array:
    """Does what `stage` does on a CPU, and nothing elsewhere."""
    return jax.lax.platform_dependent(x, cpu=stage, default=lambda x: x)


@jax.custom_batching.custom_vmap
def largest(count: jax.Array) -> jax.Array:
    """Gives a count, int32 from 0 on; under `vmap` the largest of the batch, which all images share (of
    an array, number by number).

    For a bound on work that changes nothing where an image needs less of it: `lax.cond` and loops
    then leave the work out, where with a bound of each image's own all of it would be done.
    """
    return count


@largest.def_vmap
def _largest_of_batch(number, batched, count):
    del number, batched
    return largest(jnp.max(count, axis=0, initial=0)), False
