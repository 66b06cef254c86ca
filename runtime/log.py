"""The project's own log, and one progress bar for every long command. Needs no JAX."""

import logging
import os
import sys
from collections.abc import Iterable
from typing import Any

from corruptions import files

log = logging.getLogger("jax_corruptions")
MISSING = "expected the package {}, found none; commands need more than the library: pip install -e '.[study]' in the checkout"
LINE_SECONDS = 30
"""Seconds between two lines of progress where standard error is no terminal."""


def open_closed_streams() -> None:
    """Gives standard streams that the caller closed (`2>&-`) to the null device.

    Progress bars write to them, and the next file that is opened would take the number of a closed one.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w" if descriptor else "r"))  # noqa: SIM115 - open to the end


def configure(process: int = 0) -> None:
    """Sends messages of this project, the library's too, to standard error, errors only in processes other than process 0.

    absl's log, which Orbax fills with every step of a save, stays at warnings.
    """
    import absl.logging

    absl.logging.set_verbosity(absl.logging.WARNING)
    if not log.handlers:
        log.addHandler(logging.StreamHandler())
    log.handlers[0].setFormatter(logging.Formatter(f"process {process}: %(message)s" if process else "%(message)s"))
    for one, level in ((log, logging.INFO), (logging.getLogger("corruptions"), logging.WARNING)):
        one.handlers = log.handlers
        one.setLevel(logging.ERROR if process else level)
        one.propagate = False


def bar(unit: str, items: Iterable | None = None, total: int | None = None, **options: Any) -> Any:
    """Returns a bar of tqdm (`corruptions.files.bar`) that counts `unit`s, over `items` or up to `total`.

    Only process 0 shows it. Where standard error is no terminal, what takes long logs a line every `LINE_SECONDS` instead.
    `options` are tqdm's.
    """
    distributed = sys.modules.get("runtime.distributed")  # a command that does not import it has one process
    shown = distributed is None or distributed.is_main()
    options = {"unit_scale": False, "dynamic_ncols": True} | options
    if not (sys.stderr and sys.stderr.isatty()):
        text = "{desc}: {n_fmt} of {total_fmt} {unit}s, {elapsed} so far, {remaining} left{postfix}"
        seconds = {"mininterval": LINE_SECONDS, "maxinterval": LINE_SECONDS, "delay": LINE_SECONDS, "miniters": 1}
        options |= {"file": _Lines(), "bar_format": text, "position": 0, "leave": False, **seconds}
    description = options.pop("desc", f"{unit}s")
    return files.bar(total, description, shown, unit, items, **options)


class _Lines:
    """A stream that makes a line of the log of each text."""

    def write(self, text):
        if text := text.strip():
            log.info("%s", text)

    def flush(self):
        pass
