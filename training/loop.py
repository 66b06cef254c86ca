"""Training: whole blocks of steps on the device, resumable, each model a pure function of (config, seed)."""

import collections
import contextlib

from runtime import distributed, meshes, preemption
from training import stacks, states, steps
from training.checkpoint import Checkpoints
from training.run import Job, NonFiniteLossError, Run, finished, fresh

__all__ = ["Job", "NonFiniteLossError", "finished", "read_back", "train", "train_jobs"]


def train(config, split, num_classes, workdir, *, mesh, description="", initial=None):
    """Trains the model of `config` on `split` and returns its final state.

    The result is a function of (config, seed) alone: a killed run that is started again continues from its last
    checkpoint to the bit-identical parameters on the same hardware, and a finished one is only read back.

    Args:
      config: see configs/default.py.
      split: data.Split with uint8 images, on the device or on the host (then they are streamed).
      num_classes: number of classes.
      workdir: existing directory of this run (checkpoints, metrics.jsonl, final.json).
      mesh: device mesh with axes ('model', 'data') and one row.
      description: text beside the progress bar.
      initial: TrainState whose parameters and statistics a fresh run starts from (fine-tuning); None draws them.

    Returns:
      (graphdef, TrainState).

    Raises:
      NonFiniteLossError: training diverged; the last good checkpoint stays.
      SystemExit: SIGTERM came; the state of the block it came in is saved.
    """
    job = Job(config, lambda: contextlib.nullcontext(workdir), description, initial=initial)
    return train_jobs([job], split, num_classes, mesh=mesh, target=mesh)[0]


def train_jobs(jobs, split, num_classes, *, mesh, target, on_finish=lambda: None):
    """Trains models, as many at once as the mesh has rows, with one compiled program and nothing shared between rows.

    Rows run in lockstep by blocks of steps. A row whose model is finished takes the next job; each model's step,
    batches, keys and files are its own, and no result depends on which models train beside it or in which row. At the
    end, when fewer jobs than rows are left, the other rows repeat steps on zeros that nobody reads: a program with
    fewer rows would be another compile.

    Args:
      jobs: list of `Job` with the same architecture, optimiser and shapes; finished ones are only read back.
      split: data.Split with uint8 images, replicated over the devices of `target`.
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
    found = [None] * len(jobs)
    waiting = collections.deque(enumerate(jobs))
    running = {}  # row -> number of its job
    rows = _Rows(mesh, split, target)
    with contextlib.closing(rows), preemption.watch() as preempted:

        def end(number, run, state):
            found[number] = run.finish(state)
            run.close()
            on_finish()

        while waiting or running:
            for place in rows.free():
                while waiting and place not in running:
                    number, job = waiting.popleft()
                    meshes.check_batch_size(mesh, job.config.train.batch_size, "config.train.batch_size")
                    run = Run(job, split, num_classes, target)
                    if run.done:
                        end(number, run, run.state)
                    else:
                        rows.begin(place, run)
                        running[place] = number
            if not running:
                break
            rows.train_block()
            stop = preempted()
            for place, run, state in rows.saved(stop):
                if run.done:
                    rows.leave(place)
                    end(running.pop(place), run, state)
                elif stop:
                    run.stopped()
            if stop:
                preemption.leave()
    return found


def read_back(config, image_size, num_classes, workdir, *, mesh):
    """(graphdef, TrainState) of a finished run, without its training data.

    Raises:
      FileNotFoundError: the run in `workdir` has not reached its end.
    """
    if not finished(workdir):
        raise FileNotFoundError(
            f"expected a finished training run in {workdir}, found no final.json; run train.py again"
        )
    graphdef, template = fresh(config, states.make_optimizer(config.train, 1), num_classes, image_size, mesh)
    with contextlib.closing(Checkpoints(workdir / "checkpoints")) as checkpoints:
        state = checkpoints.restore(template)
    if state is None:
        raise FileNotFoundError(
            f"{workdir} is marked as finished but holds no checkpoint; remove final.json to train again"
        )
    return graphdef, state


class _Rows:
    """The rows of a mesh, the run in each, and their states, stacked."""

    def __init__(self, mesh, split, target):
        self._mesh, self._target = mesh, target
        self._meshes = meshes.rows(mesh)
        self._splits = [meshes.local_copy(split, row) for row in self._meshes]  # views of the same memory
        self._runs = [None] * len(self._meshes)
        self._idle = [None] * len(self._meshes)
        self._program = self._states = self._keys = self._pending = None

    def free(self):
        return [place for place, run in enumerate(self._runs) if run is None]

    def begin(self, place, run):
        """Puts a run into a free row."""
        if self._program not in (None, run.program):
            run.close()
            raise ValueError("expected models of one architecture, optimiser and batch size, found others among them")
        self._runs[place], self._program = run, run.program
        if self._states is None:
            self._states = stacks.stack_states(self._mesh, run.state)
        else:
            self._states = stacks.put_state(self._mesh, self._states, place, run.state)
        self._keys = run.state = None

    def leave(self, place):
        self._runs[place] = None

    def train_block(self):
        """Starts the next block of every run; reports the block before, so that the device never waits for the host."""
        some = next(run for run in self._runs if run is not None)
        if self._keys is None:
            keys = [(some if run is None else run).key for run in self._runs]
            self._keys = stacks.stack_keys(self._mesh, keys)
        blocks = [
            None if run is None else run.next_block(split, row)
            for run, split, row in zip(self._runs, self._splits, self._meshes)
        ]
        images, labels = (stacks.join_batches(self._mesh, part) for part in zip(*self._filled(blocks)))
        program = self._program
        self._states, metrics = steps.train_models_block(
            self._mesh, program.graphdef, program.optimizer, self._states, images, labels, self._keys,
            jsd_weight=program.jsd_weight, norm_groups=program.norm_groups, label_smoothing=program.label_smoothing,
        )  # fmt: skip
        self._report()
        self._pending = metrics, [(place, run, run.step) for place, run in enumerate(self._runs) if run is not None]

    def _filled(self, blocks):
        """The blocks, those of rows without a run replaced by idle ones."""
        like = next(block for block in blocks if block is not None)
        for place, block in enumerate(blocks):
            if block is None and self._idle[place] is None:
                self._idle[place] = tuple(stacks.idle_batches(self._meshes[place], part) for part in like)
        return [self._idle[place] if block is None else block for place, block in enumerate(blocks)]

    def _report(self):
        if self._pending is None:
            return
        metrics, members = self._pending
        self._pending = None
        metrics = {name: distributed.fetch(values).reshape(len(self._runs), -1) for name, values in metrics.items()}
        for place, run, step in members:
            run.report(step, {name: values[place] for name, values in metrics.items()})

    def saved(self, stop):
        """Saves the runs whose checkpoint is due after the last block; returns [(row, run, state)] of them."""
        due = [(place, run) for place, run in enumerate(self._runs) if run is not None and run.checkpoint_due(stop)]
        if due:
            self._report()  # a checkpoint is only written of a state whose loss was finite
        found = []
        for place, run in due:
            state = stacks.take_state(self._mesh, self._states, place, self._target)
            run.save(state)
            found.append((place, run, state))
        return found

    def close(self):
        for run in self._runs:
            if run is not None:
                run.close()
