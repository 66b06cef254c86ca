"""Modules of the user's that commands import before they look at names: config.imports."""

import importlib
from collections.abc import Iterable

from runtime.schema import SettingsError


def import_all(modules: Iterable[str]) -> None:
    """Imports modules, which register corruptions and benchmarks as they are imported.

    Args:
      modules: dotted names; they lie beside the commands, are installed, or on PYTHONPATH.

    Raises:
      SettingsError: no such names, or a module that is not found or cannot be imported.
    """
    if not isinstance(modules, list | tuple) or not all(isinstance(name, str) and name for name in modules):
        raise SettingsError(
            f"config.imports: expected names of modules, such as ('my_corruptions',), found {modules!r}"
        )
    for name in modules:
        try:
            importlib.import_module(name)
        except Exception as error:  # whatever the user's code raises
            raise SettingsError(
                "config.imports: expected a module that Python finds (beside the commands, installed or on "
                f"PYTHONPATH) and can import, found {name!r}: {type(error).__name__}: {error}"
            ) from error
