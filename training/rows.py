"""The rows of a mesh in training: the run in each row, one stacked state, one program for all."""

import math

from jax.sharding import Mesh

from data.dataset import Split
from runtime import distributed, meshes
from training import memory, stacks, steps
from training.run import Run
from training.states import TrainState


class Rows:
    """The rows of a mesh, the run in each, and their states, stacked.

    Args:
      mesh: (M, D / M).
      split: what every run trains on, replicated over at least the devices of `mesh`, or on the
        host.
      target: mesh over which the states given back are replicated.
    """

    def __init__(self, mesh: Mesh, split: Split, target: Mesh):
        self._mesh, self._target = mesh, target
        self._meshes = meshes.rows(mesh)
        self._splits = [meshes.local_copy(split, row) for row in self._meshes]  # views of the same memory
        self._runs = [None] * len(self._meshes)
        self._idle = [None] * len(self._meshes)
        self._program = self._states = self._keys = self._pending = None
        self._fits = False

    def free(self) -> list[int]:
        """Lists the rows without a run."""
        return [row for row, run in enumerate(self._runs) if run is None]

    def begin(self, row: int, run: Run):
        """Puts a run into a free row.

        Raises:
          ValueError: its program is not the one of the runs before it.
        """
        if self._program not in (None, run.program):
            run.close()
            raise ValueError("expected models of one architecture, optimiser and batch size, found others among them")
        self._runs[row], self._program = run, run.program
        if self._states is None:
            self._states = stacks.stack_states(self._mesh, run.state)
        else:
            self._states = stacks.put_state(self._mesh, self._states, row, run.state)
        self._keys = run.state = None

    def leave(self, row: int):
        """Frees the row of a run that has ended."""
        self._runs[row] = None

    def train_block(self) -> None:
        """Starts the next block of every run, then reports the block before.

        In this order the device never waits for the host.
        """
        if self._keys is None:
            stand_in = next(run for run in self._runs if run is not None)  # its key serves rows without a run
            self._keys = stacks.stack_keys(self._mesh, [(run or stand_in).key for run in self._runs])
        blocks = [
            None if run is None else run.next_block(split, mesh)
            for run, split, mesh in zip(self._runs, self._splits, self._meshes)
        ]
        images, labels = (stacks.join_batches(self._mesh, part) for part in zip(*self._filled(blocks)))
        if not self._fits:
            self._check_memory(images, labels)
        self._states, metrics = steps.train_models_block(*self._arguments(images, labels), **self._program.static)
        self._report()
        self._pending = metrics, [(row, run, run.step) for row, run in enumerate(self._runs) if run is not None]

    def _arguments(self, images, labels):
        return self._mesh, self._program.graphdef, self._program.optimizer, self._states, images, labels, self._keys

    def _check_memory(self, images, labels):
        """Asks the compiler, before the first block, whether its steps fit the devices."""
        parts = math.lcm(self._mesh.shape["data"], self._program.norm_groups or 1)
        memory.check(
            self._mesh,
            lambda *shown: steps.train_models_block.lower(*self._arguments(*shown), **self._program.static),
            images,
            labels,
            parts,
        )
        self._fits = True

    def _filled(self, blocks):
        """The blocks, those of rows without a run replaced by idle ones."""
        like = next(block for block in blocks if block is not None)
        for row, block in enumerate(blocks):
            if block is None and self._idle[row] is None:
                self._idle[row] = tuple(stacks.idle_batches(self._meshes[row], part) for part in like)
        return [self._idle[row] if block is None else block for row, block in enumerate(blocks)]

    def _report(self):
        if self._pending is None:
            return
        metrics, members = self._pending
        self._pending = None
        metrics = {name: distributed.fetch(values).reshape(len(self._runs), -1) for name, values in metrics.items()}
        for row, run, step in members:
            run.report(step, {name: values[row] for name, values in metrics.items()})

    def saved(self, stop: bool) -> list[tuple[int, Run, TrainState]]:
        """Saves the runs whose checkpoint is due; returns (row, run, state) of each.

        Args:
          stop: the process is about to end: every run is due.
        """
        due = [(row, run) for row, run in enumerate(self._runs) if run is not None and run.checkpoint_due(stop)]
        if due:
            self._report()  # a checkpoint is only written of a state whose loss was finite
        saved = []
        for row, run in due:
            state = stacks.take_state(self._mesh, self._states, row, self._target)
            run.save(state)
            saved.append((row, run, state))
        return saved

    def close(self) -> None:
        """Closes the runs that are left."""
        for run in self._runs:
            if run is not None:
                run.close()
