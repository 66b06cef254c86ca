"""`manifest.json`: what a written dataset is, and how much is done; rewritten after every block."""

import datetime
import importlib.metadata
import json
import os
import pathlib
import shlex
import sys
from typing import Any

import jax

from corruptions.write import files
from corruptions.write.files import WriteError

Manifest = dict[str, Any]
NAME = "manifest.json"
FORMAT = 1
# What decides the pixels; a folder is continued only with the same.
_IDENTITY = ("format", "layout", "seed", "prng", "jpeg_quality", "source", "images", "image_shape", "class_names")
_SETTINGS = ("path", "severities", "levels", "table", "options", "rounding")


def new(identity: Manifest, corruptions: Manifest) -> Manifest:
    """Makes a manifest of nothing done yet."""
    return {"format": FORMAT, **identity, "corruptions": corruptions, "files": {}, "complete": False, "runs": []}


def load(folder: str | os.PathLike) -> Manifest | None:
    """Reads the manifest in `folder`; None where there is none.

    Raises:
      WriteError: it is there and not readable.
    """
    path = pathlib.Path(folder) / NAME
    if not path.exists():
        return None
    try:
        manifest = json.loads(path.read_text())
        if not isinstance(manifest["corruptions"], dict) or not isinstance(manifest["files"], dict):
            raise ValueError("corruptions or files is no object")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WriteError(f"{path} is not a readable manifest ({error}); move it away or use another folder") from error
    return manifest


def save(folder: str | os.PathLike, manifest: Manifest) -> None:
    """Writes the manifest: the file is the old one or the new one, never half of it."""
    files.replace(pathlib.Path(folder) / NAME, (json.dumps(manifest, indent=1) + "\n").encode())


def merged(stored: Manifest, asked: Manifest) -> Manifest:
    """Adds to the stored manifest the corruptions of `asked` that it lacks.

    Raises:
      WriteError: the two disagree; every difference is named.
    """
    asked = json.loads(json.dumps(asked))  # tuples become the lists they are in the stored one
    before = {key: stored.get(key) for key in _IDENTITY}
    now = {key: asked.get(key) for key in _IDENTITY}
    for name in stored["corruptions"].keys() & asked["corruptions"].keys():
        before[name] = {key: stored["corruptions"][name].get(key) for key in _SETTINGS}
        now[name] = {key: asked["corruptions"][name].get(key) for key in _SETTINGS}
    differences = list(_differences(before, now))
    if differences:
        raise WriteError(
            f"{NAME} tells of a dataset written with other settings; use another folder or the same settings:\n  "
            + "\n  ".join(differences)
        )
    return stored | {"corruptions": asked["corruptions"] | stored["corruptions"]}


def command(manifest: Manifest) -> str:
    """Gives the command that wrote the dataset, which continues and mends it."""
    runs = manifest.get("runs") or [{"command": ""}]
    program, *flags = shlex.split(runs[-1]["command"]) or [""]
    if not program or program.endswith(os.path.join("corruptions", "write", "__main__.py")):
        return shlex.join(["python", "-m", "corruptions.write", *flags])
    return shlex.join([program, *flags])


def _differences(before, now, prefix=""):
    for key in sorted(before.keys() | now.keys()):
        old, new_value = before.get(key), now.get(key)
        if isinstance(old, dict) and isinstance(new_value, dict):
            yield from _differences(old, new_value, f"{prefix}{key}.")
        elif old != new_value:
            yield f"{prefix}{key}: stored {_short(old)}, asked {_short(new_value)}"


def _short(value):
    text = json.dumps(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def run_record() -> dict[str, Any]:
    """Records command, versions, device and time of this run."""
    packages = ("jax", "jaxlib", "numpy", "jax-corruptions", "pillow")
    device = jax.devices()[0]
    return {
        "command": shlex.join(sys.argv),
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": {name: _version(name) for name in packages} | {"python": sys.version.split()[0]},
        "device": f"{jax.local_device_count()} x {device.device_kind} ({device.platform})",
    }


def _version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
