"""Image corruptions for robustness research as jitted, vmapped JAX functions.

import jax, corruptions
corrupted = corruptions.corrupt(jax.random.key(0), images, "imagenet_c/fog", severity=3)  # a batch
corrupted = corruptions.imagenet_c.fog(jax.random.key(0), image, severity=3)  # one image
counts = corruptions.evaluate(predict, images, labels)  # any classifier, from images to logits
"""

from corruptions.core import interrupts  # isort: skip

interrupts.of_command()

# ruff: noqa: E402 - Ctrl-C is answered before the first import that takes a while
import importlib
from typing import TYPE_CHECKING, Any

from corruptions import augment, camera, cbar, imagenet_c, laion_c, moved, noc, optics
from corruptions.core.batch import corrupt
from corruptions.core.corruption import Corruption, Parameter
from corruptions.core.labels import coordinates, move_boxes, move_masks, move_points
from corruptions.core.many_sizes import corrupt_each, corrupt_image
from corruptions.core.mixtures import compose, random_choice
from corruptions.core.registry import (
    benchmarks,
    get,
    names,
    register,
    register_benchmark,
    registrar,
    selected_levels,
    severities,
)
from corruptions.core.severity import Fraction, Levels
from corruptions.primitives.staging import portable
from corruptions.reading.pictures import read_image

if TYPE_CHECKING:
    from corruptions.scoring import Count, ce_table, evaluate, mean_error
    from corruptions.write import write_dataset

moved.install()

# What Algorithm 1 selected from 48 candidates on CIFAR-10. Other test images or trainings give other sets (docs/coverage.md).
register_benchmark(
    "coverage_2026",
    ("noc/rain", "noc/border", "noc/shear", "noc/elastic", "noc/brightness", "noc/hue", "laion_c/glitched"),
)

__version__ = "0.2.0"

__all__ = [
    "Corruption", "Count", "Fraction", "Levels", "Parameter", "augment", "benchmarks", "camera", "cbar", "ce_table",
    "compose", "coordinates", "corrupt", "corrupt_each", "corrupt_image", "evaluate", "get", "imagenet_c", "laion_c",
    "mean_error", "move_boxes", "move_masks", "move_points", "names", "noc", "optics", "portable", "random_choice",
    "read_image", "register", "register_benchmark", "registrar", "selected_levels", "severities", "write_dataset",
]  # fmt: skip


_LOADED_WHEN_USED = {
    "Count": "scoring",
    "ce_table": "scoring",
    "evaluate": "scoring",
    "mean_error": "scoring",
    "write_dataset": "write",
}


def __getattr__(name: str) -> Any:
    """Imports `corruptions.scoring` and `corruptions.write` when a name of theirs is used first."""
    if name in _LOADED_WHEN_USED.values():
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _LOADED_WHEN_USED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_LOADED_WHEN_USED[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Lists the public names; modules such as `corruptions.core.checks` are imported by name."""
    return __all__
