"""Checks of whole runs on eight devices; tests/runtime/meshes_test.py runs each in a process. Every
one ends or raises.
"""

import contextlib
import json
import os
import pathlib
import signal
import tempfile

import chex
import jax
import numpy as np

from data.dataset import Split
from runtime import meshes
from tests.checks import run_named
from tests.training import tiny
from tests.training.mesh_checks import SIDE, close, grid
from training import loop, rows, run, states, steps, study


@contextlib.contextmanager
def counted_rounds():
    """Counts calls of the training program, and checks that each gives every device one model's
    work."""
    calls, original = [], steps.train_models_block

    def call(mesh, graphdef, optimizer, stacked, images, *rest, **options):
        rows, columns = mesh.devices.shape
        for shard in images.addressable_shards:
            assert shard.data.shape == (images.shape[0] // rows, images.shape[1] // columns, *images.shape[2:])
        calls.append(mesh.devices.shape)
        return original(mesh, graphdef, optimizer, stacked, images, *rest, **options)

    call._cache_size = original._cache_size
    steps.train_models_block = call
    try:
        yield calls
    finally:
        steps.train_models_block = original


class Setting:
    """Jobs of the smallest possible study: 5 steps an epoch, 2 epochs."""

    def __init__(self, root):
        rng = np.random.default_rng(0)
        images = rng.integers(0, 256, (160, SIDE, SIDE, 3)).astype(np.uint8)
        labels = np.arange(160, dtype=np.int32) % 10
        self.target = meshes.data_mesh()
        self.split = Split(images, labels, np.arange(160, dtype=np.int32)).to_device(meshes.replicated(self.target))
        self.root = pathlib.Path(root)

    def train(self, folder, members, mesh, **train):
        jobs = []
        for corruption, seed in members:
            config = tiny.config(corruption=corruption, **train)
            config.seed = seed
            with config.unlocked():
                config.model.update({"stem": 8, "widths": (16,)})
            path = self.root / folder / f"{corruption.replace('/', '.')}{seed}"
            path.mkdir(parents=True, exist_ok=True)
            one = study.model_config(config, corruption, seed)
            jobs.append(loop.Job(states.Spec.of(one), lambda path=path: contextlib.nullcontext(path)))
        found = loop.train_jobs(jobs, self.split, 10, mesh=mesh, target=self.target)
        return {member: state for member, (_, state) in zip(members, found)}


MEMBERS = [("standard", 0), ("noc/border", 0), ("standard", 1), ("noc/border", 1), ("standard", 2), ("standard", 3)]


def rows_share_the_work_and_one_program():
    """Six models take six runs' rounds in one row and two in four rows, compile once, and come out
    the same."""
    with tempfile.TemporaryDirectory() as root:
        setting = Setting(root)
        found, at_the_end = {}, {"checkpoint_epochs": 2}
        for rows in (1, 4):
            with counted_rounds() as rounds, meshes.counting_compiles() as compiled:
                found[rows] = setting.train(f"rows{rows}", MEMBERS, grid(rows, 1), **at_the_end)
            alone = 2  # blocks of one model: an epoch each
            assert len(rounds) == -(-len(MEMBERS) // rows) * alone, rounds
            assert compiled["train_models_block"] == 1, compiled
            # The same jobs again, the other way round: nothing is left to do.
            with counted_rounds() as rounds:
                again = setting.train(f"rows{rows}", MEMBERS[::-1], grid(rows, 1), **at_the_end)
            chex.assert_trees_all_equal(again, found[rows])
            assert rounds == []
        close(found[4], found[1])  # bits may differ: two programs
        first, other = (jax.tree.leaves(found[4]["standard", seed].params)[0] for seed in (0, 1))
        assert not np.array_equal(first, other)
        # Neither the row nor the neighbours of a model matter.
        few = [MEMBERS[k] for k in (5, 1, 3)]
        again = setting.train("few", few, grid(4, 1), **at_the_end)
        chex.assert_trees_all_equal(again, {member: found[4][member] for member in few})
        # A study may continue with more or fewer rows than it began with.
        for before, after in ((1, 4), (4, 1)):
            with ended_after(3) as saved:
                setting.train(f"from{before}", MEMBERS, grid(before, 1))
            assert saved == ([5, 10, 5] if before == 1 else [5, 5, 5])
            close(setting.train(f"from{before}", MEMBERS, grid(after, 1)), found[1])


@contextlib.contextmanager
def ended_after(number):
    """Ends training in place of the checkpoint after `number` others; yields the steps of those
    that were written."""
    save, steps_saved = run.Checkpoints.save, []

    def stop(self, state):
        if len(steps_saved) == number:
            raise KeyboardInterrupt
        steps_saved.append(int(state.step))
        save(self, state)

    run.Checkpoints.save = stop
    try:
        with contextlib.suppress(KeyboardInterrupt):
            yield steps_saved
    finally:
        run.Checkpoints.save = save


def stopped_between_the_checkpoints_of_two_models():
    """Killed when one model of a group is saved and the next is not, then continued: the bits of a
    study never stopped."""
    with tempfile.TemporaryDirectory() as root:
        setting = Setting(root)
        members = MEMBERS[:3]
        whole = setting.train("whole", members, grid(3, 2))
        with ended_after(2) as saved:
            setting.train("halves", members, grid(3, 2))
        assert saved == [5, 5]
        continued = setting.train("halves", members, grid(3, 2))
        chex.assert_trees_all_equal(continued, whole)
        lines = [
            [
                [json.loads(line)["loss"] for line in (path / "metrics.jsonl").read_text().splitlines()]
                for path in sorted((setting.root / folder).iterdir())
            ]
            for folder in ("whole", "halves")
        ]
        assert lines[0] == lines[1] and [len(one) for one in lines[0]] == [2, 2, 2]
        terminated_in_a_group(setting, members, whole)


def terminated_in_a_group(setting, members, whole):
    """SIGTERM in the first epoch: every model is saved, long before its checkpoint is due, and
    continues to the same bits."""
    at = grid(3, 2)
    send = steps.train_models_block

    def terminate(*arguments, **options):
        os.kill(os.getpid(), signal.SIGTERM)
        return send(*arguments, **options)

    steps.train_models_block = terminate
    try:
        setting.train("terminated", members, at, checkpoint_epochs=2)
    except SystemExit as error:
        assert error.code == 143
    else:
        raise AssertionError("expected the process to be asked to leave")
    finally:
        steps.train_models_block = send
    assert sorted(path.name for path in setting.root.glob("terminated/*/checkpoints/[0-9]*")) == ["5", "5", "5"]
    chex.assert_trees_all_equal(setting.train("terminated", members, at, checkpoint_epochs=2), whole)


def finetuned_models_wait_for_their_standard_model():
    import data
    from tests.training import finetuning_test

    config = finetuning_test.config()
    config.study.parallel = 4
    mesh = meshes.study_mesh(32, 4)
    dataset = data.load("shapes", train_limit=160, test_limit=70)
    split = dataset.train.to_device(meshes.replicated(mesh))
    with tempfile.TemporaryDirectory() as root, counted_rounds() as rounds:
        found = study.Trainings(config, ("standard", "noc/border"), (0, 1), root, dataset, split, mesh).train()
    assert [key for key in found] == [("standard", 0), ("noc/border", 0), ("standard", 1), ("noc/border", 1)]
    assert rounds == [(2, 4)] * 3  # two epochs of both standard models, one of both others
    for seed in (0, 1):
        standard, border = found["standard", seed][1], found["noc/border", seed][1]
        assert (int(standard.step), int(border.step)) == (10, 5)
        chex.assert_trees_all_equal(standard.params, border.params)  # at learning rate 0


if __name__ == "__main__":
    rows.in_pieces = lambda mesh: (
        False
    )  # whole blocks, as on accelerators; tests/training/stopping_test.py has the pieces
    run_named(globals())
