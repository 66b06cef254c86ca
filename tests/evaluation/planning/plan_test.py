"""Plans whose programs take known times: rounds, hours, memory and text, counted by hand."""

import jax
import pytest

from configs import default, overlap_imagenet100, scheme_study
from evaluation.planning import plan as planning
from evaluation.planning import study, text
from evaluation.planning.asked import Answer
from runtime.chips import machines

GIB = 2**30


@pytest.fixture
def asked(monkeypatch):
    """The programs asked about, as (chips, seconds of a batch); networks are not built."""
    seconds = []

    def ask(machine, chips, build):
        seconds.append((chips, 0.5))
        return Answer(0.5, 0.5, 100.0, 2 * GIB)

    monkeypatch.setattr(planning, "ask", ask)
    return seconds


def overlap(**changes):
    """Four trainings of a small network on ImageNet-100."""
    config = overlap_imagenet100.get_config("resnet18")
    config.model.name = "fast_cifar"
    config.study.corruptions = ("noc/border", "noc/hue", "imagenet_c/fog")
    config.train.update(changes)
    return config


def test_a_study_on_chips_of_one_host_trains_a_model_a_chip(asked):
    found = planning.plan(overlap(), machines.find("v5e-4"))
    (group,) = found.groups
    assert (group.together, group.chips, [len(models) for models in group.rounds()]) == (4, 1, [4])
    steps = 128_117 // 256 * 40
    assert found.training[0].batches == group.plan.total_steps == steps
    # 63 images of the 250 on each of four chips, 20 batches, 4 models under clean images and 3 corruptions
    assert (found.evaluation.images, found.evaluation.batches) == (63, 20 * 4 * 4)
    assert [row.name for row in found.of_images] == ["noc/border", "noc/hue", "imagenet_c/fog"]
    assert [chips for chips, _ in asked] == [1, 4, 1, 1, 1]
    # All four at once: one waits for the other's half of a batch; a batch of 128 takes half a second
    assert found.hours["training images"].least == pytest.approx(steps * 0.5 / 3600)
    assert found.hours["training steps"].least == pytest.approx(steps * 0.5 / 3600)
    assert found.hours["test images"].most == pytest.approx(3 * 5000 / 128 / 4 * 0.5 / 3600)


def test_several_hosts_take_one_model_at_a_time(asked):
    found = planning.plan(overlap(), machines.find("v4-32"))
    (group,) = found.groups
    assert (group.together, group.chips, len(group.rounds())) == (1, 16, 4)
    assert found.training[0].images == 16 and asked[0][0] == 16
    config = overlap()
    config.study.parallel = 4
    with pytest.raises(ValueError, match=r"config\.study\.parallel 1 on the several hosts of v4-32, found 4"):
        planning.plan(config, machines.find("v4-32"))


def test_images_stay_on_chips_that_have_room(asked):
    small, large = (planning.plan(overlap(), machines.find(name), of_images=False) for name in ("v5e-1", "h200-1"))
    assert small.resident == 3 * 5000 * 224**2 and large.resident == 3 * (128_117 + 5000) * 224**2
    assert set(small.hours) == {"training steps", "answers"}
    count = small.groups[0].block.images.shape[0]
    assert small.memory(0) == 2 * GIB + 3 * count * 256 * 224**2 + small.resident
    assert "streamed: the hosts read 512 images/s" in text.text(small)
    assert "on every chip" in text.text(large)


def test_models_with_other_images_are_groups_of_their_own(asked):
    config = scheme_study.get_config("cifar10")
    config.model.name = "fast_cifar"
    found = planning.plan(config, machines.find("v5e-8"), of_images=False)
    kinds = [(len(g.configs), g.block.images.dtype.name, g.block.images.shape[2:]) for g in found.groups]
    image = (32, 32, 3)
    assert sorted(kinds) == [(10, "float32", (3, *image)), (10, "float32", image), (20, "uint8", image)]
    assert study.shows(config)[0].models == 40


def test_a_single_training_is_one_model_on_all_chips(asked):
    config = default.get_config()
    config.dataset.name, config.model.name = "cifar10", "fast_cifar"
    config.train.corruption = "noc/hue"
    found = planning.plan(config, machines.find("v5e-4"))
    assert (found.groups[0].together, found.groups[0].chips) == (1, 4)
    assert [row.name for row in found.of_images] == ["noc/hue"]
    assert found.hours["test images"].least == 0


def test_what_a_compiler_refuses_is_said(monkeypatch):
    monkeypatch.setattr(planning, "ask", lambda *given: Answer(0.0, 0.0, refused="RESOURCE_EXHAUSTED: 20G of 15G"))
    said = text.text(planning.plan(overlap(), machines.find("v5e-4"), of_images=False))
    assert "not compiled: RESOURCE_EXHAUSTED" in said and "does not fit 15.8 GiB" in said and "? steps/s" in said
    assert "training steps ?, answers ?; in all ?" in said


def test_checkpoints_hold_parameters_statistics_and_momentum(asked):
    found = planning.plan(overlap(), machines.find("v5e-4"), of_images=False)
    state = found.groups[0].block.first_state()[1]
    params, statistics = (sum(leaf.size for leaf in jax.tree.leaves(part)) for part in state[1:3])
    assert found.checkpoint_bytes(0) == pytest.approx(4 * (2 * params + statistics), rel=1e-3)
    assert text.checkpoints(found) == 2 * 4 * found.checkpoint_bytes(0)
