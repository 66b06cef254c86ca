"""Images in several arrays, read as one: the shards of a prepared store, or two datasets (`data.dataset.union`)."""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from data.blocks import Blocks
from runtime.meshes import place_array


class ShardedImages:
    """uint8[N, H, W, 3] in shards uint8[n_i, H, W, 3], in order. Read-only.

    Indexing with a slice or integers gives a NumPy array (a copy) and reads only these images. Images of a shard with
    checksums are compared with them before their first use.
    """

    dtype = np.dtype(np.uint8)
    ndim = 4

    def __init__(
        self,
        shards: Sequence[np.ndarray],
        image_shape: tuple[int, int, int],
        checks: Sequence[Blocks | None] | None = None,
    ):
        for shard in shards:
            if shard.dtype != np.uint8 or shard.shape[1:] != tuple(image_shape):
                found = f"{shard.dtype}{list(shard.shape)}"
                raise ValueError(f"expected shards uint8[n, {', '.join(map(str, image_shape))}], found {found}")
        # Plain arrays over the same memory: each index into a np.memmap makes a memmap, several times as slow.
        self.shards = tuple(np.asarray(shard) for shard in shards)
        self.checks = tuple(checks) if checks is not None else (None,) * len(self.shards)
        self._ends = np.cumsum([len(shard) for shard in shards], dtype=np.int64)
        self.shape = (int(self._ends[-1]) if len(shards) else 0, *image_shape)

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key) -> np.ndarray:
        if isinstance(key, slice):
            return self.take(np.arange(*key.indices(len(self))))
        key = np.asarray(key)
        if key.dtype == bool:
            key = np.flatnonzero(key) if key.shape == (len(self),) else key  # `take` refuses other masks
        return self.take(key.reshape(-1)).reshape(*key.shape, *self.shape[1:])

    def take(self, index: np.ndarray) -> np.ndarray:
        """Returns images uint8[len(index), H, W, 3]; index [M] from -N to N - 1."""
        index = np.asarray(index)
        if index.size and (index.dtype.kind not in "iu" or not -len(self) <= index.min() <= index.max() < len(self)):
            found = f"{index.dtype} in {index.min()}..{index.max()}"
            raise IndexError(f"expected integers from {-len(self)} to {len(self) - 1}, found {found}")
        index = np.where(index < 0, index + len(self), index).astype(np.int64)
        which = np.searchsorted(self._ends, index, side="right")
        out = np.empty((len(index), *self.shape[1:]), np.uint8)
        begins = np.concatenate([[0], self._ends])
        for row, (shard, position) in enumerate(zip(which, index - begins[which])):
            if check := self.checks[shard]:
                check.check(position, position + 1)
            out[row] = self.shards[shard][position]
        return out

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("images in several shards cannot become one array without a copy")
        return self[:] if dtype is None else self[:].astype(dtype)

    def to_device(self, sharding: jax.sharding.Sharding | None = None) -> jax.Array:
        """Copies to one array on the device; host and device hold at most one shard beside it."""
        if not self.shards or (sharding is not None and not sharding.is_fully_replicated):
            return place_array(np.asarray(self), sharding)
        whole = jax.jit(lambda: jnp.zeros(self.shape, jnp.uint8), out_shardings=sharding)()
        for shard, check, end in zip(self.shards, self.checks, self._ends):
            if check:
                check.check(0, len(shard))
            whole = _insert(whole, place_array(shard, sharding), np.int32(end - len(shard)))
        return whole


@functools.partial(jax.jit, donate_argnums=0)
def _insert(whole, shard, start):
    return jax.lax.dynamic_update_slice_in_dim(whole, shard, start, axis=0)
