"""The rows of a mesh in training: the run in each, one stacked state, one program for all.

Arrays of several models are put together from the rows' arrays uncopied. States are stacked along a new first
axis, [M, ...]. Blocks of batches and metrics, whose first axis is the step, lie one after another, [M K, ...]. Either
way 'model' splits the first axis, and a device holds nothing but its own model's part.
"""

import math
import time
from collections.abc import Callable, Sequence

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from data.dataset import Split
from runtime import distributed, meshes
from runtime.settings import SettingsError
from training import steps, stream
from training.run import Run
from training.states import TrainState

_NO_ROOM = "RESOURCE_EXHAUSTED"  # a TPU's compiler says so of a program that does not fit
PIECE_SECONDS = 2.5
"""Seconds of training that a CPU is given at a time, in whole steps: what a stop waits for, at least one step."""


def in_pieces(mesh: Mesh) -> bool:
    """Returns True on CPUs: their blocks are trained in pieces of some seconds, each awaited, since a step may take long."""
    return mesh.devices.flat[0].platform == "cpu"


class Rows:
    """The rows of a mesh, the run in each, and their states, stacked.

    Args:
      mesh: (M, D / M).
      split: training images of every run, replicated over at least the devices of `mesh`, or on the host.
      target: mesh over which returned states are replicated.
    """

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
        """Puts a run into a free row.

        Raises:
          ValueError: its program is not the one of the runs before it.
        """
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
        if not self._compiled:
            self._check_memory(images, labels)
        spans, given = self._spans()
        self._states, metrics = steps.train_models_block(
            *self._arguments(images, labels), **self._program.static, spans=given
        )
        self._compiled = True
        self._report()
        self._pending = metrics, []
        for row, (run, (begin, end)) in enumerate(zip(self._runs, spans)):
            if run is not None:
                run.step += end - begin
                self._pending[1].append((row, run, run.step, slice(begin, end)))
                if end == self._program.block_steps:
                    self._blocks[row] = None
        if self._in_pieces:
            self._report()
            seconds = (time.perf_counter() - began) / max(end - begin for begin, end in spans)
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

    def _check_memory(self, images, labels):
        """Asks the compiler, before the first block, whether its steps fit the devices."""
        parts = math.lcm(self._mesh.shape["data"], self._program.norm_groups or 1)

        def lower(*block):
            return steps.train_models_block.lower(*self._arguments(*block), **self._program.static)

        check_memory(self._mesh, lower, images, labels, parts)

    def _filled(self):
        """Lists the rows' blocks, with an idle one in each row without a run."""
        like = next(block for block in self._blocks if block is not None)
        for row, block in enumerate(self._blocks):
            if block is None:
                self._blocks[row] = tuple(  # zeros that nobody reads
                    jnp.zeros(part.shape, part.dtype, device=meshes.batch_sharding(self._meshes[row], axis=1))
                    for part in like
                )
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
        """Saves the runs whose checkpoint is due; returns (row, run, state) of each.

        Args:
          stop: the process is about to end: every run is due.
        """
        due = [(row, run) for row, run in enumerate(self._runs) if run is not None and run.checkpoint_due(stop)]
        if due:
            self._report()  # a checkpoint is only written of a state whose loss was finite
        saved = []
        for row, run in due:
            state = take_state(self._mesh, self._states, row, self._target)
            run.save(state)
            saved.append((row, run, state))
        return saved

    def close(self) -> None:
        """Closes the runs that are left."""
        for run in self._runs:
            if run is not None:
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
    return jax.tree.map(lambda leaf: np.asarray(leaf.addressable_data(0)), state)  # every device has the same


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


# Whether the steps of a batch fit a device's memory, by its compiler. Without this check the allocator fails minutes
# after the start and names neither the setting nor a size that fits.


def beyond_arguments(program: jax.stages.Compiled) -> int:
    """Counts a program's bytes on a device beside its arguments: temporaries, code, results in new places."""
    sizes = program.memory_analysis()
    results = sizes.output_size_in_bytes - sizes.alias_size_in_bytes
    return sizes.temp_size_in_bytes + results + sizes.generated_code_size_in_bytes


def check_memory(
    mesh: Mesh,
    lower: Callable[[jax.Array, jax.Array], jax.stages.Lowered],
    images: jax.Array,
    labels: jax.Array,
    parts: int,
) -> None:
    """Refuses a block of steps that does not fit; does nothing where devices do not tell their free memory.

    The arguments of the block, and a dataset, are in place when free memory is measured. Beside the steps there must
    be room for the images of the next block, which are made meanwhile.

    Args:
      mesh: (M, devices for each model).
      lower: lowers the block for images and labels; JAX compiles it once, for this and the first call.
      images, labels: the first block, [M K, B, ...].
      parts: batches are multiples of this number.

    Raises:
      SettingsError: it does not fit; names the largest batch that does.
    """
    free = stream.free_bytes(mesh)
    if free is None:
        return
    batch = images.shape[1]
    needed = _needed(lower, images, labels, batch)
    if not distributed.anyone(needed > free):
        return
    too_large = smaller = batch
    while smaller := smaller // 2 // parts * parts:
        of_smaller = _needed(lower, images, labels, smaller)
        if not distributed.anyone(of_smaller > free):  # all compile the same sizes
            break
        too_large = smaller
    advice = "no batch fits"
    if smaller:  # the largest that fits, by the needs of a smaller one
        largest = min(int(smaller * free / of_smaller), too_large - 1) // parts * parts
        advice = f"the largest that fits is about {largest} ({smaller} need {gib(of_smaller)})"
    found = "which its compiler has no room for" if needed == math.inf else f"whose steps need {gib(needed)}"
    raise SettingsError(
        f"config.train.batch_size: expected a batch whose steps fit the {gib(free)} free on {mesh.devices.flat[0].device_kind}, found "
        f"{batch}, {found}; {advice}. Fewer models at once (config.study.parallel) leave more devices to each"
    )


def _needed(lower, images, labels, batch):
    """Counts bytes beside the arguments for batches of another size; infinite where the compiler refuses."""
    sized = [
        jax.ShapeDtypeStruct((array.shape[0], batch, *array.shape[2:]), array.dtype, sharding=array.sharding)
        for array in (images, labels)
    ]
    local = math.prod(images.sharding.shard_shape(sized[0].shape)) * images.dtype.itemsize
    try:
        return beyond_arguments(lower(*sized).compile()) + local
    except jax.errors.JaxRuntimeError as error:
        if _NO_ROOM not in str(error):
            raise
        return math.inf


def gib(number: float) -> str:
    """Writes bytes as GiB."""
    return f"{number / 2**30:.3g} GiB"
