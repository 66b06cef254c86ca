"""Trains and evaluates the models of a large overlap study one after another, and keeps their answers.

    python -m projects.coverage --config=configs/coverage.py:cpu --workdir=runs/coverage

Prints the plan with the hours that are left, then trains a model, shows it the test images under every corruption of
the study, and goes on with the next one; config.study.parallel models at a time, each on devices of its own. First come
the standard model and the mixtures of seed 0, then the candidates in their order, then the same of the next seed, at
last a third standard model. The next seed takes every third candidate first: so a part of it tells the noise of trainings
for candidates of all benchmarks. WORKDIR/answers has a file for each condition: which images each model answers correctly
and the confidence of the first standard model. A model that answered under every condition is not trained again,
whether its checkpoint is there or not: so a copy of `config.json` and `answers` continues on another machine by the same
command. Corrupted images stay in memory for the next models if all of them together take at most `KEPT_BYTES`: 1.5 GB
for CIFAR-10.
"""

from runtime import command  # isort: skip

import dataclasses
import itertools
import pathlib
import time
from collections.abc import Iterator, Sequence

from ml_collections import ConfigDict

from analysis import answers
from analysis.answers import Answered, Key
from corruptions.scoring.conditions import RANDOM, Condition, expand, list_conditions
from evaluation import correctness, trained_models
from evaluation.evaluate import Evaluation, check_answers
from evaluation.shown import Piece, Shown
from projects.coverage import CONFIDENT
from runtime import meshes, workdirs
from runtime.log import log
from training import augmentation, cli, study

STANDARD_SEEDS = 3
KEPT_BYTES = 2**31


@dataclasses.dataclass(frozen=True, eq=False)
class Kept(Shown):
    """Test images that are corrupted when they are first needed under a condition, and kept."""

    kept: dict[Condition, list[Piece]] = dataclasses.field(default_factory=dict)

    def __iter__(self) -> Iterator[Piece]:
        if self.condition not in self.kept:
            self.kept[self.condition] = list(super().__iter__())
        return iter(self.kept[self.condition])


def plan(candidates: Sequence[str], mixtures: Sequence[str], seeds: Sequence[int]) -> list[Key]:
    """Lists the models (training, seed) in the order of their training."""
    spread = (*candidates[::3], *candidates[1::3], *candidates[2::3])
    orders = itertools.chain([candidates], itertools.repeat(spread))
    keys = [(name, seed) for seed, order in zip(seeds, orders) for name in (augmentation.STANDARD, *mixtures, *order)]
    more = range(max(seeds) + 1, max(seeds) + 1 + max(0, STANDARD_SEEDS - len(seeds)))
    return [*keys, *((augmentation.STANDARD, seed) for seed in more)]


def ask(models, shown):
    """Asks models about images; only `CONFIDENT` keeps its confidence, so that the answers stay small."""
    found = correctness.ask(models, shown)
    return {key: one if key == CONFIDENT else Answered(one.correct) for key, one in found.items()}


def _missing(folder, keys, conditions):
    """Lists the numbers of the models that have not answered under all conditions."""
    known = answers.read(folder) if any((folder / answers.FOLDER).glob("*.npz")) else ()
    return [n for n, key in enumerate(keys) if not all((*key, c.corruption, c.label) in known for c in conditions)]


def run(config: ConfigDict, workdir: pathlib.Path) -> str:
    """Trains and evaluates what is missing; returns a line on what the workdir holds."""
    study.refuse_unnamed(config)
    trained_models.refuse_eval_only(config)
    if CONFIDENT[1] not in config.study.seeds:
        raise ValueError(
            f"expected {CONFIDENT[1]} among config.study.seeds, whose standard model keeps its confidence, found "
            f"{tuple(config.study.seeds)}"
        )
    names = expand(config.study.corruptions)
    conditions = list_conditions(names, RANDOM)
    keys = plan(names, config.study.mixtures, config.study.seeds)
    mesh = meshes.study_mesh(config.train.batch_size, config.study.parallel)
    with workdirs.open_workdir(workdir, config.to_dict(), free=study.STUDY_FREE) as opened:
        dataset, train_split, test_split = study.load_for_training(config, mesh, opened)
        kept = Kept if test_split.images.nbytes * len(conditions) <= KEPT_BYTES else Shown
        shown = kept.of(config, test_split, mesh, dataset)
        check_answers(shown, conditions, opened)
        missing = [keys[number] for number in opened.for_all(_missing, opened.path, keys, conditions)]
        log.info(
            "%d of %d models have answered under all %d conditions.",
            len(keys) - len(missing),
            len(keys),
            len(conditions),
        )
        begun, done = time.monotonic(), 0
        for seed, of_seed in itertools.groupby(missing, key=lambda key: key[1]):
            names = [name for name, _ in of_seed]
            trainings = study.Trainings(config, names, (seed,), opened, dataset, train_split, mesh)
            for models in trainings.train_in_parts(at_most=1):
                Evaluation(models, shown, conditions, opened, ask).run(progress=False)
                done += len(models)
                minutes, left = (time.monotonic() - begun) / 60 / done, len(missing) - done
                log.info(
                    "%.1f minutes a model so far; %d are left, about %.1f hours.", minutes, left, minutes * left / 60
                )
    return f"All {len(keys)} models of the study have answered: python -m projects.coverage.results --workdir={workdir}"


if __name__ == "__main__":
    cli.define_flags("configs/coverage.py", hosts=True)
    command.run(cli.main(run), cli.parse)
