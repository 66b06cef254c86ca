"""Networks and their training state: initial parameters, optimiser, learning rate, a whitening first layer."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from ml_collections import ConfigDict

import models
from runtime import distributed, meshes
from training.sections import TrainSettings

OF_THE_NETWORK = ("mean", "std", "init")
"""Settings of config.model for which the architecture has a default; it holds where they are empty."""
RELEASED = {"mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0), "init": "xavier"}
"""Their values where config.train.reading is `code`: the overlap papers' code does not normalise."""
_WHITENED_IMAGES = 1000  # at 32 pixels a million patches, for a 12 x 12 matrix
_EPSILON = 5e-4  # so that directions without variance, which contain only noise, are not amplified


class Spec(NamedTuple):
    """The settings that determine a model, besides its images."""

    model: Mapping[str, Any]  # name and options of the network (config.model)
    train: TrainSettings  # how it is trained
    seed: int  # seed of its initial parameters and of all draws of its training

    @classmethod
    def of(cls, config: ConfigDict) -> Self:
        """Takes them from the config of one model (`study.model_config`, or its stored config.json)."""
        return cls(config.model.to_dict(), TrainSettings.of(config.train), config.seed)


class TrainState(NamedTuple):
    """Everything a checkpoint holds. Nothing random: keys are functions of (seed, step)."""

    step: jax.Array
    params: Any
    statistics: Any  # BatchNorm statistics and other variables that are no parameters
    optimizer: Any


def learning_rate_schedule(train: TrainSettings, steps_per_epoch: int) -> optax.Schedule:
    """Makes the learning rate as a function of the step.

    * `step`: learning_rate, multiplied by decay_factor at each epoch of milestones (the papers: .1,
      a tenth of it after 20 and 30 of 40 epochs).
    * `cosine`: half a cosine from learning_rate to 0 over all steps, after warmup_epochs of linear warm-up.
    * `triangle`: linearly from 0 to learning_rate at warmup_epochs, then linearly to 0 at the end.
    """
    warmup, end = train.warmup_epochs * steps_per_epoch, max(1, train.epochs * steps_per_epoch)
    start = 0.0 if warmup else train.learning_rate
    if train.schedule == "step":
        decays = {step: train.decay_factor for step in _milestone_steps(train, steps_per_epoch)}
        schedule = optax.piecewise_constant_schedule(train.learning_rate, decays)
    elif train.schedule == "cosine":  # optax refuses a warm-up over all steps, here of weights that train no epoch
        schedule = optax.warmup_cosine_decay_schedule(start, train.learning_rate, min(int(warmup), end - 1), end)
    else:  # Without a warm-up the first corner coincides with the second, whose value counts.
        corners = jnp.array([0.0, warmup, end], jnp.float32)
        rates = jnp.array([start, train.learning_rate, 0.0], jnp.float32)
        schedule = functools.partial(jnp.interp, xp=corners, fp=rates)
    return lambda step: schedule(jnp.asarray(step, jnp.float32))  # optax would mix integer and float32 steps


def _milestone_steps(train, steps_per_epoch):
    return tuple(int(epoch) * steps_per_epoch for epoch in train.milestones)


_OF_THE_OPTIMIZER = (  # the settings of `TrainSettings` that an optimiser depends on
    *("epochs", "schedule", "learning_rate", "milestones", "decay_factor", "warmup_epochs", "weight_decay"),
    *("momentum", "nesterov", "reading", "frozen"),
)


def make_optimizer(train: TrainSettings, steps_per_epoch: int) -> optax.GradientTransformation:
    """Makes SGD as the papers use it: g + wd p on all parameters, buffer m b + g, step -lr b.

    Where config.train.frozen is `backbone` only the parameters of `of_head` are optimised and the
    others do not change; their gradients, which nothing reads, are not computed.

    Equal settings give the same object: jit compares optimisers by identity, and a study shares one compile.
    """
    return _optimizer(tuple((name, getattr(train, name)) for name in _OF_THE_OPTIMIZER), steps_per_epoch)


