"""To each image of a batch its own of several functions, and none of the others."""

import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

Branch = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]

# Images of a kind go through their corruption in chunks. With four times as many chunks as kinds an
# eighth of the work is filling.
_CHUNKS_PER_KIND = 4
# A TPU computes on fewer images at the cost of so many: ImageNet-C's 15 take it 3.0 times as long an image in
# chunks of 4 as in 128, 1.2 times in chunks of 8 (a v5e by its compiler's model, 224x224).
_LEAST_OF_TPU = 8


def dealt(branches: Sequence[Branch]) -> Callable[..., jax.Array]:
    """Makes `(which, key, severity, image) -> image`, which applies `branches[which]`, or nothing
    where there is no such branch; under `vmap` to each image its own alone.
    """
    none: Branch = lambda key, severity, image: image  # noqa: E731

    @jax.custom_batching.custom_vmap
    def deal(which, key, severity, image):
        return jax.lax.switch(which, (*branches, none), key, severity, image)

    @deal.def_vmap
    def deal_batch(number, batched, which, *rows):
        axes = tuple(0 if split else None for split in batched[1:])
        together = [jax.vmap(branch, axes, axis_size=number) for branch in branches]
        if not batched[0]:
            return jax.lax.switch(which, (*together, jax.vmap(none, axes, axis_size=number)), *rows), True
        key, severity, images = (
            row if split else jnp.broadcast_to(row, (number, *row.shape)) for row, split in zip(rows, batched[1:])
        )
        return _in_chunks(branches, which, key, severity, images), True

    return deal


def _in_chunks(branches, which, *rows):
    """Applies to each image the branch `which`, to chunks of images that share it.

    XLA has no branch for each row of an array: under `vmap` a switch computes all of them on all
    images. So images are put in the order of their branches and looped over in chunks of one.
    """
    number, kinds = which.shape[0], len(branches)
    if number == 0:
        return rows[-1]
    if jax.export.is_symbolic_dim(number):
        size = of_tpu = 1
    else:
        size = max(1, number // (_CHUNKS_PER_KIND * kinds))
        of_tpu = max(1, size // _LEAST_OF_TPU) * _LEAST_OF_TPU if number >= 2 * kinds else size
    by_chunks, by_chunks_of_tpu = (functools.partial(_by_chunks, branches, n) for n in (size, of_tpu))
    if size == of_tpu:  # traced once
        return by_chunks(which, *rows)
    return jax.lax.platform_dependent(which, *rows, tpu=by_chunks_of_tpu, default=by_chunks)


def _by_chunks(branches, size, which, key, severity, images):
    """Does so in chunks of that size."""
    number, kinds = which.shape[0], len(branches)
    order = jnp.argsort(which)
    count = jnp.bincount(which, length=kinds + 1)[:kinds]
    chunks, stop = -(-count // size), jnp.cumsum(count)
    begin, last_chunk = stop - count, jnp.cumsum(chunks)
    first_chunk = last_chunk - chunks

    def of_chunk(turn):
        kind = jnp.searchsorted(last_chunk, turn, side="right")
        start = begin[kind] + (turn - first_chunk[kind]) * size
        # The last chunk of a kind is filled up with its last image.
        place = order[jnp.minimum(start + jnp.arange(size), stop[kind] - 1)]
        own = (key[place], severity[place], images[place])
        return jax.lax.switch(kind, [*map(jax.vmap, branches), lambda k, s, x: x], *own)

    corrupted = jax.lax.map(of_chunk, jnp.arange(number // size + kinds)).reshape(-1, *images.shape[1:])
    kind = jnp.minimum(which, kinds - 1)
    place = first_chunk[kind] * size + jnp.argsort(order) - begin[kind]
    drew_one = (which < kinds).reshape(-1, *[1] * (images.ndim - 1))
    return jnp.where(drew_one, corrupted[jnp.where(which < kinds, place, 0)], images)
