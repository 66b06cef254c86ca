"""Checkpoints come back bit for bit, and a damaged one gives way to the one before."""

import chex
import jax
import jax.numpy as jnp
import pytest

from training.checkpoint import CheckpointError, Checkpoints, digest
from training.states import TrainState


def state(step):
    key = jax.random.key(step)
    params = {"kernel": jax.random.normal(key, (64, 33)), "bias": jnp.arange(5.0)}
    return TrainState(jnp.asarray(step, jnp.int32), params, {"mean": jnp.ones(3) * step}, (jnp.zeros(2),))


def save(directory, steps, keep=2):
    checkpoints = Checkpoints(directory, keep)
    for step in steps:
        checkpoints.save(state(step))
    checkpoints.close()


def restore(directory):
    checkpoints = Checkpoints(directory)
    try:
        return checkpoints.restore(jax.tree.map(jnp.zeros_like, state(0)))
    finally:
        checkpoints.close()


def largest_file(directory):
    return max((p for p in directory.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)


def test_round_trip(tmp_path):
    assert restore(tmp_path) is None
    save(tmp_path, [1, 2])
    found = restore(tmp_path)
    chex.assert_trees_all_equal(found, state(2))
    assert digest(found) == digest(state(2)) != digest(state(1))


def test_a_checkpoint_too_many_goes(tmp_path):
    """Which a kill between the writing of one and the removal of another leaves."""
    save(tmp_path, [1, 2, 3, 4], keep=4)
    chex.assert_trees_all_equal(restore(tmp_path), state(4))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["3", "4"]


def truncate(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [truncate, flip_a_bit])
def test_damaged_checkpoint_falls_back_and_says_so(tmp_path, damage, caplog):
    save(tmp_path, [1, 2])
    damage(largest_file(tmp_path / "2" / "state"))
    found = restore(tmp_path)
    chex.assert_trees_all_equal(found, state(1))
    assert "2 is damaged" in caplog.text
    save(tmp_path, [2])  # the same step can be written again
    chex.assert_trees_all_equal(restore(tmp_path), state(2))


def test_nothing_readable_is_an_error_that_says_what_to_do(tmp_path):
    save(tmp_path, [1, 2])
    for step in ("1", "2"):
        truncate(largest_file(tmp_path / step / "state"))
    with pytest.raises(CheckpointError, match="remove the folder to train again"):
        restore(tmp_path)
    assert (tmp_path / "2").exists()
