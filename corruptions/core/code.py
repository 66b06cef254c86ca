"""The digest of the code that corrupts: the library's files, and the user's files that a corruption follows from.

A user's corruption follows from the modules that define its functions, from what these import, and from what its functions
were made with. Installed packages are left out: their versions are recorded, and not compared.
"""

import ast
import dataclasses
import functools
import importlib.machinery
import inspect
import pathlib
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jax
import numpy as np

import corruptions.core
from corruptions.core import registry
from corruptions.core.corruption import Corruption
from corruptions.files import Digest, digest_of

UNKNOWN = "unknown"
"""Where the code cannot be told: a notebook's, or a file that changed while it was in use. It equals no code."""

_PACKAGE = pathlib.Path(__file__).parents[1]
_INSTALLED = {"site-packages", "dist-packages"}
_OTHERS = {"corruptions", "jax", "jaxlib", "numpy"}  # the first is in each digest
_LOADED = time.time()
_SCALARS = (type(None), bool, int, float, complex, str, bytes, np.generic, np.dtype)


class _UnknownError(Exception):
    """Code that cannot be told."""


def code_digest(imports: Iterable[str] = (), corruption: str | Corruption | None = None) -> str:
    """Computes the sha256 of the code that corrupts, or `UNKNOWN`.

    It changes with the library's source files and with the user's files that registered corruptions, or that these import;
    not with their paths. Where a file changed after it may have been loaded, the code is unknown.

    Args:
      imports: names of the user's modules that take part too.
      corruption: of this corruption alone; None is all that are registered, and `clean` no one.
    """
    asked = registry.every() if corruption is None else [] if corruption == "clean" else [registry.get(corruption)]
    content, modules = Digest(), set(imports)
    try:
        content.add(_of_library())
        for one in sorted(asked, key=lambda one: one.qualified_name):
            for part in _parts(one, modules, frozenset()):
                content.add(part, b"\0")
        for name, text in sorted(_files(modules).items()):
            content.add(name, b"\0", digest_of(text))
    except _UnknownError:
        return UNKNOWN
    return str(content)


def is_of_user(corruption: str | Corruption) -> bool:
    """Whether a corruption follows from code outside of this library, whose functions may read files that no digest holds."""
    modules: set[str] = set()
    try:
        list(() if corruption == "clean" else _parts(registry.get(corruption), modules, frozenset()))
    except _UnknownError:
        return True
    return not {_top(name) for name in modules} <= _OTHERS | sys.stdlib_module_names


@functools.cache
def _of_library() -> str:
    content = Digest()
    for path in sorted(_PACKAGE.rglob("*.py")):
        content.add(path.relative_to(_PACKAGE).as_posix(), b"\0", digest_of(_read(path, corruptions.core.BEGUN)))
    return str(content)


def _read(path: pathlib.Path, loaded: float = _LOADED) -> bytes:
    try:
        if path.stat().st_mtime > loaded:
            raise _UnknownError(path)
        return path.read_bytes()
    except OSError as error:
        raise _UnknownError(path) from error


def _parts(value: Any, modules: set[str], above: frozenset[int]) -> Iterator[bytes]:
    """Yields what a value consists of, and adds the modules of its functions; raises `_UnknownError` where it cannot be told."""
    if id(value) in above:
        return
    above = above | {id(value)}
    inside: Iterable[Any] = ()
    if isinstance(value, _SCALARS):
        yield f"{type(value).__name__} {value!r}".encode()
    elif isinstance(value, type):
        modules.add(value.__module__)
        yield value.__qualname__.encode()
    elif isinstance(value, np.ndarray | jax.Array):
        array = np.asarray(value)
        yield f"{array.dtype} {array.shape} ".encode() + array.tobytes()
    elif isinstance(value, tuple | list | set | frozenset):
        yield f"{type(value).__name__} {len(value)}".encode()
        inside = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
    elif isinstance(value, Mapping):
        yield f"mapping {len(value)}".encode()
        inside = [part for pair in value.items() for part in pair]
    elif isinstance(value, functools.partial):
        inside = (value.func, value.args, value.keywords)
    elif dataclasses.is_dataclass(value):
        inside = [getattr(value, field.name) for field in dataclasses.fields(value)]
    elif inspect.ismodule(value):
        modules.add(value.__name__)
    elif inspect.isfunction(function := inspect.unwrap(value)):
        modules.add(function.__module__)
        yield f"{_top(function.__module__)} {function.__qualname__}".encode()
        inside = [*(function.__defaults__ or ()), function.__kwdefaults__ or {}, *_cells(function)]
        if value is not function:  # what a wrapper was made with
            inside += [getattr(value, "__kwdefaults__", None) or {}, *_cells(value)]
    elif inspect.isbuiltin(value) or isinstance(value, np.ufunc):
        yield repr(getattr(value, "__name__", value)).encode()
    elif inspect.ismethod(value):
        inside = (value.__func__, value.__self__)
    elif hasattr(value, "__dict__"):
        modules.add(type(value).__module__)
        inside = (type(value).__qualname__, vars(value))
    else:
        raise _UnknownError(value)
    for part in inside:
        yield from _parts(part, modules, above)


def _cells(function: Any) -> list[Any]:
    try:
        return [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    except ValueError:  # a cell that is not filled
        return []


def _files(names: Iterable[str]) -> dict[str, bytes]:
    """Reads the files of modules of the user's and of the modules that they import: {name: content}."""
    found: dict[str, bytes] = {}
    waiting = list(names)
    own = {_top(name) for name in waiting} - _OTHERS - sys.stdlib_module_names  # installed packages of the user's count
    while waiting:
        name = waiting.pop()
        if name in found or _top(name) in _OTHERS:
            continue
        path, package = _file_of(name)
        if path is None or ((_INSTALLED.intersection(path.parts) or _in_stdlib(path)) and _top(name) not in own):
            continue
        found[name] = _read(path)
        if path.suffix == ".py":
            waiting += _imported(found[name], package)
    return found


def _top(name: str) -> str:
    return name.partition(".")[0]


def _in_stdlib(path: pathlib.Path) -> bool:
    return any(path.is_relative_to(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))


def _file_of(name: str) -> tuple[pathlib.Path | None, str]:
    """Finds the file of a module and its package; no file of a name that is no module, or is built in."""
    module, spec = sys.modules.get(name), _spec(name)
    path = getattr(module, "__file__", None) or getattr(spec, "origin", None)
    if name == "__main__" and path is None:
        raise _UnknownError(name)
    package = getattr(module, "__package__", None) or getattr(spec, "parent", None) or ""
    return (None if path in (None, "built-in", "frozen") else pathlib.Path(path).resolve()), package


def _spec(name: str) -> Any:
    """Finds a module without importing anything."""
    if name in sys.modules:
        return getattr(sys.modules[name], "__spec__", None)
    parent = name.rpartition(".")[0]
    within = getattr(_spec(parent), "submodule_search_locations", None) if parent else None
    return None if parent and within is None else importlib.machinery.PathFinder.find_spec(name, within)


@functools.lru_cache(1024)
def _imported(source: bytes, package: str) -> tuple[str, ...]:
    """Lists the names that a source file may import, whole and without their last part."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join(filter(None, (*parents, node.module)))
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return tuple(dict.fromkeys(filter(None, names)))
