"""Devices: where the arrays of a call meet, and batches whose type says how they are split."""

from collections.abc import Callable
from typing import Any, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from corruptions.record import Array


def together(key: jax.Array, images: Array, *rows: Any) -> tuple[Any, ...]:
    """Brings the arrays of a call, none of them traced, to the devices that compute it.

    Those are the devices of images that are split; else the key's, if it was put on one
    (`jax.device_put`); else those that images were put on, but for the host's memory where an
    accelerator is the default device; else the default device.

    Args:
      key: a typed key.
      images: [N, ...].
      *rows: [N] or [N, ...], small; a None is passed on as it is.

    Returns:
      (key, images, *rows), those that were put elsewhere taken from there.
    """
    if not any(_is_put(x) for x in (key, images, *rows)):
        return key, images, *rows
    if not is_split(images):
        if _is_put(key):
            images = jax.device_put(images, key.sharding) if _is_put(images) else images
        elif _is_put(images) and platform(images) == "cpu" != platform(key):
            images = np.asarray(images)
    lead = next((x for x in (images, key) if _is_put(x)), None)
    devices = lead.sharding.device_set if lead is not None else None
    if _is_put(key) and key.sharding.device_set != devices:
        words = jnp.asarray(np.asarray(jax.random.key_data(key)))
        key = jax.random.wrap_key_data(words, impl=jax.random.key_impl(key))
    found = (np.asarray(x) if _is_put(x) and x.sharding.device_set != devices else x for x in rows)
    return key, images, *found


def is_split(images: Any) -> TypeGuard[jax.Array]:
    """Tells whether a batch that is not traced lies on several devices."""
    return isinstance(images, jax.Array) and len(images.sharding.device_set) > 1


def platform(*arrays: Array | None) -> str:
    """Names the platform that computes with arrays, none traced: `cpu`, `gpu` or `tpu`."""
    on_device = sorted((x for x in arrays if isinstance(x, jax.Array)), key=_is_put)
    devices: Any = on_device[-1].sharding.device_set if on_device else jax.devices()
    return next(iter(devices)).platform


def _is_put(array: Any) -> TypeGuard[jax.Array]:
    return isinstance(array, jax.Array) and array.committed


def over_shards(function: Callable[..., jax.Array], common: Any, images: jax.Array, *rows: Array) -> jax.Array:
    """Calls `function(common, images, *rows)` on each device's share of a batch, and says so in the
    type of what it gives.

    For meshes whose axes are Explicit, inside a jit: there the type of an array tells how it is
    split, and every operation has to. On other batches the function is called as it is.

    Args:
      function: gives an array of the shape of its images; treats each row by itself.
      common: arrays for all images, such as a key.
      images: [N, ...]; where axes behind the first are split too, each device gets whole images.
      *rows: [N, ...], split as the images are or not at all.
    """
    sharding = jax.typeof(images).sharding
    mesh, spec = sharding.mesh, sharding.spec
    if not any(spec):
        return function(common, images, *rows)
    split = PartitionSpec(spec[0])
    given = [jax.sharding.reshard(x, NamedSharding(mesh, split)) for x in (images, *rows)]
    local = jax.shard_map(
        function,
        mesh=mesh,
        in_specs=(PartitionSpec(), split, *(split for _ in rows)),
        out_specs=split,
        axis_names=set(mesh.explicit_axes),
        check_vma=False,
    )
    return jax.sharding.reshard(local(common, *given), NamedSharding(mesh, spec))
