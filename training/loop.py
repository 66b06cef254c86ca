"""Training one model: whole blocks of steps on the device, resumable, a pure function of (config, seed)."""

import contextlib
import time

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from training import batches, preemption, whitening
from training import mesh as meshes
from training import state as states
from training import step as steps
from training.checkpoint import Checkpoints, digest
from training.log import log
from training.metrics import MetricsLog
from training.workdir import write_json


class NonFiniteLossError(RuntimeError):
    """The loss became NaN or infinite."""


def train(config, split, num_classes, workdir, *, mesh, description="", initial=None):
    """Trains the model of `config` on `split` and returns its final state.

    The result is a function of (config, seed) alone: a killed run that is started again continues from its last
    checkpoint to the bit-identical parameters on the same hardware, and a finished one is only read back.

    Args:
      config: see configs/default.py.
      split: data.Split with uint8 images on the device.
      num_classes: number of classes.
      workdir: existing directory of this run (checkpoints, metrics.jsonl, final.json).
      mesh: device mesh with axes ('model', 'data').
      description: text beside the progress bar.
      initial: TrainState whose parameters and statistics a fresh run starts from (fine-tuning); None draws them.

    Returns:
      (graphdef, TrainState).

    Raises:
      NonFiniteLossError: training diverged; the last good checkpoint stays.
      SystemExit: SIGTERM came; the state of the block it came in is saved.
    """
    recipe = config.train
    meshes.check_batch_size(mesh, recipe.batch_size, "config.train.batch_size")
    plan = batches.Plan(recipe, split.images.shape)
    optimizer = states.make_optimizer(recipe, plan.steps_per_epoch)
    graphdef, state = _fresh(config, optimizer, num_classes, split.images.shape[1], mesh)
    if initial is not None:
        # Copies: the state is donated to the step, and others may start from the same one.
        copied = jax.tree.map(jnp.copy, (initial.params, initial.statistics))
        state = jax.device_put(states.initial_state(*copied, optimizer), meshes.replicated(mesh))
    with contextlib.closing(Checkpoints(workdir / "checkpoints")) as checkpoints:
        state = checkpoints.restore(state) or (whitening.fitted(state, split.images) if initial is None else state)
        with preemption.watch() as preempted:
            if int(state.step) < plan.total_steps:
                state = _run(
                    config, plan, graphdef, optimizer, state, split, workdir, mesh, checkpoints, description, preempted
                )
            if not finished(workdir):  # also where a run ended between its last checkpoint and this file
                write_json(workdir / "final.json", {"step": int(state.step), "digest": digest(state)})
    return graphdef, state


def read_back(config, image_size, num_classes, workdir, *, mesh):
    """(graphdef, TrainState) of a finished run, without its training data.

    Raises:
      FileNotFoundError: the run in `workdir` has not reached its end.
    """
    if not finished(workdir):
        raise FileNotFoundError(
            f"expected a finished training run in {workdir}, found no final.json; run train.py again"
        )
    graphdef, template = _fresh(config, states.make_optimizer(config.train, 1), num_classes, image_size, mesh)
    with contextlib.closing(Checkpoints(workdir / "checkpoints")) as checkpoints:
        state = checkpoints.restore(template)
    if state is None:
        raise FileNotFoundError(
            f"{workdir} is marked as finished but holds no checkpoint; remove final.json to train again"
        )
    return graphdef, state


def _fresh(config, optimizer, num_classes, image_size, mesh):
    graphdef, params, statistics = states.build_model(config, num_classes, image_size)
    return graphdef, jax.device_put(states.initial_state(params, statistics, optimizer), meshes.replicated(mesh))


def finished(workdir):
    """Whether a run in `workdir` reached its last step."""
    return (workdir / "final.json").exists()


def _run(config, plan, graphdef, optimizer, state, split, workdir, mesh, checkpoints, description, preempted):
    recipe = config.train
    root = jax.random.key(config.seed)
    order_key, *image_keys, step_key = (jax.random.fold_in(root, purpose) for purpose in (0, 1, 2, 4, 5, 3))
    first = int(state.step)
    if first:
        log.info("Resuming %s at step %d of %d.", workdir, first, plan.total_steps)
    report = _Report(workdir, plan, first, recipe.batch_size, description)
    pending = None
    try:
        for begin in range(first, plan.total_steps, plan.block_steps):
            epoch, offset = divmod(begin, plan.steps_per_epoch)
            order = batches.epoch_order(jax.random.fold_in(order_key, epoch), plan.views)
            images, labels = batches.block(recipe, plan, split, order, offset, begin, batches.Keys(*image_keys), mesh)
            state, metrics = steps.train_block(
                graphdef,
                optimizer,
                state,
                images,
                labels,
                step_key,
                jsd_weight=recipe.jsd_weight,
                label_smoothing=recipe.label_smoothing,
            )
            if pending is not None:
                report(*pending)  # one block behind: the device never waits for the host
            del images, labels  # their memory is free for the next block as soon as the device has read them
            end = begin + plan.block_steps
            pending = (end, metrics)
            stop = preempted() and end < plan.total_steps
            epoch_end = end % plan.steps_per_epoch == 0
            due = epoch_end and (end // plan.steps_per_epoch) % recipe.checkpoint_epochs == 0
            if due or stop or end == plan.total_steps:
                report(*pending)  # a checkpoint is only written of a state whose loss was finite
                pending = None
                checkpoints.save(state)
            if stop:
                log.warning("SIGTERM: saved at step %d of %d; the same command continues.", end, plan.total_steps)
                preemption.leave()
    finally:
        report.close()
    return state


class _Report:
    """Progress bar and metrics of a run, and the check that its loss is finite."""

    def __init__(self, workdir, plan, first, batch_size, description):
        self._log = MetricsLog(workdir / "metrics.jsonl", first)
        self._bar = tqdm(
            total=plan.total_steps, initial=first, desc=description, unit="step", dynamic_ncols=True, leave=False
        )
        self._batch_size = batch_size
        self._last = time.perf_counter()

    def __call__(self, step, metrics):
        """Reports the block that ended at `step`; waits for the device to have computed it."""
        loss = np.asarray(metrics["loss"])
        if not np.all(np.isfinite(loss)):
            bad = step - len(loss) + int(np.flatnonzero(~np.isfinite(loss))[0])
            raise NonFiniteLossError(
                f"loss is {loss[~np.isfinite(loss)][0]} at step {bad}; lower config.train.learning_rate "
                "(the last checkpoint is kept)"
            )
        now = time.perf_counter()
        rate = len(loss) * self._batch_size / (now - self._last)
        self._last = now
        accuracy = float(np.mean(metrics["accuracy"]))
        self._log.write(step, loss=float(loss.mean()), accuracy=accuracy, images_per_second=round(rate, 1))
        self._bar.set_postfix_str(f"loss {loss.mean():.3f}, {rate:,.0f} images/s", refresh=False)
        self._bar.update(len(loss))

    def close(self):
        self._bar.close()
        self._log.close()
