"""Replaces a trained network's BatchNorm statistics by other images' statistics; its weights stay.

    mu    = N / (N + n) mu_source  + n / (N + n) mu_target
    var   = N / (N + n) var_source + n / (N + n) var_target

with the pseudo-count N (0: full replacement) and n target images. S. Schneider et al., "Improving robustness against
common corruptions by covariate shift adaptation" (2020), equation 1; E. Mintun, A. Kirillov, S. Xie (2021), supplement
B.3, take N = 0 and augmented training data.

The target's statistics come from one pass. Every layer normalises a batch with the batch's own mean and variance, so
the input of a layer depends on earlier layers normalised by their batches; the moments of all batches are then pooled, so
that var_target is the variance over all n images and not a mean of variances within batches. With one batch of all n
images this is exact: each layer has the statistics of its input when all earlier layers use theirs.
"""

import dataclasses
import functools
from collections.abc import Iterable, Iterator

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from ml_collections import ConfigDict

from corruptions.core.keys import seed_key
from data import Split
from evaluation.correctness import Model
from evaluation.shown import Shown
from evaluation.streams import networks
from runtime import distributed, meshes
from training import augmentation, batches, memory, study
from training.batches import Plan
from training.sections import TrainSettings
from training.states import TrainState

_TEST_BATCH = 500  # test images that share BatchNorm statistics


def adapt(
    graphdef: nnx.GraphDef, state: TrainState, images: Iterable[jax.Array | np.ndarray], pseudo_count: float = 0.0
) -> tuple[TrainState, int]:
    """Replaces the BatchNorm statistics of a network by statistics of other images.

    Args:
      graphdef, state: a model as `training.loop.read_back` returns it.
      images: batches [B, H, W, 3], uint8 or float32 in [0, 1].
      pseudo_count: N, at least 0; infinity keeps the statistics.

    Returns:
      (state, n): n is the number of images.

    Raises:
      ValueError: a negative N, no images, or a network without BatchNorm.
    """
    if not pseudo_count >= 0:
        raise ValueError(f"expected a pseudo-count of at least 0, found {pseudo_count}")
    weights, number, mean, square = networks.Weights.of(state), 0, {}, {}
    for batch in images:
        size = batch.shape[0]
        number += size
        for layer, moments in _moments(graphdef, weights, batch).items():
            batch_mean, batch_var = (distributed.fetch(moments[name]).astype(np.float64) for name in ("mean", "var"))
            mean[layer] = mean.get(layer, 0) + size * batch_mean
            square[layer] = square.get(layer, 0) + size * (batch_var + batch_mean**2)
    if not number:
        raise ValueError("expected images to adapt to, found none")
    if not mean:
        raise ValueError("expected a network with BatchNorm layers, found none")
    target = number / (pseudo_count + number)
    model = nnx.merge(graphdef, *weights, copy=True)
    for name, layer in networks.norms(model):
        if name not in mean:  # no BatchNorm
            continue
        target_mean = mean[name] / number
        for variable, value in ((layer.mean, target_mean), (layer.var, square[name] / number - target_mean**2)):
            blend = (1 - target) * np.asarray(variable[...], np.float64) + target * value
            variable[...] = jnp.asarray(blend, jnp.float32)
    _, _, statistics = nnx.split(model, nnx.Param, ...)
    chex.assert_trees_all_equal_shapes_and_dtypes(statistics, state.statistics)
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state.statistics)
    return state._replace(statistics=jax.tree.map(meshes.place_tree, statistics, shardings)), number


@functools.partial(jax.jit, static_argnames=("graphdef",))
def _moments(graphdef: nnx.GraphDef, weights: networks.Weights, images: jax.Array) -> networks.Tree:
    """Returns mean and biased variance of the input of every BatchNorm for one batch; each normalises with its own."""
    return networks.forward(graphdef, weights, images, {}, statistics=networks.BATCH)[2]


def training_recipe(config: ConfigDict, trained: ConfigDict) -> TrainSettings:
    """Gives the settings of training a model of the config `trained` with the scheme and in batches of config.adapt."""
    changed = ConfigDict(trained.to_dict())
    changed.train = config.train.to_dict() | trained.train.to_dict()
    asked = config.adapt
    changed.train.update(scheme=asked.scheme, batch_size=asked.batch_size, epochs=1, reading="paper", jsd_weight=0.0)
    changed.train.update(corruption=augmentation.STANDARD, batch_norm=augmentation.SYNCHRONISED)
    return TrainSettings.of(study.model_config(changed, augmentation.STANDARD, trained.seed).train)


def training_images(
    recipe: TrainSettings, split: Split, number: int, seed: int, mesh: jax.sharding.Mesh
) -> Iterator[jax.Array]:
    """Yields number // recipe.batch_size batches of training images, augmented by a recipe.

    Raises:
      ValueError: the split has fewer images.
    """
    steps = number // recipe.batch_size
    if steps * recipe.batch_size > len(split):
        raise ValueError(f"expected config.adapt.images up to {len(split)}, the training images, found {number}")
    plan = Plan(recipe, split.images.shape)
    plan.block_steps = 1
    order_key, *keys = jax.random.split(seed_key(seed), 5)
    order = batches.epoch_order(order_key, plan.images_per_epoch)
    with memory.source(split, plan, lambda epoch: order, 0, mesh) as source:
        for step in range(steps):
            images, _ = batches.block(plan, source, order, step, batches.Keys(*keys), mesh)
            yield images[0]


def label(settings: ConfigDict) -> str:
    """Returns the mark of a model that was adapted to test images: `bn=test`, or `bn=test:N` (pseudo-count N)."""
    return "bn=test" + (f":{settings.pseudo_count:g}" if settings.pseudo_count else "")


def adapt_to_test(pseudo_count: float, model: Model, shown: Shown) -> Model:
    """Gives a model the statistics of its test images, taken in batches of 500.

    Batches follow the order of the dataset. Image folders come class by class: a batch then holds few classes, and deep
    layers are normalised by those, where published results take shuffled batches.
    """
    graphdef, state = model
    pieces = dataclasses.replace(shown, batch_size=_TEST_BATCH)  # pieces hold whole batches
    images = (
        images[start : start + _TEST_BATCH] for images, _ in pieces for start in range(0, len(images), _TEST_BATCH)
    )
    return graphdef, adapt(graphdef, state, images, pseudo_count)[0]
