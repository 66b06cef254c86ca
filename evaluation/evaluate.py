"""Every model under every condition; what was evaluated before is read back."""

import jax.numpy as jnp
import numpy as np

from evaluation import correctness
from evaluation.answers import Answers
from evaluation.conditions import Condition
from runtime.progress import bar
from training import augmentation


def evaluate_models(config, models, found_conditions, workdir, split, mesh, prepare=None):
    """Evaluates what is missing; returns {condition: {(model, seed): bool [N]}}.

    Args:
      models: {(model, seed): (graphdef, state)}.
      found_conditions: list of `evaluation.Condition`.
      prepare: `(model, shown) -> model`, the model for a condition, from its images, an `evaluation.Shown`.
    """
    options = augmentation.static_options(config.train)
    answers = Answers(workdir, split.images.shape[0], {"seed": config.eval.seed, "options": options})
    results = {}
    for condition in bar("condition", found_conditions):
        known = answers.read(condition)
        missing = [key for key in models if key not in known]
        if missing:
            shown = (split, condition, config.eval.seed, options.get(condition.corruption), config.eval.batch_size)
            chosen = {key: models[key] for key in missing}
            if prepare:
                images = correctness.Shown(mesh, *shown)
                chosen = {key: prepare(model, images) for key, model in chosen.items()}
            known |= correctness.answers(mesh, chosen, *shown)
            answers.write(condition, known)
        results[condition] = {key: known[key] for key in models}
    return results


def evaluate_stored(config, models, source, workdir, mesh):
    """Evaluates every model on a stored corrupted dataset, streamed from disk, each condition once.

    Args:
      models: {(model, seed): (graphdef, state)}.
      source: a `data.corrupted.CorruptedDataset`.
      workdir: directory of this dataset's answers.

    Returns:
      {condition: {(model, seed): bool [N]}}.
    """
    answers = Answers(workdir, source.number, {"source": dict(source.provenance)})
    results = {}
    for name, severity in bar("condition", source.conditions()):
        condition = Condition(name, str(severity))
        known = answers.read(condition)
        missing = [key for key in models if key not in known]
        if missing:
            parts = {key: [] for key in missing}
            for images, labels in source.batches(name, severity, config.eval.batch_size):
                images, labels = jnp.asarray(images), jnp.asarray(labels)
                for key in missing:
                    bits = correctness.correctness(mesh, *models[key], images, labels, config.eval.batch_size)
                    parts[key].append(bits)
            known |= {key: np.concatenate(bits) for key, bits in parts.items()}
            answers.write(condition, known)
        results[condition] = {key: known[key] for key in models}
    return results
