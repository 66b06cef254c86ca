"""Checkpoints by Orbax, each with a digest; a damaged one gives way to the one before."""

import contextlib
import hashlib
import logging
import os
import pathlib
import sys
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from etils import epath

from runtime import distributed, workdirs
from runtime.log import log
from runtime.workdirs import Workdir
from training.states import TrainState

KEPT = 2
"""The newest checkpoints of a run that stay."""


class CheckpointError(RuntimeError):
    """A checkpoint cannot be written, or no stored checkpoint can be read."""


def digest(state: Any) -> str:
    """Computes the sha256 of names, dtypes, shapes and bytes of every array of a pytree."""
    total = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        array = np.ascontiguousarray(distributed.fetch(leaf))
        total.update(f"{jax.tree_util.keystr(path)} {array.dtype} {array.shape}".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def _reason(error):
    """Shortens an error's text to its first line, a long one to its ends."""
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
        workdir = pathlib.Path(directory).parent
        self._model = Workdir(workdir).for_all(workdirs.model_of, workdir)
        options = ocp.CheckpointManagerOptions(
            max_to_keep=None if read_only else keep,
            create=not read_only,
            enable_async_checkpointing=False,
            cleanup_tmp_directories=not read_only,
        )
        self._manager = ocp.CheckpointManager(self._directory, options=options, item_names=("state", "meta"))

    def save(self, state: TrainState) -> None:
        """Writes the state; raises CheckpointError where it cannot (a full disk). The checkpoints before it stay."""
        step, meta = int(state.step), {"digest": digest(state), "model": self._model}
        args = ocp.args.Composite(state=ocp.args.StandardSave(state), meta=ocp.args.JsonSave(meta))
        try:
            with _late_work_is_quiet():
                self._manager.save(step, args=args)
        except Exception as error:  # Orbax and TensorStore raise many kinds
            if distributed.lost_another(error):
                raise
            raise CheckpointError(
                f"checkpoint {self._directory}/{step} cannot be written ({_reason(error)}); those before it stay: "
                "make room, and the same command continues"
            ) from error

    def restore(self, template: TrainState, final: Mapping[str, Any] | None = None) -> TrainState | None:
        """Reads the newest undamaged checkpoint; None when none was written.

        All but the `keep` newest undamaged checkpoints are deleted.

        Args:
          template: a state with the structure, shapes, dtypes and shardings to restore into.
          final: `step` and `digest` of the last state of a finished run: a checkpoint of that step
            with another state counts as damaged.

        Raises:
          CheckpointError: checkpoints exist and none can be read.
        """
        steps = self._steps()
        failures = []
        for step in steps:
            state, actual, reason = self._read(step, template)
            if not reason and final and step == final["step"] and actual != final["digest"]:
                reason = f"it holds another state, {actual[:12]}, than final.json names, {final['digest'][:12]}"
            if not reason:
                read = len(failures)  # damaged checkpoints go, and old checkpoints after a kill
                for unneeded in (*steps[:read], *steps[read + self._keep :]):
                    self._manager.delete(unneeded)
                return state
            failures.append(f"step {step}: {reason}")
            log.warning("Checkpoint %s/%d is damaged (%s); trying the one before.", self._directory, step, reason)
        if failures:
            head = f"no checkpoint under {self._directory} can be read; remove the folder to train again:"
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
            raise CheckpointError(f"the checkpoint {self._directory}/{step} is damaged ({reason})")
        if actual != expected:
            raise CheckpointError(f"expected step {step} with the digest {expected[:12]}, found {actual[:12]}")
        return state

    def _steps(self):
        """Lists the steps of the checkpoints, the newest first."""
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
            if actual != restored.meta["digest"]:
                raise ValueError(f"digest {actual[:12]} differs from the stored {restored.meta['digest'][:12]}")
            if problem := workdirs.another_model(restored.meta.get("model"), self._model):
                raise ValueError(problem)
            if int(state.step) != step:
                raise ValueError(f"it holds the state of step {int(state.step)}")
        except Exception as error:  # noqa: BLE001 - Orbax and TensorStore raise many kinds for damaged files
            reason = _reason(error)
        if distributed.anyone(reason):
            reason = reason or "another process could not read it"
        return state, actual, reason

    def close(self) -> None:
        """Waits until all is written."""
        self._manager.wait_until_finished()
        self._manager.close()
