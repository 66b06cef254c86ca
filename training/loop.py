"""Training: blocks of steps on the device, resumable, each model a function of (config, seed).

`train_jobs` tells the order of events. The models that train at the same time lie on the rows of the device mesh
(`Rows`), with one stacked state and one program for all. Arrays of several models are put together from the rows' arrays
uncopied: states along a new first axis, [M, ...]; blocks of batches and metrics, whose first axis is the step, one after
another, [M K, ...]. Either way 'model' splits the first axis, and a device holds the part of only one model.
"""

import collections
import contextlib
import functools
import math
import pathlib
import time
from collections.abc import Callable, Sequence

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.sharding import Mesh
from ml_collections import ConfigDict

from data.dataset import Split
from runtime import distributed, meshes
from runtime.workdirs import Workdir, command_of
from training import memory, states, steps
from training.checkpoints import CheckpointError, Checkpoints
from training.run import Job, Run, fresh, read_final
from training.states import TrainState

PIECE_SECONDS = 2.5
"""Seconds of training that a CPU is given at a time, in whole steps, at least one; a stop waits so long."""
_lower_block = steps.train_models_block.lower


def train(
    config: ConfigDict,
    split: Split,
    num_classes: int,
    workdir: pathlib.Path,
    *,
    mesh: Mesh,
    description: str = "",
    initial: TrainState | None = None,
) -> tuple[nnx.GraphDef, TrainState]:
    """Trains the model of `config` on `split` and returns its final (graphdef, TrainState).

    The result is a function of only (config, seed): a killed run that is started again continues from its last
    checkpoint to the bit-identical parameters on the same hardware (GPUs: with --xla_gpu_deterministic_ops=true in
    XLA_FLAGS), and a finished one is only read back.

    Args:
      config: config of the model, see `study.model_config`.
      split: uint8 images, on the device or on the host (then they are streamed).
      num_classes: number of classes.
      workdir: existing directory of this run (checkpoints, metrics.jsonl, final.json).
      mesh: device mesh with axes ('model', 'data') and one row.
      description, initial: see `Job`.

    Raises:
      NonFiniteLossError: training diverged; the last good checkpoint stays.
      SystemExit: SIGTERM came; the state of the block it came in is saved.
    """
    job = Job(states.Spec.of(config), lambda: contextlib.nullcontext(workdir), description, initial=initial)
    return train_jobs([job], split, num_classes, mesh=mesh, target=mesh)[0]


# The order of events in each round of `train_jobs`:
#
#  1. A free row takes the next waiting job: its workdir is opened and locked, its newest checkpoint restored, or a
#     first state drawn. A job without a step left is finished at once, without a row.
#  2. Each row's next block of batches is made on the row's devices; a row without a job gets zeros.
#  3. One program starts the block of steps in all rows. The device works; the host goes on. On a CPU the program runs
#     a piece of the block, as many steps as take some seconds, and the host waits.
#  4. Meanwhile the steps before are reported: their loss is checked to be finite, the progress bar moves, a whole
#     block adds a line to metrics.jsonl.
#  5. The host asks whether SIGTERM or Ctrl-C has come; many processes give one answer. (A thread prints the answer to
#     the signal at once, and ends the process at a second Ctrl-C.)
#  6. Where a checkpoint is due (every few epochs, after the last step, on SIGTERM), the new block is reported
#     first, so that no state with a non-finite loss is saved; then the row's state is copied to the host and saved.
#  7. A run after its last step leaves its row: final.json is written, its workdir released, `on_finish` called.
#  8. After SIGTERM or Ctrl-C the process leaves with status 143 or 130; the same command continues at 1.


