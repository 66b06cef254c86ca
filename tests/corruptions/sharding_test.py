"""Batches split over devices: split alike out, the same pixels, however JAX was told of the split."""

import pathlib
import subprocess
import sys

import pytest

from tests import compiling

ROOT = pathlib.Path(__file__).resolve().parents[2]


def check(*names):
    """Runs checks on four devices."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.corruptions.sharding_checks", *names],
        cwd=ROOT,
        env=compiling.environment() | {"JAX_NUM_CPU_DEVICES": "4"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[: len(names)] == [f"{name} done" for name in names]


def test_explicit_axes_auto_axes_shard_map_pmap_and_arrays_that_were_put_on_devices():
    check(
        "the_how_to",
        "split_in_split_alike_out",
        "an_explicit_batch_is_augmented_alike",
        "an_explicit_batch_is_corrupted_without_communication",
        "shard_map_and_pmap",
        "traced_in_a_shard_map",
        "arrays_that_were_put_somewhere_meet",
        "one_program_for_any_kind_of_severity",
    )


@pytest.mark.slow
def test_every_corruption_in_a_shard_map():
    check("all_traced_in_a_shard_map")
