"""A workdir holds one run or one study: its config, provenance and results. One run at a time.

Of a run in many processes only the first touches the workdir: the others need not see the disk it
is on.
"""

import contextlib
import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runtime import bindings, distributed, files, settings
from runtime.log import log
from runtime.provenance import provenance
from runtime.settings import WorkdirError

_RECORDS = {"config.json", "provenance.json", "data.json", ".lock"}  # what a run writes before its first step


def write_json(path: str | os.PathLike, value: Any) -> None:
    """Writes JSON with sorted keys, by `files.write_json`; of many processes only the first
    writes.
    """
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


def read_config(path: pathlib.Path) -> dict[str, Any]:
    """Gives the `bindings.read_config` of process 0 to every process of a run: an edited
    config.json is refused.
    """
    return distributed.from_main(lambda: bindings.read_config(path))


@contextlib.contextmanager
def open_workdir(
    path: str | os.PathLike, config: Mapping[str, Any], free: Iterable[str] = ()
) -> Iterator[pathlib.Path]:
    """Locks a workdir, checks that it belongs to this config, and records config and provenance.

    One that holds no results yet takes any config: a run that failed before its first step binds
    nobody.

    Args:
      path: directory; created when missing.
      config: plain nested dict that determines the results.
      free: dotted keys that may differ from the stored config (where the data are, a longer list of
        corruptions).

    Yields:
      The directory as a `pathlib.Path`.

    Raises:
      WorkdirError: not a directory, not writable, in use by another process, holding foreign files,
        holding a run with another config (the differing keys are named), or with a config.json that
        was edited.
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
    stored, asked = path / "config.json", bindings.digest(config)
    if not _has_results(path):
        for record in ("provenance.json", "data.json"):
            (path / record).unlink(missing_ok=True)
        files.write_json(stored, config, sort_keys=True)
        _record_provenance(path, config.get("seed"), [asked])
        return
    content = files.read_json(stored, remedy="restore it or use another folder")
    before, known = bindings.digest(content), bindings.config_digests(path)
    if known and before not in known:
        if asked not in known:
            raise WorkdirError(
                "\n  ".join([bindings.edited_config(path), *settings.differences(content, config, free)])
            )
        log.warning("%s was edited; it is written again as the run before left it.", stored)
        before = asked
    else:
        refusal = f"workdir {path} holds a run with another config; use another --workdir or the same settings"
        settings.check_equal(content, config, refusal, free=free)
    # The digests go first: stopped between the two, a run leaves a config.json with one of them.
    _record_provenance(path, config.get("seed"), sorted({before, asked}))
    files.write_json(stored, config, sort_keys=True)


def _has_results(path):
    """Whether a workdir holds more than a run leaves that failed before its first step."""
    return any(file.is_file() and file.name not in _RECORDS for file in path.rglob("*"))


def _record_provenance(folder, seed, digests):
    """Keeps the provenance of the first run; runs with other code, versions or devices are added
    under `continued`.

    Beside it lie the digests that config.json may have.
    """
    path = folder / "provenance.json"
    record = provenance() | {"seed": seed}
    if path.exists():
        first = read_json(path)
        earlier = [first, *first.get("continued", [])]
        same = ("git_revision", "versions", "device", "machine")
        known = any(all(run.get(key) == record[key] for key in same) for run in earlier)
        if known and first.get(bindings.CONFIG_DIGESTS) == digests:
            return
        record = first if known else first | {"continued": [*first.get("continued", []), record]}
    write_json(path, record | {bindings.CONFIG_DIGESTS: digests})


@contextlib.contextmanager
def lock(path: pathlib.Path) -> Iterator[None]:
    """Holds the workdir against other runs; WorkdirError when one has it or the directory is not
    writable.
    """
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
    for folder in _own_folders(path):
        files.remove_parts(folder)


def _own_folders(path):
    """The workdir and the folders in it, but for checkpoints and workdirs inside, which have locks
    of their own.
    """
    yield path
    for folder in path.iterdir():
        if folder.is_dir() and folder.name != "checkpoints" and not (folder / ".lock").exists():
            yield from _own_folders(folder)


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
