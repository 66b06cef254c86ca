"""What models trained on a whole benchmark gain on each corruption, in and outside of it: mixtures.csv.

Source: Laugros, Caplier, Ospici, "Increasing the Coverage and Balance of Robustness Benchmarks by Using
Non-Overlapping Corruptions", Table 1 (m_IC and m_INOC).
"""

import numpy as np

from analysis.comparison.models import gains
from analysis.references import Reference
from analysis.tables import CLEAN, write_rows

HEADER = (
    "mixture", "corruption", "member", "raw_ce", "raw_gain", "raw_gain_se", "relative_ce", "relative_gain",
    "relative_gain_se",
)  # fmt: skip


def own_reference(standard):
    """The standard model of a study as the reference network of CE: its own CE is 100 everywhere.

    Args:
      standard: its correctness, `clean` and corruptions -> [N], severity drawn per image.
    """
    errors = {name: (1 - float(np.mean(bits)),) for name, bits in standard.items() if name != CLEAN}
    return Reference("standard", errors, 1 - float(np.mean(standard[CLEAN])), ("random",))


def write_mixtures(path, standard, mixtures, members, comment=None):
    """Writes mixtures.csv atomically; returns {mixture: `analysis.comparison.models.Comparison`}.

    Corruptions under which the standard model loses no accuracy, where CE is not defined, are left out.

    Args:
      standard: correctness of the standard model, `clean` and corruptions -> [N].
      mixtures: mixture -> the same of the model trained on it.
      members: mixture -> names of its corruptions.
    """
    reference = own_reference(standard)
    defined = {CLEAN, *(name for name, (error,) in reference.errors.items() if error > reference.clean)}
    standard = {name: bits for name, bits in standard.items() if name in defined}
    found, rows = {}, []
    for mixture, answers in mixtures.items():
        one = gains(standard, {name: answers[name] for name in standard}, reference)
        found[mixture] = one
        for name, relative in one.relative.items():
            raw = one.raw[name]
            member = int(name in members[mixture])
            rows.append(
                (mixture, name, member, raw.model, raw.gain, raw.se, relative.model, relative.gain, relative.se)
            )
    write_rows(path, HEADER, rows, comment)
    return found
