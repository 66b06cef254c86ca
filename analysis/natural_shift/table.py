"""A table of models and settings: accuracies on clean images, under corruptions, under natural
shifts.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from analysis.references import qualified_members

TITLES = {
    "imagenet_v2": "ImageNet-V2",
    "imagenet_a": "ImageNet-A",
    "imagenet_r": "ImageNet-R",
    "imagenet_sketch": "ImageNet-Sketch",
    "objectnet": "ObjectNet",
    "cifar10_1": "CIFAR-10.1",
    "cinic10": "CINIC-10",
    "imagenet_real": "ImageNet ReaL",
    "vid_robust": "ImageNet-Vid-Robust",
    "ytbb_robust": "YTBB-Robust",
}
PREFERRED = tuple(TITLES)[:7]  # shown where nobody says which; others are videos, new labels or variants
FEWEST = 4  # models that a correlation takes


@dataclasses.dataclass(frozen=True)
class Shift:
    """Accuracies under a natural shift, percent [N]; NaN where unknown.

    Attributes:
      accuracy: on the shifted images.
      clean: on clean images of the same classes.
    """

    accuracy: np.ndarray
    clean: np.ndarray


@dataclasses.dataclass(frozen=True)
class Table:
    """Accuracies of N models, percent; NaN where unknown.

    Attributes:
      source: where they come from, for people.
      models: N names, each once.
      clean: [N], on all clean test images.
      natural: {name of a natural shift: `Shift`}.
      synthetic: {corruption: [N]}, severities averaged.
      standard: bool [N], models trained on the usual images alone; lines are fitted to them.
      shown: bool [N], models whose effective robustness is compared.
    """

    source: str
    models: tuple[str, ...]
    clean: np.ndarray
    natural: Mapping[str, Shift]
    synthetic: Mapping[str, np.ndarray]
    standard: np.ndarray
    shown: np.ndarray

    def __post_init__(self):
        number = len(self.models)
        if len(set(self.models)) != number:
            twice = next(name for name in self.models if self.models.count(name) > 1)
            raise ValueError(f"{self.source}: expected every model once, found {twice} again")
        columns = {"clean": self.clean, **self.synthetic}
        for name, shift in self.natural.items():
            columns |= {name: shift.accuracy, f"clean images of {name}": shift.clean}
        for name, column in columns.items():
            known = column[~np.isnan(column)]
            if column.shape != (number,) or (known < 0).any() or (known > 100).any():
                raise ValueError(
                    f"{self.source}: expected {number} accuracies in percent for {name}, found shape {column.shape} "
                    f"and values from {known.min(initial=100):g} to {known.max(initial=0):g}"
                )

    def chosen(self, names: Sequence[str]) -> "Table":
        """Keeps the models of these names, in the order of the table.

        Raises:
          ValueError: a model is not there.
        """
        if missing := sorted(set(names) - set(self.models)):
            raise ValueError(f"{self.source}: expected the models asked for, found no {', '.join(missing)}")
        keep = np.array([name in set(names) for name in self.models])
        return dataclasses.replace(
            self,
            models=tuple(name for name in self.models if name in set(names)),
            clean=self.clean[keep],
            natural={name: Shift(s.accuracy[keep], s.clean[keep]) for name, s in self.natural.items()},
            synthetic={name: column[keep] for name, column in self.synthetic.items()},
            standard=self.standard[keep],
            shown=self.shown[keep],
        )

    def shifts(self, names: Iterable[str] = ()) -> tuple[str, ...]:
        """Lists the natural shifts asked for; for none, those of `PREFERRED` that are there.

        Raises:
          ValueError: one is not in the table, or there is none.
        """
        asked = tuple(names) or tuple(name for name in PREFERRED if name in self.natural)
        missing = [name for name in asked if name not in self.natural]
        if missing or not asked:
            expected = ", ".join(missing or PREFERRED)
            there = ", ".join(self.natural) or "none; eval.py --config.eval.natural=... measures them"
            raise ValueError(f"{self.source}: expected natural shifts, {expected}, found {there}")
        return asked

    def members(self, names: Iterable[str] = ()) -> tuple[str, ...]:
        """Lists the corruptions of a synthetic benchmark: names of corruptions and of benchmarks.

        For none: those of ImageNet-C if all are there, else every corruption. Empty in a table
        without corruptions.

        Raises:
          ValueError: one asked for is not in the table.
        """
        usual = qualified_members("imagenet_c")
        if not names:
            return usual if all(name in self.synthetic for name in usual) else tuple(self.synthetic)
        import corruptions  # here, since it imports JAX, which a report does without

        registered = corruptions.benchmarks()
        expanded = [m for name in names for m in (corruptions.names(name) if name in registered else (name,))]
        missing = [name for name in expanded if name not in self.synthetic]
        if missing:
            raise ValueError(
                f"{self.source}: expected the corruptions {', '.join(missing)}, found {', '.join(self.synthetic) or 'none'}"
            )
        return tuple(dict.fromkeys(expanded))

    def complete(self, shifts: Iterable[str], members: Iterable[str]) -> np.ndarray:
        """Marks the models with all these accuracies, bool [N].

        Raises:
          ValueError: fewer than 4 have them.
        """
        columns = [self.clean, *(self.synthetic[name] for name in members)]
        for name in shifts:
            columns += [self.natural[name].accuracy, self.natural[name].clean]
        found = ~np.isnan(columns).any(axis=0)
        if found.sum() < FEWEST:
            raise ValueError(
                f"{self.source}: expected at least {FEWEST} models with accuracies under {', '.join(shifts)} and every "
                f"corruption, found {found.sum()} of {len(found)}; name fewer shifts, or evaluate more models"
            )
        return found

    def mean(self, members: Sequence[str]) -> np.ndarray:
        """Averages the accuracies over corruptions: [N], NaN where one is unknown."""
        return np.mean([self.synthetic[name] for name in members], axis=0)
