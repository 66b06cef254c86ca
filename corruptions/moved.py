"""Import paths of 0.2: `corruptions.contract`, `corruptions.grain` and the others that moved work in 0.3, with a FutureWarning."""

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
import warnings
from collections.abc import Sequence
from typing import Any

_NOW = {
    "batch": ("core.batch",),
    "choice": ("core.mixtures",),
    "contract": ("core.checks", "core.severity", "core.one_image", "primitives.color"),
    "devices": ("core.dispatch", "core.forks", "primitives.staging"),
    "folders": ("reading.folders",),
    "from_files": ("assets",),
    "grain": ("adapters.grain",),
    "keras": ("adapters.keras",),
    "keys": ("core.keys",),
    "labels": ("core.labels",),
    "one_image": ("core.many_sizes",),
    "padded": ("primitives.padded",),
    "pictures": ("reading.pictures",),
    "programs": ("core.program_cache",),
    "record": ("core.corruption",),
    "registry": ("core.registry",),
    "severity": ("core.severity",),
    "severity_tables": ("core.severity_tables",),
    "views": ("core.clips",),
    "write.files": ("files",),
}
"""Path of 0.2 within the package: where its names are now."""


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        package, _, old = fullname.partition(".")
        return importlib.machinery.ModuleSpec(fullname, self) if package == "corruptions" and old in _NOW else None

    def exec_module(self, module: types.ModuleType) -> None:
        now = _NOW[module.__name__.partition(".")[2]]
        warnings.warn(
            f"{module.__name__} is {' and '.join(f'corruptions.{path}' for path in now)} since 0.3; the old path goes with 0.4",
            FutureWarning,
            stacklevel=2,
        )
        modules = [importlib.import_module(f"corruptions.{path}") for path in now]
        module.__getattr__ = lambda name: _first(modules, module.__name__, name)  # type: ignore[method-assign]
        module.__doc__ = modules[0].__doc__


def _first(modules: Sequence[types.ModuleType], old: str, name: str) -> Any:
    for module in modules:
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module {old!r} has no attribute {name!r}")


def install() -> None:
    """Makes the paths of 0.2 importable."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
