"""The provenance of a result: code revision, library versions, device, command and inputs."""

import datetime
import functools
import importlib.metadata
import pathlib
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from runtime.command import command_line
from runtime.files import sha256

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", "dm-pix", "tensorflow-datasets")
_OF_TABLES = ("numpy", "scipy", "pandas")


def provenance() -> dict[str, Any]:
    """Returns a JSON-ready record of the code, libraries, machine and command behind a result, and
    of the photographs of frost and the banks of LAION-C that were read for it.
    """
    import jax

    import corruptions

    read = {
        "frost_photographs": list(corruptions.imagenet_c.used_photographs()),
        "banks": list(corruptions.laion_c.used_banks()),
    }
    return {
        "git_revision": git_revision(),
        "versions": versions(_PACKAGES),
        "device": _device(jax),
        "processes": jax.process_count(),
        "machine": platform.platform(),
        "command": command_line(),
        "written": _now(),
    } | {name: digests for name, digests in read.items() if digests}


def of_file() -> dict[str, Any]:
    """Returns the provenance of one table or figure; it names a device if the command uses JAX."""
    record = {"git_revision": git_revision(), "command": command_line(), "written": _now()}
    return record | ({"device": _device(sys.modules["jax"])} if "jax" in sys.modules else {})


def record_inputs(inputs: Mapping[str, pathlib.Path]) -> dict[str, Any]:
    """Returns what a table was made from and with, JSON-ready; needs no JAX.

    Args:
      inputs: {name: file}.

    Returns:
      {"inputs": {name: sha256}, "versions": of Python and the libraries of tables, "written": time}.
    """
    digests = {name: sha256(path) for name, path in inputs.items()}
    return {"inputs": digests, "versions": versions(_OF_TABLES), "written": _now()}


def summary(record: Mapping[str, Any]) -> str:
    """Returns device and revision of a record of `provenance`, for one line of text."""
    return f"{record['device']}, revision {record['git_revision'][:12]}"


def code() -> dict[str, str]:
    """Returns what all processes of a run must have in common: revision and versions."""
    return {"git_revision": git_revision()} | versions(_PACKAGES)


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Returns the installed versions of some packages, and Python's."""
    return {name: _version(name) for name in packages} | {"python": platform.python_version()}


@functools.lru_cache(maxsize=1)
def git_revision() -> str:
    """Returns this checkout's revision, with `+changes` when tracked files differ; outside git the content of its file
    REVISION, or `unknown`.
    """
    packed = _ROOT / "REVISION"
    if packed.exists():
        return packed.read_text().strip()

    def git(*arguments):
        done = subprocess.run(["git", "-C", str(_ROOT), *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+changes" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _device(jax):
    devices = jax.devices()
    return f"{len(devices)} x {devices[0].device_kind} ({devices[0].platform})"


def _now():
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
