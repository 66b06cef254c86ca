"""Every model under every condition; what the same models were evaluated under before is read
back.

Not by the loop of `corruptions.evaluate`, which asks one function about batches of the host: here
images are corrupted once for all models that lack answers, stay split over a mesh of devices and go
through one program in blocks, and a model may be prepared for each condition.
"""

import pathlib
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from analysis.answers import Key
from evaluation import correctness
from evaluation.answers import Answers
from evaluation.conditions import Condition
from evaluation.correctness import Model
from evaluation.shown import Shown, ShownNatural, ShownStored
from runtime.progress import bar
from training.checkpoint import digest


def evaluate_models(
    models: Mapping[Key, Model],
    shown: Shown | ShownNatural | ShownStored,
    conditions: Iterable[Condition],
    workdir: pathlib.Path,
    prepare: Callable[[Model, Shown], Model] | None = None,
    enhance: str = "",
) -> dict[Condition, dict[Key, np.ndarray]]:
    """Evaluates every model under every condition, but for the answers that the workdir holds.

    Args:
      models: {(name, seed): (graphdef, state)}.
      shown: the test images; all models see the same.
      conditions: under which they are shown.
      workdir: directory that keeps the answers, each condition as soon as it is done.
      prepare: gives the model for a condition from its images, such as one adapted to them.
      enhance: enhancement that the models work with (`corruptions.enhance`); their names tell
        which, see `marked`.

    Returns:
      {condition: {(name, seed): bool [N], which images are answered correctly}}.

    Raises:
      runtime.workdirs.WorkdirError: the answers there are to other images, or damaged.
    """
    answers = Answers(workdir, len(shown), shown.draws, digests(models), shown.alone)
    correct = {}
    for condition in bar("condition", conditions):
        known = answers.read(condition)
        missing = {key: model for key, model in models.items() if key not in known}
        if missing:
            images = shown.under(condition)
            if prepare:
                missing = {key: prepare(model, images) for key, model in missing.items()}
            known |= correctness.of_models(missing, images, enhance)
            answers.write(condition, known)
        correct[condition] = {key: known[key] for key in models}
    return correct


def marked(models: Mapping[Key, Model], label: str) -> dict[Key, Model]:
    """Names models after what is done at test time, for their answers are others: MODEL+label."""
    return {(f"{name}+{label}", seed): model for (name, seed), model in models.items()}


def digests(models: Mapping[Key, Model]) -> dict[Key, str]:
    """Computes what tells a model from others of its name: {(name, seed): digest of its state}, as
    final.json has it.
    """
    return {key: digest(state) for key, (_, state) in models.items()}
