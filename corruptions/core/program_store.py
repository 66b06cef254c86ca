"""Compiled programs of this library on disk: a process takes what another one compiled, and does not trace it.

An entry is found by the sha256 of all that a program follows from: the code of the library and of the corruption, its
options, types and shapes of the arrays, JAX's settings, XLA's flags, versions, and the features of the processor. So a
program runs only where it would be compiled to the same one. On one CPU device under Linux; elsewhere, and for programs
that hold a user's files, JAX compiles as ever.

The folder belongs to this user alone (mode 0700), and files of others are not read. Its size is bounded.
"""

import functools
import importlib.metadata
import os
import pathlib
import pickle
import platform
import secrets
import stat
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import numpy as np
from jax.experimental import serialize_executable
from jax.sharding import SingleDeviceSharding

from corruptions import files

VARIABLE = "JAX_CORRUPTIONS_PROGRAMS"
"""Environment variable: a folder in place of `programs` in the folder of caches, or `off`."""
_FORM = "1"
_FLAGS = os.environ.get("XLA_FLAGS", "")  # JAX reads them once, when it starts
_SUFFIX = ".program"
_MOST = 2**28  # bytes in the folder
_SCALARS = (type(None), bool, int, float, str, bytes, np.dtype, type)
# What `with jax.NAME(...)` and `jax.config.update` change in programs that were made before.
_CONTEXT = (
    "jax_enable_x64", "jax_threefry_partitionable", "jax_default_matmul_precision", "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion", "jax_enable_checks", "jax_softmax_custom_jvp", "jax_random_seed_offset",
    "jax_use_direct_linearize",
)  # fmt: skip
_OF_NO_PROGRAM = ("jax_compilation_cache", "jax_persistent_cache", "jax_enable_compilation_cache", "jax_log")
# Where one of these is set, JAX's own call runs the program.
_LEFT_TO_JAX = (
    "jax_disable_jit", "jax_debug_nans", "jax_debug_infs", "jax_check_tracer_leaks", "jax_debug_key_reuse", "jax_default_device",
)  # fmt: skip


@functools.cache
def folder() -> pathlib.Path | None:
    """Returns the folder of programs, made where it is missing; None where programs are not kept.

    They are not where `JAX_CORRUPTIONS_PROGRAMS=off`, where the folder cannot be made or belongs to someone else, on other
    systems than Linux, and where JAX computes with other devices than one CPU.
    """
    asked = os.environ.get(VARIABLE, "")
    if asked.lower() in ("off", "0", "false") or not sys.platform.startswith("linux") or not _processor():
        return None
    if jax.default_backend() != "cpu" or jax.device_count() != 1:
        return None
    try:
        found = pathlib.Path(asked) if asked else files.cache_folder() / "programs"
        found.mkdir(mode=0o700, parents=True, exist_ok=True)
        return found if _is_own(found, stat.S_ISDIR) else None
    except OSError:
        return None


def _is_own(path: pathlib.Path, kind: Any) -> bool:
    """Whether a folder or file is this user's, and no one else can write it."""
    found = path.lstat()
    return kind(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


@functools.cache
def _processor() -> str:
    """Returns the features of the processor for which programs are compiled; empty where the system does not tell."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    named = ("flags", "Features", "model name", "CPU part", "CPU implementer")
    found = sorted({line for line in lines if line.partition(":")[0].strip() in named})
    return "\n".join([platform.machine(), *found]) if found else ""


def context() -> tuple[Any, ...] | None:
    """Returns the settings of JAX that decide how a function is traced; None under those that need JAX's own call."""
    if any(getattr(jax.config, name, None) for name in _LEFT_TO_JAX) or not jax.sharding.get_abstract_mesh().empty:
        return None
    return tuple([getattr(jax.config, name, None) for name in _CONTEXT])


def types(leaves: Iterable[Any]) -> tuple[Any, ...] | None:
    """Returns what programs depend on of the leaves of their arguments; None where one is traced, or lies elsewhere."""
    found: list[Any] = []
    for leaf in leaves:
        if isinstance(leaf, jax.core.Tracer):
            return None
        if isinstance(leaf, np.ndarray | np.generic):
            found.append((leaf.shape, leaf.dtype))
        elif isinstance(leaf, jax.Array) and isinstance(leaf.sharding, SingleDeviceSharding):
            found.append((leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False), leaf.sharding.memory_kind))
        else:
            return None
    return tuple(found)


