"""Plans the trainings of a study: memory, steps a second and hours on chips that this machine lacks, by their compiler.

    python -m benchmarks.compiled.plan --config=configs/overlap_imagenet100.py:resnet18 --target=v5e --chips=8

The config is one of train.py, overlap.py or tools.scheme_study. Several hosts train one model at a time
(docs/distributed.md). Nothing runs on a chip; making the images, evaluating and writing are not counted.
"""

from runtime import command  # isort: skip

import functools
import math
import os
from collections.abc import Iterator

import jax
import numpy as np
import pandas as pd
from absl import flags
from ml_collections import ConfigDict

from benchmarks.compiled import programs
from benchmarks.compiled.chips import TARGETS, Target
from corruptions.scoring.conditions import expand
from runtime import meshes
from training import augmentation, cli, memory, run, states, study
from training.batches import Plan
from training.checkpoints import KEPT
from training.study import Trainings

KNOWN = {  # (training images, test images, classes); a tenth of ImageNet's images, as its classes are nearly equal
    "cifar10": (50_000, 10_000, 10),
    "cifar100": (50_000, 10_000, 100),
    "imagenet100": (128_117, 5_000, 100),
    "imagenet": (1_281_167, 50_000, 1000),
}


def plan(config: ConfigDict, target: Target, chips: int) -> Iterator[dict[str, str | int | float]]:
    """Yields a row for each group of models that share a program.

    `GiB a chip` holds the program, the images of the next block, and the images of the dataset that stay on the chip.
    A program that does not fit has its compiler's words as `refused` instead of numbers.
    """
    train, test, classes = _shapes(config)
    resident = 0
    for size in map(math.prod, (train, test)):
        resident += size if memory.fits(size, target.memory - resident) else 0
    for models, mesh in _groups(config, target, chips):
        settings, (at_once, each) = states.Spec.of(next(iter(models.values()))), mesh.devices.shape
        meshes.check_batch_size(mesh, settings.train.batch_size, "config.train.batch_size")
        with target.pretended():
            schedule = Plan(settings.train, train)
            network = states.abstract_model(settings, classes, schedule.image_size)
        optimizer = states.make_optimizer(settings.train, schedule.steps_per_epoch)
        graphdef, state = programs.first_state(network, optimizer)
        static = run.Program.of(schedule, graphdef, state.statistics, optimizer).static
        views = (3,) if settings.train.jsd_weight else ()
        dtype = np.uint8 if augmentation.stays_uint8(schedule.scheme, settings.train.jsd_weight) else np.float32
        image = (*views, schedule.image_size, schedule.image_size, 3)
        shape = schedule.block_steps, settings.train.batch_size // each, *image
        images = jax.ShapeDtypeStruct(shape, dtype)
        build = functools.partial(programs.training, network, optimizer, images, static=static)
        rounds = -(-len(models) // at_once)
        row = {"training": settings.model["name"], "views": math.prod(views), "at once": at_once, "chips each": each}
        try:
            measured = programs.measure(target, build, 1, each)  # models that train at once share nothing
        except jax.errors.JaxRuntimeError as error:
            yield row | {"refused": " ".join(str(error).split())[:160]}
            continue
        yield row | {
            "rounds": rounds,
            "compile CPU s": measured.compile_seconds,
            "GiB a chip": (measured.memory + images.size * images.dtype.itemsize + resident) / 2**30,
            "steps/s": 1 / measured.seconds,
            "hours": rounds * schedule.total_steps * measured.seconds / 3600,
            "checkpoints GB": KEPT * len(models) * sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(state)) / 1e9,
        }


def _shapes(config):
    """(shape of the training images, of the test images, classes); known datasets are not read."""
    settings = config.dataset
    if settings.name not in KNOWN:
        dataset = study.load_dataset(config, mixed=True)
        return dataset.train.images.shape, dataset.test.images.shape, dataset.num_classes
    train, test, classes = KNOWN[settings.name]
    train += KNOWN[config.train.mix_in.name][0] if config.train.mix_in.name else 0
    side = 32 if settings.name.startswith("cifar") else settings.image_size
    train, test = min(train, settings.train_limit or train), min(test, settings.test_limit or test)
    return (train, *[settings.train_size or side] * 2, 3), (test, side, side, 3), classes


def _groups(config, target, chips):
    """Yields ({(training, seed): config} of models that share a program, mesh of the models that train at once)."""
    mesh = target.mesh(1, chips)
    if not config.study.schemes and not config.study.corruptions:
        yield {"": study.model_config(config, config.train.corruption, config.seed, chips)}, mesh
        return
    if chips > target.host:  # as `meshes.training_mesh` with many processes
        if config.study.parallel > 1:
            raise ValueError(f"expected config.study.parallel 1 on several hosts, found {config.study.parallel}")
        config = ConfigDict(config.to_dict())
        config.study.parallel = 1
    trainings = tuple(augmentation.expand_schemes(config.study.schemes).values())
    trainings = trainings or (augmentation.STANDARD, *expand(config.study.corruptions), *config.study.mixtures)
    yield from Trainings(config, trainings, config.study.seeds, os.curdir, None, None, mesh).planned()


def main(argv):
    jax.config.update("jax_platforms", "cpu")  # not a chip of this machine
    config, _ = cli.read_flags(argv)
    target, chips = TARGETS[flags.FLAGS.target], flags.FLAGS.chips
    print(f"{chips} x {target.kind} of {memory.gib(target.memory)}, {target.compiler()}: by {target.model}\n")
    print(pd.DataFrame(plan(config, target, chips)).to_string(index=False, float_format="{:.3g}".format, na_rep="-"))


if __name__ == "__main__":
    cli.define_flags("configs/overlap_imagenet100.py")
    flags.DEFINE_enum("target", "v5e", TARGETS, "Kind of chip.")
    flags.DEFINE_integer("chips", 8, "How many chips, of one machine or of several hosts.")
    command.run(main, cli.parse)
