"""Programs for described chips trace as the commands call them, here for the devices at hand."""

import jax
import pytest

import models
from benchmarks.compiled import programs
from runtime.chips.targets import TARGETS


@pytest.mark.parametrize(
    "kind, name, images, batches",
    [
        ("corruptions", "imagenet_c/brightness", 2, 1),
        ("corruptions", "noc/border", 2, 1),
        ("schemes", "patch_gaussian", 2, 1),
        ("evaluation", "fast_cifar:32:4:1x1", 4, programs.STEPS),
        ("training", "fast_cifar:32:4:1x1", 4, programs.STEPS),
    ],
)
def test_every_kind_of_program_traces(kind, name, images, batches):
    program = programs.build(kind, name, 32, 2, lambda chips: jax.devices()[:chips])
    assert (program.images, program.batches) == (images, batches)
    found = program.function.trace(*program.args).out_info
    assert jax.tree.leaves(found)[-1].shape[0] == (images if batches == 1 else batches)


def test_every_name_of_a_table_is_one_that_exists():
    for row in (*programs.ROWS["evaluation"], *programs.ROWS["training"]):
        assert row.split(":")[0] in models.names()
    assert len(programs.names("corruptions", ())) > 70 and "augmix" in programs.names("schemes", ())


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_programs_of_more_chips_than_a_target_describes_are_left_out(target):
    listed = programs.names("training", target.topologies)
    assert "resnet18:224:256:1x1" in listed
    assert ("resnet18:224:256:4x1" in listed) == ("resnet50:224:128:1x4" in listed) == (4 in target.topologies)
