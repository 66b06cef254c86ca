"""Folders of `corruptions.evaluate` as workdirs of one model."""

import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from analysis.answers import Key, Record
from analysis.errors.reference import of_corruption
from analysis.frames import CLEAN, as_name
from corruptions.core.origin import UNKNOWN
from corruptions.scoring.folder import read_results

_OF_PIXELS = ("data", "corruption", "options", "table", "levels", "dtype", "seed", "generator", "partitionable")


def files_of(folder: pathlib.Path) -> Iterator[tuple[Record, dict[Key, np.ndarray]]]:
    """Yields the files of a folder of `corruptions.evaluate`; its model has the name of the network, else of the folder."""
    for condition, result in read_results(folder).items():
        origin, severity = result.origin, condition.label
        shape, classes = (origin.recorded.get(name, empty) for name, empty in (("image_shape", []), ("classes", 0)))
        if not shape:
            raise ValueError(
                f"expected images of one size with their size recorded in {folder}, found {condition} of several sizes, or of an "
                "earlier version; corruptions.ce_table(counts, path=...) makes the table of such a folder"
            )
        named = (
            origin.network if isinstance(origin.network, str) and origin.network != UNKNOWN else folder.resolve().name
        )
        data = origin.data["images"][:12]
        about: dict[str, Any] = {"dataset": f"images {data}", "classes": classes, "image_shape": shape}
        about["preprocessing"] = "as given to corruptions.evaluate"
        version = origin.recorded.get("versions", {}).get("jax-corruptions", "not recorded")
        about["source"] = f"{origin.recorded.get('device', 'device not recorded')}, jax-corruptions {version}"
        shown = {name: value for name in _OF_PIXELS if (value := getattr(origin, name)) != UNKNOWN}
        if condition.corruption != CLEAN:
            options = origin.options if isinstance(origin.options, Mapping) else {}
            made = None if origin.version == UNKNOWN else origin.version
            about["described"] = of_corruption(condition.corruption, shape, options, condition.levels, made)
        record = Record(condition.corruption, severity, condition.levels, result.correct.size, shown, about)
        yield record, {(as_name(named), 0): result.correct}
