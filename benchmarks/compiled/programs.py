"""What is compiled for a chip: each as a jitted function with abstract arguments."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.sharding import Mesh, SingleDeviceSharding

import corruptions
import models
from configs import default
from corruptions import augment
from evaluation.correctness import correct_answers
from runtime import meshes
from training import states, steps

STEPS = 8  # of a block of training, and batches of an evaluation: a loop whatever the compiler unrolls
CLASSES = 100
ROWS = {
    "evaluation": ("resnet18:224:256:1x1", "cifar_resnet18:32:1024:1x1"),
    "training": (
        *("cifar_resnet18:32:1024:1x1", "wrn_40_2:32:1024:1x1", "resnet18:224:256:1x1", "resnet50:224:128:1x1"),
        *("resnet18:224:256:4x1", "resnet18:224:256:1x4", "resnet50:224:128:1x4", "resnet18:224:256:1x16"),
    ),
}


@dataclasses.dataclass(frozen=True)
class Program:
    """A jitted function, its abstract arguments, the images of one chip and the loop around all of
    it, whose trips are batches.
    """

    function: Callable
    args: tuple[Any, ...]
    images: int
    batches: int = 1


def names(kind: str) -> tuple[str, ...]:
    """Lists the programs of a kind: corruptions, schemes, evaluation, training."""
    if kind == "corruptions":
        return corruptions.names()
    return tuple(augment.names()) if kind == "schemes" else ROWS[kind]


def build(kind: str, name: str, size: int, batch: int, devices: Callable[[int], list[Any]]) -> Program:
    """Makes a program of a kind by its name.

    Args:
      kind, name: see `names`.
      size, batch: of corruptions and schemes; evaluation and training name theirs, as
        MODEL:SIZE:IMAGES:MODELSxCHIPS, images on each chip, models in training at once, chips for each.
      devices: describes a number of chips.
    """
    if kind in ("corruptions", "schemes"):
        function, further = _corrupt(name) if kind == "corruptions" else _augment(name)
        key = jax.eval_shape(lambda: jax.random.key(0))
        args = key, _array((batch, size, size, 3), np.uint8), _array((batch,), np.int32), *further
        return Program(jax.jit(function), _on(SingleDeviceSharding(devices(1)[0]), args), batch)
    model, size, images, rows = name.split(":")
    rows, columns = map(int, rows.split("x"))
    mesh = Mesh(np.asarray(devices(rows * columns)).reshape(rows, columns), ("model", "data"))
    network = models.abstract(model, CLASSES, dtype="bfloat16", conv="xla", image_size=int(size))
    make = _training if kind == "training" else _evaluation
    return Program(*make(network, mesh, int(size), int(images)), int(images), STEPS)


def _corrupt(name):
    levels = isinstance(corruptions.get(name).scale, corruptions.Levels)
    severity = _array((), np.int32 if levels else np.float32)
    return lambda key, images, index, given: corruptions.corrupt(key, images, name, given, index=index), (severity,)


def _augment(name):
    return lambda key, images, index: augment.augment(key, images, name, index=index, dtype=jnp.float32), ()


def _array(shape, dtype):
    return jax.ShapeDtypeStruct(shape, dtype)


def _on(sharding, tree):
    """The same abstract arrays on the devices of a sharding."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), tree)


def _training(network, mesh, size, images):
    """Of `train.py`'s block of steps, as `training.rows` calls it."""
    graphdef, params, statistics = nnx.split(network, nnx.Param, ...)
    optimizer = states.make_optimizer(default.get_config().train, STEPS)
    rows, columns = mesh.devices.shape
    state = jax.eval_shape(lambda p, s: states.initial_state(p, s, optimizer), params, statistics)
    stacked = jax.tree.map(lambda leaf: _array((rows, *leaf.shape), leaf.dtype), state)
    batches = _batches(rows * STEPS, columns * images, size)
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), rows))
    by_row = meshes.by_model(mesh)
    args = (_on(by_row, stacked), *_on(meshes.by_model(mesh, "data"), batches), _on(by_row, keys))
    return steps.train_models_block, (mesh, graphdef, optimizer, *args)


def _evaluation(network, mesh, size, images):
    graphdef, params, statistics = nnx.split(network, nnx.Param, ...)
    batches = _batches(STEPS, mesh.devices.size * images, size)
    args = *_on(meshes.replicated(mesh), (params, statistics)), *_on(meshes.batch_sharding(mesh, axis=1), batches)
    return correct_answers, (graphdef, *args)


def _batches(number, images, size):
    return _array((number, images, size, size, 3), np.uint8), _array((number, images), np.int32)
