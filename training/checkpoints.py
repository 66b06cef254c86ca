"""Checkpoints of a training state. They are Orbax's, each with a digest; a damaged one gives way to the one before."""

import contextlib
import importlib.util
import logging
import os
import pathlib
import sys
from collections.abc import Mapping
from typing import Any

import chex
import jax
import numpy as np
import orbax.checkpoint as ocp
from etils import epath

from corruptions.files import Digest
from runtime import buckets, distributed, files, workdirs
from runtime.locks import is_full
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
        self._packed = None if root else pathlib.Path(directory)  # a folder whose steps are one object each in a bucket
        if self._packed and (address := buckets.address_of(self._packed)):
            if distributed.several():
                self._directory, self._packed = epath.Path(self._shared(address)), None
            else:
                buckets.unpack(self._packed)
        self._model = Workdir(workdir).for_all(workdirs.model_of, workdir)
        options = ocp.CheckpointManagerOptions(
            max_to_keep=None if read_only else keep,
            create=not read_only,
            enable_async_checkpointing=False,
            cleanup_tmp_directories=not read_only,
        )
        self._manager = ocp.CheckpointManager(self._directory, options=options, item_names=("state", "meta"))

    def _shared(self, address):
        """Returns the address that Orbax writes to in many processes."""
        if address.scheme != "gs":
            raise CheckpointError(
                f"expected a workdir in gs:// or in a folder that all processes reach, for many processes, found {address}; "
                "mount the bucket (mount-s3) and name a folder there by JAX_CORRUPTIONS_CHECKPOINTS"
            )
        if importlib.util.find_spec("gcsfs") is None:
            raise CheckpointError(f"many processes write {address} with gcsfs, which is missing: pip install gcsfs")
        if Workdir(self._packed.parent).for_all(buckets.packed, self._packed):
            raise CheckpointError(f"{address} holds checkpoints of a run in one process; continue it in one process")
        return str(address)

    def save(self, state: TrainState) -> None:
        """Writes the state; raises CheckpointError where it cannot (a full disk). The checkpoints before it stay.

        Of a workdir in a bucket the checkpoint is there, too, when this returns.
        """
        files.refuse_moved(self._workdir / "checkpoints")
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
        self._publish()

    def _publish(self):
        if self._packed:
            buckets.publish(self._packed)

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
                self._publish()
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
