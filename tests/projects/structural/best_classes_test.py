"""projects.structural.flips: the best classes of a network on every frame, whatever the batches."""

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from projects.structural import flips
from projects.structural.sequences import Sequences
from runtime import meshes
from training.states import TrainState

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 3, 16, 16, 3)).astype(np.uint8)
SEQUENCES = Sequences("rotate", PIXELS.shape, PIXELS, (0, 0))


class FirstPixels(nnx.Module):
    """Its logits are the first seven levels of an image, times a parameter."""

    def __init__(self, factor):
        self.factor = nnx.Param(jnp.float32(factor))

    def __call__(self, images, train):
        return images.reshape(len(images), -1)[:, :7].astype(jnp.float32) * self.factor[...], {}


def network(factor):
    graphdef, params, statistics = nnx.split(FirstPixels(factor), nnx.Param, ...)
    return graphdef, TrainState(jnp.zeros((), int), params, statistics, None)


@pytest.mark.parametrize("batch_size", [7, 2])  # two sequences of three frames, and less than one
def test_the_five_best_classes_of_every_frame(batch_size):
    models = {("standard", 0): network(1), ("standard", 1): network(-1)}
    found = flips.best_classes(models, SEQUENCES, batch_size, meshes.data_mesh(1))
    logits = PIXELS.reshape(5, 3, -1)[..., :7].astype(int)
    for seed, sign in ((0, -1), (1, 1)):
        np.testing.assert_array_equal(
            found["standard", seed], np.argsort(sign * logits, axis=-1, kind="stable")[..., :5]
        )


def test_a_network_that_diverged_is_not_called_steady():
    with pytest.raises(ValueError, match="images under rotate, found NaN"):
        flips.best_classes({("standard", 0): network(np.nan)}, SEQUENCES, 7, meshes.data_mesh(1))
