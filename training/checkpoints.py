"""Checkpoints of a training state. They are Orbax's, each with a digest; a damaged one gives way to the one before."""

import contextlib
import logging
import os
import pathlib
import re
import shutil
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from typing import Any

import chex
import jax
import numpy as np
import orbax.checkpoint as ocp
from etils import epath

from corruptions.files import Digest, contained, describe_file, is_full, move
from runtime import distributed, files, workdirs
from runtime.log import log
from runtime.workdirs import Workdir
from training.states import TrainState

KEPT = 2
"""The newest checkpoints of a run that stay."""


class CheckpointError(RuntimeError):
    """A checkpoint cannot be written, or no stored checkpoint can be read."""


def digest(state: Any) -> str:
    """Computes the sha256 of names, dtypes, shapes and bytes of every array of a pytree."""
    total = Digest()
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        total.add_named(jax.tree_util.keystr(path), np.asarray(distributed.fetch(leaf)))
    return str(total)


_ANOTHER = "is of another network"


def _shapes(tree):
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): f"{tuple(x.shape)} {x.dtype}" for path, x in leaves}


def _reason(error):
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    return text if len(text) <= 240 else f"{text[:80]} ... {text[-150:]}"


@contextlib.contextmanager
def _late_work_is_quiet():
    """Silences Orbax's late tasks while the block runs, and for good when it fails.

    Tasks that end after Orbax gave up find its event loop closed, and each would print a traceback.
    """
    before = sys.unraisablehook
    levels = {logger: logger.level for logger in map(logging.getLogger, ("asyncio", "absl"))}

    def hook(unraisable):
        if unraisable.exc_type is not RuntimeError or str(unraisable.exc_value) != "Event loop is closed":
            before(unraisable)

    sys.unraisablehook = hook
    for logger in levels:
        logger.setLevel(logging.CRITICAL)
    yield
    sys.unraisablehook = before
    for logger, level in levels.items():
        logger.setLevel(level)


_PACKED = re.compile(r"(?:^|/)\d+\.(?:zip|tar)$")


class _Packed:
    """Checkpoints of a folder in a bucket: each is one object, checkpoints/NUMBER.zip (in release 0.2 .tar).

    The copy of the object lies beside the folder NUMBER, which Orbax reads and writes.
    """

    def __init__(self, folder: pathlib.Path, copy: Any):
        self._folder, self._copy = folder, copy

    def _names(self):
        within = f"{self._copy.name(self._folder)}/"
        return [name for name in self._copy.names or () if name.startswith(within)]

    def for_many(self) -> str:
        """Returns the address that Orbax writes to in many processes."""
        address = f"{self._copy.address}/{self._copy.name(self._folder)}"
        if not address.startswith("gs:"):
            raise CheckpointError(
                f"expected a workdir in gs:// or in a folder that all processes reach, for many processes, found {address}; "
                "mount the bucket (mount-s3) and name a folder there by JAX_CORRUPTIONS_CHECKPOINTS"
            )
        if any(map(_PACKED.search, Workdir(self._folder.parent).for_all(self._names))):
            raise CheckpointError(f"{address} holds checkpoints of a run in one process; continue it in one process")
        return address

    def fetch(self) -> None:
        """Brings the checkpoints here; for the process that writes the workdir, others leave the copy."""
        self._copy.get(names := self._names())
        paths = [self._folder / pathlib.Path(name).name for name in names if _PACKED.search(name)]
        kept = {*paths, *(path.with_suffix("") for path in paths)}
        for path in {*self._folder.iterdir()} - kept if paths and self._copy.owner else ():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in paths:
            _unpack(path, path.with_suffix(""))

    def check(self) -> None:
        """Raises where another process has taken the workdir over; writes the objects of the files that grew."""
        self._copy.check(before_checkpoint=True)

    def put(self, step: int) -> None:
        """Writes the object of a checkpoint, and deletes those of the checkpoints that Orbax deleted."""
        path, folder = self._folder / f"{step}.zip", self._folder / str(step)
        with files.writing(path) as file, zipfile.ZipFile(file, "w") as archive:  # which puts it
            for one in sorted(folder.rglob("*")):
                archive.write(one, one.relative_to(folder))
        os.utime(folder, ns=_mark(path))
        self.drop_others()

    def drop_others(self) -> None:
        """Deletes the objects of checkpoints that are not here."""
        for path in self._folder.glob("*.*"):
            if _PACKED.search(path.name) and not path.with_suffix("").is_dir():
                files.remove(path)


