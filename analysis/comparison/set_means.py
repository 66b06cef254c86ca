"""Mean corruption errors over sets of corruptions: do gains on a benchmark come from corruptions
that overlap?

A benchmark is cut into the corruptions of largest mean overlap and the rest. A model made robust to
a few overlapping corruptions gains on the first set more than on the second. Source: Laugros,
Caplier, Ospici, "Using the Overlapping Score to Improve Corruption Benchmarks", Table 1.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from analysis import scores
from analysis.comparison.models import reference_errors
from analysis.overlap.balance import mean_overlap
from analysis.references import Reference
from analysis.tables import CLEAN, STANDARD, Count


class CorruptionErrors(NamedTuple):
    """Raw and relative CE of one model, corruption -> percent."""

    raw: dict[str, float]
    relative: dict[str, float]


class SetMean(NamedTuple):
    """Mean error over a set of corruptions in percent, and how much lower it is than the standard
    model's.
    """

    mean: float
    gain: float


def corruption_errors(
    errors: Mapping[str, float | Sequence[float]], clean_error: float, reference: Reference
) -> CorruptionErrors:
    """Computes raw and relative CE of any corruptions that the reference has; a whole benchmark is
    not needed.

    Args:
      errors: corruption (plain or qualified name) -> error at each severity of the reference, in
        [0, 1]; a single number is the mean over severities.
      clean_error: the model's error on clean images.
      reference: whose errors are divided by.

    Raises:
      ValueError: a corruption that the reference has no errors of.
    """
    raw, relative = {}, {}
    for name, error in errors.items():
        normaliser = reference_errors(reference, name)
        if np.ndim(error) == 0:
            normaliser = [float(np.mean(normaliser))]
        raw[name] = scores.corruption_error(error, normaliser)
        relative[name] = scores.relative_corruption_error(error, clean_error, normaliser, reference.clean)
    return CorruptionErrors(raw, relative)


def unnormalised_errors(counts: Iterable[Count]) -> dict[str, dict[str, float]]:
    """Averages errors over severities and seeds: {model: {corruption: percent}}, without the clean
    images.
    """
    cells = {}
    for count in counts:
        if count.corruption != CLEAN:
            cells.setdefault(count.model, {}).setdefault(count.corruption, []).append(count.error)
    return {
        model: {name: 100 * float(np.mean(errors)) for name, errors in by_name.items()}
        for model, by_name in cells.items()
    }


def set_means(
    values: Mapping[str, Mapping[str, float]], sets: Mapping[str, Sequence[str]], standard: str = STANDARD
) -> dict[str, dict[str, SetMean]]:
    """Averages the errors of every model over sets of corruptions, and counts gains from the
    standard model.

    Args:
      values: model -> {corruption: error in percent}, raw, relative or unnormalised; one is
        `standard`.
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
    for model, errors in values.items():
        for label, members in sets.items():
            missing = [name for name in members if name not in errors]
            if missing or not members:
                raise ValueError(f"expected values of the corruptions in {label!r} for {model!r}, missing {missing}")
        means[model] = {label: float(np.mean([errors[name] for name in members])) for label, members in sets.items()}
    return {
        model: {label: SetMean(mean, means[standard][label] - mean) for label, mean in by_label.items()}
        for model, by_label in means.items()
    }


def split_by_overlap(overlap: ArrayLike, names: Sequence[str], size: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Cuts corruptions in two: the `size` of largest mean overlap, and the rest; both in the order
    of `names`.

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


def set_means_text(
    means: Mapping[str, Mapping[str, SetMean]],
    sets: Mapping[str, Sequence[str]],
    beside: Mapping[str, Mapping[str, float]] | None = None,
) -> str:
    """Lists mean error and gain of every model on every set, as Markdown.

    Args:
      means: of `set_means`.
      sets: label -> corruptions.
      beside: title of a further column -> {model: percent}.
    """
    beside = beside or {}
    lines = [f"{label}: {', '.join(members)}" for label, members in sets.items()]
    titles = [*(title for label in sets for title in (label, "gain")), *beside]
    lines += ["", f"| model | {' | '.join(titles)} |", "|---|" + "---:|" * len(titles)]
    for model, by_label in means.items():
        cells = [text for mean, gain in by_label.values() for text in (f"{mean:.1f}", f"{gain:+.1f}")]
        cells += [f"{values[model]:.1f}" for values in beside.values()]
        lines.append(f"| {model} | {' | '.join(cells)} |")
    return "\n".join(lines)
