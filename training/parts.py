"""Trains the missing models of a study; those that share a program share one compile."""

import dataclasses
import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flax import nnx
from jax.sharding import Mesh
from ml_collections import ConfigDict

from data.dataset import Dataset, Split
from runtime import meshes
from runtime.progress import bar
from runtime.workdirs import open_workdir
from training import augmentation, loop, schemes, study
from training.plan import keeps_levels, scheme_of
from training.states import Spec, TrainState

AT_ONCE = 32
"""Number of models held at the same time, where more are trained than fit."""
Key = tuple[str, int]
"""(training, seed) of a model."""
Model = tuple[nnx.GraphDef, TrainState]


@dataclasses.dataclass(frozen=True, eq=False)
class Trainings:
    """The models of a study, one for each training and seed, and their training images.

    Attributes:
      config: config of the study.
      trainings: augmentations (see `augmentation.members`) or schemes (`training.schemes`),
        `standard` among them where others start from it.
      seeds: seeds of the models of each training.
      workdir: folder of the study.
      dataset: gives the number of classes.
      split: training images, replicated over `mesh`.
      mesh: with one row, see `meshes.study_mesh`.

    Raises:
      ValueError: settings of a single training run.
    """

    config: ConfigDict
    trainings: Sequence[str]
    seeds: Sequence[int]
    workdir: str | os.PathLike
    dataset: Dataset
    split: Split
    mesh: Mesh

    def __post_init__(self):
        _refuse_single(self.config)

    @functools.cached_property
    def _given(self) -> dict[str, str]:
        """{canonical name of a training: its name in the settings, which tells where stored transforms lie}."""
        return {schemes.canonical(name): name for name in self.trainings}

    @functools.cached_property
    def _keys(self) -> list[Key]:
        return [(name, seed) for seed in self.seeds for name in self._given]

    def train(self) -> dict[Key, Model]:
        """Trains every model that is not finished and reads the others back.

        config.study.parallel models train at once, on devices of their own, with one compiled train
        step. With config.train.init_from `standard`, the other models start from the standard one
        of their seed and train with the settings of config.study.finetune, once all standard models
        are there.

        Returns:
          {(training, seed): (graphdef, state)}.

        Raises:
          NonFiniteLossError, SystemExit: as `loop.train_jobs`.
        """
        models = {}
        for part in self.train_in_parts():
            models |= part
        return {key: models[key] for key in self._keys}

    def train_in_parts(self, at_most: int = 0) -> Iterator[dict[Key, Model]]:
        """Trains as `train` does and yields the models part by part, so that not all of them need
        be held at once.

        Models of a part share one compiled train step: those with the JSD loss, with float32 images
        and with uint8 images are apart from each other.

        Args:
          at_most: models of a part, rounded up to whole rounds of those that train at once; 0: all.
        """
        starts: dict[int, tuple[ConfigDict, TrainState]] = {}  # seed -> the standard model, where others start from it
        needs_starts = any(map(self._is_finetuned, self._keys))
        with bar("model", total=len(self._keys)) as progress:
            step = functools.partial(progress.update, 1)
            for part, rows in self._parts(at_most):
                jobs = [self._job(key, rows.shape["data"], starts) for key in part]
                trained = loop.train_jobs(
                    jobs, self.split, self.dataset.num_classes, mesh=rows, target=self.mesh, on_finish=step
                )
                models = dict(zip(part, trained))
                if needs_starts:
                    starts |= {
                        key[1]: (self._config(key, rows.shape["data"]), models[key][1])
                        for key in part
                        if key[0] == augmentation.STANDARD
                    }
                yield models
                del models, trained  # free these models before the next group trains

    def planned(self) -> Iterator[tuple[dict[Key, ConfigDict], Mesh]]:
        """Yields the parts that `train` would train: {key: config} of models that share a program, and their mesh."""
        for part, rows in self._parts(0):
            yield {key: self._config_of(key, rows.shape["data"]) for key in part}, rows

    def _config_of(self, key: Key, devices: int, standard: ConfigDict | None = None) -> ConfigDict:
        """Makes the config of a model; `standard` is the config of the trained model that it starts from."""
        if not self._is_finetuned(key):
            return self._config(key, devices)
        name, seed = key
        standard = standard or self._config((augmentation.STANDARD, seed), devices)
        return study.finetuned_config(self.config, standard, name, devices)

    def _parts(self, at_most: int) -> Iterator[tuple[list[Key], Mesh]]:
        """Yields the keys of models that share a program, and the mesh they train on."""
        groups: dict[Any, list[Key]] = {}
        for key in self._keys:
            if not self._is_finetuned(key):
                recipe = self._config(key).train
                kind = bool(recipe.jsd_weight), keeps_levels(scheme_of(recipe), recipe.jsd_weight)
                groups.setdefault(kind, []).append(key)
        finetuned = list(filter(self._is_finetuned, self._keys))
        for group in filter(None, (*groups.values(), finetuned)):
            rows = meshes.training_mesh(self.mesh, self.config.study.parallel, len(group), self.config.train.batch_size)
            together = rows.shape["model"]
            length = -(-(at_most or len(group)) // together) * together
            for first in range(0, len(group), length):
                yield group[first : first + length], rows

    def _job(self, key: Key, devices: int, starts: Mapping[int, tuple[ConfigDict, TrainState]]) -> loop.Job:
        name, seed = key
        standard, initial = starts[seed] if self._is_finetuned(key) else (None, None)
        config = self._config_of(key, devices, standard)
        folder = study.model_dir(self.workdir, name, seed)
        return loop.Job(
            Spec.of(config),
            functools.partial(open_workdir, folder, config.to_dict(), free=study.FREE),
            description=f"{name} seed {seed}",
            title=f"Model {self._keys.index(key) + 1} of {len(self._keys)}: {name}, seed {seed}.",
            initial=initial,
        )

    def _is_finetuned(self, key: Key) -> bool:
        return bool(self.config.train.init_from) and key[0] != augmentation.STANDARD

    def _config(self, key: Key, devices: int = 1) -> ConfigDict:
        """Makes the config of a model that starts from drawn parameters."""
        name, seed = key
        training = self._given[name]
        if schemes.known(training):
            return study.model_config(schemes.applied(self.config, training), augmentation.STANDARD, seed, devices)
        return study.model_config(self.config, training, seed, devices)


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
