"""Checkpoints: Orbax, each with a digest of its arrays, falling back to the one before when damaged."""

import hashlib
import os
import pathlib

import jax
import numpy as np
import orbax.checkpoint as ocp
from etils import epath

from runtime import distributed
from runtime.log import log


class CheckpointError(RuntimeError):
    """A checkpoint cannot be written, or none of those stored can be read."""


def digest(state):
    """sha256 over names, dtypes, shapes and bytes of every array of a pytree."""
    total = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        array = np.ascontiguousarray(distributed.fetch(leaf))
        total.update(f"{jax.tree_util.keystr(path)} {array.dtype} {array.shape}".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def _reason(error):
    """First line of an error's text; of a long one the two ends, between which TensorStore repeats paths."""
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    return text if len(text) <= 240 else f"{text[:80]} ... {text[-150:]}"


def _place(directory):
    """Where the checkpoints of a workdir are: there, or at the same path below JAX_CORRUPTIONS_CHECKPOINTS."""
    root = os.environ.get("JAX_CORRUPTIONS_CHECKPOINTS")
    if not root:
        return epath.Path(pathlib.Path(directory).resolve())
    return epath.Path(root) / os.path.normpath(directory).replace("../", "").lstrip("/")


class Checkpoints:
    """Checkpoints of one training run under `directory`, the newest `keep` of them.

    Orbax writes each aside and renames it, so a killed process leaves only whole checkpoints. The digest also finds
    those that were damaged later. Of many processes all save and restore, into one directory: their workdir is on a
    file system they share, or JAX_CORRUPTIONS_CHECKPOINTS names a folder or an address like gs://BUCKET/FOLDER that all
    reach.
    """

    def __init__(self, directory, keep=2):
        self._directory = _place(directory)
        options = ocp.CheckpointManagerOptions(
            max_to_keep=keep, create=True, enable_async_checkpointing=False, cleanup_tmp_directories=True
        )
        self._manager = ocp.CheckpointManager(self._directory, options=options, item_names=("state", "meta"))

    def save(self, state):
        """Writes the state; raises CheckpointError when that fails (a full disk), and those written before stay."""
        step = int(state.step)
        args = ocp.args.Composite(state=ocp.args.StandardSave(state), meta=ocp.args.JsonSave({"digest": digest(state)}))
        try:
            self._manager.save(step, args=args)
        except Exception as error:  # Orbax and TensorStore raise many kinds
            if distributed.lost_another(error):
                raise
            raise CheckpointError(
                f"checkpoint {self._directory}/{step} cannot be written ({_reason(error)}); those before it stay: "
                "make room, and the same command continues"
            ) from error

    def restore(self, template):
        """The newest undamaged checkpoint, or None when none was written.

        Args:
          template: a state with the structure, shapes, dtypes and shardings to restore into.

        Raises:
          CheckpointError: checkpoints exist and none can be read.
        """
        abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, template)
        steps = distributed.from_main(lambda: sorted(map(int, self._manager.all_steps()), reverse=True))
        failures = []
        for step in steps:
            reason = ""
            try:
                restored = self._manager.restore(
                    step,
                    args=ocp.args.Composite(state=ocp.args.StandardRestore(abstract), meta=ocp.args.JsonRestore()),
                )
                found = digest(restored.state)
                if found != restored.meta["digest"]:
                    raise ValueError(f"digest {found[:12]} differs from the stored {restored.meta['digest'][:12]}")
            except Exception as error:  # noqa: BLE001 - Orbax and TensorStore raise many kinds for damaged files
                reason = _reason(error)
            if distributed.anyone(reason):
                reason = reason or "another process could not read it"
                failures.append(f"step {step}: {reason}")
                log.warning("Checkpoint %s/%d is damaged (%s); trying the one before.", self._directory, step, reason)
                continue
            for damaged in steps[: len(failures)]:
                self._manager.delete(damaged)  # it will be written again
            return restored.state
        if failures:
            raise CheckpointError(
                f"no checkpoint under {self._directory} can be read; remove the folder to train again:\n  "
                + "\n  ".join(failures)
            )
        return None

    def close(self):
        self._manager.wait_until_finished()
        self._manager.close()
