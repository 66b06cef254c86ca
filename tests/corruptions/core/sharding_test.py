"""Batches split over devices: split alike out, the same pixels, however JAX was told of the split."""

import functools

import pytest

from tests import checks

check = functools.partial(checks.check, "tests.corruptions.core.sharding_checks", devices=4)


def test_explicit_axes_auto_axes_shard_map_pmap_and_arrays_that_were_put_on_devices():
    check(
        "the_how_to",
        "split_in_split_alike_out",
        "clips_split_in_split_alike_out",
        "an_explicit_batch_is_augmented_alike",
        "an_explicit_batch_is_corrupted_without_communication",
        "checkify_of_a_split_batch",
        "shard_map_and_pmap",
        "traced_in_a_shard_map",
        "no_index_in_a_shard_map",
        "arrays_that_were_put_somewhere_meet",
        "one_program_for_any_kind_of_severity",
    )


@pytest.mark.slow
def test_every_corruption_in_a_shard_map():
    check("all_traced_in_a_shard_map")
