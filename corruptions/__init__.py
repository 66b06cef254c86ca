"""Image corruptions for robustness research as jitted, vmapped JAX functions.

import jax, corruptions
corrupted = corruptions.corrupt(jax.random.key(0), images, "imagenet_c/fog", severity=3)  # a batch
corrupted = corruptions.imagenet_c.fog(jax.random.key(0), image, severity=3)  # one image
counts = corruptions.evaluate(predict, images, labels)  # any classifier, from images to logits
"""

import importlib
from typing import TYPE_CHECKING, Any

from corruptions import moved
from corruptions.core import forks  # noqa: F401 - notes each fork from here on

if TYPE_CHECKING:
    from corruptions import augment, camera, cbar, imagenet_c, laion_c, noc, optics
    from corruptions.core.batch import corrupt
    from corruptions.core.corruption import Corruption, Parameter
    from corruptions.core.errors import Refused
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
    from corruptions.scoring import Count, ce_table, evaluate, mean_error
    from corruptions.write import write_dataset

moved.install()

__version__ = "0.2.0"

__all__ = [
    "Corruption", "Count", "Fraction", "Levels", "Parameter", "Refused", "augment", "benchmarks", "camera", "cbar", "ce_table",
    "compose", "coordinates", "corrupt", "corrupt_each", "corrupt_image", "evaluate", "get", "imagenet_c", "laion_c",
    "mean_error", "move_boxes", "move_masks", "move_points", "names", "noc", "optics", "portable", "random_choice",
    "read_image", "register", "register_benchmark", "registrar", "selected_levels", "severities", "write_dataset",
]  # fmt: skip

_NAMES_OF = {
    "core.batch": ("corrupt",),
    "core.corruption": ("Corruption", "Parameter"),
    "core.errors": ("Refused",),
    "core.labels": ("coordinates", "move_boxes", "move_masks", "move_points"),
    "core.many_sizes": ("corrupt_each", "corrupt_image"),
    "core.mixtures": ("compose", "random_choice"),
    "core.registry": (
        *("benchmarks", "get", "names", "register", "register_benchmark", "registrar", "selected_levels", "severities"),
    ),
    "core.severity": ("Fraction", "Levels"),
    "primitives.staging": ("portable",),
    "reading.pictures": ("read_image",),
    "scoring": ("Count", "ce_table", "evaluate", "mean_error"),
    "write": ("write_dataset",),
}
"""Module: its names here, which it is imported for when one is used. Type checkers read the imports above."""
_PACKAGES = {"augment", "camera", "cbar", "imagenet_c", "laion_c", "noc", "optics", "reading", "scoring", "write"}
_MODULE_OF = {name: f"{__name__}.{module}" for module, names_ in _NAMES_OF.items() for name in names_}

if not TYPE_CHECKING:  # a type checker refuses what is not imported above

    def __getattr__(name: str) -> Any:
        """Imports what a name needs when it is used first, so that `import corruptions` needs neither JAX nor NumPy."""
        if name in _PACKAGES:
            return importlib.import_module(f"{__name__}.{name}")
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(importlib.import_module(_MODULE_OF[name]), name)
        return found


def __dir__() -> list[str]:
    """Lists the public names; modules such as `corruptions.core.checks` are imported by name."""
    return __all__
