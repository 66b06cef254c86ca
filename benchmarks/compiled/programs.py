"""What is compiled for a chip, by the names of the tables' rows."""

import math
from collections.abc import Callable, Container
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, SingleDeviceSharding

import corruptions
import models
from configs import default
from corruptions import augment
from evaluation.planning import programs
from evaluation.planning.programs import Block, Program
from training import states

STEPS = 8  # of a block of training, and batches of an evaluation: a loop whatever the compiler unrolls
CLASSES = 100
ROWS = {
    "evaluation": (
        *("resnet18:224:256:1x1", "cifar_resnet18:32:1024:1x1", "wrn_40_2:32:1024:1x1"),
        *("alexnet:224:256:1x1", "squeezenet1_0:224:256:1x1", "vgg11:224:256:1x1", "vgg19_bn:224:256:1x1"),
        *("resnet50:224:256:1x1", "wide_resnet50_2:224:256:1x1", "resnext50:224:256:1x1"),
        *("densenet121:224:256:1x1", "densenet161:224:256:1x1", "densenet201:224:256:1x1"),
        *("resnext101_64x4d:224:256:1x1", "msdnet:224:256:1x1", "condensenet74_4_converted:224:256:1x1"),
    ),
    "training": (
        *("cifar_resnet18:32:1024:1x1", "wrn_40_2:32:1024:1x1", "wrn_16_4:32:1024:1x1"),
        *("resnet18:224:256:1x1", "resnet50:224:128:1x1"),
        *("resnet18:224:256:4x1", "resnet18:224:256:1x4", "resnet50:224:128:1x4", "resnet18:224:256:1x16"),
    ),
}


def names(kind: str, machines: Container[int]) -> tuple[str, ...]:
    """Lists the programs of a kind: corruptions, schemes, evaluation, training.

    Args:
      kind: of the programs.
      machines: numbers of chips that there are; programs of others are left out.
    """
    if kind == "corruptions":
        return corruptions.names()
    if kind == "schemes":
        return tuple(augment.names())
    return tuple(name for name in ROWS[kind] if math.prod(chips(name)) in machines)


def chips(name: str) -> tuple[int, int]:
    """Reads models at once and chips for each from the name of a row of evaluation or training."""
    rows, columns = name.rpartition(":")[2].split("x")
    return int(rows), int(columns)


def build(kind: str, name: str, size: int, batch: int, devices: Callable[[int], list[Any]]) -> Program:
    """Makes a program of a kind by its name.

    Args:
      kind, name: see `names`.
      size, batch: of corruptions and schemes; evaluation and training name theirs, as
        MODEL:SIZE:IMAGES:MODELSxCHIPS, images on each chip, models in training at once, chips for each.
      devices: describes a number of chips.
    """
    if kind in ("corruptions", "schemes"):
        make = programs.corruption if kind == "corruptions" else programs.scheme
        return make(name, batch, size, SingleDeviceSharding(devices(1)[0]))
    model, size, images, _ = name.split(":")
    (rows, columns), size, images = chips(name), int(size), int(images)
    mesh = Mesh(np.asarray(devices(rows * columns)).reshape(rows, columns), ("model", "data"))
    network = models.abstract(model, CLASSES, dtype="bfloat16", conv="xla", image_size=size)
    if kind == "evaluation":
        return programs.evaluation(network, mesh, size, images, STEPS)
    optimizer = states.make_optimizer(default.get_config().train, STEPS)
    shown = jax.ShapeDtypeStruct((STEPS, columns * images, size, size, 3), np.uint8)
    return programs.training(Block(network, optimizer, shown, {}), mesh)
