"""The training of one model as the host sees it: workdir, next batches, reports, checkpoints."""

import contextlib
import pathlib
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import Mesh
from ml_collections import ConfigDict

from corruptions.keys import seed_key
from data.dataset import Split
from models.condensenet import learned
from runtime import bindings, distributed, meshes
from runtime.log import log
from runtime.progress import bar
from runtime.workdirs import write_json
from training import batches, states, stream, whitening
from training.checkpoint import Checkpoints, digest
from training.metrics import MetricsLog
from training.stability import Stability


class NonFiniteLossError(RuntimeError):
    """The loss became NaN or infinite."""


class Job(NamedTuple):
    """A model to train.

    Attributes:
      config: see configs/default.py; config.train.corruption and config.seed say which model it is.
      open: gives a context manager that yields the directory of its run and holds it meanwhile.
      description: text beside the progress bar.
      title: message when it begins.
      initial: state whose parameters and statistics a fresh run starts from (fine-tuning); None
        draws them.
    """

    config: ConfigDict
    open: Callable[[], contextlib.AbstractContextManager]
    description: str = ""
    title: str = ""
    initial: states.TrainState | None = None


class Program(NamedTuple):
    """What a compiled block of steps depends on besides devices; shared by models that train
    together."""

    graphdef: nnx.GraphDef
    optimizer: optax.GradientTransformation
    jsd_weight: float
    norm_groups: int
    label_smoothing: float
    stability: Stability
    condense_steps: int
    mixup: bool
    batch_size: int
    block_steps: int

    @classmethod
    def of(
        cls,
        recipe: ConfigDict,
        plan: batches.Plan,
        graphdef: nnx.GraphDef,
        statistics: nnx.State,
        optimizer: optax.GradientTransformation,
    ) -> "Program":
        """Makes that of a run.

        Args:
          recipe: config.train.
          plan: of the run.
          graphdef, optimizer: as `steps.train_block` takes them.
          statistics: of the network, may be abstract.
        """
        stability = Stability(recipe.stability_weight, recipe.stability_noise)
        losses = recipe.jsd_weight, plan.norm_groups, plan.label_smoothing, stability
        condense_steps = plan.total_steps if learned.has_masks(statistics) and not recipe.frozen else 0
        return cls(graphdef, optimizer, *losses, condense_steps, recipe.mixup, recipe.batch_size, plan.block_steps)

    @property
    def static(self) -> dict[str, Any]:
        """The settings of `steps.train_models_block`."""
        names = ("jsd_weight", "norm_groups", "label_smoothing", "stability", "condense_steps", "mixup")
        return {name: getattr(self, name) for name in names}


