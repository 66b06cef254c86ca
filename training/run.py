"""The training of one model as the host sees it: workdir, next batches, metrics, checkpoints."""

import contextlib
import functools
import json
import pathlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import Mesh

from corruptions.core.keys import seed_key
from corruptions.files import naming
from data.dataset import Split
from models import condensenet
from runtime import files, meshes
from runtime.log import bar, log
from runtime.workdirs import Workdir, finished, read_final, write_final
from training import batches, memory, pixels, states
from training.batches import Plan
from training.checkpoints import Checkpoints, digest
from training.steps import Loss

_SMALL = "small_resnet"
_PURPOSES = {"order": 0, "flip": 1, "corruption": 2, "training": 3, "crop": 4, "scheme": 5}
"""Numbers that the root key of a run is folded with, one for each kind of draws."""


class NonFiniteLossError(RuntimeError):
    """The loss became NaN or infinite."""


class Job(NamedTuple):
    """A model to train."""

    spec: states.Spec  # the settings that determine the model
    # Makes a context manager that yields the directory of its run and holds it meanwhile.
    open: Callable[[], contextlib.AbstractContextManager]
    description: str = ""  # text beside the progress bar
    title: str = ""  # message when it begins
    # State whose parameters and statistics a fresh run starts from (fine-tuning); None draws them.
    initial: states.TrainState | None = None


class Program(NamedTuple):
    """The settings of a compiled block of steps; models with equal settings train together."""

    graphdef: nnx.GraphDef
    optimizer: optax.GradientTransformation
    loss: Loss
    norm_groups: int
    condense_steps: int
    batch_size: int
    block_steps: int

    @classmethod
    def of(
        cls, plan: Plan, graphdef: nnx.GraphDef, statistics: nnx.State, optimizer: optax.GradientTransformation
    ) -> "Program":
        """Builds the Program of a run; `statistics` of the network may be abstract."""
        learns_groups = condensenet.has_masks(statistics) and not plan.train.frozen
        steps, loss = plan.total_steps if learns_groups else 0, Loss.of(plan.train)
        return cls(graphdef, optimizer, loss, plan.norm_groups, steps, plan.batch_size, plan.block_steps)

    @property
    def static(self) -> dict[str, Any]:
        """The static settings of `steps.train_models_block`."""
        return {name: getattr(self, name) for name in ("loss", "norm_groups", "condense_steps")}


