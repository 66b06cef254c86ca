"""State bound to what it came from: digests that tell an edited, stale or foreign file from the one
a run left.

    provenance.json   `config_sha256`: of config.json, as the run before and the one now left it
    final.json        `digest`: of the parameters of a finished model
    *.npz             `made_from`: digests of the model, images and settings behind the arrays, as JSON

What has no digest, since it was written before there were any, is accepted. Needs no JAX.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from runtime import files
from runtime.settings import WorkdirError

CONFIG_DIGESTS = "config_sha256"
TRAINED = "train="
"""Before an enhancement: networks are trained with it, too, and lie in the folder of that name."""
_MADE_FROM = "made_from"
_AT_TEST_TIME = re.compile(r"\+(bn=test(:.*)?|enhance=\w+)$")
_THIS = "the command of this workdir"


def digest(value: Any) -> str:
    """Computes the sha256 of a value as JSON with sorted keys: layout and order do not change
    it.
    """
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def config_digests(folder: Path) -> list[str]:
    """Reads which digests config.json may have; empty where none was recorded.

    Raises:
      DamagedFileError: provenance.json is no such record.
    """
    path = folder / "provenance.json"
    if not path.exists():
        return []
    known = files.read_json(path).get(CONFIG_DIGESTS, [])
    if not isinstance(known, list) or not all(isinstance(entry, str) for entry in known):
        raise files.DamagedFileError(f"{path}: expected a list of digests as {CONFIG_DIGESTS}, found {known!r}")
    return known


def read_config(folder: Path) -> dict[str, Any]:
    """Reads the config.json of a workdir.

    Raises:
      FileNotFoundError: there is none.
      WorkdirError: it was edited.
      DamagedFileError: it is no JSON object.
    """
    config = files.read_json(folder / "config.json", remedy="restore it or use another folder")
    known = config_digests(folder)
    if known and digest(config) not in known:
        raise WorkdirError(edited_config(folder))
    return config


def edited_config(folder: Path) -> str:
    """Says that a config.json was edited, and what restores it."""
    return (
        f"{folder / 'config.json'} was edited: it no longer has the digest that provenance.json recorded when a run "
        f"wrote it, and nothing here was made with these settings. Undo the edit, or give the command that made this "
        f"folder, which restores it: {command_of(folder)}"
    )


def command_of(folder: Path) -> str:
    """Reads from provenance.json which command made a workdir."""
    path = folder / "provenance.json"
    return str(files.read_json(path).get("command", _THIS)) if path.exists() else _THIS


def read_final(folder: Path) -> dict[str, Any]:
    """Reads the final.json of a finished model: its last step, the digest of its parameters, and
    how many classes it tells apart (not known of one that an earlier revision trained).

    Raises:
      FileNotFoundError: the run has not reached its end.
      DamagedFileError: something else is in the file.
    """
    path = folder / "final.json"
    remedy = "remove it and give the command that trained this model again"
    final = files.read_json(path, remedy=remedy)
    if type(final.get("step")) is not int or not isinstance(final.get("digest"), str):
        raise files.DamagedFileError(f"{path}: expected step and digest of a finished model, found {final}; {remedy}")
    if type(final.get("num_classes", 0)) is not int:
        found = repr(final["num_classes"])
        raise files.DamagedFileError(f"{path}: expected an integer num_classes, found {found}; {remedy}")
    return final


def model_digest(workdir: Path, name: str, seed: int) -> str:
    """Reads the digest that final.json gives of a model of a workdir, of train.py or overlap.py; ""
    where it has none.

    Args:
      workdir: of the model, or of its study.
      name, seed: of the model; `+bn=test` and `+enhance=NAME`, which mark what is done as it is
        evaluated, do not count. One of `+train=NAME` lies in the folder `train=NAME` of its study.

    Raises:
      DamagedFileError: a final.json that is none.
    """
    training, _, enhanced = _AT_TEST_TIME.sub("", name).partition(f"+{TRAINED}")
    study = workdir / f"{TRAINED}{enhanced}" if enhanced else workdir
    of_study = study / "models" / training.replace("/", ".") / f"seed{seed}"
    for folder in (workdir, of_study):
        if (folder / "final.json").is_file():
            return read_final(folder)["digest"]
    return ""


def write_arrays(path: str | os.PathLike, arrays: Mapping[str, np.ndarray], made_from: Mapping[str, Any]) -> None:
    """Writes {name: array} to an .npz file, with what it was made from in JSON-ready values."""
    record = np.array(json.dumps(made_from, sort_keys=True))
    files.write_arrays(path, {**arrays, _MADE_FROM: record})


def read_arrays(
    path: str | os.PathLike, remedy: str = files.REMEDY, *, content: bytes | None = None
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Reads ({name: array}, what it was made from) of an .npz file; the latter is empty in old
    files.

    Args:
      path, remedy, content: as of `files.read_arrays`.

    Raises:
      FileNotFoundError: no such file.
      DamagedFileError: no such archive.
    """
    arrays = files.read_arrays(path, remedy, content=content)
    if _MADE_FROM not in arrays:
        return arrays, {}
    try:
        made_from = json.loads(str(arrays.pop(_MADE_FROM)))
        if not isinstance(made_from, dict):
            raise ValueError(f"{type(made_from).__name__} instead of an object")
    except ValueError as error:
        raise files.DamagedFileError(f"{path}: expected JSON as {_MADE_FROM}, found {error}; {remedy}") from None
    return arrays, made_from
