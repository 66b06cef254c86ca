"""What a result came from: code revision, library versions, device, command."""

import datetime
import importlib.metadata
import pathlib
import platform
import subprocess
import sys

import jax

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", "dm-pix", "tensorflow-datasets")


def provenance():
    """A JSON-ready record of the code, libraries, machine and command behind a result."""
    devices = jax.devices()
    return {
        "git_revision": git_revision(),
        "versions": versions(),
        "device": f"{len(devices)} x {devices[0].device_kind} ({devices[0].platform})",
        "processes": jax.process_count(),
        "machine": platform.platform(),
        "command": " ".join(sys.argv),
        "written": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def summary(record):
    """Device and revision of a record of `provenance`, for the comment line of a table."""
    return f"{record['device']}, revision {record['git_revision'][:12]}"


def code():
    """What all processes of a run must have in common: revision and versions."""
    return {"git_revision": git_revision()} | versions()


def versions():
    return {name: _version(name) for name in _PACKAGES} | {"python": platform.python_version()}


def git_revision():
    """Revision of this checkout, with `+changes` when tracked files differ from it; `unknown` outside git."""

    def git(*arguments):
        done = subprocess.run(["git", "-C", str(_ROOT), *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+changes" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