class Run:
    """A job from its first step, or continued from its newest checkpoint.

    Args:
      job: the model to train.
      split: training images.
      num_classes: number of classes.
      target: mesh that its state is read onto.

    Attributes:
      program, key, report: `Program`, root key and `_Report` of its steps; no report where no step is left.
      state: TrainState before the next step, replicated over `target`; None once a row has it.
      step, saved: number of steps that were started, and step of the newest checkpoint, 0 without one.
    """

    def __init__(self, job: Job, split: Split, num_classes: int, target: Mesh):
        train, self._classes = job.spec.train, num_classes
        self._plan = Plan(train, split.images.shape)
        optimizer = states.make_optimizer(train, self._plan.steps_per_epoch)
        graphdef, state = fresh(job.spec, optimizer, num_classes, self._plan.image_size, target)
        if job.initial is not None:
            chex.assert_trees_all_equal_shapes_and_dtypes(job.initial[1:3], state[1:3])  # params, statistics
            state = states.initial_state(job.initial.params, job.initial.statistics, optimizer)
            state = meshes.place_tree(jax.tree.map(jnp.copy, state), meshes.replicated(target))
        self.program = Program.of(self._plan, graphdef, state.statistics, optimizer)
        root = seed_key(job.spec.seed)
        keys = {purpose: jax.random.fold_in(root, number) for purpose, number in _PURPOSES.items()}
        of_order, self.key = keys.pop("order"), keys.pop("training")
        self._order = functools.lru_cache(1)(functools.partial(_order, of_order, self._plan.images_per_epoch))
        self._image_keys = batches.Keys(**keys)
        self.report = self._source = None
        with contextlib.ExitStack() as stack:
            self._workdir = stack.enter_context(job.open())
            if job.title and not finished(self._workdir):
                log.info(job.title)
            self._checkpoints = stack.enter_context(contextlib.closing(Checkpoints(self._workdir / "checkpoints")))
            final = read_final(self._workdir)
            self.state = self._checkpoints.restore(state, final)
            self._stored = self.state is not None
            folder, shape = Workdir(self._workdir), split.images.shape[1:]
            folder.on_main(pixels.bind, folder.path, train, shape, begins=not self._stored)
            # Its last state is final, whatever number of steps the training images of today would take.
            self._ended = final is not None and self._stored and int(self.state.step) == final["step"]
            if self.state is None:
                self.state = states.whitened(state, split.images) if job.initial is None else state
            self.step = self.saved = int(self.state.step)
            if not self.done:
                if self.step:
                    log.info("Resuming %s at %s.", self._workdir, self.place(self.step))
                self.report = _Report(self._workdir, self._plan, self.step, job)
                stack.callback(self.report.close)
            self._stack = stack.pop_all()

    def __str__(self) -> str:
        return str(self._workdir)

    @property
    def done(self) -> bool:
        """Whether no step is left."""
        return self._ended or self.step >= self._plan.total_steps

    @property
    def offset(self) -> int:
        """The next step, counted within its block."""
        return self.step % self._plan.block_steps

    def place(self, step: int) -> str:
        """Says `step 30 of 400`."""
        return f"step {step} of {self._plan.total_steps}"

    def block(self, split: Split, mesh: Mesh) -> tuple[jax.Array, jax.Array]:
        """Makes (images, labels) of the block that holds the next step, on the devices of the row `mesh`.

        Split and mesh are the same in every call; the training images lie on these devices or on the host.
        """
        begin = self.step - self.offset
        if self._source is None:
            self._source = self._stack.enter_context(memory.source(split, self._plan, self._order, begin, mesh))
        order = self._order(self._plan.place(begin)[0])
        return batches.block(self._plan, self._source, order, begin, self._image_keys, mesh)

    def checkpoint_due(self, stop: bool) -> bool:
        """Returns True if the state after the last step is to be saved; `stop`: the process ends now."""
        epoch, offset = self._plan.place(self.step)
        return stop or self.done or (offset == 0 and epoch % self._plan.train.checkpoint_epochs == 0)

    def save(self, state: states.TrainState) -> None:
        """Writes a checkpoint of the state after the last step."""
        self.report.write_line()
        if self.saved != self.step:
            self._checkpoints.save(state)
            self.saved = self.step

    def stopped(self) -> None:
        """Logs the step at which the run was interrupted."""
        log.warning("Stopped: saved %s at %s; the same command continues.", self._workdir, self.place(self.step))

    def finish(self, state: states.TrainState) -> tuple[nnx.GraphDef, states.TrainState]:
        """Marks the run as finished; returns (graphdef, state).

        A finished run whose last checkpoint was lost is trained to its end again: on other hardware to another model,
        which final.json then names.
        """
        if not self.step and not self._stored:  # a training without steps
            self._checkpoints.save(state)
        if self.report is not None or not finished(self._workdir):
            final = {"step": int(state.step), "digest": digest(state), "num_classes": self._classes}
            if (read_final(self._workdir) or final)["digest"] != final["digest"]:
                log.warning("%s was trained again and is another model than before.", self._workdir)
            write_final(self._workdir, **final)
        return self.program.graphdef, state

    def close(self) -> None:
        """Closes the files of the run and releases its workdir."""
        self._stack.close()


def _order(key, number, epoch):
    return batches.epoch_order(jax.random.fold_in(key, epoch), number)


def fresh(
    spec: states.Spec, optimizer: optax.GradientTransformation, num_classes: int, image_size: int, mesh: Mesh
) -> tuple[nnx.GraphDef, states.TrainState]:
    """Draws (graphdef, TrainState) of a model before its first step, replicated over the mesh."""
    graphdef, params, statistics = states.build_model(spec, num_classes, image_size)
    return graphdef, meshes.place_tree(states.initial_state(params, statistics, optimizer), meshes.replicated(mesh))


