"""Which reference an evaluation takes, and what differs from its conditions.

A reference that was named must hold, or its numbers are labelled; without one AlexNet's published
errors are taken for the corruptions that they hold for.
"""

import dataclasses
from collections.abc import Iterable, Mapping

from analysis.errors import reference as sources
from analysis.errors.conditions import FIELDS, Conditions, differences
from analysis.errors.reference import Reference
from analysis.errors.summary import NONE
from runtime.schema import SettingsError

REFUSE, LABEL = "refuse", "label"


@dataclasses.dataclass(frozen=True)
class Choice:
    """What errors are divided by.

    Attributes:
      references: of which each has its own corruptions.
      different: {reference's name: {what: sentence}}, see `conditions.differences`; with a label.
      unusable: {corruption: sentence} of those that a reference was not taken for; only where none
        was named.
    """

    references: tuple[Reference, ...] = ()
    different: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    unusable: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def of(self, corruption: str) -> Reference | None:
        """Gives the reference of a corruption, or None."""
        if corruption in self.unusable:
            return None
        return next((reference for reference in self.references if corruption in reference.errors), None)

    def label(self, corruptions: Iterable[str], name: str) -> str:
        """Writes what differs for some corruptions, for a column of a table:
        `dataset;noc/hue:range`, or `none`.
        """
        names = set(corruptions)
        keys = [key for key in self.different.get(name, {}) if key in FIELDS or key.rpartition(":")[0] in names]
        return ";".join(keys) or NONE

    def sentences(self) -> list[str]:
        """Says in one line each which numbers are marked, and why there are others none of."""
        marked = [
            f"errors relative to {name} hold for other conditions: {'; '.join(sentences.values())}"
            for name, sentences in self.different.items()
            if sentences
        ]
        reasons = list(dict.fromkeys(self.unusable.values()))
        told = reasons[:2] + ([f"and {len(reasons) - 2} more"] if len(reasons) > 2 else [])
        return marked + ([f"no CE or mCE by AlexNet's published errors: {'; '.join(told)}"] if told else [])


def choose(asked: str, mismatch: str, found: Conditions) -> Choice:
    """Finds the reference for errors measured under some conditions.

    Args:
      asked: `config.eval.reference`: `alexnet`, a file, a workdir, or "" for AlexNet's errors where
        they hold.
      mismatch: `config.eval.reference_mismatch`: `refuse` or `label`, of a reference that was
        named.
      found: the conditions.

    Raises:
      SettingsError: conditions differ and are not to be labelled; each difference is named.
      FileNotFoundError, ValueError: the reference cannot be read.
    """
    if not asked:
        return _where_they_hold(sources.alexnet(), found)
    references = sources.read(asked)
    different = {
        reference.name: differences(
            reference.conditions, found, [name for name in reference.errors if name in found.corruptions]
        )
        for reference in references
        if any(name in reference.errors for name in found.corruptions)
    }
    wrong = [f"{name}: {sentence}" for name, by_key in different.items() for sentence in by_key.values()]
    if wrong and mismatch == REFUSE:
        head = f"config.eval.reference={asked}: expected errors measured as those of the reference, found others:"
        remedy = "take a reference that fits, or --config.eval.reference_mismatch=label, which marks the numbers"
        raise SettingsError("\n  ".join([head, *wrong, remedy]))
    return Choice(references, different)


def _where_they_hold(references, found):
    unusable = {}
    for reference in references:
        names = [name for name in reference.errors if name in found.corruptions]
        different = differences(reference.conditions, found, names)
        general = [different[field] for field in FIELDS if field in different]
        for name in names:
            of_corruption = [text for key, text in different.items() if key.rpartition(":")[0] == name]
            if general or of_corruption:
                unusable[name] = "; ".join(general or of_corruption)
    return Choice(references, {}, unusable)
