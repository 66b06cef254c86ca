"""A workdir is the folder of one run or study: its config, provenance, state and results.

    with open_workdir(path, config) as workdir:     locked, checked, config and provenance recorded
    with open_existing(path) as workdir:            locked
    Workdir(path)                                   any folder for tables and figures

One run uses a workdir at a time. If a run has many processes, process 0 reads and writes the files and tells the others
their content; all write checkpoints (`training.checkpoints`). This module asks which process this is, so that the code that
writes results need not. It starts no JAX: a command that imports no JAX has one process.
"""

import contextlib
import functools
import os
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from corruptions.files import remove_parts
from runtime import artifacts, files, settings
from runtime.artifacts import of_file, provenance
from runtime.log import log
from runtime.settings import WorkdirError, WorkdirInUseError

TRAINED = "train="
"""Prefix of the folder and of the name of models that are trained with an enhancement."""
CONFIG_DIGESTS = "config_sha256"
_FILES, _MODEL = "files", "model"
# These files exist before the first step.
_RECORDS = {"config.json", "provenance.json", "data.json", "corruptions.json", ".lock"}
_RESTORE = "restore it or use another folder"
_DEFAULT_GENERATOR = "threefry2x32, partitionable: True, 64 bits: False"  # of all versions of JAX that 0.2 worked with
FINAL = {"step": int, "digest": str, "num_classes": int}
"""Shape of final.json."""
FINAL_REMEDY = "remove it and give the command that trained this model again"
# Settings that name folders and files do not determine a result; digests of their content are options of corruptions.
PLACES = (
    *("dataset.data_dir", "dataset.placement", "train.transforms", "train.mix_in.data_dir", "train.tensorboard"),
    *("ranges", "imports", "bank", "frost", "style"),
)


def _distributed():
    """Returns runtime.distributed if this process may be one of many, else None."""
    if "jax" not in sys.modules:
        return None
    from runtime import distributed

    return distributed


class Workdir:
    """A folder of results. Writing does nothing in processes other than process 0.

    Attributes:
      path: folder.
      writes: whether this process reads and writes files.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = pathlib.Path(files.local(path, "workdir", use="hold"))
        distributed = _distributed()
        self.writes: bool = distributed is None or distributed.is_main()

    def __fspath__(self) -> str:
        return str(self.path)

    __str__ = __fspath__

    def __truediv__(self, name: str | os.PathLike) -> pathlib.Path:
        return self.path / name

    def folder(self, name: str | os.PathLike) -> "Workdir":
        """Returns a folder within this one; it is made when a file is written to it."""
        return Workdir(self.path / name)

    def on_main(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls `function` in process 0, returns its value there, None elsewhere; all wait, and raise its error."""
        distributed, call = _distributed(), functools.partial(function, *args, **kwargs)
        return call() if distributed is None else distributed.on_main(call)

    def for_all(self, function: Callable[..., Any], *args: Any) -> Any:
        """Calls `function(*args)` in process 0 and returns its value, bytes or JSON-ready, in every process."""
        distributed, call = _distributed(), functools.partial(function, *args)
        return call() if distributed is None else distributed.from_main(call)

    def exists(self, name: str) -> bool:
        """Checks in process 0 whether this file or folder exists, for every process."""
        return self.for_all((self.path / name).exists)

    def read_json(self, name: str) -> dict[str, Any]:
        """Reads the object in a JSON file and gives it to every process; raises as `files.read_json`."""
        return self.for_all(read_json, self.path / name)

    def write_csv(self, name: str, frame: Any, **source: Any) -> None:
        """Writes a pandas.DataFrame without its index; floats are read back exactly, NaN is `nan`.

        `source` holds JSON-ready values for the entry of this file in provenance.json.
        """
        self.write_text(name, frame.to_csv(index=False, na_rep="nan", lineterminator="\n"), **source)

    def write_json(self, name: str, value: Any, **source: Any) -> None:
        """Writes JSON with sorted keys; `source` as for `write_csv`."""
        if self.writes:
            files.write_json(self.path / name, value, sort_keys=True)
            self.record(name, **source)

    def write_text(self, name: str, content: str | bytes, **source: Any) -> None:
        """Writes text (UTF-8) or bytes; `source` as for `write_csv`."""
        if self.writes:
            files.write_atomically(self.path / name, content)
            self.record(name, **source)

    def record(self, name: str, **source: Any) -> None:
        """Notes in provenance.json which command wrote a file, when, and from what (`source`)."""
        if self.writes:
            path = self.path / "provenance.json"
            known = read_json(path) if path.exists() else {}
            entries = {**known.get(_FILES, {}), name: of_file() | source}
            files.write_json(path, known | {_FILES: entries}, sort_keys=True, grows=True)

    def remove(self, *names: str) -> None:
        """Deletes files of an earlier run, if they exist."""
        if self.writes:
            for name in names:
                files.remove(self.path / name)