class _Report:
    """Progress bar and metrics of a run, and the check that its loss is finite."""

    def __init__(self, workdir, plan, first, job):
        self._log = MetricsLog(workdir / "metrics.jsonl", first, tensorboard=plan.train.tensorboard)
        self._bar = bar("step", total=plan.total_steps, initial=first, desc=job.description, leave=False)
        self._plan, self._step, self._reported = plan, first, []
        self._network, self._calls = job.spec.model["name"], 0
        self._last = self._line_began = time.perf_counter()

    def __call__(self, step, metrics):
        """Reports the steps that ended at `step`, which the device has computed."""
        loss = metrics["loss"]
        if not np.all(np.isfinite(loss)):
            bad = step - len(loss) + int(np.flatnonzero(~np.isfinite(loss))[0])
            raise NonFiniteLossError(
                f"loss is {loss[~np.isfinite(loss)][0]} at step {bad}; lower config.train.learning_rate, in another "
                "--workdir (the last checkpoint is kept)"
            )
        now = time.perf_counter()
        rate = len(loss) * self._plan.batch_size / (now - self._last)
        self._last, self._step = now, step
        self._calls += 1
        hours = (self._plan.total_steps - step) * self._plan.batch_size / rate / 3600
        if self._calls == 2 and hours >= 1:  # the first call's time contains a compile
            smaller = "" if self._network == _SMALL else f"a smaller network (--config.model.name={_SMALL}) or "
            log.warning(
                "%.3g images/s: about %.1f hours are left for this model. Faster: an accelerator, %sfewer epochs "
                "(--config.train.epochs=N, now %d).", rate, hours, smaller, self._plan.train.epochs,
            )  # fmt: skip
        speed = f", {rate:,.{0 if rate >= 10 else 1}f} images/s" if self._calls > 1 else ""
        self._bar.set_postfix_str(f"loss {loss.mean():.3f}{speed}", refresh=False)
        self._bar.update(len(loss))
        self._reported.append(metrics)
        if step % self._plan.block_steps == 0:
            self.write_line()

    def write_line(self):
        """Writes the line of the steps since the line before: a block, or fewer steps where the run stops."""
        if not self._reported:
            return
        loss, accuracy = (np.concatenate([m[name] for m in self._reported]) for name in ("loss", "accuracy"))
        rate = len(loss) * self._plan.batch_size / (self._last - self._line_began)
        means = {"loss": float(loss.mean()), "accuracy": float(np.mean(accuracy))}
        self._log.write(self._step, **means, images_per_second=round(rate, 1))
        self._reported, self._line_began = [], self._last

    def close(self):
        self._bar.close()
        self._log.close()


def training_seconds(path: str | pathlib.Path, batch_size: int) -> float:
    """Sums the seconds of training in a metrics.jsonl, with compilation, without the time between interrupted runs.

    Raises:
      DamagedFileError: a line that does not report a block.
    """
    seconds, before = 0.0, 0
    for number, values in enumerate(_lines(path, {"step": int, "images_per_second": float}), 1):
        if not values["images_per_second"] > 0:
            raise _damaged(path, number, f"expected images_per_second above 0, found {values['images_per_second']}")
        seconds += (values["step"] - before) * batch_size / values["images_per_second"]
        before = values["step"]
    return seconds


def _lines(path, shape):
    """Yields the lines of a metrics.jsonl; a last one that a killed process was writing is left out."""
    if not pathlib.Path(path).exists():
        return
    for number, text in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            return  # no complete line follows
        if wrong := files.mismatch(line, shape):
            raise _damaged(path, number, wrong)
        yield line


def _damaged(path, number, wrong):
    return files.DamagedFileError(f"{path}, line {number}: {wrong}; remove the line")


class MetricsLog:
    """Appends to `metrics.jsonl`, one JSON line a block of steps, from `step` on; of many processes only the first writes.

    The first write drops the lines that a killed run wrote after its last checkpoint. Before it there is no file, so
    that a run refused before its first step leaves no result. With `tensorboard` the folder of that name beside the
    file gets the same numbers. DamagedFileError: a line that does not report a block.
    """

    def __init__(self, path: str | pathlib.Path, step: int, *, tensorboard: bool = False):
        self._file = self._events = None
        self._path, self._step, self._tensorboard = pathlib.Path(path), step, tensorboard
        self._writes = Workdir(self._path.parent).writes
        if self._writes:
            self._kept = [line for line in _lines(self._path, {"step": int}) if line["step"] <= step]

    def _open(self):
        files.write_atomically(self._path, "".join(json.dumps(line) + "\n" for line in self._kept), grows=True)
        self._file = open(self._path, "a")  # noqa: SIM115 - closed by close()
        if self._tensorboard:
            from tensorboardX import SummaryWriter  # an optional package

            folder = str(self._path.with_name("tensorboard"))
            self._events = SummaryWriter(folder, purge_step=self._step + 1, filename_suffix=f".{self._step}")

    def write(self, step: int, **values: float) -> None:
        """Adds the line of the block that ended at `step`."""
        if not self._writes:
            return
        if not self._file:
            self._open()
        with naming(self._path):
            self._file.write(json.dumps({"step": step} | values) + "\n")
            self._file.flush()
        files.put(self._path, grows=True)
        if self._events:
            for name, value in values.items():
                self._events.add_scalar(name, value, step)
            self._events.flush()

    def close(self) -> None:
        """Closes the file."""
        if not self._file:
            return
        with naming(self._path):
            self._file.close()
        files.put(self._path)
        if self._events:
            self._events.close()
            for path in self._path.with_name("tensorboard").iterdir():
                files.put(path)
