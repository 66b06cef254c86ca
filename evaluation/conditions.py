"""Conditions: clean images, and corruptions at severities, as the settings of a command name them.

list_conditions(("imagenet_c/fog",), "1,3")  ->  clean, fog at level 1, fog at level 3
list_conditions(("imagenet_noc",), "random") ->  clean, eight corruptions at severities drawn per
image
"""

import collections
import dataclasses
from collections.abc import Iterable, Sequence

from ml_collections import ConfigDict

import corruptions
from analysis.answers import file_stem
from analysis.tables import CLEAN, RANDOM
from corruptions import cbar
from runtime.log import log
from training import augmentation


@dataclasses.dataclass(frozen=True)
class Condition:
    """A corruption at a severity.

    Attributes:
      corruption: qualified name, or `clean`.
      severity: a level, a fraction, or `random`, as text ("0" for clean).
      levels: those that random severities are drawn from, where a benchmark selects some; None is
        the corruption's own distribution.
    """

    corruption: str
    severity: str
    levels: tuple[int, ...] | None = None

    @property
    def value(self) -> int | float | None:
        """Gives the severity as `corruptions.corrupt` takes it: None draws one for each image."""
        if self.severity == RANDOM:
            return None
        return int(self.severity) if self.severity.isdigit() else float(self.severity)

    @property
    def label(self) -> int | float | str:
        """Gives the severity as tables hold it: `random`, a level or a fraction (0 for clean)."""
        return RANDOM if self.severity == RANDOM else self.value

    @property
    def file_name(self) -> str:
        """Names the files of the condition, without their ending."""
        return file_stem(self.corruption, self.severity, self.levels)


CLEAN_IMAGES = Condition(CLEAN, "0")


def list_conditions(names: Iterable[str], severities: str) -> list[Condition]:
    """Lists clean images and every corruption at every severity, each once.

    Args:
      names: corruptions or benchmarks.
      severities: `random` or `levels`: drawn from, or each of, `corruptions.severities` (those a
        benchmark has selected, else every level; for a range any fraction, or 0, 1/4 .. 1); or
        numbers separated by commas, levels or fractions of the corruption.

    Raises:
      ValueError: an unknown name or severity; a corruption at random severities of two different
        selections, which tables of results could not tell apart.
    """
    conditions = [CLEAN_IMAGES]
    for name in names:
        benchmark = name if name in corruptions.benchmarks() else None
        for member in expand([name]):
            levels = corruptions.selected_levels(member, benchmark) if benchmark and severities == RANDOM else None
            of_member = _severities(member, benchmark, severities)
            conditions += [Condition(member, str(severity), levels) for severity in of_member]
    conditions = list(dict.fromkeys(conditions))
    at_random = collections.Counter(c.corruption for c in conditions if c.severity == RANDOM)
    if twice := [name for name, count in at_random.items() if count > 1]:
        raise ValueError(
            f"expected one selection of the random severities of {twice[0]}, found those of two benchmarks among "
            f"{', '.join(names)}; use a workdir for each, or severity=levels"
        )
    return conditions


def _severities(name: str, benchmark: str | None, text: str) -> Sequence[int | float | str]:
    if text == RANDOM:
        return [RANDOM]
    if text == "levels":
        return corruptions.severities(name, benchmark)
    scale = corruptions.get(name).scale
    severities = _numbers(text, whole=isinstance(scale, corruptions.Levels))
    for severity in severities:
        scale.check(severity, {})
    return severities


def _numbers(text: str, whole: bool) -> list[int | float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"expected config.eval.severity random, levels, or numbers like 1,3,5, found {text!r}"
        ) from None
    return [int(value) if whole and value.is_integer() else value for value in values]


def expand(names: Iterable[str]) -> tuple[str, ...]:
    """Replaces benchmarks by their members; qualified names, each once, in order.

    Raises:
      ValueError: an unknown name.
    """
    members = []
    for name in names:
        members += corruptions.names(name) if name in corruptions.benchmarks() else (name,)
    return tuple(dict.fromkeys(corruptions.get(name).qualified_name for name in members))


def warn_of_tables(names: Iterable[str], shape: Sequence[int]) -> None:
    """Warns of C-bar benchmarks whose levels were selected from ranges made for another image size.

    For commands that use those levels. A study's own corruptions and a calibration take all levels,
    of the ranges for their images; `corruptions.write` takes a benchmark's ranges together with its
    levels.

    Args:
      names: corruptions and benchmarks.
      shape: (H, W, 3) of the images.
    """
    for name in names:
        made, used = cbar.BENCHMARK_TABLE.get(name), cbar.table_for(shape)
        if made and made != used:
            log.warning(
                "%s was selected from the ranges %r; images of %dx%d use the ranges %r.", name, made, *shape[:2], used
            )


def warn_of_coincidence(recipe: ConfigDict, names: Iterable[str]) -> None:
    """Warns of corruptions that models have met in training, as operations of their scheme.

    Args:
      recipe: config.train of the models.
      names: of the corruptions that they are evaluated under.
    """
    if not recipe.get("scheme"):
        return
    try:
        scheme = augmentation.scheme_of(recipe)
    except (ValueError, FileNotFoundError) as error:  # stored transforms that are gone by now
        log.warning("Whether %s holds some of the corruptions cannot be told: %s", recipe.scheme, error)
        return
    for operation, corruption in corruptions.augment.coinciding(scheme, names):
        text = "%s is close to the operation %s of %s, which these models were trained with."
        log.warning(text, corruption, operation, scheme.name)