def write_json(path: str | os.PathLike, value: Any) -> None:
    """Writes JSON with sorted keys and the digest of its content in process 0; other processes do nothing."""
    if Workdir(path).writes:
        artifacts.write_record(path, value)


def read_json(path: str | os.PathLike) -> dict[str, Any]:
    """Reads the object in a JSON file of a workdir; raises as `files.read_json`."""
    return files.read_json(path, remedy="move it away or use another workdir")


# The config and the model of a workdir.


def read_config(path: str | os.PathLike) -> dict[str, Any]:
    """Reads the config.json of a workdir and gives it to every process.

    Raises:
      FileNotFoundError, DamagedFileError, WorkdirError: there is none, it is no JSON object, or it was edited.
    """
    folder = pathlib.Path(path)

    def read():
        config, known = files.read_json(folder / "config.json", remedy=_RESTORE), _config_digests(folder)
        if known and artifacts.digest(config) not in known:
            raise WorkdirError(_edited_config(folder))
        return config

    return Workdir(path).for_all(read)


def _config_digests(folder: pathlib.Path) -> list[str]:
    """Reads the digests that config.json may have; empty if none was recorded."""
    path = folder / "provenance.json"
    if not path.exists():
        return []
    known = files.read_json(path).get(CONFIG_DIGESTS, [])
    if not isinstance(known, list) or not all(isinstance(entry, str) for entry in known):
        raise files.DamagedFileError(f"{path}: expected a list of digests as {CONFIG_DIGESTS}, found {known!r}")
    return known


def _edited_config(folder: pathlib.Path) -> str:
    """Writes the error for an edited config.json: how to restore it."""
    return (
        f"{folder / 'config.json'} was edited: it no longer has the digest that provenance.json recorded, and nothing "
        f"here was made with these settings. Undo the edit, or give the command that restores it: {command_of(folder)}"
    )


def command_of(folder: str | os.PathLike) -> str:
    """Reads the command that made a workdir from its provenance.json."""
    path = pathlib.Path(folder) / "provenance.json"
    return str((files.read_json(path) if path.exists() else {}).get("command", "the command of this workdir"))


def finished(workdir: str | os.PathLike) -> bool:
    """Returns True if the training in `workdir` reached its last step."""
    return Workdir(workdir).exists("final.json")


def read_final(folder: str | os.PathLike) -> dict[str, Any] | None:
    """Reads final.json of a finished model and gives it to every process; None before the last step.

    It holds `step` and `digest` of the last checkpoint, and `num_classes` of the network. A DamagedFileError says that the
    file was edited, is damaged, or belongs to another model than config.json.
    """
    return Workdir(folder).for_all(final_of, pathlib.Path(folder))


def final_of(folder: pathlib.Path) -> dict[str, Any] | None:
    """Reads final.json as `read_final` does, but only in this process."""
    path = folder / "final.json"
    if not path.exists():
        return None
    final = artifacts.read_record(path, FINAL_REMEDY, shape=FINAL)
    if problem := another_model(final.pop(_MODEL, None), model_of(folder)):
        raise files.DamagedFileError(f"{path}: {problem}; {FINAL_REMEDY}")
    return final