def train_jobs(
    jobs: Sequence[Job],
    split: Split,
    num_classes: int,
    *,
    mesh: Mesh,
    target: Mesh,
    on_finish: Callable[[], object] = lambda: None,
) -> list[tuple[nnx.GraphDef, TrainState]]:
    """Trains models, as many at once as the mesh has rows, with one compiled program.

    Rows run in lockstep by blocks of steps and share nothing. Each model's step, batches, keys and files are its own,
    and no result depends on which models train beside it or in which row. At the end, when fewer jobs than rows are
    left, the other rows repeat steps on zeros that are not used: a program with fewer rows would be another compile.

    Args:
      jobs: jobs with the same architecture, optimiser and shapes; a finished job is only read back.
      split: uint8 images, replicated over the devices of `target`.
      num_classes: number of classes.
      mesh: (M, D / M); each batch is split over a row.
      target: mesh of at least the same devices, over which the returned states, in the order of the jobs, are replicated.
      on_finish: called after each job.

    Raises:
      NonFiniteLossError, SystemExit: as `train`; of the other models the last checkpoints stay.
      ValueError: jobs that cannot share a program.
    """
    trained = [None] * len(jobs)
    waiting = collections.deque(enumerate(jobs))
    running = {}  # row -> number of its job
    rows = Rows(mesh, split, target)
    with contextlib.closing(rows), distributed.watch_signals() as preempted:
        preempted.stopping, preempted.saved = rows.stopping, rows.saved_steps

        def end(number, run, state):
            trained[number] = run.finish(state)
            run.close()
            on_finish()

        while waiting or running:
            for row in rows.free():
                while waiting and row not in running:
                    number, job = waiting.popleft()
                    meshes.check_batch_size(mesh, job.spec.train.batch_size, "config.train.batch_size")
                    run = Run(job, split, num_classes, target)
                    if run.done:
                        end(number, run, run.state)
                    else:
                        rows.begin(row, run)
                        running[row] = number
            if not running:
                break
            rows.train(preempted)
            stop = preempted()
            for row, run, state in rows.saved(stop):
                if run.done:
                    rows.leave(row)
                    end(running.pop(row), run, state)
                elif stop:
                    run.stopped()
            if stop:
                preempted.leave()
    return trained


def read_back(
    config: ConfigDict, image_size: int, num_classes: int, workdir: pathlib.Path, *, mesh: Mesh
) -> tuple[nnx.GraphDef, TrainState]:
    """Reads (graphdef, TrainState) of a finished run, replicated over the mesh, without its training data.

    `image_size` is the side of the network's input in pixels.

    Raises:
      FileNotFoundError: the run in `workdir` has not reached its end.
      DamagedFileError: final.json or provenance.json holds something else.
      CheckpointError: the checkpoint that final.json names is missing or damaged; no other is read in its place.
    """
    final = read_final(workdir)
    if final is None:
        raise FileNotFoundError(
            f"expected a finished training run in {workdir}, found no final.json; run train.py again"
        )
    spec = states.Spec.of(config)
    graphdef, template = fresh(spec, states.make_optimizer(spec.train, 1), num_classes, image_size, mesh)
    try:
        with contextlib.closing(Checkpoints(workdir / "checkpoints", read_only=True)) as checkpoints:
            return graphdef, checkpoints.read(template, final["step"], final["digest"])
    except (CheckpointError, FileNotFoundError) as error:
        made_by = Workdir(workdir).for_all(command_of, workdir)
        remedy = "Given again, the command that made it trains what is missing"
        if "imported" in config:
            remedy = f"Remove {workdir / 'final.json'}, and the command that made it imports the weights again"
        raise CheckpointError(
            f"{workdir} holds a finished model that cannot be read: {error}. {remedy}: {made_by}"
        ) from error


def in_pieces(mesh: Mesh) -> bool:
    """Returns True on CPUs: their blocks are trained in pieces of some seconds, each awaited, since a step may take long."""
    return mesh.devices.flat[0].platform == "cpu"


