"""A study before it runs: its programs, and the hours that a machine takes for them."""

import dataclasses
import math
from collections.abc import Mapping

import jax
from jax.sharding import SingleDeviceSharding
from ml_collections import ConfigDict

from evaluation.planning import programs, study
from evaluation.planning.asked import Answer, ask
from evaluation.planning.study import Group, Images
from runtime.chips.machines import Machine
from training import augmentation, schemes, stream

IMAGES = 128  # of the programs of images: that many at once on a chip


@dataclasses.dataclass(frozen=True)
class Row:
    """A program of a study.

    Attributes:
      name: what it does.
      answer: what is known of it.
      images: of a batch on one chip.
      batches: that the machine works on, one after another, in the whole study; 0 of programs of
        images, whose hours count by rounds.
    """

    name: str
    answer: Answer
    images: int
    batches: int = 0


@dataclasses.dataclass(frozen=True)
class Hours:
    """Hours between two bounds, equal by a compiler's model; infinite where one made no program."""

    least: float = 0.0
    most: float = 0.0

    def __add__(self, other: "Hours") -> "Hours":
        return Hours(self.least + other.least, self.most + other.most)

    @classmethod
    def of(cls, answer: Answer, batches: float) -> "Hours":
        """Computes the hours of so many batches."""
        if answer.refused:
            return cls(math.inf, math.inf)
        return cls(answer.least * batches / 3600, answer.most * batches / 3600)


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a study needs on a machine.

    Attributes:
      machine: the chips.
      images: of the study.
      groups: its models.
      training: a row for each group.
      evaluation: the row of the program that classifies test images.
      of_images: rows of corruptions and schemes; none where they were not asked about.
      corrupting: hours of training images and of test images under them.
    """

    machine: Machine
    images: Images
    groups: list[Group]
    training: list[Row]
    evaluation: Row
    of_images: list[Row]
    corrupting: tuple[Hours, Hours]

    @property
    def rows(self) -> list[Row]:
        """All programs."""
        return [*self.training, self.evaluation, *self.of_images]

    @property
    def hours(self) -> dict[str, Hours]:
        """Adds up {part of the work: its hours}."""
        networks = (self.training, [self.evaluation])
        steps, answers = (sum((Hours.of(r.answer, r.batches) for r in rows), Hours()) for rows in networks)
        drawn, shown = self.corrupting
        parts = {"training steps": steps, "training images": drawn, "answers": answers, "test images": shown}
        return parts if self.of_images else {key: parts[key] for key in ("training steps", "answers")}

    @property
    def resident(self) -> float:
        """Counts the bytes of images that stay on each chip, see `training.stream.place_splits`."""
        found, free = 0.0, self.machine.target.memory
        for size in (self.images.train_bytes, self.images.test_bytes):
            found += size if stream.fits(size, free - found) else 0
        return found

    def memory(self, row: int) -> float:
        """Counts the bytes on each chip while a group trains: its program, the block of images that
        is made meanwhile, the images that stay.
        """
        group = self.groups[row]
        block = group.block.images
        return self.training[row].answer.memory + block.size * block.dtype.itemsize / group.chips + self.resident

    def checkpoint_bytes(self, row: int) -> int:
        """Counts the bytes of one checkpoint of a group's models."""
        state = self.groups[row].block.first_state()[1]
        return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))


def plan(config: ConfigDict, machine: Machine, of_images: bool = True) -> Plan:
    """Asks about every program of a study, or estimates them where no compiler is installed.

    Args:
      config: of train.py, overlap.py or tools.scheme_study, by what its `study` names.
      machine: to run on.
      of_images: whether to ask about corruptions and schemes too, each a program of its own.

    Raises:
      ValueError: settings that do not go together, or with the machine.
    """
    images = study.images_of(config)
    groups = study.groups(config, machine, images)
    training = [_training(machine, group) for group in groups]
    evaluation = _evaluation(config, machine, images, groups[0])
    if not of_images:
        return Plan(machine, images, groups, training, evaluation, [], (Hours(), Hours()))
    tests = study.test_images_by_corruption(config, images.test)
    rows = {name: _of_images(machine, name, images.side, config) for name in _names(groups, tests)}
    per_image = {name: Hours.of(row.answer, 1 / IMAGES) for name, row in rows.items()}
    drawn = sum((_round(group, models, per_image) for group in groups for models in group.rounds()), Hours())
    shown = sum((_times(per_image[name], number / machine.chips) for name, number in tests.items()), Hours())
    return Plan(machine, images, groups, training, evaluation, list(rows.values()), (drawn, shown))


def _training(machine, group):
    config = next(iter(group.configs.values()))
    size = group.block.images.shape[1]
    answer = ask(machine, group.chips, lambda mesh, parts: programs.training(group.block.part(parts), mesh))
    name = f"training steps of {config.model.name}{' with views' if config.train.jsd_weight else ''}"
    return Row(name, answer, size // group.chips, group.plan.total_steps * len(group.rounds()))


def _evaluation(config, machine, images, group):
    of_chip = -(-config.eval.batch_size // machine.chips)
    batches = -(-images.test // (of_chip * machine.chips))
    at_once = min(batches, stream.piece_size(1, of_chip * machine.chips * images.side**2 * 3))
    network = group.block.network
    answer = ask(
        machine,
        machine.chips,
        lambda mesh, parts: programs.evaluation(network, mesh, images.side, of_chip, at_once),
    )
    times = sum(show.models * len(show.conditions) for show in study.shows(config))
    return Row(f"answers of {config.model.name}", answer, of_chip, batches * times)


def _of_images(machine, name, side, config):
    options = augmentation.static_options(config.train).get(name, {})

    def build(mesh, parts):
        place = SingleDeviceSharding(mesh.devices.flat[0])
        if schemes.known(name):
            return programs.scheme(name, IMAGES, side, place)
        return programs.corruption(name, IMAGES, side, place, drawn=True, options=options)

    return Row(name, ask(machine, 1, build), IMAGES)


def _names(groups, tests):
    """Corruptions and schemes of a study; subsets of a scheme's operations, and transforms drawn from
    it and stored, count as the scheme.
    """
    trained = [name for group in groups for config in group.configs.values() for name in _applied(config.train)]
    return tuple(dict.fromkeys([*trained, *tests]))


def _applied(recipe):
    """{name: part of the images of a step that goes through it}."""
    if scheme := augmentation.scheme_of(recipe):
        name = (scheme.drawn_from or scheme.name).partition("=")[0]
        return {name: 2.0 if recipe.jsd_weight else 1.0}
    members = augmentation.members(recipe.corruption)
    part = 1.0 if recipe.reading == "code" else recipe.corrupted_fraction
    return {name: part / len(members) for name in members}


def _round(group: Group, models: list[ConfigDict], per_image: Mapping[str, Hours]) -> Hours:
    """Hours in which models that train together make their images: those of the slowest, for all
    wait.
    """
    images = group.plan.total_steps * group.block.images.shape[1] / group.chips
    hours = [
        sum((_times(per_image[name], part * images) for name, part in _applied(config.train).items()), Hours())
        for config in models
    ]
    return Hours(max(one.least for one in hours), max(one.most for one in hours))


def _times(hours, factor):
    return Hours(hours.least * factor, hours.most * factor)
