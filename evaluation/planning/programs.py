"""What a study computes, each as a jitted function with abstract arguments on described chips."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import Mesh, Sharding

import corruptions
from corruptions import augment
from evaluation.correctness import correct_answers
from evaluation.distances.features import mean_features
from runtime import meshes
from training import states, steps


class Block(NamedTuple):
    """Steps of training of one model as `steps.train_models_block` takes them.

    Attributes:
      images: of K steps, [K, B, ...].
      static: settings of the loss.
    """

    network: nnx.Module
    optimizer: optax.GradientTransformation
    images: jax.ShapeDtypeStruct
    static: Mapping[str, Any]

    def first_state(self) -> tuple[nnx.GraphDef, states.TrainState]:
        """Splits the network: (graphdef, abstract state before the first step)."""
        graphdef, params, statistics = nnx.split(self.network, nnx.Param, ...)
        return graphdef, jax.eval_shape(lambda p, s: states.initial_state(p, s, self.optimizer), params, statistics)

    def part(self, parts: int) -> "Block":
        """Makes the same steps with a part of each batch."""
        count, size, *image = self.images.shape
        return self._replace(images=_array((count, size // parts, *image), self.images.dtype))


@dataclasses.dataclass(frozen=True)
class Program:
    """A jitted function as it is called.

    Attributes:
      function, args, static: what is lowered; the arguments are shapes with shardings.
      images: of one batch on one chip.
      batches: trips of the loop around all of it.
    """

    function: Any
    args: tuple[Any, ...]
    images: int
    batches: int = 1
    static: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def corruption(
    name: str, images: int, size: int, place: Sharding, *, drawn: bool = False, options: Mapping[str, Any] | None = None
) -> Program:
    """Makes the program that corrupts uint8 images.

    Args:
      name: of the corruption.
      images, size: how many, and their side in pixels.
      place: the chip.
      drawn: whether each image draws its severity; else one is given.
      options: static options of the corruption.
    """
    levels = isinstance(corruptions.get(name).scale, corruptions.Levels)
    severity = () if drawn else (_array((), np.int32 if levels else np.float32),)

    def corrupt(key, images, index, *given):
        return corruptions.corrupt(key, images, name, *given, index=index, **(options or {}))

    return Program(jax.jit(corrupt), _on(place, (*_shown(images, size), *severity)), images)


def scheme(name: str, images: int, size: int, place: Sharding) -> Program:
    """Makes the program of an augmentation scheme; arguments as of `corruption`."""

    def apply(key, images, index):
        return augment.augment(key, images, name, index=index, dtype=jnp.float32)

    return Program(jax.jit(apply), _on(place, _shown(images, size)), images)


def _shown(images, size):
    key = jax.eval_shape(lambda: jax.random.key(0))
    return key, _array((images, size, size, 3), np.uint8), _array((images,), np.int32)


def training(block: Block, mesh: Mesh) -> Program:
    """Makes the program of a block of steps, as `training.rows` calls it.

    Args:
      block: of one model; each row of the mesh trains one.
      mesh: (M, chips for each model).
    """
    graphdef, state = block.first_state()
    rows, columns = mesh.devices.shape
    count, size = block.images.shape[:2]
    stacked = jax.tree.map(lambda leaf: _array((rows, *leaf.shape), leaf.dtype), state)
    images = _array((rows * count, *block.images.shape[1:]), block.images.dtype)
    labels = _array((rows * count, size), np.int32)
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), rows))
    by_row = meshes.by_model(mesh)
    args = _on(by_row, stacked), *_on(meshes.by_model(mesh, "data"), (images, labels)), _on(by_row, keys)
    return Program(
        steps.train_models_block,
        (mesh, graphdef, block.optimizer, *args),
        size // columns,
        count,
        block.static,
    )


def evaluation(network: nnx.Module, mesh: Mesh, size: int, images: int, batches: int) -> Program:
    """Makes the program that tells which images a network classifies correctly.

    Args:
      network: the model, abstract.
      mesh: chips over which each batch is split.
      size: side of the images in pixels.
      images: of a batch on each chip.
      batches: in one call.
    """
    graphdef, params, statistics = nnx.split(network, nnx.Param, ...)
    shape = batches, mesh.devices.size * images
    shown = _array((*shape, size, size, 3), np.uint8), _array(shape, np.int32)
    args = *_on(meshes.replicated(mesh), (params, statistics)), *_on(meshes.batch_sharding(mesh, axis=1), shown)
    return Program(correct_answers, (graphdef, *args), images, batches)


def features(network: nnx.Module, mesh: Mesh, size: int, images: int, transforms: int) -> Program:
    """Makes the program of `evaluation.distances.features` that takes the mean features of transforms.

    Args:
      network: the model, abstract.
      mesh: chips that transforms are spread over.
      size: side of the images in pixels.
      images: that each transform is applied to.
      transforms: in one call on each chip.
    """
    graphdef, params, statistics = nnx.split(network, nnx.Param, ...)
    shown = _array((transforms * mesh.devices.size, images, size, size, 3), np.float32)
    whole = _on(meshes.replicated(mesh), (params, statistics, _array((1, images), np.float32)))
    args = graphdef, mesh, *whole[:2], _on(meshes.batch_sharding(mesh), shown), whole[2]
    return Program(mean_features, args, transforms * images)


def _array(shape, dtype):
    return jax.ShapeDtypeStruct(shape, dtype)


def _on(sharding, tree):
    """The same abstract arrays on the devices of a sharding."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), tree)
