"""The host makes the next block of batches while an accelerator works, by JAX's profiler."""

import collections

import jax
import pytest

import data
from runtime import meshes, workdirs
from tests.training import tiny
from training import loop, rows, study

BLOCKS = 8  # one an epoch


def traced(folder):
    """When the host handed each block over, and when the block's last operation ended, in
    nanoseconds.
    """
    (path,) = folder.glob("**/*.xplane.pb")
    calls, ends = [], collections.Counter()
    for plane in jax.profiler.ProfileData.from_file(str(path)).planes:
        for event in (event for line in plane.lines for event in line.events):
            if event.name == "PjitFunction(train_models_block)":
                calls.append((event.start_ns, event.end_ns))
            told = dict(event.stats)
            if told.get("hlo_module") == "jit_train_models_block":
                ends[told["run_id"]] = max(ends[told["run_id"]], event.end_ns)
    outer = [start for start, end in calls if not any(a < start and end < b for a, b in calls)]
    return sorted(outer), sorted(ends.values())


@pytest.mark.slow
def test_a_block_is_handed_over_before_the_one_before_it_has_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "in_pieces", lambda mesh: False)  # as on an accelerator
    images = data.load("shapes", train_limit=160, test_limit=70)
    config = study.model_config(tiny.config(epochs=BLOCKS, checkpoint_epochs=BLOCKS), "standard", 0)
    workdir = tmp_path / "run"
    workdir.mkdir()
    with workdirs.open_workdir(workdir, config.to_dict()), jax.profiler.trace(tmp_path / "trace"):
        loop.train(config, images.train.to_device(), images.num_classes, workdir, mesh=meshes.data_mesh(1))
    handed_over, ended = traced(tmp_path / "trace")
    assert len(handed_over) == len(ended) == BLOCKS
    assert all(following < end for following, end in zip(handed_over[1:], ended))
