"""Conditions of trained models: the library's, what files of them are called, and warnings."""

from collections.abc import Iterable, Sequence

from ml_collections import ConfigDict

import corruptions
from analysis.answers import file_stem
from corruptions import cbar
from corruptions.scoring.conditions import CLEAN, CLEAN_IMAGES, RANDOM, Condition, expand, list_conditions
from runtime.log import log
from training.plan import scheme_of
from training.sections import TrainSettings

__all__ = [
    "CLEAN",
    "CLEAN_IMAGES",
    "RANDOM",
    "Condition",
    "expand",
    "file_name",
    "list_conditions",
    "warn_of_coincidence",
    "warn_of_tables",
]


def file_name(condition: Condition) -> str:
    """Names the files of a condition, without their ending."""
    return file_stem(condition.corruption, condition.severity, condition.levels)


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
        scheme = scheme_of(TrainSettings.of(recipe))
    except (ValueError, FileNotFoundError) as error:  # stored transforms that are gone by now
        log.warning("Whether %s holds some of the corruptions cannot be told: %s", recipe.scheme, error)
        return
    for operation, corruption in corruptions.augment.coinciding(scheme, names):
        text = "%s is close to the operation %s of %s, which these models were trained with."
        log.warning(text, corruption, operation, scheme.name)
