"""Evaluation: one corrupted test set per condition, from fixed keys, shown to every model."""

import dataclasses
import zlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import corruptions
from training import augment, distributed, stream
from training import mesh as meshes
from training import step as steps

CLEAN = "clean"
RANDOM = "random"


@dataclasses.dataclass(frozen=True)
class Condition:
    """A corruption at a severity: a level, a fraction, or `random` (drawn per image from its distribution)."""

    corruption: str
    severity: str

    @property
    def value(self):
        """The severity as `corruptions.corrupt` takes it."""
        if self.severity == RANDOM:
            return None
        return int(self.severity) if self.severity.isdigit() else float(self.severity)

    @property
    def label(self):
        """The severity as tables hold it: `random`, a level or a fraction (0 for clean)."""
        return RANDOM if self.severity == RANDOM else self.value

    @property
    def file_name(self):
        return f"{self.corruption.replace('/', '.')}-{self.severity}"


def conditions(names, severities):
    """Clean and every corruption of `names` (corruptions or benchmarks) at every severity.

    Args:
      names: names of corruptions or of benchmarks.
      severities: `random` (of all that the corruption has), `levels` (`corruptions.severities`: those a benchmark has
        selected, else every level, or fractions 0, 1/4 .. 1 of a range), or numbers separated by commas, levels or
        fractions of the corruption.

    Returns:
      A list of `Condition`, none twice: what two benchmarks share is evaluated once.
    """
    found = [Condition(CLEAN, "0")]
    for name in names:
        benchmark = name if name in corruptions.benchmarks() else None
        for member in expand([name]):
            found += [Condition(member, str(severity)) for severity in _severities(member, benchmark, severities)]
    return list(dict.fromkeys(found))


def _severities(name, benchmark, text):
    if text == RANDOM:
        return [RANDOM]
    if text == "levels":
        return corruptions.severities(name, benchmark)
    scale = corruptions.get(name).scale
    chosen = _numbers(text, isinstance(scale, corruptions.Levels))
    for severity in chosen:
        scale.check(severity, {})
    return chosen


def _numbers(text, whole):
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"expected config.eval.severity random, levels, or numbers like 1,3,5, found {text!r}"
        ) from None
    return [int(value) if whole and value.is_integer() else value for value in values]


def expand(names):
    """Corruption names, with benchmarks replaced by their members, qualified, without repetition, in order."""
    qualified = []
    for name in names:
        several = corruptions.names(name) if name in corruptions.benchmarks() else (name,)
        qualified += [corruptions.get(one).qualified_name for one in several]
    return tuple(dict.fromkeys(qualified))


def corrupted_images(mesh, split, condition, seed, options=None):
    """The test images under a condition, uint8 [N, H, W, 3] on the device.

    Draws depend on (seed, corruption, severity, image), on nothing else: every model and every later run sees the
    same pixels.
    """
    if condition.corruption == CLEAN:
        return split.images
    key = jax.random.fold_in(jax.random.key(seed), zlib.crc32(condition.corruption.encode()))
    return augment.corrupt_on_mesh(
        mesh, key, split.images, condition.corruption, condition.value, jnp.asarray(split.index), options or {}
    )


class Shown(NamedTuple):
    """The test images under a condition, iterated in pieces on the device; arguments as in `answers`."""

    mesh: jax.sharding.Mesh
    split: Any
    condition: Condition
    seed: int
    options: Any
    batch_size: int

    def __iter__(self):
        for part in stream.pieces(self.split, self.batch_size, self.mesh):
            yield corrupted_images(self.mesh, part, self.condition, self.seed, self.options)


def answers(mesh, models, split, condition, seed, options, batch_size):
    """Which test images each model answers correctly under a condition: {key: bool numpy [N]}.

    A split that is not on the device is corrupted and shown in pieces; the answers are the same.

    Args:
      models: {key: (graphdef, state)}.
    """
    found = {key: [] for key in models}
    for part in stream.pieces(split, batch_size, mesh):
        images = corrupted_images(mesh, part, condition, seed, options)
        labels = jnp.asarray(part.labels)
        for key, model in models.items():
            found[key].append(correctness(mesh, *model, images, labels, batch_size))
    return {key: np.concatenate(parts) for key, parts in found.items()}


def correctness(mesh, graphdef, state, images, labels, batch_size):
    """Which of the images [N] the model answers correctly, bool numpy [N]; the last batch is padded, not dropped.

    `batch_size` is rounded up to a multiple of the devices; it only matters for speed and memory.
    """
    devices = mesh.shape["data"]
    batch_size += -batch_size % devices
    sharding = meshes.batch_sharding(mesh, axis=1)
    batches = meshes.place(steps.pad_to_batches(images, batch_size, 0), sharding)
    answers = meshes.place(steps.pad_to_batches(labels, batch_size, -1), sharding)
    correct = steps.correct_answers(graphdef, state.params, state.statistics, batches, answers)
    return distributed.fetch(correct).reshape(-1)[: images.shape[0]]
