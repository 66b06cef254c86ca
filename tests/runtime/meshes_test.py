"""The mesh ('model', 'data') on eight virtual CPU devices: the same results, shared work, one
compile, no communication.
"""

import pathlib
import subprocess
import sys

import pytest

from tests import compiling
from training import batch_norm

ROOT = pathlib.Path(__file__).resolve().parents[2]


def check(*names, module="mesh_checks"):
    """Runs checks of a module on eight devices."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.training.{module}", *names],
        cwd=ROOT,
        env=compiling.environment() | {"JAX_NUM_CPU_DEVICES": "8"},
        capture_output=True,
        text=True,
        timeout=290,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[: len(names)] == [f"{name} done" for name in names]


def test_layout_and_communication():
    check("shapes_of_meshes", "no_copy_for_a_row", "no_communication_between_rows")


def test_one_two_four_and_eight_devices_train_alike():
    check("any_number_of_devices_trains_alike")


def test_batch_norm_per_device_is_that_of_a_batch_split_by_hand():
    check("statistics_per_device")


def test_rows_share_the_work_with_one_compiled_program():
    check("rows_share_the_work_and_one_program", module="mesh_run_checks")


@pytest.mark.slow
def test_a_group_stopped_between_two_checkpoints_continues_to_the_same_bits():
    check("stopped_between_the_checkpoints_of_two_models", module="mesh_run_checks")


@pytest.mark.slow
def test_finetuned_models_in_rows():
    check("finetuned_models_wait_for_their_standard_model", module="mesh_run_checks")


@pytest.mark.parametrize(
    "setting, devices, expected",
    [
        ("synchronised", 8, "synchronised"),
        ("per_device", 1, "synchronised"),
        ("per_device", 8, "groups=8"),
        ("groups=4", 8, "groups=4"),
        ("groups=1", 8, "synchronised"),
    ],
)
def test_the_stored_setting_does_not_depend_on_the_devices(setting, devices, expected):
    stored = batch_norm.canonical(setting, devices)
    assert stored == expected and batch_norm.canonical(stored, 3) == stored


@pytest.mark.parametrize("setting", ["per-device", "groups=0", "groups=", "8", ""])
def test_an_unknown_setting_is_named(setting):
    with pytest.raises(ValueError, match="'synchronised', 'per_device' or 'groups=G', found"):
        batch_norm.canonical(setting, 2)
