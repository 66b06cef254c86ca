"""Programs that are compiled, as jitted functions with abstract arguments, and one program's costs on a chip."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
from flax import nnx
from jax.sharding import Mesh

import corruptions
import models
from benchmarks.compiled import hlo
from benchmarks.compiled.chips import Target
from configs import default
from corruptions import augment
from evaluation.correctness import network_logits
from runtime import meshes
from training import memory, states, steps

STEPS = 8  # steps of a training block, batches of an evaluation
_SMALL = ("cifar_resnet18:32:1024:1x1", "wrn_40_2:32:1024:1x1")
_LARGE = ("resnet18", "resnet50", "wide_resnet50_2", "vgg19_bn", "densenet121", "squeezenet1_0")
_SEVERAL = ("resnet18:224:256:4x1", "resnet18:224:256:1x4", "resnet50:224:128:1x4", "resnet18:224:256:1x16")
NETWORKS = {  # MODEL:SIZE:IMAGES:MxC: images on each chip, M models at once, C chips for each
    "evaluation": (*_SMALL, *(f"{name}:224:256:1x1" for name in _LARGE)),
    "training": (*_SMALL, "wrn_16_4:32:1024:1x1", "resnet18:224:256:1x1", "resnet50:224:128:1x1", *_SEVERAL),
}
_array = jax.ShapeDtypeStruct


class Program(NamedTuple):
    """A jitted function, and its arguments as shapes with shardings."""

    function: Any
    args: tuple[Any, ...]
    images: int  # in one batch on one chip
    batches: int = 1  # trips of the loop around the whole program
    static: Mapping[str, Any] = {}

    def lower(self) -> jax.stages.Lowered:
        """Lowers it for the devices of its arguments."""
        return self.function.lower(*self.args, **self.static)


class Measured(NamedTuple):
    """One batch of a program on one chip, by its compiler."""

    compile_seconds: float  # CPU seconds of the compiler's threads
    memory: int  # bytes on each chip
    temporaries: int  # bytes of them without arguments and results
    operations: pd.DataFrame  # `hlo.table` of all batches
    costs: pd.Series  # `hlo.totals` of one batch
    flops: float  # operations of one batch's products
    seconds: float  # by `Target.model`


def measure(target: Target, build: Callable[[Mesh], Program], models_at_once: int = 1, chips: int = 1) -> Measured:
    """Compiles a program for described chips and reads its costs.

    `build` makes the program for a mesh ('model', 'data') of models_at_once x chips, with the same work on each chip.
    Raises JaxRuntimeError where it does not fit, or needs an operation that the chip lacks.
    """
    mesh = target.mesh(models_at_once, chips)
    with target.pretended():
        program = build(mesh)
    compiled, compile_seconds = target.compile(program)
    if target.clock:
        flops = compiled.cost_analysis().get("flops", 0.0)  # a loop's body counts once: one batch
    else:  # a GPU's library calls hide their products
        one_chip = Mesh(np.reshape(jax.devices("cpu")[:1], (1, 1)), mesh.axis_names)
        with target.pretended():
            flops = build(one_chip).lower().cost_analysis()["flops"]
    operations, sizes = hlo.table(compiled.as_text()), compiled.memory_analysis()
    costs = hlo.totals(operations)
    needed = sizes.argument_size_in_bytes + memory.beyond_arguments(compiled)
    seconds = target.seconds(costs, flops * program.batches) / program.batches
    costs /= program.batches
    return Measured(compile_seconds, needed, sizes.temp_size_in_bytes, operations, costs, flops, seconds)


def build(kind: str, name: str, size: int, batch: int, mesh: Mesh) -> Program:
    """Makes a program by its name: `corruptions` or `schemes` of a batch of uint8 images, or one of `NETWORKS`."""
    if kind in ("corruptions", "schemes"):
        return _of_images(kind, name, size, batch, mesh)
    model, size, images, _ = name.split(":")
    network = models.abstract(model, 100, dtype="bfloat16", conv="xla", image_size=int(size))
    shown = _array((STEPS, int(images), int(size), int(size), 3), np.uint8)
    if kind == "evaluation":
        return _evaluation(network, shown, mesh)
    return training(network, states.make_optimizer(default.get_config().train, STEPS), shown, mesh)


def _of_images(kind, name, size, batch, mesh):
    def corrupt(key, images, index, *severity):
        if kind == "schemes":
            return augment.augment(key, images, name, index=index, dtype=jnp.float32)
        return corruptions.corrupt(key, images, name, *severity, index=index)

    key = jax.eval_shape(lambda: jax.random.key(0))
    args = [key, _array((batch, size, size, 3), np.uint8), _array((batch,), np.int32)]
    if kind == "corruptions":
        args.append(_array((), np.int32 if isinstance(corruptions.get(name).scale, corruptions.Levels) else np.float32))
    return Program(jax.jit(corrupt), _on(meshes.replicated(mesh), args), batch)


def training(
    network: nnx.Module,
    optimizer: optax.GradientTransformation,
    images: jax.ShapeDtypeStruct,
    mesh: Mesh,
    static: Mapping[str, Any] | None = None,
) -> Program:
    """Makes the program of a block of training steps, one model on each row of a mesh ('model', 'data').

    `images` are those of K steps on one chip, [K, B, ...]; `static` settings of `steps.train_models_block`.
    """
    graphdef, state = first_state(network, optimizer)
    (rows, columns), (count, batch, *image) = mesh.devices.shape, images.shape
    stacked = jax.tree.map(lambda leaf: _array((rows, *leaf.shape), leaf.dtype), state)
    shape = rows * count, columns * batch
    shown = _array((*shape, *image), images.dtype), _array(shape, np.int32)
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), rows))
    by_row = meshes.by_model(mesh)
    args = _on(by_row, stacked), *_on(meshes.by_model(mesh, "data"), shown), _on(by_row, keys)
    return Program(steps.train_models_block, (mesh, graphdef, optimizer, *args), batch, count, static or {})


def first_state(network: nnx.Module, optimizer: optax.GradientTransformation) -> tuple[nnx.GraphDef, states.TrainState]:
    """Splits an abstract network: (graphdef, abstract state before the first step)."""
    graphdef, params, statistics = nnx.split(network, nnx.Param, ...)
    return graphdef, jax.eval_shape(lambda p, s: states.initial_state(p, s, optimizer), params, statistics)


def _evaluation(network, images, mesh):
    graphdef, params, statistics = nnx.split(network, nnx.Param, ...)
    count, batch, *image = images.shape
    shape = count, mesh.devices.size * batch
    shown = _array((*shape, *image), images.dtype)
    args = *_on(meshes.replicated(mesh), (params, statistics)), _on(meshes.batch_sharding(mesh, axis=1), shown)
    return Program(network_logits, (graphdef, *args), batch, count)


def _on(sharding, tree):
    return jax.tree.map(lambda leaf: _array(leaf.shape, leaf.dtype, sharding=sharding), tree)
