"""Training: blocks of steps on the device, resumable, each model a function of (config, seed)."""

import collections
import contextlib
import pathlib
from collections.abc import Callable, Sequence

from flax import nnx
from jax.sharding import Mesh
from ml_collections import ConfigDict

from data.dataset import Split
from runtime import distributed, meshes
from runtime.workdirs import Workdir, command_of
from training import states
from training.checkpoint import CheckpointError, Checkpoints
from training.rows import Rows
from training.run import Job, NonFiniteLossError, Run, finished, fresh, read_final
from training.states import TrainState

__all__ = ["Job", "NonFiniteLossError", "finished", "read_back", "train", "train_jobs"]


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
    """Trains the model of `config` on `split` and returns its final state.

    The result is a function of (config, seed) alone: a killed run that is started again continues from its last
    checkpoint to the bit-identical parameters on the same hardware, and a finished one is only read back.

    Args:
      config: config of the model, see `study.model_config`.
      split: uint8 images, on the device or on the host (then they are streamed).
      num_classes: number of classes.
      workdir: existing directory of this run (checkpoints, metrics.jsonl, final.json).
      mesh: device mesh with axes ('model', 'data') and one row.
      description: text beside the progress bar.
      initial: state whose parameters and statistics a fresh run starts from (fine-tuning); None draws them.

    Returns:
      (graphdef, TrainState).

    Raises:
      NonFiniteLossError: training diverged; the last good checkpoint stays.
      SystemExit: SIGTERM came; the state of the block it came in is saved.
    """
    job = Job(states.Spec.of(config), lambda: contextlib.nullcontext(workdir), description, initial=initial)
    return train_jobs([job], split, num_classes, mesh=mesh, target=mesh)[0]


# What happens when, in each round of `train_jobs`:
#
#  1. A free row takes the next waiting job: its workdir is opened and locked, its newest checkpoint
#     restored, or a first state drawn. A job without a step left is finished at once, without a
#     row.
#  2. Each row's next block of batches is made on the row's devices; a row without a job gets zeros.
#  3. One program starts the block of steps in all rows. The device works; the host goes on. On a CPU
#     the program runs a piece of the block, as many steps as take some seconds, and the host waits.
#  4. Meanwhile the steps before are reported: their loss is checked to be finite, the progress bar
#     moves, a whole block adds a line to metrics.jsonl.
#  5. The host asks whether SIGTERM or Ctrl-C has come; many processes give one answer. (A thread has
#     said it at once, and ends the process at a second Ctrl-C.)
#  6. Where a checkpoint is due (every so many epochs, after the last step, on SIGTERM), the new
#     block is reported first, so that no state with a non-finite loss is saved; then the row's
#     state is copied to the host and saved.
#  7. A run after its last step leaves its row: final.json is written, its workdir released,
#     `on_finish` called. The others begin the next round.
#  8. After SIGTERM or Ctrl-C the process leaves with status 143 or 130; the same command continues
#  at 1.


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
    left, the other rows repeat steps on zeros that nobody reads: a program with fewer rows would be another compile.

    Args:
      jobs: with the same architecture, optimiser and shapes; finished ones are only read back.
      split: uint8 images, replicated over the devices of `target`.
      num_classes: number of classes.
      mesh: (M, D / M); each batch is split over a row.
      target: mesh of at least the same devices, over which the returned states are replicated.
      on_finish: called after each job.

    Returns:
      [(graphdef, TrainState)] in the order of the jobs.

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
    """Reads (graphdef, TrainState) of a finished run, without its training data.

    Args:
      config: config of the model.
      image_size: side of the network's input in pixels.
      num_classes: number of classes.
      workdir: folder of the run.
      mesh: the state is replicated over its devices.

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
        raise CheckpointError(
            f"{workdir} holds a finished model that cannot be read: {error}. Given again, the command that made it "
            f"trains what is missing: {made_by}"
        ) from error