def entry(function: str, settings: Any, static: Mapping[str, Any], arrays: str) -> str | None:
    """Returns the name of the entry of a program; None where it cannot be told, or holds what no name tells.

    Args:
      function: its name.
      settings: how it is compiled.
      static: its static arguments.
      arrays: types and shapes of its arrays, as text.
    """
    parts = [_statics(name, value, static) for name, value in sorted(static.items())]
    code = _code(None)
    if code is None or any(part is None for part in parts):
        return None
    config = {
        name: getattr(jax.config, name, value)
        for name, value in jax.config.values.items()
        if not name.startswith(_OF_NO_PROGRAM)
    }
    versions = [sys.version, jax.__version__, importlib.metadata.version("jaxlib"), np.__version__]
    named = [_FORM, code, function, repr(settings), *map(str, parts), arrays, repr(sorted(config.items(), key=str))]
    return files.digest_of("\0".join([*named, _FLAGS, *versions, _processor()]))


def _statics(name: str, value: Any, static: Mapping[str, Any]) -> str | None:
    """Returns a static argument as text; None of one that has none."""
    from corruptions.core.corruption import Corruption

    if isinstance(value, Corruption):
        options = dict(static.get("options", ()))
        code = _code(value) if value.may_be_loaded(options) else None
        return None if code is None else f"{name} {value.qualified_name} {code}"
    return f"{name} {value!r}" if _is_plain(value) else None


def _is_plain(value: Any) -> bool:
    return isinstance(value, _SCALARS) or (isinstance(value, tuple) and all(map(_is_plain, value)))


@functools.lru_cache(512)
def _code(corruption: Any) -> str | None:
    """Returns the digest of the library's code and of a corruption; None where it is unknown, or a user's."""
    from corruptions.core import code

    if corruption is not None and code.is_of_user(corruption):
        return None
    found = code.code_digest(corruption=corruption or "clean")
    return None if found == code.UNKNOWN else found


def load(name: str) -> Any:
    """Returns the program of an entry; None where there is none that can be read."""
    base = folder()
    if base is None:
        return None
    path = base / f"{name}{_SUFFIX}"
    try:
        if not _is_own(path, stat.S_ISREG):
            return None
        content = path.read_bytes()
        digest, payload = content[:64].decode(), content[64:]
        if files.digest_of(name, payload) != digest:
            return None
        found = serialize_executable.deserialize_and_load(*pickle.loads(payload))
        os.utime(path)  # the least used are dropped first
    except Exception:  # noqa: BLE001 - of another version, or damaged: it is compiled again
        return None
    return found


def store(name: str, compiled: Any) -> None:
    """Writes a program as an entry; does nothing where that is not possible."""
    base = folder()
    if base is None:
        return
    aside = base / f".{name}.{secrets.token_hex(4)}"  # several processes may write one entry
    try:
        payload = pickle.dumps(serialize_executable.serialize(compiled))
        content = files.digest_of(name, payload).encode() + payload
        with open(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(content)
        files.move(aside, base / f"{name}{_SUFFIX}")
        _bound(base)
    except Exception:  # noqa: BLE001 - a program that cannot be written, or a full disk: the next process compiles it
        aside.unlink(missing_ok=True)


def _bound(base: pathlib.Path) -> None:
    """Removes the entries that were not used for the longest time, beyond the folder's size."""
    inside = [one for one in os.scandir(base) if one.name.endswith(_SUFFIX) and one.is_file(follow_symlinks=False)]
    found = [(one.stat(follow_symlinks=False), one.path) for one in inside]
    total = sum(info.st_size for info, _ in found)
    for info, path in sorted(found, key=lambda one: one[0].st_mtime):
        if total <= _MOST:
            break
        pathlib.Path(path).unlink(missing_ok=True)
        total -= info.st_size
