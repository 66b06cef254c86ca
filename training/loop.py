"""Training one model: whole blocks of steps on the device, resumable, a pure function of (config, seed)."""

import contextlib
import functools
import math
import time

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from training import augment
from training import mesh as meshes
from training import state as states
from training import step as steps
from training.checkpoint import Checkpoints, digest
from training.log import log
from training.metrics import MetricsLog
from training.workdir import write_json

_BLOCK_BYTES = 2**31  # images of one block on an accelerator
_CPU_BLOCK_STEPS = 64  # on a CPU a block should end within seconds, for the progress bar


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
    """
    recipe = config.train
    meshes.check_batch_size(mesh, recipe.batch_size, "config.train.batch_size")
    plan = _Plan(recipe, split.images.shape)
    optimizer = states.make_optimizer(recipe, plan.steps_per_epoch)
    graphdef, state = _fresh(config, optimizer, num_classes, split.images.shape[1], mesh)
    if initial is not None:
        # Copies: the state is donated to the step, and others may start from the same one.
        copied = jax.tree.map(jnp.copy, (initial.params, initial.statistics))
        state = states.initial_state(*copied, optimizer)
    with contextlib.closing(Checkpoints(workdir / "checkpoints")) as checkpoints:
        state = checkpoints.restore(state) or state
        if int(state.step) < plan.total_steps:
            state = _run(config, plan, graphdef, optimizer, state, split, workdir, mesh, checkpoints, description)
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


class _Plan:
    """How an epoch is cut into blocks of equal length."""

    def __init__(self, recipe, shape):
        if recipe.reading not in ("paper", "code"):
            raise ValueError(f"expected config.train.reading 'paper' or 'code', found {recipe.reading!r}")
        number = shape[0]
        # Code reading: one epoch shows every image twice, once clean and once corrupted, in one shuffled list.
        self.views = 2 * number if recipe.reading == "code" else number
        self.steps_per_epoch = self.views // recipe.batch_size
        if self.steps_per_epoch == 0:
            raise ValueError(
                f"expected config.train.batch_size up to {self.views}, the images of an epoch, found {recipe.batch_size}"
            )
        self.total_steps = recipe.epochs * self.steps_per_epoch
        batch_bytes = recipe.batch_size * math.prod(shape[1:])
        limit = _CPU_BLOCK_STEPS if jax.default_backend() == "cpu" else max(1, _BLOCK_BYTES // batch_bytes)
        # Blocks divide the epoch evenly, so that one shape (one compile) serves all of them.
        self.block_steps = max(
            d for d in range(1, min(limit, self.steps_per_epoch) + 1) if self.steps_per_epoch % d == 0
        )


def _run(config, plan, graphdef, optimizer, state, split, workdir, mesh, checkpoints, description):
    recipe = config.train
    root = jax.random.key(config.seed)
    order_key, flip_key, corrupt_key, step_key = (jax.random.fold_in(root, purpose) for purpose in range(4))
    first = int(state.step)
    if first:
        log.info("Resuming %s at step %d of %d.", workdir, first, plan.total_steps)
    report = _Report(workdir, plan, first, recipe.batch_size, description)
    pending = None
    try:
        for begin in range(first, plan.total_steps, plan.block_steps):
            epoch, offset = divmod(begin, plan.steps_per_epoch)
            order = _epoch_order(jax.random.fold_in(order_key, epoch), plan.views)
            images, labels = _block(config, plan, split, order, offset, begin, flip_key, corrupt_key, mesh)
            state, metrics = steps.train_block(graphdef, optimizer, state, images, labels, step_key)
            if pending is not None:
                report(*pending)  # one block behind: the device never waits for the host
            end = begin + plan.block_steps
            pending = (end, metrics)
            epoch_end = end % plan.steps_per_epoch == 0
            if end == plan.total_steps or (epoch_end and (end // plan.steps_per_epoch) % recipe.checkpoint_epochs == 0):
                report(*pending)  # a checkpoint is only written of a state whose loss was finite
                pending = None
                checkpoints.save(state)
    finally:
        report.close()
    write_json(workdir / "final.json", {"step": int(state.step), "digest": digest(state)})
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


@functools.partial(jax.jit, static_argnames=("views",))
def _epoch_order(key, views):
    return jax.random.permutation(key, views)


def _block(config, plan, split, order, offset, begin, flip_key, corrupt_key, mesh):
    """Images uint8 [K, B, ...] and labels [K, B] of the steps begin .. begin + K - 1."""
    recipe = config.train
    size, count = recipe.batch_size, plan.block_steps
    identity = jnp.arange(count * size) + begin * size  # of each view within the run
    images, labels, doubled = _gather(split.images, split.labels, order, offset * size, flip_key, identity, recipe.flip)
    if recipe.corruption != augment.STANDARD:
        images = _corrupt_part(config, plan, images, doubled, identity, corrupt_key, mesh)
    sharding = meshes.batch_sharding(mesh, axis=1)
    images = jax.device_put(images.reshape(count, size, *images.shape[1:]), sharding)
    return images, jax.device_put(labels.reshape(count, size), sharding)


def _corrupt_part(config, plan, images, doubled, identity, key, mesh):
    recipe = config.train
    options = augment.static_options(recipe)
    if recipe.reading == "code":
        corrupted = augment.augment(mesh, recipe.corruption, key, images, identity, options)
        return jnp.where(doubled[:, None, None, None], corrupted, images)
    # Paper reading: the first part of each batch (a random part, batches are shuffled) is corrupted.
    part = round(recipe.corrupted_fraction * recipe.batch_size)
    by_step = images.reshape(plan.block_steps, recipe.batch_size, *images.shape[1:])
    chosen = by_step[:, :part].reshape(-1, *images.shape[1:])
    index = identity.reshape(plan.block_steps, -1)[:, :part].reshape(-1)
    corrupted = augment.augment(mesh, recipe.corruption, key, chosen, index, options)
    corrupted = corrupted.reshape(plan.block_steps, part, *images.shape[1:])
    return jnp.concatenate([corrupted, by_step[:, part:]], axis=1).reshape(images.shape)


@functools.partial(jax.jit, static_argnames=("flip",))
def _gather(images, labels, order, start, key, identity, flip):
    """Images of the views order[start:...], mirrored with probability 1/2; also whether a view is the corrupted copy."""
    views = jax.lax.dynamic_slice_in_dim(order, start, identity.shape[0])
    chosen = views % images.shape[0]
    picked = images[chosen]
    if flip:
        mirrored = jax.vmap(lambda i: jax.random.bernoulli(jax.random.fold_in(key, i)))(identity)
        picked = jnp.where(mirrored[:, None, None, None], picked[:, :, ::-1], picked)
    return picked, labels[chosen], views >= images.shape[0]
