"""A network that learns its groups, in the training loop."""

import numpy as np
import pytest
from flax import nnx

import data
import models
from models import condensenet
from runtime import meshes
from tests.models import tiny as networks
from tests.training import tiny
from training import loop, study


@pytest.mark.slow
def test_groups_are_learned_by_the_end_of_a_training_and_the_network_converts(tmp_path, monkeypatch):
    monkeypatch.setitem(models._REGISTRY, "tiny_condensenet", networks.NETWORKS["condensenet"][0])
    config, dataset = tiny.config(), data.load("shapes", train_limit=160, test_limit=70)
    config.model.name = "tiny_condensenet"
    one = study.model_config(config, "standard", 0)
    graphdef, state = loop.train(one, dataset.train.to_device(), 10, tmp_path, mesh=meshes.data_mesh())
    masks = [variable[...] for path, variable in nnx.to_flat_state(state.statistics) if path[-1] == "mask"]
    assert [mask.shape for mask in masks] == [(16, 4), (24, 4), (32, 4)]
    for mask in masks:
        np.testing.assert_array_equal(mask.sum(0), len(mask) // 4)
    converted = condensenet.convert(nnx.merge(graphdef, state.params, state.statistics))
    assert converted.head.kernel.shape == (24, 10)
