"""A workdir holds one run or one study: its config, provenance and results. One run at a time.

Of a run in many processes only the first touches the workdir: the others need not see the disk it is on.
"""

import contextlib
import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runtime import distributed, files, settings
from runtime.provenance import provenance
from runtime.settings import WorkdirError


def write_json(path: str | os.PathLike, value: Any) -> None:
    """Writes JSON with sorted keys, by `files.write_json`; of many processes only the first writes."""
    if distributed.is_main():
        files.write_json(path, value, sort_keys=True)


def read_json(path: str | os.PathLike) -> dict[str, Any]:
    """Returns the object in a JSON file of a workdir.

    Raises:
      DamagedFileError: something else; the file is named.
    """
    return files.read_json(path, remedy="move it away or use another workdir")


def read_for_all(path: str | os.PathLike) -> dict[str, Any]:
    """Gives the `read_json` of process 0 to every process of a run."""
    return distributed.from_main(lambda: read_json(path))


@contextlib.contextmanager
def open_workdir(
    path: str | os.PathLike, config: Mapping[str, Any], free: Iterable[str] = ()
) -> Iterator[pathlib.Path]:
    """Locks a workdir, checks that it belongs to this config, and records config and provenance.

    Args:
      path: directory; created when missing.
      config: plain nested dict that determines the results.
      free: dotted keys that may differ from the stored config (where the data are, a longer list of corruptions).

    Yields:
      The directory as a `pathlib.Path`.

    Raises:
      WorkdirError: not a directory, not writable, in use by another process, holding foreign files, or holding a run
        with another config (the differing keys are named).
    """
    path = pathlib.Path(path)
    distributed.on_main(lambda: _make(path))
    with lock(path):
        distributed.on_main(lambda: _claim(path, config, free))
        yield path


def _make(path):
    if path.exists() and not path.is_dir():
        raise WorkdirError(f"expected a directory as workdir, found a file: {path}")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkdirError(f"workdir {path} cannot be made: {error.strerror}") from error


def _claim(path, config, free):
    _check_owner(path)
    refusal = f"workdir {path} holds a run with another config; use another --workdir or the same settings"
    settings.claim(path / "config.json", config, refusal, free=free)
    _record_provenance(path / "provenance.json", config.get("seed"))


def _record_provenance(path, seed):
    """Keeps the provenance of the first run; runs with other code, versions or devices are added under `continued`."""
    record = provenance() | {"seed": seed}
    if path.exists():
        first = read_json(path)
        earlier = [first, *first.get("continued", [])]
        same = ("git_revision", "versions", "device", "machine")
        if any(all(run.get(key) == record[key] for key in same) for run in earlier):
            return
        record = first | {"continued": [*first.get("continued", []), record]}
    write_json(path, record)


@contextlib.contextmanager
def lock(path: pathlib.Path) -> Iterator[None]:
    """Holds the workdir against other runs; WorkdirError when one has it or the directory is not writable."""
    with contextlib.ExitStack() as stack:
        distributed.on_main(lambda: _enter_lock(stack, path))
        yield


def _enter_lock(stack, path):
    try:
        stack.enter_context(files.locked(path))
    except BlockingIOError:
        raise WorkdirError(f"workdir {path} is in use by another run; wait for it or use another --workdir") from None
    except OSError as error:
        raise WorkdirError(f"workdir {path} is not writable: {error.strerror}") from error


def _check_owner(path):
    """Refuses a folder that holds files but no config.json."""
    if (path / "config.json").exists():
        return
    foreign = sorted(p.name for p in path.iterdir() if not p.name.startswith("."))
    if foreign:
        raise WorkdirError(
            f"expected an empty workdir or one of this project (with config.json), found {path} holding "
            f"{', '.join(foreign[:5])}{' ...' if len(foreign) > 5 else ''}"
        )
