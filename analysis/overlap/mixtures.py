"""Gains of models trained on a whole benchmark, on the corruptions in and outside of it: mixtures.csv.

Both models answer the same images under the same draws, so the gain on a corruption is a mean over
images of a difference, and its standard error needs no assumption of independence. With the wrong
answers w[s,i] of image i at severity s and w[0,i] on the clean image, and the errors E of a
reference network:

    raw CE      = mean_i  100 sum_s w[s,i] / sum_s E[s]
    relative CE = mean_i  100 sum_s (w[s,i] - w[0,i]) / sum_s (E[s] - E[0])
    gain        = CE of the standard model - CE of the model, positive if the model is better

If training on all of a benchmark brings a gain on a corruption outside it, the benchmark covers that corruption.
Source: Laugros, Caplier, Ospici, "Increasing the Coverage and Balance of Robustness Benchmarks by
Using Non-Overlapping Corruptions", Table 1 (m_IC and m_INOC).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis import frames
from analysis.references import Reference
from analysis.tables import CLEAN

COLUMNS = ("mixture", "corruption", "member", "raw_ce", "raw_gain", "raw_gain_se", "relative_ce", "relative_gain")
COLUMNS += ("relative_gain_se",)


class Gain(NamedTuple):
    """Corruption errors of two models in percent, standard - model, and its paired standard
    error.
    """

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


def gains(standard: Mapping[str, ArrayLike], model: Mapping[str, ArrayLike], reference: Reference) -> Comparison:
    """Computes the gains of a model over the standard one from the answers to every image.

    Args:
      standard: the standard model's correctness: `clean` -> [N], corruption -> [S, N] at the
        severities of the reference in their order (or [N], for one severity). 0 and 1, or the
        fraction of several trainings that answered right; noise between trainings is then not in
        the standard error.
      model: the same of the other model: the same conditions, images and draws.
      reference: an `analysis.references.Reference` with errors for every corruption, by plain or
        qualified name.

    Raises:
      ValueError: other conditions, shapes or values; a corruption without reference errors; a
        reference that loses nothing under a corruption.
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
        reference_error = reference_errors(reference, name)
        lost = sum(reference_error) - len(reference_error) * reference.clean
        if lost <= 0:
            raise ValueError(f"expected the reference to lose accuracy under {name}, found a change of {-lost:.4f}")
        wrong = [_wrong(answers[name], len(reference_error), number, name).sum(axis=0) for answers in (standard, model)]
        raw[name] = [100 * w / sum(reference_error) for w in wrong]
        relative[name] = [100 * (w - len(reference_error) * w0) / lost for w, w0 in zip(wrong, clean, strict=True)]
    return Comparison(
        {name: _paired(*values) for name, values in raw.items()},
        {name: _paired(*values) for name, values in relative.items()},
        _paired(*np.mean(list(raw.values()), axis=0)),
        _paired(*np.mean(list(relative.values()), axis=0)),
        number,
    )


def reference_errors(reference: Reference, name: str) -> Sequence[float]:
    """Looks up the errors of a reference network on a corruption, which may be named with its
    benchmark.
    """
    for key in (name, name.rpartition("/")[2]):
        if key in reference.errors:
            return reference.errors[key]
    raise ValueError(f"expected a corruption that {reference.name} has errors of, found {name!r}")


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


def standard_reference(standard: Mapping[str, np.ndarray]) -> Reference:
    """Takes the standard model of a study as the reference network of CE: its own CE is 100
    everywhere.

    Args:
      standard: its correctness, `clean` and corruptions -> [N], severity drawn per image.
    """
    errors = {name: (1 - float(np.mean(bits)),) for name, bits in standard.items() if name != CLEAN}
    return Reference("standard", errors, 1 - float(np.mean(standard[CLEAN])), ("random",))


def compare(
    standard: Mapping[str, np.ndarray], mixtures: Mapping[str, Mapping[str, np.ndarray]]
) -> dict[str, Comparison]:
    """Compares models trained on mixtures with the standard model of their study: {mixture: `Comparison`}.

    Corruptions under which the standard model loses no accuracy, where CE is not defined, are left out.

    Args:
      standard: correctness of the standard model, `clean` and corruptions -> [N].
      mixtures: mixture -> the same of the model trained on it.
    """
    reference = standard_reference(standard)
    defined = {CLEAN, *(name for name, (error,) in reference.errors.items() if error > reference.clean)}
    standard = {name: bits for name, bits in standard.items() if name in defined}
    return {
        mixture: gains(standard, {name: answers[name] for name in standard}, reference)
        for mixture, answers in mixtures.items()
    }


def mixtures_frame(comparisons: Mapping[str, Comparison], members: Mapping[str, Collection[str]]) -> pd.DataFrame:
    """Makes the frame of mixtures.csv.

    Args:
      comparisons: of `compare`.
      members: mixture -> names of its corruptions.
    """
    rows: Iterable[Sequence] = (
        (mixture, name, int(name in members[mixture]), *comparison.raw[name][1:], *relative[1:])
        for mixture, comparison in comparisons.items()
        for name, relative in comparison.relative.items()
    )
    return frames.of_rows(rows, COLUMNS)


def mixture_text(mixture: str, comparison: Comparison, members: Collection[str]) -> str:
    """Lists the relative CE of a model trained on a mixture, and its gain over the standard model,
    by corruption.
    """
    lines = [f"{mixture}: relative CE, gain over the standard model (which has 100)"]
    for name, gain in comparison.relative.items():
        inside = "in the mixture" if name in members else ""
        lines.append(f"  {name:34s} {gain.model:6.1f}  {gain.gain:6.1f} +- {gain.se:.1f}   {inside}")
    mean = comparison.relative_mce
    lines.append(f"  {'mean':34s} {mean.model:6.1f}  {mean.gain:6.1f} +- {mean.se:.1f}")
    return "\n".join(lines)
