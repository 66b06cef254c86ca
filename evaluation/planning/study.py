"""What a config asks for: its models, how they train on a machine, and the images they are shown."""

import collections
import dataclasses
import os
from collections.abc import Mapping, Sequence

import jax
import numpy as np
from flax import nnx
from jax.sharding import Mesh
from ml_collections import ConfigDict

from evaluation.conditions import RANDOM, Condition, expand, list_conditions
from evaluation.planning.programs import Block
from runtime import meshes
from runtime.chips.machines import Machine
from training import augmentation, batches, schemes, states, study
from training.parts import Key, Trainings
from training.run import Program

# (training images, test images, classes); a tenth of ImageNet's training images, as its classes
# have nearly equally many
_KNOWN = {
    "cifar10": (50_000, 10_000, 10),
    "cifar100": (50_000, 10_000, 100),
    "imagenet100": (128_117, 5_000, 100),
    "imagenet": (1_281_167, 50_000, 1000),
}
_SIDE = 32  # of CIFAR's images


@dataclasses.dataclass(frozen=True)
class Images:
    """How many images a study has, and their sides in pixels.

    Attributes:
      train, test: how many.
      train_side, side: of training images, which may be cropped, and of test images.
      classes: of them.
    """

    train: int
    test: int
    train_side: int
    side: int
    classes: int

    @property
    def train_bytes(self) -> int:
        """Bytes of the training images."""
        return 3 * self.train * self.train_side**2

    @property
    def test_bytes(self) -> int:
        """Bytes of the test images."""
        return 3 * self.test * self.side**2


@dataclasses.dataclass(frozen=True)
class Group:
    """Models that share a program of training steps.

    Attributes:
      configs: {(training, seed): what determines the model}.
      together: how many train at the same time.
      chips: for each.
      plan: of each run.
      block: steps of one model.
    """

    configs: Mapping[Key, ConfigDict]
    together: int
    chips: int
    plan: batches.Plan
    block: Block

    def rounds(self) -> list[list[ConfigDict]]:
        """Lists the models in the order they train, those of a round together."""
        models = list(self.configs.values())
        return [models[first : first + self.together] for first in range(0, len(models), self.together)]


@dataclasses.dataclass(frozen=True)
class Shows:
    """Models that are shown the test images under the same conditions."""

    models: int
    conditions: Sequence[Condition]


def images_of(config: ConfigDict) -> Images:
    """Counts the images of a config: of known datasets without reading them."""
    asked = config.dataset
    if asked.name not in _KNOWN:
        dataset = study.load_dataset(config, mixed=True)
        sides = dataset.train.images.shape[1], dataset.test.images.shape[1]
        return Images(len(dataset.train), len(dataset.test), *sides, dataset.num_classes)
    train, test, classes = _KNOWN[asked.name]
    if mixed := config.train.mix_in.name:
        train += _KNOWN[mixed][0]
    side = _SIDE if asked.name.startswith("cifar") else asked.image_size
    train, test = min(train, asked.train_limit or train), min(test, asked.test_limit or test)
    return Images(train, test, asked.train_size or side, side, classes)


def groups(config: ConfigDict, machine: Machine, images: Images) -> list[Group]:
    """Lists the models that a command would train with a config, in groups that share a program.

    Raises:
      ValueError: settings that do not go together, or with the machine.
    """
    with machine.target.pretended():
        return [_group(models, mesh, images) for models, mesh in _planned(config, machine)]


def shows(config: ConfigDict) -> list[Shows]:
    """Lists how many models would be shown which conditions."""
    seeds = len(config.study.seeds)
    if config.study.schemes:
        conditions = list_conditions(config.eval.corruptions, config.eval.severity)
        return [Shows(seeds * len(schemes.expand(config.study.schemes)), conditions)]
    if not config.study.corruptions:
        return [Shows(1, list_conditions((), RANDOM))]
    names, mixtures = expand(config.study.corruptions), config.study.mixtures
    found = [Shows(seeds * (1 + len(names) + len(mixtures)), list_conditions(names, RANDOM))]
    if mixtures:
        found.append(Shows(seeds * (1 + len(mixtures)), list_conditions(map(augmentation.benchmark, mixtures), RANDOM)))
    return found


def test_images_by_corruption(config: ConfigDict, test: int) -> dict[str, int]:
    """Counts the test images to corrupt: {corruption: images at all severities}."""
    severities = collections.Counter(c.corruption for show in shows(config) for c in show.conditions[1:])
    return {name: test * number for name, number in severities.items()}


@dataclasses.dataclass(frozen=True)
class _Chip:
    """Stands for a chip where a mesh is laid out."""

    id: int
    platform: str


def _planned(config, machine):
    chips = np.empty((1, machine.chips), object)
    chips[0] = [_Chip(number, machine.target.backend) for number in range(machine.chips)]
    mesh = Mesh(chips, ("model", "data"))
    if not config.study.schemes and not config.study.corruptions:
        single = study.model_config(config, config.train.corruption, config.seed, machine.chips)
        return [({(config.train.corruption, config.seed): single}, mesh)]
    if not machine.one_host:  # as `meshes.training_mesh` has it with many processes
        if config.study.parallel > 1:
            raise ValueError(
                f"expected config.study.parallel 1 on the several hosts of {machine.name}, found {config.study.parallel}"
            )
        config = ConfigDict(config.to_dict())
        config.study.parallel = 1
    if config.study.schemes:
        trainings = tuple(schemes.expand(config.study.schemes).values())
    else:
        trainings = (augmentation.STANDARD, *expand(config.study.corruptions), *config.study.mixtures)
    return Trainings(config, trainings, config.study.seeds, os.curdir, None, None, mesh).planned()


def _group(models, mesh, images):
    config = next(iter(models.values()))
    meshes.check_batch_size(mesh, config.train.batch_size, "config.train.batch_size")
    plan = batches.Plan(config.train, (images.train, images.train_side, images.train_side, 3))
    network = states.abstract_model(config, images.classes, plan.image_size)
    optimizer = states.make_optimizer(config.train, plan.steps_per_epoch)
    graphdef, _, statistics = nnx.split(network, nnx.Param, ...)
    static = Program.of(config.train, plan, graphdef, statistics, optimizer).static
    whole_levels = augmentation.keeps_levels(plan.scheme, config.train.jsd_weight)
    views = (3,) if config.train.jsd_weight else ()
    shown = jax.ShapeDtypeStruct(
        (plan.block_steps, config.train.batch_size, *views, plan.image_size, plan.image_size, 3),
        np.uint8 if whole_levels else np.float32,
    )
    return Group(models, *mesh.devices.shape, plan, Block(network, optimizer, shown, static))
