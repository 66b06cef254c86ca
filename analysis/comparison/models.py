"""One model against another: gains in corruption error with paired standard errors, and means over sets.

Both models answer the same images under the same draws, so the gain on a corruption is a mean over images
of a difference, and its standard error needs no assumption of independence. With the wrong answers w[s,i]
of image i at severity s and w[0,i] on the clean image, and the errors E of a reference network:

    raw CE      = mean_i  100 sum_s w[s,i] / sum_s E[s]
    relative CE = mean_i  100 sum_s (w[s,i] - w[0,i]) / sum_s (E[s] - E[0])
    gain        = CE of the standard model - CE of the model, positive if the model is better

A benchmark covers a corruption outside it, in the sense of what training on all of it brings, if the model
trained on the mixture of its members gains there.
Sources: Laugros, Caplier, Ospici, "Increasing the Coverage and Balance of Robustness Benchmarks by Using
Non-Overlapping Corruptions", Table 1 (mixtures); "Using the Overlapping Score to Improve Corruption
Benchmarks", Table 1 (two halves of a benchmark).
"""

from typing import NamedTuple

import numpy as np

from analysis import scores
from analysis.overlap.balance import mean_overlap
from analysis.tables import CLEAN, STANDARD


class Gain(NamedTuple):
    """Corruption errors of two models in percent, standard - model, and its paired standard error."""

    standard: float
    model: float
    gain: float
    se: float


class Comparison(NamedTuple):
    """Gains of a model over the standard one.

    Attributes:
      raw, relative: corruption -> `Gain` in raw and in relative CE.
      mce, relative_mce: `Gain` in their plain means over the corruptions.
      number: test images.
    """

    raw: dict[str, Gain]
    relative: dict[str, Gain]
    mce: Gain
    relative_mce: Gain
    number: int


class CorruptionErrors(NamedTuple):
    """Raw and relative CE of one model, corruption -> percent."""

    raw: dict[str, float]
    relative: dict[str, float]


class SetMean(NamedTuple):
    """Mean CE over a set of corruptions, and how much lower it is than the standard model's."""

    mean: float
    gain: float


def gains(standard, model, reference):
    """Gains of a model over the standard one from the answers to every image.

    Args:
      standard: the standard model's correctness: `clean` -> [N], corruption -> [S, N] at the severities
        of the reference in their order (or [N], for one severity). 0 and 1, or the fraction of several
        trainings that answered right; noise between trainings is then not in the standard error.
      model: the same of the other model: the same conditions, images and draws.
      reference: an `analysis.references.Reference` with errors for every corruption, by plain or
        qualified name.

    Raises:
      ValueError: other conditions, shapes or values; a corruption without reference errors; a reference
        that loses nothing under a corruption.
    """
    conditions = [name for name in standard if name != CLEAN]
    if CLEAN not in standard or not conditions or set(standard) != set(model):
        raise ValueError(
            f"expected answers to clean images and the same corruptions of both models, found {sorted(standard)} "
            f"and {sorted(model)}"
        )
    number = np.shape(standard[CLEAN])[-1] if np.ndim(standard[CLEAN]) == 1 else 0
    if number < 2:
        raise ValueError(f"expected answers to 2 or more clean images, found shape {np.shape(standard[CLEAN])}")
    clean = [_wrong(answers[CLEAN], 1, number, CLEAN)[0] for answers in (standard, model)]
    raw, relative = {}, {}
    for name in conditions:
        own = reference_errors(reference, name)
        lost = sum(own) - len(own) * reference.clean
        if lost <= 0:
            raise ValueError(f"expected the reference to lose accuracy under {name}, found a change of {-lost:.4f}")
        wrong = [_wrong(answers[name], len(own), number, name).sum(axis=0) for answers in (standard, model)]
        raw[name] = [100 * w / sum(own) for w in wrong]
        relative[name] = [100 * (w - len(own) * w0) / lost for w, w0 in zip(wrong, clean, strict=True)]
    return Comparison(
        {name: _paired(*both) for name, both in raw.items()},
        {name: _paired(*both) for name, both in relative.items()},
        _paired(*np.mean(list(raw.values()), axis=0)),
        _paired(*np.mean(list(relative.values()), axis=0)),
        number,
    )


