"""Every model under every condition; answers that the workdir holds are not evaluated again.

Images are corrupted once for all models that lack answers, stay split over a mesh of devices and go
through one program in blocks; a model may be prepared for each condition.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from analysis.answers import Key
from evaluation import correctness
from evaluation.answers import ByCondition, Store
from evaluation.conditions import Condition
from evaluation.correctness import Model
from evaluation.shown import Shown, ShownNatural, ShownStored
from runtime.progress import bar
from training.checkpoint import digest

Ask = Callable[[dict[Key, Any], Shown | ShownNatural | ShownStored], dict[Key, np.ndarray]]
"""From models and images under a condition to {(name, seed): bool [N]}."""


class Evaluation:
    """Models under conditions of some test images, and the answers that a workdir holds.

    Making it reads and checks these answers: several are made before the first of them runs.

    Args:
      models: {(name, seed): model}; (graphdef, state) unless `ask` takes others.
      shown: the test images; all models see the same.
      conditions: under which they are shown.
      workdir: directory that keeps the answers, each condition as soon as it is done.
      ask: asks some of the models; see `networks`.
      model_digests: {(name, seed): digest of the model}; None computes them.

    Raises:
      runtime.settings.WorkdirError: the workdir holds answers to other images.
      DamagedFileError: a file of answers is damaged or was edited.
    """

    def __init__(
        self,
        models: Mapping[Key, Any],
        shown: Shown | ShownNatural | ShownStored,
        conditions: Iterable[Condition],
        workdir: str | os.PathLike,
        ask: Ask,
        model_digests: Mapping[Key, str] | None = None,
    ):
        self._models, self._shown, self._ask = models, shown, ask
        records = {condition: shown.under(condition).record for condition in conditions}
        self._store = Store(workdir, records, digests(models) if model_digests is None else model_digests)
        self._known = self._store.read()

    def run(self, progress: bool = True) -> ByCondition:
        """Evaluates what is missing and returns the answers of the models to all conditions."""
        for condition in bar("condition", self._known) if progress else self._known:
            known = self._known[condition]
            if missing := {key: model for key, model in self._models.items() if key not in known}:
                known |= self._ask(missing, self._shown.under(condition))
                self._store.write(condition, known)
        return {c: {key: known[key] for key in self._models} for c, known in self._known.items()}


def networks(prepare: Callable[[Model, Shown], Model] | None = None, enhance: str = "") -> Ask:
    """Makes the `ask` of an `Evaluation` of networks.

    Args:
      prepare: gives the model for a condition from its images, such as one adapted to them.
      enhance: enhancement that the models work with (`corruptions.enhance`); their names tell
        which, see `marked`.
    """

    def ask(models, shown):
        prepared = {key: prepare(model, shown) for key, model in models.items()} if prepare else models
        return correctness.of_models(prepared, shown, enhance)

    return ask


def evaluate_models(
    models: Mapping[Key, Model],
    shown: Shown | ShownNatural | ShownStored,
    conditions: Iterable[Condition],
    workdir: str | os.PathLike,
    prepare: Callable[[Model, Shown], Model] | None = None,
    enhance: str = "",
) -> ByCondition:
    """Evaluates networks under conditions at once; see `Evaluation` and `networks`."""
    return Evaluation(models, shown, conditions, workdir, networks(prepare, enhance)).run()


def check_answers(
    shown: Shown | ShownNatural | ShownStored, conditions: Iterable[Condition], workdir: str | os.PathLike
) -> None:
    """Checks the answers that a workdir holds to conditions, before models are trained.

    Raises:
      WorkdirError, DamagedFileError: see `Evaluation`.
    """
    Evaluation({}, shown, conditions, workdir, networks())


def marked(models: Mapping[Key, Model], label: str) -> dict[Key, Model]:
    """Appends to the names of models what changes them at test time: MODEL+label."""
    return {(f"{name}+{label}", seed): model for (name, seed), model in models.items()}


def digests(models: Mapping[Key, Model]) -> dict[Key, str]:
    """Computes the digest of the state of each model, as final.json has it: {(name, seed): digest}."""
    return {key: digest(state) for key, (_, state) in models.items()}
