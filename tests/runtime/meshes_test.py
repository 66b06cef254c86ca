"""The mesh ('model', 'data') on eight virtual CPU devices: the same results, shared work, one
compile, no communication.
"""

import functools

import pytest

from tests import checks
from tests.refusing import refuses
from training import augmentation

check = functools.partial(checks.check, "tests.training.mesh_checks", devices=8)


def test_any_number_of_devices_trains_alike():
    """Layout and communication; batches of one, two, four and eight devices; BatchNorm per device,
    as of a batch split by hand.
    """
    check(
        "shapes_of_meshes",
        "no_copy_for_a_row",
        "no_communication_between_rows",
        "one_collective_a_layer_and_direction",
        "any_number_of_devices_trains_alike",
        "statistics_per_device",
        "uneven_images_are_shared",
    )


def test_rows_share_the_work_with_one_compiled_program():
    check("rows_share_the_work_and_one_program")


@pytest.mark.slow
def test_a_group_stopped_between_two_checkpoints_continues_to_the_same_bits():
    check("stopped_between_the_checkpoints_of_two_models", "a_study_continues_with_more_or_fewer_rows")


@pytest.mark.slow
def test_finetuned_models_in_rows():
    check("finetuned_models_wait_for_their_standard_model")


@pytest.mark.parametrize(
    "setting, devices, expected",
    [
        ("synchronised", 8, "synchronised"),
        ("per_device", 1, "synchronised"),
        ("per_device", 8, "groups=8"),
        ("groups=4", 8, "groups=4"),
        ("groups=1", 8, "synchronised"),
        ("running", 8, "running"),
    ],
)
def test_the_stored_setting_does_not_depend_on_the_devices(setting, devices, expected):
    stored = augmentation.batch_norm(setting, devices)
    assert stored == expected and augmentation.batch_norm(stored, 3) == stored


@pytest.mark.parametrize("setting", ["per-device", "groups=0", "groups=", "8", ""])
def test_an_unknown_setting_is_named(setting):
    refuses(lambda: augmentation.batch_norm(setting, 2), "'groups=G' or 'running'")