class Rows:
    """The rows of a mesh, the run in each, and their states, stacked; arguments as for `train_jobs`."""

    def __init__(self, mesh: Mesh, split: Split, target: Mesh):
        self._mesh, self._target = mesh, target
        self._meshes = meshes.rows(mesh)
        self._splits = [meshes.local_copy(split, row) for row in self._meshes]  # views of the same memory
        self._runs = [None] * len(self._meshes)
        self._blocks = [None] * len(self._meshes)  # (images, labels) of each row's present block of steps
        self._program = self._states = self._keys = self._pending = None
        self._compiled, self._in_pieces, self._at_once = False, in_pieces(mesh), 1

    def free(self) -> list[int]:
        """Lists the rows without a run."""
        return [row for row, run in enumerate(self._runs) if run is None]

    def begin(self, row: int, run: Run):
        """Puts a run into a free row; raises ValueError if its program is not the one of the runs before it."""
        if self._program not in (None, run.program):
            run.close()
            raise ValueError("expected models of one architecture, optimiser and batch size, found others among them")
        self._runs[row], self._program = run, run.program
        if self._states is None:
            self._states = stack_states(self._mesh, run.state)
        else:
            self._states = put_state(self._mesh, self._states, row, run.state)
        self._keys = run.state = self._blocks[row] = None

    def leave(self, row: int):
        """Frees the row of a run that has ended."""
        self._runs[row] = self._blocks[row] = None

    def train(self, stop: distributed.Watch) -> None:
        """Starts the next steps of every run, a block or a piece of it, then reports the steps before.

        In this order an accelerator never waits for the host. A CPU gets pieces of `PIECE_SECONDS`, by the time that
        the last steps took; the host waits for each. No step is started after a signal.
        """
        if not stop.passed():
            return
        for row, (run, split, mesh) in enumerate(zip(self._runs, self._splits, self._meshes)):
            if run is not None and self._blocks[row] is None:
                self._blocks[row] = run.block(split, mesh)
        if self._in_pieces and not stop.passed(self._blocks):
            return
        began = time.perf_counter()
        if self._keys is None:
            stand_in = next(run for run in self._runs if run is not None)  # rows without a run take its key
            self._keys = stack_keys(self._mesh, [(run or stand_in).key for run in self._runs])
        images, labels = (join_batches(self._mesh, part) for part in zip(*self._filled()))
        pairs, spans = self._spans()
        if not self._compiled:  # asks the compiler, before the first block, whether its steps fit the devices
            parts = math.lcm(self._mesh.shape["data"], self._program.norm_groups or 1)
            memory.check_memory(self._mesh, functools.partial(self._lower, spans=spans), images, labels, parts)
        self._states, metrics = steps.train_models_block(
            *self._arguments(images, labels), **self._program.static, spans=spans
        )
        self._compiled = True
        self._report()
        self._pending = metrics, []
        for row, (run, (begin, end)) in enumerate(zip(self._runs, pairs)):
            if run is not None:
                run.step += end - begin
                self._pending[1].append((row, run, run.step, slice(begin, end)))
                if end == self._program.block_steps:
                    self._blocks[row] = None
        if self._in_pieces:
            self._report()
            seconds = (time.perf_counter() - began) / max(end - begin for begin, end in pairs)
            self._at_once = distributed.from_main(lambda: max(1, int(PIECE_SECONDS / seconds)))

    def _spans(self):
        """Computes the steps of its block that each row runs next: as pairs, and as `steps.train_models_block` takes them."""
        length = self._program.block_steps
        number = self._at_once if self._in_pieces else length
        begins = [run and run.offset for run in self._runs]
        spans = [(0, 0) if begin is None else (begin, min(length, begin + number)) for begin in begins]
        if not self._in_pieces and not any(begins):
            return spans, None
        return spans, meshes.place_tree(np.array(spans, np.int32), meshes.by_model(self._mesh))

    def stopping(self) -> str:
        """Says after which steps the runs stop."""
        places = [f"{run.place(run.step)}{f' of {run}' if len(self._runs) > 1 else ''}" for run in self._runs if run]
        compiling = "" if self._compiled else ", once its program is compiled"
        return f"stopping after {', '.join(places) or 'the first step'}{compiling}"

    def saved_steps(self) -> str:
        """Lists the steps of the runs that are saved."""
        places = [f"{run} is saved at {run.place(run.saved)}" for run in self._runs if run and run.saved]
        return f"{', '.join(places) or 'no step is saved'}; the same command continues"

    def _arguments(self, images, labels):
        return self._mesh, self._program.graphdef, self._program.optimizer, self._states, images, labels, self._keys

    def _lower(self, images, labels, spans):
        return _lower_block(*self._arguments(images, labels), **self._program.static, spans=spans)

    def _filled(self):
        """Gives the rows without a run blocks of zeros, which no step reads; returns the blocks of all rows."""
        like = next(block for block in self._blocks if block is not None)
        for row, mesh in enumerate(self._meshes):
            if self._blocks[row] is None:
                place = meshes.batch_sharding(mesh, axis=1)
                self._blocks[row] = tuple(jnp.zeros(part.shape, part.dtype, device=place) for part in like)
        return self._blocks

    def _report(self):
        if self._pending is None:
            return
        metrics, members = self._pending
        self._pending = None
        metrics = {name: distributed.fetch(values).reshape(len(self._runs), -1) for name, values in metrics.items()}
        for row, run, step, span in members:
            run.report(step, {name: values[row][span] for name, values in metrics.items()})

    def saved(self, stop: bool) -> list[tuple[int, Run, TrainState]]:
        """Saves the runs whose checkpoint is due, all of them before a `stop`; returns (row, run, state) of each."""
        due = [(row, run) for row, run in enumerate(self._runs) if run is not None and run.checkpoint_due(stop)]
        if due:
            self._report()  # a checkpoint is only written of a state whose loss was finite
        saved = [(row, run, take_state(self._mesh, self._states, row, self._target)) for row, run in due]
        for _, run, state in saved:
            run.save(state)
        return saved

    def close(self) -> None:
        """Closes the runs that are left."""
        for run in filter(None, self._runs):
            run.close()