def corruption_errors(errors, clean_error, reference):
    """Raw and relative CE of any corruptions that the reference has; no complete benchmark is asked for.

    Args:
      errors: corruption (plain or qualified name) -> error at each severity of the reference, in [0, 1];
        a single number is the mean over severities.
      clean_error: the model's error on clean images.
      reference: an `analysis.references.Reference`.
    """
    raw, relative = {}, {}
    for name, own in errors.items():
        theirs = reference_errors(reference, name)
        if np.ndim(own) == 0:
            theirs = [float(np.mean(theirs))]
        raw[name] = scores.corruption_error(own, theirs)
        relative[name] = scores.relative_corruption_error(own, clean_error, theirs, reference.clean)
    return CorruptionErrors(raw, relative)


def reference_errors(reference, name):
    """Errors of a reference network on a corruption, which may be named with its benchmark."""
    for key in (name, name.rpartition("/")[2]):
        if key in reference.errors:
            return reference.errors[key]
    raise ValueError(f"expected a corruption that {reference.name} has errors of, found {name!r}")


def set_means(values, sets, standard=STANDARD):
    """Mean CE of every model over sets of corruptions, and its gain over the standard model.

    Args:
      values: model -> {corruption: CE}, raw or relative, which holds the standard model.
      sets: label -> names of corruptions.
      standard: the model that gains are counted from.

    Returns:
      {model: {label: `SetMean`}}.

    Raises:
      ValueError: no standard model, an empty set, or a corruption that a model was not shown.
    """
    if standard not in values:
        raise ValueError(f"expected values of the model {standard!r}, found {sorted(values)}")
    means = {}
    for model, own in values.items():
        for label, members in sets.items():
            missing = [name for name in members if name not in own]
            if missing or not members:
                raise ValueError(f"expected values of the corruptions in {label!r} for {model!r}, missing {missing}")
        means[model] = {label: float(np.mean([own[name] for name in members])) for label, members in sets.items()}
    return {
        model: {label: SetMean(mean, means[standard][label] - mean) for label, mean in own.items()}
        for model, own in means.items()
    }


def split_by_overlap(overlap, names, size):
    """Two sets of corruptions: the `size` of largest mean overlap, and the rest; both in the order of `names`.

    A model that was made robust to a few overlapping corruptions gains on the first set more than on the second.

    Raises:
      ValueError: a size outside 1..n - 1, or a corruption without a defined overlap.
    """
    names, means = tuple(names), mean_overlap(overlap)
    if len(means) != len(names) or np.isnan(means).any() or not 1 <= size < len(names):
        raise ValueError(
            f"expected an overlap of {len(names)} valid corruptions and a size in 1..{len(names) - 1}, found "
            f"mean overlaps {means.tolist()} and size {size}"
        )
    largest = set(np.argsort(-means, kind="stable")[:size].tolist())
    return (
        tuple(name for i, name in enumerate(names) if i in largest),
        tuple(name for i, name in enumerate(names) if i not in largest),
    )


def _wrong(answers, severities, number, name):
    """Wrong answers as float64 [severities, number]."""
    answers = np.atleast_2d(np.asarray(answers, float))
    if answers.shape != (severities, number) or not np.all((answers >= 0) & (answers <= 1)):
        raise ValueError(
            f"expected answers in [0, 1] of shape {(severities, number)} (severities, images) for {name}, found shape "
            f"{answers.shape}"
        )
    return 1 - answers


def _paired(standard, model):
    """Gain of per-image values [N] over per-image values [N]."""
    difference = standard - model
    se = difference.std(ddof=1) / np.sqrt(len(difference))
    return Gain(float(standard.mean()), float(model.mean()), float(difference.mean()), float(se))