def write_final(folder: str | os.PathLike, **final: Any) -> None:
    """Writes final.json, which marks the model of config.json as finished; `read_final` tells the keys."""
    if Workdir(folder).writes:
        folder = pathlib.Path(folder)
        artifacts.write_record(folder / "final.json", final | {_MODEL: model_of(folder)})


def model_of(folder: pathlib.Path) -> dict[str, Any] | None:
    """Names the model of a folder's config.json: training, seed, digest of the settings that determine it. None without.

    State in the folder is bound to this name, so that a copy from another folder is refused.
    """
    if not (folder / "config.json").exists():
        return None
    config = files.read_json(folder / "config.json", remedy=_RESTORE)
    flat = settings.flatten(config)
    of_model = {key: value for key, value in flat.items() if not settings.is_within(key, PLACES)}
    name = flat.get("train.scheme") or flat.get("train.corruption")
    return {"name": name, "seed": config.get("seed"), "settings": artifacts.digest(of_model)}


def another_model(found: Mapping[str, Any] | None, expected: Mapping[str, Any] | None) -> str:
    """Says that state belongs to another model than expected (`model_of`); "" if not."""

    def say(model):
        return f"{model['name']}, seed {model['seed']}, settings {model['settings'][:12]}" if model else "no model"

    if found == expected:
        return ""
    return f"expected state of the model of config.json ({say(expected)}), found state of another ({say(found)})"


# Opening a workdir.


def claim(path: pathlib.Path, values: Mapping[str, Any], refusal: str, *, free: Iterable[str] = ()) -> None:
    """Stores settings in the JSON file `path`; other settings of an earlier run there are refused (`check_equal`)."""
    if path.exists():
        settings.check_equal(files.read_json(path, remedy=_RESTORE), values, refusal, free=free)
    files.write_json(path, values, sort_keys=True)


@contextlib.contextmanager
def open_workdir(path: str | os.PathLike, config: Mapping[str, Any], free: Iterable[str] = ()) -> Iterator[Workdir]:
    """Locks a workdir, checks that it belongs to this config, records config and provenance, and yields the `Workdir`.

    A missing directory is made. A workdir without results takes any config: a run that failed before its first step
    binds no later run.

    Args:
      config: plain nested dict that determines the results.
      free: dotted keys that may differ from the stored config (where the data are, a longer list of corruptions).

    Raises:
      WorkdirError: not a directory, not writable, in use by another process, holding foreign files, holding a run with
        another config (the differing keys are named), with a config.json that was edited, or a training that began
        with another random generator.
    """
    workdir, config = Workdir(path), settings.recorded(config)
    if (distributed := _distributed()) is not None:  # it holds digests of files, such as the weights of a start
        distributed.check_same(settings.flatten(config))
    workdir.on_main(_make, workdir.path)
    with open_existing(path):
        workdir.on_main(_claim, workdir.path, config, free)
        yield workdir


@contextlib.contextmanager
def open_existing(path: str | os.PathLike) -> Iterator[Workdir]:
    """Holds a workdir against other runs and yields it; WorkdirError: another run has it, or it is not writable."""
    workdir = Workdir(path)
    with contextlib.ExitStack() as stack:
        workdir.on_main(_enter_lock, stack, workdir.path)
        yield workdir


def _make(path):
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise WorkdirError(f"expected a directory as workdir, found a file: {path}") from None
    except OSError as error:
        raise WorkdirError(f"workdir {path} cannot be made: {error.strerror}") from error


def _enter_lock(stack, path):
    try:
        stack.enter_context(files.locked(path))
    except BlockingIOError as error:
        by_path = f"{path} is in use by another run; wait for it or use another --workdir"
        raise WorkdirInUseError(f"workdir {by_path if type(error) is BlockingIOError else error}") from None
    except OSError as error:
        if error.strerror is None:  # an error of a bucket
            raise
        raise WorkdirError(f"workdir {path} is not writable: {error.strerror}") from error
    for folder in _own_folders(path):
        remove_parts(folder)


def _own_folders(path):
    """Lists the workdir and its folders, without checkpoints and workdirs inside, which have their own locks."""
    for folder, names, _ in os.walk(path):  # follows no links
        here = pathlib.Path(folder)
        names[:] = [name for name in names if name != "checkpoints" and not (here / name / ".lock").exists()]
        yield here