def _mark(packed):
    """Returns times of the folder that holds what an archive does."""
    return (int(describe_file(packed)["sha256"][:7], 16) * 10**9,) * 2


def _files_in(packed):
    """Yields name and content, an open file, of the files in an archive."""
    if zipfile.is_zipfile(packed):
        with zipfile.ZipFile(packed) as archive:
            yield from ((one.filename, archive.open(one)) for one in archive.infolist() if not one.is_dir())
    else:
        with tarfile.open(packed) as archive:
            yield from ((one.name, archive.extractfile(one)) for one in archive if one.isfile())


def _unpack(packed, folder):
    """Makes a folder of an archive, its files and no links, unless it is there; a damaged one makes what comes before."""
    mark = _mark(packed)
    if folder.is_dir() and folder.stat().st_mtime_ns == mark[0]:
        return
    aside = pathlib.Path(tempfile.mkdtemp(dir=packed.parent, prefix=".part-"))
    damaged = (zipfile.BadZipFile, tarfile.TarError, EOFError, ValueError)
    with contextlib.suppress(*damaged, NotADirectoryError, IsADirectoryError, FileExistsError):
        for name, content in _files_in(packed):
            path = contained(aside, name.removeprefix("./"))
            path.parent.mkdir(parents=True, exist_ok=True)
            with content, open(path, "wb") as file:
                shutil.copyfileobj(content, file)
    os.utime(aside, ns=mark)
    if folder.is_dir():
        shutil.rmtree(folder)
    move(aside, folder)