@functools.lru_cache(maxsize=16)
def _optimizer(settings, steps_per_epoch):
    settings = TrainSettings(**dict(settings))
    momentum = optax.trace(decay=settings.momentum, nesterov=settings.nesterov)
    if settings.reading == "code":  # the released code makes a new optimiser at each milestone
        momentum = _forgetting(momentum, _milestone_steps(settings, steps_per_epoch))
    descent = optax.chain(
        optax.add_decayed_weights(settings.weight_decay),
        momentum,
        optax.scale_by_learning_rate(learning_rate_schedule(settings, steps_per_epoch)),
    )

    def parts(params):
        return jax.tree_util.tree_map_with_path(lambda path, _: "head" if of_head(path) else "backbone", params)

    both = {"head": descent, "backbone": optax.set_to_zero()}
    return optax.multi_transform(both, parts) if settings.frozen else descent


def of_head(path: tuple[Any, ...]) -> bool:
    """Returns True if a path in a pytree leads to a parameter of the last layer, `head` in every network; exits have one."""
    return any(getattr(entry, "key", None) == "head" for entry in path)


def _forgetting(transformation, steps):
    """Makes a transformation whose state starts afresh before each update step in `steps`."""

    def init(params):
        return jnp.zeros((), jnp.int32), transformation.init(params)

    def update(updates, state, params=None):
        count, inner = state
        afresh = jnp.isin(count, jnp.asarray(steps, jnp.int32))
        inner = jax.tree.map(lambda old, new: jnp.where(afresh, new, old), inner, transformation.init(updates))
        updates, inner = transformation.update(updates, inner, params)
        return updates, (count + 1, inner)

    return optax.GradientTransformation(init, update)


def build_model(spec: Spec, num_classes: int, image_size: int) -> tuple[nnx.GraphDef, nnx.State, nnx.State]:
    """Builds the Flax module of a model, split into (graphdef, params, statistics)."""
    model = models.build(num_classes=num_classes, seed=spec.seed, image_size=image_size, **spec.model)
    return nnx.split(model, nnx.Param, ...)


def abstract_model(spec: Spec, num_classes: int, image_size: int) -> nnx.Module:
    """Builds the same module with shapes in place of arrays (`models.abstract`)."""
    return models.abstract(num_classes=num_classes, image_size=image_size, **spec.model)


def initial_state(params: Any, statistics: Any, optimizer: optax.GradientTransformation) -> TrainState:
    """Makes the state before the first step."""
    return TrainState(jnp.zeros((), jnp.int32), params, statistics, optimizer.init(params))


def whitening_filters(
    images: np.ndarray, size: int, number: int, mean: Sequence[float], std: Sequence[float], epsilon: float = _EPSILON
) -> np.ndarray:
    """Computes whitening filters and their negatives, in the order of falling variance.

    With v_k, l_k the eigenvectors and eigenvalues of E[p p^T], p the flattened patches of the normalised images, the
    filters are v_k / sqrt(l_k + epsilon): their outputs are uncorrelated, with second moments l_k / (l_k + epsilon).

    Args:
      images: uint8 [N, H, W, 3].
      size: side of a patch in pixels.
      number: filters to keep, those of the largest variance.
      mean, std: three floats each, the input normalisation on the scale of [0, 1].

    Returns:
      float32 [size, size, 3, 2 number], a kernel for NHWC images.
    """
    scaled = (np.asarray(images, np.float64) / 255 - np.asarray(mean)) / np.asarray(std)
    patches = np.lib.stride_tricks.sliding_window_view(scaled, (size, size), axis=(1, 2))  # [N, h, w, 3, size, size]
    flat = np.moveaxis(patches, 3, -1).reshape(-1, 3 * size * size)
    values, vectors = np.linalg.eigh(flat.T @ flat / len(flat))
    kernel = (vectors / np.sqrt(values + epsilon))[:, ::-1][:, :number].reshape(size, size, 3, -1)
    return np.concatenate([kernel, -kernel], axis=-1).astype(np.float32)


def whitened(state: TrainState, images: np.ndarray | jax.Array) -> TrainState:
    """Fits the variable `whitening` of a fresh model, if it has one, to the first training images, uint8 [N, H, W, 3]."""
    if "whitening" not in state.statistics:
        return state
    statistics = state.statistics
    mean, std = (statistics["normalize"][name][...] for name in ("mean", "std"))
    first, (size, *_, channels) = distributed.fetch(images[:_WHITENED_IMAGES]), statistics["whitening"].shape
    kernel = whitening_filters(first, size, channels // 2, mean, std)

    def fill(path, leaf):
        if path[0].key != "whitening":
            return leaf
        chex.assert_shape(kernel, leaf.shape)
        return meshes.place_tree(kernel, leaf.sharding)

    return state._replace(statistics=jax.tree_util.tree_map_with_path(fill, statistics))