def _claim(path, config, free):
    stored, asked = path / "config.json", artifacts.digest(config)
    foreign = sorted(p.name for p in path.iterdir() if not p.name.startswith("."))
    if foreign and not stored.exists():
        listed = ", ".join(foreign[:5]) + (" ..." if len(foreign) > 5 else "")
        raise WorkdirError(
            f"expected an empty workdir or one of this project (with config.json), found {path} holding {listed}"
        )
    results = (file for file in path.rglob("*") if file.is_file() and file.name not in _RECORDS)
    if not any(results):  # no run reached its first step
        for record in ("provenance.json", "data.json"):
            files.remove(path / record)
        files.write_json(stored, config, sort_keys=True)
        _record_run(path, config.get("seed"), [asked])
        return
    content = files.read_json(stored, remedy=_RESTORE)
    before, known = artifacts.digest(content), _config_digests(path)
    if known and before not in known:
        if asked not in known:
            raise WorkdirError("\n  ".join([_edited_config(path), *settings.differences(content, config, free)]))
        log.warning("%s was edited; it is written again as the last run left it.", stored)
        before = asked
    else:
        refusal = f"workdir {path} holds a run with another config; use another --workdir or the same settings"
        settings.check_equal(content, config, refusal, free=free)
    if "train" in config and not (path / "final.json").exists():  # nothing is drawn for a finished model
        _check_generator(path)
    # The digests are written first, so that a run that stops between the two writes leaves a config.json with a digest.
    _record_run(path, config.get("seed"), sorted({before, asked}))
    files.write_json(stored, config, sort_keys=True)


def _check_generator(folder):
    """Refuses to continue a training with other random draws; one of 0.2, which recorded none, counts as JAX's default."""
    path, now = folder / "provenance.json", artifacts.generator()
    runs = _runs(read_json(path)) if path.exists() else [{}]
    stored = next((run["generator"] for run in runs if "generator" in run), None)
    if stored is None:
        log.info("%s names no random generator: it counts as begun with JAX's default, %s.", folder, _DEFAULT_GENERATOR)
    if (stored or _DEFAULT_GENERATOR) != now:
        hint = "" if stored else f'; if it began with this one, write "generator": "{now}" into its provenance.json'
        raise WorkdirError(
            f"expected the random generator of the training in {folder}, {stored or _DEFAULT_GENERATOR}, found {now}: set "
            "JAX_DEFAULT_PRNG_IMPL, JAX_THREEFRY_PARTITIONABLE and JAX_ENABLE_X64 as for the first run, or use another "
            f"--workdir{hint}"
        )


def _runs(record):
    """Lists the runs in provenance.json, the first one first."""
    return [record, *record.get("continued", [])]


def _record_run(folder, seed, digests):
    """Keeps the first run's provenance and config.json's digests; runs of other code or devices go under `continued`."""
    path = folder / "provenance.json"
    record = provenance() | {"seed": seed}
    if path.exists():
        first = read_json(path)
        earlier = _runs(first)
        _tell_cores(folder, earlier[-1], record)
        same = ("git_revision", "versions", "device", "machine", "cores", "generator")
        known = any(all(run.get(key) == record[key] for key in same) for run in earlier)
        if known and first.get(CONFIG_DIGESTS) == digests:
            return
        record = first if known else first | {"continued": [*first.get("continued", []), record]}
    files.write_json(path, record | {CONFIG_DIGESTS: digests}, sort_keys=True)


def _tell_cores(folder, before, now):
    """Says that a training continues on a CPU with another number of cores."""
    cores = before.get("cores", now["cores"])
    training = (folder / "metrics.jsonl").exists() and not (folder / "final.json").exists()
    if training and cores != now["cores"] and now["device"].endswith("(cpu)"):
        log.info(
            "%s continues on %d cores, before on %d: sums are rounded in another order, and its last bits differ from those "
            "of a run on one number of cores.",
            *(folder, now["cores"], cores),
        )
