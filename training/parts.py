"""The models of a study: trained where they are missing, all that share a program with one
compile.
"""

import functools
import os
from collections.abc import Iterator, Sequence
from typing import Any

from flax import nnx
from jax.sharding import Mesh
from ml_collections import ConfigDict

from data.dataset import Dataset, Split
from runtime import meshes
from runtime.progress import bar
from runtime.workdirs import open_workdir
from training import augmentation, loop, schemes, study
from training.states import TrainState

Key = tuple[str, int]
"""(training, seed) of a model."""
Model = tuple[nnx.GraphDef, TrainState]


def train_models(
    config: ConfigDict,
    trainings: Sequence[str],
    seeds: Sequence[int],
    workdir: str | os.PathLike,
    dataset: Dataset,
    split: Split,
    mesh: Mesh,
) -> dict[Key, Model]:
    """Trains every (training, seed) that is not finished; reads the others back.

    config.study.parallel models train at once, on devices of their own, with one compiled train
    step. With config.train.init_from `standard`, the other models start from the standard one of
    their seed and train with the settings of config.study.finetune, once all standard models are
    there.

    Args:
      config: of the study.
      trainings: augmentations (see `augmentation.members`) or schemes (`training.schemes`),
        `standard` among them where others start from it.
      seeds: of the models of each training.
      workdir: of the study.
      dataset: gives the number of classes.
      split: what to train on, replicated over `mesh`.
      mesh: with one row, see `meshes.study_mesh`.

    Returns:
      {(training, seed): (graphdef, state)}.

    Raises:
      ValueError: settings of a single training run.
      NonFiniteLossError, SystemExit: as `loop.train_jobs`.
    """
    models = {}
    for part in train_in_parts(config, trainings, seeds, workdir, dataset, split, mesh):
        models |= part
    return {key: models[key] for key in _keys(trainings, seeds)}


def train_in_parts(
    config: ConfigDict,
    trainings: Sequence[str],
    seeds: Sequence[int],
    workdir: str | os.PathLike,
    dataset: Dataset,
    split: Split,
    mesh: Mesh,
    at_most: int = 0,
) -> Iterator[dict[Key, Model]]:
    """Trains as `train_models` does and yields the models part by part, so that not all of them
    need be held at once.

    Models of a part share one compiled train step: those with the JSD loss, with float32 images and
    with uint8 images are apart from each other.

    Args:
      config, trainings, seeds, workdir, dataset, split, mesh: as of `train_models`.
      at_most: models of a part, rounded up to whole rounds of those that train at once; 0: all.
    """
    _refuse_single(config)
    given = {schemes.canonical(name): name for name in trainings}
    keys = _keys(trainings, seeds)
    finetuned = [key for key in keys if config.train.init_from and key[0] != augmentation.STANDARD]
    by_program: dict[Any, list[Key]] = {}
    for key in keys:
        if key not in finetuned:
            recipe = _training_config(config, given[key[0]], key[1]).train
            kind = bool(recipe.jsd_weight), augmentation.keeps_levels(augmentation.scheme_of(recipe), recipe.jsd_weight)
            by_program.setdefault(kind, []).append(key)
    starts: dict[int, tuple[ConfigDict, TrainState]] = {}  # of fine-tuned models: the standard ones
    with bar("model", total=len(keys)) as progress:
        for group in filter(None, (*by_program.values(), finetuned)):
            rows = meshes.training_mesh(mesh, config.study.parallel, len(group), config.train.batch_size)
            devices, together = rows.shape["data"], rows.shape["model"]
            length = -(-(at_most or len(group)) // together) * together
            for part in (group[first : first + length] for first in range(0, len(group), length)):
                configs = {
                    key: study.finetuned_config(config, starts[key[1]][0], key[0], devices)
                    if group is finetuned
                    else _training_config(config, given[key[0]], key[1], devices)
                    for key in part
                }
                jobs = [
                    loop.Job(
                        configs[key],
                        functools.partial(
                            open_workdir, study.model_dir(workdir, *key), configs[key].to_dict(), free=study.FREE
                        ),
                        description=f"{key[0]} seed {key[1]}",
                        title=f"Model {keys.index(key) + 1} of {len(keys)}: {key[0]}, seed {key[1]}.",
                        initial=starts[key[1]][1] if group is finetuned else None,
                    )
                    for key in part
                ]
                step = functools.partial(progress.update, 1)
                trained = loop.train_jobs(jobs, split, dataset.num_classes, mesh=rows, target=mesh, on_finish=step)
                models = dict(zip(part, trained))
                if finetuned:
                    starts |= {
                        seed: (configs[name, seed], models[name, seed][1])
                        for name, seed in part
                        if name == augmentation.STANDARD
                    }
                yield models
                del models, trained  # or the next part would train beside them


def _keys(trainings, seeds):
    return [(name, seed) for seed in seeds for name in dict.fromkeys(map(schemes.canonical, trainings))]


def _training_config(config, training, seed, devices=1):
    """`model_config` of a training, be it a scheme or an augmentation."""
    if schemes.known(training):
        return study.model_config(schemes.applied(config, training), augmentation.STANDARD, seed, devices)
    return study.model_config(config, training, seed, devices)


def _refuse_single(config):
    """Refuses settings of a single training run."""
    study.refuse_checkpoint(config)
    if config.train.init_from not in ("", augmentation.STANDARD):
        raise ValueError(
            f"expected config.train.init_from '' or 'standard' in a study, found {config.train.init_from!r}; "
            "train.py starts from the model of any workdir"
        )
    if config.train.scheme:
        raise ValueError(
            f"expected config.train.scheme '' in a study, found {config.train.scheme!r}; tools.scheme_study trains "
            "with each of config.study.schemes, train.py with one scheme"
        )