class Run:
    """A job that was begun, or continued from its newest checkpoint.

    Args:
      job: what to train.
      split: what it trains on.
      num_classes: number of classes.
      target: mesh that its state is read onto.

    Attributes:
      program: `Program` of its steps.
      state: TrainState it begins with, replicated over `target`; None from then on.
      key: root key of its steps.
    """

    def __init__(self, job: Job, split: Split, num_classes: int, target: Mesh):
        self._config, recipe = job.config, job.config.train
        self._classes = num_classes
        self._plan = batches.Plan(recipe, split.images.shape)
        optimizer = states.make_optimizer(recipe, self._plan.steps_per_epoch)
        graphdef, state = fresh(self._config, optimizer, num_classes, self._plan.image_size, target)
        if job.initial is not None:
            chex.assert_trees_all_equal_shapes_and_dtypes(job.initial[1:3], state[1:3])  # params, statistics
            state = states.initial_state(job.initial.params, job.initial.statistics, optimizer)
            state = meshes.place_tree(jax.tree.map(jnp.copy, state), meshes.replicated(target))
        self.program = Program.of(recipe, self._plan, graphdef, state.statistics, optimizer)
        root = seed_key(self._config.seed)
        self._order_key, *image_keys, self.key = (jax.random.fold_in(root, purpose) for purpose in (0, 1, 2, 4, 5, 3))
        self._image_keys = batches.Keys(*image_keys)
        self._report = self._source = None
        with contextlib.ExitStack() as stack:
            self._workdir = stack.enter_context(job.open())
            if job.title and not finished(self._workdir):
                log.info(job.title)
            self._checkpoints = stack.enter_context(contextlib.closing(Checkpoints(self._workdir / "checkpoints")))
            self.state = self._checkpoints.restore(state, read_final(self._workdir))
            if self.state is None:
                self.state = whitening.fitted(state, split.images) if job.initial is None else state
            self._step = int(self.state.step)
            if not self.done:
                if self._step:
                    log.info("Resuming %s at step %d of %d.", self._workdir, self._step, self._plan.total_steps)
                self._report = _Report(self._workdir, self._plan, self._step, recipe, job.description)
                stack.callback(self._report.close)
            self._stack = stack.pop_all()

    @property
    def done(self) -> bool:
        """Whether no step is left."""
        return self._step >= self._plan.total_steps

    def next_block(self, split: Split, mesh: Mesh) -> tuple[jax.Array, jax.Array]:
        """Makes (images, labels) of the next block of steps on the devices of `mesh`.

        Args:
          split: what the model trains on, on these devices or on the host; the same in every call.
          mesh: one row, the same in every call.
        """
        recipe, plan = self._config.train, self._plan
        if self._source is None:
            source = stream.source(split, plan, recipe.batch_size, self._order, self._step, mesh)
            self._source = self._stack.enter_context(source)
        epoch, offset = divmod(self._step, plan.steps_per_epoch)
        order = self._order(epoch)
        block = batches.block(recipe, plan, self._source, order, offset, self._step, self._image_keys, mesh)
        self._step += plan.block_steps
        return block

    def _order(self, epoch):
        return batches.epoch_order(jax.random.fold_in(self._order_key, epoch), self._plan.views)

    def checkpoint_due(self, stop: bool) -> bool:
        """Says whether to save the state after the last block; `stop`: the process ends now."""
        epoch, offset = divmod(self._step, self._plan.steps_per_epoch)
        return stop or self.done or (offset == 0 and epoch % self._config.train.checkpoint_epochs == 0)

    def report(self, step: int, metrics: Mapping[str, np.ndarray]) -> None:
        """Reports the block that ended at `step`, see `_Report`."""
        self._report(step, metrics)

    @property
    def step(self) -> int:
        """The step at which the last block ends."""
        return self._step

    def save(self, state: states.TrainState) -> None:
        """Writes a checkpoint of the state after the last block."""
        self._checkpoints.save(state)

    def stopped(self) -> None:
        """Tells the user where a run stands that SIGTERM or Ctrl-C ended."""
        log.warning(
            "Stopped: saved %s at step %d of %d; the same command continues.",
            self._workdir,
            self._step,
            self._plan.total_steps,
        )

    def finish(self, state: states.TrainState) -> tuple[nnx.GraphDef, states.TrainState]:
        """Marks the run as finished; returns (graphdef, state).

        A finished run whose last checkpoint was lost has been trained to its end again: on other
        hardware to another model, which final.json then names.
        """
        trained_now = self._report is not None
        if trained_now or not finished(self._workdir):
            final = {"step": int(state.step), "digest": digest(state), "num_classes": self._classes}
            if (read_final(self._workdir) or final)["digest"] != final["digest"]:
                log.warning("%s was trained again and is another model than before.", self._workdir)
            write_json(self._workdir / "final.json", final)
        return self.program.graphdef, state

    def close(self) -> None:
        """Closes the files of the run and releases its workdir."""
        self._stack.close()


def fresh(
    config: ConfigDict, optimizer: optax.GradientTransformation, num_classes: int, image_size: int, mesh: Mesh
) -> tuple[nnx.GraphDef, states.TrainState]:
    """Draws (graphdef, TrainState) of a model before its first step, replicated over the mesh."""
    graphdef, params, statistics = states.build_model(config, num_classes, image_size)
    return graphdef, meshes.place_tree(states.initial_state(params, statistics, optimizer), meshes.replicated(mesh))


def finished(workdir: pathlib.Path) -> bool:
    """Says whether the run in `workdir` reached its last step."""
    return distributed.from_main((workdir / "final.json").exists)


def read_final(workdir: pathlib.Path) -> dict[str, Any] | None:
    """Gives what final.json holds (`bindings.read_final`) to every process of a run; None before
    its last step.
    """
    return distributed.from_main(lambda: bindings.read_final(workdir) if (workdir / "final.json").exists() else None)


class _Report:
    """Progress bar and metrics of a run, and the check that its loss is finite."""

    def __init__(self, workdir, plan, first, recipe, description):
        self._log = MetricsLog(workdir / "metrics.jsonl", first, tensorboard=recipe.tensorboard)
        self._bar = bar("step", total=plan.total_steps, initial=first, desc=description, leave=False)
        self._batch_size = recipe.batch_size
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
