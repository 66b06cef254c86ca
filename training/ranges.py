"""Calibrated severity ranges: the file that tools.calibrate writes, and how it enters a run."""

import pathlib

import corruptions
from corruptions.noc import severities
from runtime.workdirs import read_json


def check_image_shape(path, shape):
    """Refuses (ValueError) a ranges file, "" or None: none, made for images of another shape."""
    if path and (made := read_json(path)["image_shape"]) != list(shape):
        raise ValueError(f"{path}: expected severity ranges for images of shape {list(shape)}, found ranges for {made}")


def read_ranges(path):
    """The options {corruption: {"range": (mild, severe)}} of a file written by tools.calibrate.

    Raises:
      FileNotFoundError: no such file.
      ValueError: not such a file, or an entry that no corruption takes (both are named).
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"expected a file of calibrated ranges (tools.calibrate writes ranges.json), found no {path}"
        )
    content = read_json(path)
    if not isinstance(content, dict) or "corruptions" not in content or "image_shape" not in content:
        raise ValueError(
            f"{path}: expected a ranges.json of tools.calibrate (image_shape, corruptions), found other content"
        )
    options = {}
    for name, entry in content["corruptions"].items():
        bounds = tuple(entry["range"])
        try:
            corruption = corruptions.get(name)
            if isinstance(corruption.scale, corruptions.Levels):
                corruptions.checks.level_range(bounds, corruption.scale.count)
            else:
                severities.resolve(corruption.name, tuple(content["image_shape"]), bounds)
        except ValueError as error:
            raise ValueError(f"{path}: {name}: {error}") from None
        options[corruption.qualified_name] = {"range": bounds}
    return options
