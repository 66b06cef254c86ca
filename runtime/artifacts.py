"""State that a command reads back, and records of where results come from.

    write(path, arrays, made_from)        an .npz file: arrays, and the record of their origin
    read(path, remedy)                    Artifact(arrays, made_from)
    write_record(path, record)            a .json file of only the record: final.json, ranges.json
    read_record(path, remedy)             the record
    provenance(), of_file()               revision, versions, device and command, for results

Every file of state holds the digest of its content. A file that is damaged, was edited or has no digest is refused with
`remedy`, the sentence that tells how to mend it. Writing is atomic. Records need no JAX.
"""

import datetime
import functools
import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from corruptions.core.running import command_line
from corruptions.files import digest_of, digest_of_file
from runtime import files
from runtime.files import DamagedFileError

SEAL = "sha256"
"""Key of the digest in a record."""
ORIGINS = "origins"
"""Key of the records of origin beside what a file was made from, see `evaluation.bound`."""


class Artifact(NamedTuple):
    """Arrays and the record of their origin."""

    arrays: dict[str, np.ndarray]
    made_from: dict[str, Any]  # JSON-ready: digests of the model and the images, options, seed


def digest(value: Any) -> str:
    """Computes the sha256 of a JSON-ready value; layout and order of keys do not change it."""
    return digest_of(_canonical(value))


def write(path: str | os.PathLike, arrays: Mapping[str, np.ndarray], made_from: Mapping[str, Any]) -> None:
    """Writes arrays and the JSON-ready record of their origin to an .npz file."""
    from corruptions.scoring.sealed import sealed  # imports JAX, which records do not need

    files.write_arrays(path, sealed(arrays, made_from))


def read(path: str | os.PathLike, remedy: str = files.REMEDY, *, content: bytes | None = None) -> Artifact:
    """Reads an .npz file that `write` wrote, or its `content` in bytes, which `path` then only names.

    Raises:
      FileNotFoundError: there is no such file.
      DamagedFileError: the file is damaged, was edited, or was written by something else; `remedy` tells how to mend it.
    """
    from corruptions.scoring.sealed import unsealed

    arrays = files.read_arrays(path, remedy, content=content)
    try:
        return Artifact(arrays, unsealed(arrays))
    except ValueError as error:
        raise DamagedFileError(f"{path}: {error}; {remedy}") from None


def write_record(path: str | os.PathLike, record: Mapping[str, Any]) -> None:
    """Writes a JSON-ready record with its digest, keys sorted."""
    content = {key: value for key, value in json.loads(_canonical(record)).items() if key != SEAL}
    files.write_json(path, content | {SEAL: digest(content)}, sort_keys=True)


def read_record(
    path: str | os.PathLike, remedy: str = files.REMEDY, *, shape: Any = None, by_hand: bool = False
) -> dict[str, Any]:
    """Reads a record that `write_record` wrote, without its digest; raises the errors of `read`.

    Args:
      path, remedy: as for `read`.
      shape: expected shape of the content, see `runtime.files.mismatch`; None takes any.
      by_hand: accept a file without a digest, which a user wrote.
    """
    record = files.read_json(path, remedy=remedy, shape=shape)
    expected = record.pop(SEAL, None)
    if expected is None and by_hand:
        return record
    if expected != digest(record):
        found = "none" if expected is None else "other content: the file was edited"
        raise DamagedFileError(
            f"{path}: expected content with the digest `{SEAL}` that it holds, found {found}; {remedy}"
        )
    return record


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


# Provenance: where a result comes from.

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", "dm-pix", "tensorflow-datasets")


def provenance() -> dict[str, Any]:
    """Returns a JSON-ready record of code, libraries, generator, machine, command, photographs and banks of a result."""
    import jax

    import corruptions
    from corruptions.core.dispatch import cpu_count

    files_read = {
        "frost_photographs": list(corruptions.imagenet_c.used_photographs()),
        "banks": list(corruptions.laion_c.used_banks()),
    }
    machine = {"processes": jax.process_count(), "machine": platform.platform(), "cores": cpu_count()}
    digests = {name: found for name, found in files_read.items() if found}
    return {"versions": versions(_PACKAGES), "generator": generator()} | of_file() | machine | digests


def generator() -> str:
    """Describes JAX's random draws in this process (`corruptions.core.keys.prng`), and whether it computes with 64 bits."""
    import jax

    from corruptions.core.keys import prng

    return f"{prng()}, 64 bits: {jax.config.jax_enable_x64}"


def of_file() -> dict[str, Any]:
    """Returns the provenance of one table or figure; it names a device if the command uses JAX."""
    record = {"git_revision": git_revision(), "command": command_line(), "written": _now()}
    if "jax" in sys.modules:
        devices = sys.modules["jax"].devices()
        record["device"] = f"{len(devices)} x {devices[0].device_kind} ({devices[0].platform})"
    return record


def record_inputs(inputs: Mapping[str, pathlib.Path]) -> dict[str, Any]:
    """Returns the digests of a table's input files {name: file}, the versions behind it and the time; needs no JAX."""
    digests = {name: digest_of_file(path) for name, path in inputs.items()}
    return {"inputs": digests, "versions": versions(("numpy", "scipy", "pandas")), "written": _now()}


def summary(record: Mapping[str, Any]) -> str:
    """Returns device and revision of a record of `provenance`, for one line of text."""
    return f"{record['device']}, revision {short(record['git_revision'])}"


def short(revision: str) -> str:
    """Returns twelve digits of a revision, and whether its code had changes."""
    return revision.removesuffix("+changes")[:12] + ("+changes" if revision.endswith("+changes") else "")


def shared(imports: Iterable[str]) -> dict[str, Any]:
    """Returns what all processes of a run must share beside their command: code, with the user's `imports`, and variables."""
    import jax

    from corruptions.core.origin import code_digest

    variables = {
        "random generator": generator(),  # JAX_DEFAULT_PRNG_IMPL, JAX_THREEFRY_PARTITIONABLE, JAX_ENABLE_X64
        "JAX_DEFAULT_MATMUL_PRECISION": jax.config.jax_default_matmul_precision,
        "JAX_CORRUPTIONS_CHECKPOINTS": os.environ.get("JAX_CORRUPTIONS_CHECKPOINTS"),
    }
    code = {"git_revision": git_revision(), "code of corruptions": code_digest(imports)}
    return code | versions(_PACKAGES) | variables


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Returns the installed versions of some packages, and Python's."""

    def version(package):
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            return "not installed"

    return {name: version(name) for name in packages} | {"python": platform.python_version()}


@functools.lru_cache(maxsize=1)
def git_revision() -> str:
    """Returns this checkout's revision, `+changes` when tracked files differ; else its file REVISION, or `unknown`."""
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


def _now():
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