def stack_states(mesh: Mesh, state: TrainState) -> TrainState:
    """Makes leaves [M, ...] of the leaves [...] of a state: a copy of it in every row."""
    sharding, rows = meshes.by_model(mesh), mesh.devices.shape[0]

    def stack(leaf):
        pieces = [_copy(leaf[None], device) for device in sharding.addressable_devices]
        return jax.make_array_from_single_device_arrays((rows, *leaf.shape), sharding, pieces)

    return jax.tree.map(stack, _host(state))


def put_state(mesh: Mesh, stacked: TrainState, row: int, state: TrainState) -> TrainState:
    """Puts a copy of `state` into a row of `stacked`; the other rows stay where they are."""
    chex.assert_trees_all_equal_dtypes(stacked, state)

    def put(leaf, new):
        chex.assert_shape(new, leaf.shape[1:])
        pieces = {shard.device: shard.data for shard in leaf.addressable_shards}
        pieces |= {device: _copy(new[None], device) for device in mesh.devices[row] if device in pieces}
        return jax.make_array_from_single_device_arrays(leaf.shape, leaf.sharding, list(pieces.values()))

    return jax.tree.map(put, stacked, _host(state))


def take_state(mesh: Mesh, stacked: TrainState, row: int, target: Mesh) -> TrainState:
    """Copies the state of a row to every device of the mesh `target`, once it is computed."""
    devices = set(mesh.devices[row])

    def take(leaf):
        piece = next(shard.data for shard in leaf.addressable_shards if shard.device in devices)
        return np.array(piece)[0]  # a copy: the stacked state is donated to the next block of steps

    return meshes.place_tree(jax.tree.map(take, stacked), meshes.replicated(target))


def _copy(array, device):
    return jax.device_put(np.array(array), device)  # on a CPU device_put may share memory, and states are donated


def _host(state):
    return jax.tree.map(lambda leaf: np.asarray(leaf.addressable_data(0)), state)  # equal on every device


def join_batches(mesh: Mesh, blocks: Sequence[jax.Array]) -> jax.Array:
    """Joins the rows' blocks [K, B, ...], batches split over 'data', to one array [M K, B, ...]."""
    chex.assert_equal_shape(blocks)
    first = blocks[0]
    pieces = [shard.data for block in blocks for shard in block.addressable_shards]
    shape = (len(blocks) * first.shape[0], *first.shape[1:])
    return jax.make_array_from_single_device_arrays(shape, meshes.by_model(mesh, "data"), pieces)


def stack_keys(mesh: Mesh, keys: Sequence[jax.Array]) -> jax.Array:
    """Makes an array [M] of typed keys, one for each row."""
    return meshes.place_tree(jnp.stack(keys), meshes.by_model(mesh))
