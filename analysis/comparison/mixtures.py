"""What models trained on a whole benchmark gain on each corruption, in and outside of it:
mixtures.csv.

Source: Laugros, Caplier, Ospici, "Increasing the Coverage and Balance of Robustness Benchmarks by
Using Non-Overlapping Corruptions", Table 1 (m_IC and m_INOC).
"""

import pathlib
from collections.abc import Collection, Mapping

import numpy as np

from analysis.comparison.models import Comparison, gains
from analysis.lines import write_rows
from analysis.references import Reference
from analysis.tables import CLEAN

HEADER = (
    "mixture",
    "corruption",
    "member",
    "raw_ce",
    "raw_gain",
    "raw_gain_se",
    "relative_ce",
    "relative_gain",
    "relative_gain_se",
)


def standard_reference(standard: Mapping[str, np.ndarray]) -> Reference:
    """Takes the standard model of a study as the reference network of CE: its own CE is 100
    everywhere.

    Args:
      standard: its correctness, `clean` and corruptions -> [N], severity drawn per image.
    """
    errors = {name: (1 - float(np.mean(bits)),) for name, bits in standard.items() if name != CLEAN}
    return Reference("standard", errors, 1 - float(np.mean(standard[CLEAN])), ("random",))


def write_mixtures(
    path: str | pathlib.Path,
    standard: Mapping[str, np.ndarray],
    mixtures: Mapping[str, Mapping[str, np.ndarray]],
    members: Mapping[str, Collection[str]],
    comment: str | None = None,
) -> dict[str, Comparison]:
    """Writes mixtures.csv atomically; returns {mixture: `analysis.comparison.models.Comparison`}.

    Corruptions under which the standard model loses no accuracy, where CE is not defined, are left
    out.

    Args:
      path: file to write.
      standard: correctness of the standard model, `clean` and corruptions -> [N].
      mixtures: mixture -> the same of the model trained on it.
      members: mixture -> names of its corruptions.
      comment: the line at the head of the table.
    """
    reference = standard_reference(standard)
    defined = {CLEAN, *(name for name, (error,) in reference.errors.items() if error > reference.clean)}
    standard = {name: bits for name, bits in standard.items() if name in defined}
    comparisons, rows = {}, []
    for mixture, answers in mixtures.items():
        comparison = gains(standard, {name: answers[name] for name in standard}, reference)
        comparisons[mixture] = comparison
        for name, relative in comparison.relative.items():
            raw = comparison.raw[name]
            member = int(name in members[mixture])
            rows.append(
                (mixture, name, member, raw.model, raw.gain, raw.se, relative.model, relative.gain, relative.se)
            )
    write_rows(path, HEADER, rows, comment)
    return comparisons


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