class Checkpoints:
    """Checkpoints of one training run under `directory`, the newest `keep` of them.

    Orbax writes each aside and renames it, so a killed process leaves only whole checkpoints. The
    digest also finds checkpoints that were damaged later. Of many processes all save and restore, into
    one directory: their workdir is on a file system they share, or JAX_CORRUPTIONS_CHECKPOINTS
    names a folder or an address like gs://BUCKET/FOLDER that all reach.

    They are bound to the model of the config.json beside the directory (`workdirs.model_of`): copies of another
    model's checkpoints count as damaged. With `read_only` nothing is created or deleted.
    """

    def __init__(self, directory: str | os.PathLike, keep: int = KEPT, read_only: bool = False):
        self._directory, self._keep = epath.Path(pathlib.Path(directory).resolve()), keep
        if root := os.environ.get("JAX_CORRUPTIONS_CHECKPOINTS"):
            self._directory = epath.Path(root) / os.path.normpath(directory).replace("../", "").lstrip("/")
        self._workdir = workdir = pathlib.Path(directory).parent
        self._bucket = None
        if not root and (copy := files.copy_of(directory)):
            self._bucket = _Packed(pathlib.Path(directory), copy)
            if distributed.several():
                self._directory, self._bucket = epath.Path(self._bucket.for_many()), None
            else:
                self._bucket.fetch()
        self._model = Workdir(workdir).for_all(workdirs.model_of, workdir)
        options = ocp.CheckpointManagerOptions(
            max_to_keep=None if read_only else keep,
            create=not read_only,
            enable_async_checkpointing=False,
            cleanup_tmp_directories=not read_only,
        )
        self._manager = ocp.CheckpointManager(self._directory, options=options, item_names=("state", "meta"))

    def save(self, state: TrainState) -> None:
        """Writes the state; raises CheckpointError where it cannot (a full disk). The checkpoints before it stay.

        Of a workdir in a bucket the checkpoint is there, too, when this returns.
        """
        files.refuse_moved(self._workdir / "checkpoints")
        if self._bucket:
            self._bucket.check()
        step, meta = int(state.step), {"digest": digest(state), "model": self._model}
        args = ocp.args.Composite(state=ocp.args.StandardSave(state), meta=ocp.args.JsonSave(meta))
        try:
            if self._manager.latest_step() == step:  # a damaged one, of imported weights: Orbax would keep it
                self._manager.delete(step)
            with _late_work_is_quiet():
                saved = self._manager.save(step, args=args)
            if not saved:  # Orbax 0.12 keeps to its newest checkpoint, and says so by what it returns alone
                raise FileExistsError(f"a checkpoint of step {self._manager.latest_step()} is there")
        except Exception as error:  # Orbax and TensorStore raise many kinds
            if distributed.lost_another(error):
                raise
            raise CheckpointError(
                f"checkpoint {self._directory}/{step} cannot be written ({_reason(error)}); those before it stay: "
                f"{'make room' if is_full(error) else 'once this is solved'}, and the same command continues"
            ) from error
        if self._bucket:
            self._bucket.put(step)

    def restore(self, template: TrainState, final: Mapping[str, Any] | None = None) -> TrainState | None:
        """Reads the newest undamaged checkpoint into the structure, shapes, dtypes and shardings of `template`; None
        when none was written.

        All but the `keep` newest undamaged checkpoints are deleted. `final` has `step` and `digest` of the last state of a
        finished run: a checkpoint of that step with another state counts as damaged.

        Raises:
          CheckpointError: checkpoints exist and none can be read.
        """
        steps, failures = self._steps(), []
        for step in steps:
            state, actual, reason = self._read(step, template)
            if not reason and final and step == final["step"] and actual != final["digest"]:
                reason = (
                    f"is damaged (it holds another state, {actual[:12]}, than final.json names, {final['digest'][:12]})"
                )
            if not reason:
                read = len(failures)  # damaged checkpoints go, and old checkpoints after a kill
                for unneeded in (*steps[:read], *steps[read + self._keep :]):
                    self._manager.delete(unneeded)
                if self._bucket:
                    self._bucket.drop_others()
                return state
            failures.append(f"step {step} {reason}")
            log.warning("Checkpoint %s/%d %s; trying the one before.", self._directory, step, reason)
        if failures:
            head = f"no checkpoint under {self._directory} can be read; remove the folder to train again:"
            if all(_ANOTHER in failure for failure in failures):
                head = f"expected checkpoints of this network under {self._directory}; give the settings they were made with:"
            raise CheckpointError("\n  ".join([head, *failures]))
        return None

    def read(self, template: TrainState, step: int, expected: str) -> TrainState:
        """Reads the checkpoint of one step, whose state has the digest `expected`, and no other; nothing is deleted.

        Raises:
          CheckpointError: it is missing, damaged, or holds another state.
        """
        steps = self._steps()
        if step not in steps:
            raise CheckpointError(f"expected the checkpoint of step {step}, found {steps or 'none'}")
        state, actual, reason = self._read(step, template)
        if reason:
            raise CheckpointError(f"the checkpoint {self._directory}/{step} {reason}")
        if actual != expected:
            raise CheckpointError(f"expected step {step} with the digest {expected[:12]}, found {actual[:12]}")
        return state

    def _steps(self):
        return Workdir(self._directory).for_all(lambda: sorted(map(int, self._manager.all_steps()), reverse=True))

    def _read(self, step, template):
        """Reads (state, its digest, reason why it cannot be used or ""), the same in every process."""
        abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, template)
        state, actual, reason = None, "", ""
        try:
            args = ocp.args.Composite(state=ocp.args.StandardRestore(abstract), meta=ocp.args.JsonRestore())
            with _late_work_is_quiet():
                restored = self._manager.restore(step, args=args)
            state, actual = restored.state, digest(restored.state)
            chex.assert_trees_all_equal_shapes_and_dtypes(state, abstract)  # Orbax checks arrays of JAX alone
            if actual != restored.meta["digest"]:
                raise ValueError(f"digest {actual[:12]} differs from the stored {restored.meta['digest'][:12]}")
            if problem := workdirs.another_model(restored.meta.get("model"), self._model):
                raise ValueError(problem)
            if int(state.step) != step:
                raise ValueError(f"it holds the state of step {int(state.step)}")
        except Exception as error:  # noqa: BLE001 - Orbax and TensorStore raise many kinds for damaged files
            reason = self._differences(step, abstract) or f"is damaged ({_reason(error)})"
        if distributed.anyone(reason):
            reason = reason or "is damaged (another process could not read it)"
        return state, actual, reason

    def _differences(self, step, abstract):
        """Says which array of a checkpoint has another name, shape or dtype than asked for; "" if none, or it is damaged."""
        try:
            found, asked = map(_shapes, (self._manager.item_metadata(step)["state"].tree, abstract))
        except Exception:  # noqa: BLE001 - as of `_read`
            return ""
        for name in sorted(found | asked):
            if found.get(name) != asked.get(name):
                return f"{_ANOTHER} ({name}: expected {asked.get(name, 'no array')}, found {found.get(name, 'none')})"
        return ""

    def close(self) -> None:
        """Waits until all is written."""
        self._manager.wait_until_finished()
        self._manager.close()
