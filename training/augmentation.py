"""Augmentation of training images over the devices of a mesh: a corruption, a benchmark's mixture, a scheme."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec

import corruptions
from corruptions import enhance as enhancements
from corruptions.registry import with_levels
from runtime import meshes

STANDARD = "standard"
_MIXTURE = "mixture="


def members(augmentation: str) -> tuple[str, ...]:
    """Lists the corruptions behind an augmentation: none, one, or a benchmark's.

    Args:
      augmentation: `standard`, a corruption's name, or `mixture=BENCHMARK` (each image draws one of
        its members, at one of the severities that the benchmark selects).

    Raises:
      ValueError: an unknown name.
    """
    if augmentation == STANDARD:
        return ()
    if augmentation.startswith(_MIXTURE):
        return corruptions.names(benchmark(augmentation))
    return (corruptions.get(augmentation).qualified_name,)


def benchmark(augmentation: str) -> str:
    """Returns the benchmark that a mixture is made of; other augmentations unchanged."""
    return augmentation.removeprefix(_MIXTURE)


def canonical(augmentation: str) -> str:
    """Spells an augmentation in one way: `standard`, a qualified name, or `mixture=BENCHMARK`.

    Raises:
      ValueError: an unknown name.
    """
    names = members(augmentation)
    return names[0] if len(names) == 1 and not augmentation.startswith(_MIXTURE) else augmentation


def augment(
    mesh: Mesh,
    augmentation: str,
    key: jax.Array,
    images: jax.Array,
    index: jax.Array,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> jax.Array:
    """Corrupts images [M, H, W, 3], each at a severity of its own; the type stays.

    A mixture deals its members to the images in turn; batches are shuffled, so each image meets a
    random member and every batch holds all of them in equal shares.

    Args:
      mesh: images are split over its 'data' axis when M divides evenly.
      augmentation: see `members`; not `standard`.
      key: root key of the augmentation.
      index: int32 [M], number of each image within the run.
      options: {corruption: its static options}, for example calibrated ranges.
    """
    names = members(augmentation)
    options = options or {}
    if not augmentation.startswith(_MIXTURE):
        return corrupt_on_mesh(mesh, key, images, names[0], None, index, options.get(names[0], {}))
    out = jnp.zeros_like(images)
    for turn, name in enumerate(names):
        dealt = slice(turn, None, len(names))
        settings = with_levels(options.get(name, {}), corruptions.selected_levels(name, benchmark(augmentation)))
        part = corrupt_on_mesh(mesh, jax.random.fold_in(key, turn), images[dealt], name, None, index[dealt], settings)
        out = out.at[dealt].set(part)
    return out


def corrupt_on_mesh(
    mesh: Mesh,
    key: jax.Array,
    images: jax.Array,
    name: str,
    severity: float | jax.Array | None,
    index: jax.Array,
    options: Mapping[str, Any],
) -> jax.Array:
    """Corrupts a batch split over the mesh, as `corruptions.corrupt` does, whatever the split."""
    if _stays_whole(mesh, images):
        return corruptions.corrupt(key, images, name, severity, index=index, **options)
    corrupt = _corrupt_shards(mesh, name, tuple(sorted(options.items())))
    return corrupt(key, images, index, None if severity is None else jnp.asarray(severity))


def scheme_on_mesh(
    mesh: Mesh, scheme: corruptions.augment.Scheme, key: jax.Array, images: jax.Array, index: jax.Array
) -> jax.Array:
    """Augments images [M, H, W, 3] by a scheme, split over the mesh; float32 in [0, 1].

    The result equals `corruptions.augment.augment`, whatever the split.
    """
    if _stays_whole(mesh, images):
        return _augmented(key, images, index, scheme)
    program, choices = _scheme_shards(mesh, scheme)
    return program(key, images, index, choices)


def enhance_on_mesh(mesh: Mesh, name: str, images: jax.Array) -> jax.Array:
    """Enhances images [M, H, W, 3], split over the mesh, as `corruptions.enhance.enhance`."""
    if _stays_whole(mesh, images):
        return enhancements.enhance(images, name, validate=False)
    return _enhance_shards(mesh, name)(None, images, jnp.arange(images.shape[0]), None)


def _augmented(key, images, index, scheme):
    return corruptions.augment.augment(key, images, scheme, index=index, dtype=jnp.float32, validate=False)


def _stays_whole(mesh, images):
    """Says whether images stay whole: one device, or an uneven number in a single process."""
    devices = mesh.shape["data"]
    return devices == 1 or (images.shape[0] % devices > 0 and jax.process_count() == 1)


@functools.lru_cache(maxsize=64)
def _scheme_shards(mesh, scheme):
    """Makes (program, argument): stored transforms, too many for constants, lie on the devices."""

    def local(key, images, index, choices):
        return _augmented(key, images, index, dataclasses.replace(scheme, choices=choices))

    return _shards(mesh, local), meshes.place_tree(scheme.choices, meshes.replicated(mesh))


@functools.lru_cache(maxsize=256)
def _corrupt_shards(mesh, name, options):
    def local(key, images, index, severity):
        return corruptions.corrupt(key, images, name, severity, index=index, **dict(options))

    return _shards(mesh, local)


@functools.lru_cache(maxsize=8)
def _enhance_shards(mesh, name):
    def local(key, images, index, argument):
        return enhancements.enhance(images, name)

    return _shards(mesh, local)


def _shards(mesh, local):
    """Compiles `local(key, images, index, argument)` with images and index split over 'data'.

    An uneven batch is filled up with its last image. Several processes need this: the path of uneven batches on one
    device (`_stays_whole`) starts programs from several threads, in no order.
    """
    whole, batch, devices = PartitionSpec(), PartitionSpec("data"), mesh.shape["data"]
    specs = (whole, batch, batch, whole)
    program = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=batch, check_vma=False))

    def even(array):
        short = -array.shape[0] % devices
        return jnp.concatenate([array, jnp.repeat(array[-1:], short, axis=0)]) if short else array

    return lambda key, images, index, argument: program(key, even(images), even(index), argument)[: images.shape[0]]
