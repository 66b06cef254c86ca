"""Calibrated severity ranges: the file that tools.calibrate writes, and how it enters a run.

The file is state (`runtime.artifacts`): `sha256` is the digest of the other entries; `made_from` names the model and
the images that the ranges were measured with. A file that a user wrote has no `sha256`.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import corruptions
from corruptions.noc import severities
from runtime import artifacts, files
from runtime.files import Maybe
from runtime.workdirs import Workdir, read_final

_SHAPE = {"image_shape": [int], "corruptions": {}, "made_from": Maybe({}), "model": Maybe({})}


def write(path: pathlib.Path, content: Mapping[str, Any]) -> None:
    """Writes a file of ranges with its digest."""
    if Workdir(path.parent).writes:
        artifacts.write_record(path, content)


def copy(source: str, path: pathlib.Path) -> None:
    """Copies a file of ranges into a study, for its report; they were calibrated with another model."""
    write(path, {**read_content(source), "copy_of": source})


def read_content(path: str | pathlib.Path) -> dict[str, Any]:
    """Reads a file of tools.calibrate.

    Raises:
      FileNotFoundError, DamagedFileError: no such file, another one, or an edited one.
    """
    path = files.local(path, "config.ranges")
    if not pathlib.Path(path).is_file():
        raise FileNotFoundError(
            f"expected a file of calibrated ranges (tools.calibrate writes ranges.json), found no {path}"
        )
    remedy = "restore it, or move it away and calibrate again; ranges of your own have no `sha256`"
    return artifacts.read_record(path, remedy, shape=_SHAPE, by_hand=True)


def stale(path: pathlib.Path, content: Mapping[str, Any]) -> str:
    """Says that ranges were calibrated with another model than the one beside them; "" if not."""
    model, seed = content.get("made_from", {}).get("model", ""), content.get("model", {}).get("seed", 0)
    folders = path.parent, path.parent / "models" / "standard" / f"seed{seed}"  # workdir of train.py, or of overlap.py
    finals = [] if "copy_of" in content else [final for folder in folders if (final := read_final(folder))]
    if not model or not finals or model == finals[0]["digest"]:
        return ""
    return (
        f"{path} was calibrated with another model than the one in {path.parent}, which was trained again since; "
        f"run python -m tools.calibrate --workdir={path.parent} again"
    )


def check_image_shape(path: str, shape: Sequence[int]) -> None:
    """Refuses (ValueError) a file of ranges made for images of another shape."""
    if (made := read_content(path)["image_shape"]) != list(shape):
        raise ValueError(f"{path}: expected severity ranges for images of shape {list(shape)}, found ranges for {made}")


def read_ranges(path: str | pathlib.Path) -> dict[str, dict[str, Any]]:
    """Reads the options {corruption: {"range": (mild, severe)}} of a file written by tools.calibrate.

    Raises:
      FileNotFoundError: no such file.
      ValueError: another file, an edited one, one whose model was trained again since, or an entry that its
        corruption does not take; both are named.
    """
    path = pathlib.Path(path)
    content = read_content(path)
    if reason := stale(path, content):
        raise ValueError(reason)
    options = {}
    for name, entry in content["corruptions"].items():
        try:
            bounds = tuple(entry["range"])
            corruption = corruptions.get(name)
            if isinstance(corruption.scale, corruptions.Levels):
                corruptions.core.severity.level_range(bounds, corruption.scale.count)
            else:
                severities.resolve(corruption.name, tuple(content["image_shape"]), bounds)
        except (KeyError, TypeError):
            raise ValueError(f"{path}: {name}: expected an object with a range of two numbers, found {entry}") from None
        except ValueError as error:
            raise ValueError(f"{path}: {name}: {error}") from None
        options[corruption.qualified_name] = {"range": bounds}
    return options
