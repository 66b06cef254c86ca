"""Training state, optimiser and learning rate."""

import functools
import types
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from ml_collections import ConfigDict

import models

OF_THE_NETWORK = ("mean", "std", "init")  # settings of config.model that are its own where they are empty
RELEASED = {"mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0), "init": "xavier"}
"""What they are where config.train.reading is `code`: the overlap papers' code does not normalise."""


class TrainState(NamedTuple):
    """Everything a checkpoint holds. Nothing random: keys are functions of (seed, step)."""

    step: jax.Array
    params: Any
    statistics: Any  # BatchNorm statistics and other variables that are no parameters
    optimizer: Any


def learning_rate_schedule(recipe: ConfigDict, steps_per_epoch: int) -> optax.Schedule:
    """Makes the learning rate as a function of the step.

    * `step`: learning_rate, multiplied by decay_factor at each epoch of milestones (the papers: .1,
      a tenth of it after 20 and 30 of 40 epochs).
    * `cosine`: half a cosine from learning_rate to 0 over all steps, after warmup_epochs of linear
      warm-up.
    * `triangle`: linearly from 0 to learning_rate at warmup_epochs, then linearly to 0 at the end.

    Args:
      recipe: config.train.
      steps_per_epoch: number of steps.

    Raises:
      ValueError: another schedule, or a warm-up as long as the training.
    """
    if recipe.schedule == "step":
        decays = {step: recipe.decay_factor for step in _milestone_steps(recipe, steps_per_epoch)}
        return _of_whole_steps(optax.piecewise_constant_schedule(recipe.learning_rate, decays))
    if recipe.schedule not in ("cosine", "triangle"):
        raise ValueError(f"expected config.train.schedule 'step', 'cosine' or 'triangle', found {recipe.schedule!r}")
    if not 0 <= recipe.warmup_epochs < max(1, recipe.epochs):
        raise ValueError(
            f"expected config.train.warmup_epochs below {recipe.epochs} epochs, found {recipe.warmup_epochs}"
        )
    warmup, end = recipe.warmup_epochs * steps_per_epoch, max(1, recipe.epochs * steps_per_epoch)
    start = 0.0 if warmup else recipe.learning_rate
    if recipe.schedule == "cosine":
        return _of_whole_steps(optax.warmup_cosine_decay_schedule(start, recipe.learning_rate, int(warmup), end))
    # Without a warm-up the first corner coincides with the second, whose value counts.
    corners, rates = [0.0, warmup, end], [start, recipe.learning_rate, 0.0]
    corners, rates = jnp.array(corners, jnp.float32), jnp.array(rates, jnp.float32)
    return _of_whole_steps(lambda step: jnp.interp(step, corners, rates))


def _of_whole_steps(schedule):
    """A schedule of float32 steps for whole ones: optax would mix the two types."""
    return lambda step: schedule(jnp.asarray(step, jnp.float32))


def _milestone_steps(recipe, steps_per_epoch):
    return tuple(int(epoch) * steps_per_epoch for epoch in recipe.milestones)


_OPTIMIZER_KEYS = (
    "epochs",
    "schedule",
    "learning_rate",
    "milestones",
    "decay_factor",
    "warmup_epochs",
    "weight_decay",
    "momentum",
    "nesterov",
    "reading",
)
_HEAD, _BACKBONE = "head", "backbone"


def make_optimizer(recipe: ConfigDict, steps_per_epoch: int) -> optax.GradientTransformation:
    """Makes SGD as the papers use it: g + wd p on all parameters, buffer m b + g, step -lr b.

    Where config.train.frozen is `backbone` only the parameters of `of_head` are optimised and the
    others stay as they are; their gradients, which nothing reads, are not computed.

    Equal recipes give the same object: jit compares optimisers by identity, and a study shares one
    compile.
    """
    values = {key: tuple(v) if isinstance(v := recipe[key], tuple | list) else v for key in _OPTIMIZER_KEYS}
    values["frozen"] = recipe.get("frozen", "")  # of an earlier revision
    return _optimizer(tuple(values.items()), steps_per_epoch)


@functools.lru_cache(maxsize=16)
def _optimizer(items, steps_per_epoch):
    recipe = types.SimpleNamespace(**dict(items))
    momentum = optax.trace(decay=recipe.momentum, nesterov=recipe.nesterov)
    if recipe.reading == "code":  # the released code makes a new optimiser at each milestone
        momentum = _forgetting(momentum, _milestone_steps(recipe, steps_per_epoch))
    descent = optax.chain(
        optax.add_decayed_weights(recipe.weight_decay),
        momentum,
        optax.scale_by_learning_rate(learning_rate_schedule(recipe, steps_per_epoch)),
    )
    return optax.multi_transform({_HEAD: descent, _BACKBONE: optax.set_to_zero()}, _parts) if recipe.frozen else descent


def _parts(params):
    return jax.tree_util.tree_map_with_path(lambda path, _: _HEAD if of_head(path) else _BACKBONE, params)


def of_head(path: tuple[Any, ...]) -> bool:
    """Says whether a parameter with this path in a pytree is of the last layer, which every network
    calls `head`; each exit has its own.
    """
    return any(getattr(entry, "key", None) == _HEAD for entry in path)


def _forgetting(transformation, steps):
    """`transformation`, its state started afresh before each of the given update steps."""

    def init(params):
        return jnp.zeros((), jnp.int32), transformation.init(params)

    def update(updates, state, params=None):
        count, inner = state
        afresh = jnp.isin(count, jnp.asarray(steps, jnp.int32))
        inner = jax.tree.map(lambda old, new: jnp.where(afresh, new, old), inner, transformation.init(updates))
        updates, inner = transformation.update(updates, inner, params)
        return updates, (count + 1, inner)

    return optax.GradientTransformation(init, update)


def build_model(config: ConfigDict, num_classes: int, image_size: int) -> tuple[nnx.GraphDef, nnx.State, nnx.State]:
    """Builds the Flax module of a config, split into (graphdef, params, statistics)."""
    model = models.build(
        config.model.name, num_classes, seed=config.seed, image_size=image_size, **network_options(config)
    )
    return nnx.split(model, nnx.Param, ...)


def abstract_model(config: ConfigDict, num_classes: int, image_size: int) -> nnx.Module:
    """Builds the same module with shapes in place of arrays (`models.abstract`)."""
    return models.abstract(config.model.name, num_classes, image_size=image_size, **network_options(config))


def network_options(config: ConfigDict) -> dict[str, Any]:
    """Picks what of config.model are options of its network: all but the name."""
    return {key: value for key, value in config.model.items() if key != "name"}


def initial_state(params: Any, statistics: Any, optimizer: optax.GradientTransformation) -> TrainState:
    """Makes the state before the first step."""
    return TrainState(jnp.zeros((), jnp.int32), params, statistics, optimizer.init(params))
