"""A block of training steps, the program that every model of a study is trained by."""

import functools
import operator

import chex
import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import Mesh, PartitionSpec

from models import layers
from models.condensenet import learned
from runtime import meshes
from training import mixup as mixing
from training.jsd import jsd_loss
from training.stability import OFF, Stability, disagreement, with_noise
from training.states import TrainState

PROGRAMS = ("train_models_block", "correct_answers")  # what every model of a study runs


@functools.partial(
    jax.jit,
    static_argnames=(
        "mesh",
        "graphdef",
        "optimizer",
        "jsd_weight",
        "norm_groups",
        "label_smoothing",
        "stability",
        "condense_steps",
        "mixup",
    ),
    donate_argnames=("states",),
)
def train_models_block(
    mesh: Mesh,
    graphdef: nnx.GraphDef,
    optimizer: optax.GradientTransformation,
    states: TrainState,
    images: jax.Array,
    labels: jax.Array,
    keys: jax.Array,
    jsd_weight: float = 0.0,
    norm_groups: int = 1,
    label_smoothing: float = 0.0,
    stability: Stability = OFF,
    condense_steps: int = 0,
    mixup: bool = False,
) -> tuple[TrainState, dict[str, jax.Array]]:
    """Runs K steps of training of M models at once: `train_block` of each on its row of the mesh.

    Compiled once per architecture, optimiser and shape; every model of a study runs this same
    program, which holds no communication between rows. Within a row the compiler splits the work as
    the batch is split.

    Args:
      mesh: (M, devices for each model).
      states: TrainState with leaves [M, ...], donated.
      images, labels: [M K, B, ...] and [M K, B], the models' blocks one after another, B split over
        'data'.
      keys: typed keys [M].
      graphdef, optimizer, jsd_weight, norm_groups, label_smoothing, stability, condense_steps, mixup:
        as `train_block`.

    Returns:
      (states, {"loss": [M K], "accuracy": [M K]}).
    """

    def train_one(state, images, labels, keys):
        state = jax.tree.map(lambda leaf: leaf[0], state)
        asked = jsd_weight, norm_groups, label_smoothing, stability, condense_steps, mixup
        state, metrics = train_block(graphdef, optimizer, state, images, labels, keys[0], *asked)
        return jax.tree.map(lambda leaf: leaf[None], state), metrics

    row = PartitionSpec("model")
    # 'data' is left to the compiler: a batch's statistics and gradients are means over a whole row.
    trained = jax.shard_map(
        train_one, mesh=mesh, in_specs=(row,) * 4, out_specs=(row, row), axis_names={"model"}, check_vma=False
    )
    states, metrics = trained(states, images, labels, keys)
    return jax.lax.with_sharding_constraint(states, meshes.by_model(mesh)), metrics


def train_block(
    graphdef: nnx.GraphDef,
    optimizer: optax.GradientTransformation,
    state: TrainState,
    images: jax.Array,
    labels: jax.Array,
    key: jax.Array,
    jsd_weight: float = 0.0,
    norm_groups: int = 1,
    label_smoothing: float = 0.0,
    stability: Stability = OFF,
    condense_steps: int = 0,
    mixup: bool = False,
) -> tuple[TrainState, dict[str, jax.Array]]:
    """Runs K steps of training of one model in one `lax.scan`.

    A pure function; `train_models_block` is the program made of it. A network with several exits is
    trained on the sum of their losses; accuracy is that of the last one.

    Args:
      graphdef: static half of the model.
      optimizer: optax transformation.
      state: TrainState.
      images: uint8, or float32 in [0, 1], [K, B, H, W, 3]; with a JSD weight [K, B, 3, H, W, 3],
        clean and two views.
      labels: int32 [K, B].
      key: root key of the run; dropout and noise of step s use `fold_in(key, s)`.
      jsd_weight: of the Jensen-Shannon consistency loss (`training.jsd`); 0 trains on cross-entropy
        alone.
      norm_groups: equal parts of each batch with BatchNorm statistics of their own, see
        `training.batch_norm`.
      label_smoothing: of the cross-entropy, see `cross_entropy`; not with a JSD weight.
      stability: of stability training (`training.stability`), which doubles the images of a step;
        not with a JSD weight.
      condense_steps: of the whole training, where the network learns its groups
        (`models.condensenet.learned`); 0 where it does not.
      mixup: train on mixtures (`training.mixup`); not with one of the two before.

    Returns:
      (state, {"loss": [K], "accuracy": [K]}), loss and accuracy over each whole batch (of clean
      images, with JSD; of mixtures against their first labels, with mixup).

    Raises:
      AssertionError: images and labels do not belong together.
      ValueError: two of stability training, a JSD weight and mixup.
    """
    if jsd_weight and stability.weight:
        raise ValueError(
            f"expected a stability weight of 0 with a JSD weight, found {stability.weight} and {jsd_weight}"
        )
    if mixup and (jsd_weight or stability.weight):
        raise ValueError(f"expected mixup without JSD or stability weight, found {jsd_weight} and {stability.weight}")
    chex.assert_rank([images, labels], [6 if jsd_weight else 5, 2])
    chex.assert_equal_shape_prefix([images, labels], 2)
    chex.assert_type(labels, int)

    def objective(logits, labels, mixture):
        """Loss, and the logits of the clean images."""
        if jsd_weight:
            clean, first_view, second_view = jnp.moveaxis(logits.reshape(labels.shape[0], 3, -1), 1, 0)
            return jsd_loss(clean, first_view, second_view, labels, jsd_weight), clean
        if stability.weight:
            clean, noisy = jnp.moveaxis(logits.reshape(labels.shape[0], 2, -1), 1, 0)
            loss = cross_entropy(clean, labels, label_smoothing)
            return loss + stability.weight * disagreement(clean, noisy), clean
        if mixup:
            share, order = mixture
            loss = cross_entropy(logits, labels, label_smoothing, share)
            return loss + cross_entropy(logits, labels[order], label_smoothing, 1 - share), logits
        return cross_entropy(logits, labels, label_smoothing), logits

    def step(state, batch):
        images, labels = batch

        def loss_fn(params):
            model = nnx.merge(graphdef, params, state.statistics, copy=True)
            layers.group_batch_norm(model, norm_groups)
            if condense_steps:
                learned.condense(model, state.step, condense_steps)
            own_key = jax.random.fold_in(key, state.step)
            shown = with_noise(images, own_key, stability.noise) if stability.weight else images
            mixture = mixing.draw(own_key, labels.shape[0]) if mixup else None
            shown = mixing.mixed(images, *mixture) if mixup else shown
            views = shown.reshape(-1, *images.shape[-3:])  # one forward pass, BatchNorm over all views
            logits, features = model(views, train=True, key=own_key)
            by_exit = [objective(answers, labels, mixture) for answers in features.get("exits", (logits,))]
            loss = functools.reduce(operator.add, [loss for loss, _ in by_exit])
            if condense_steps:
                loss += learned.LASSO * learned.group_lasso(model)
            logits = by_exit[-1][1]
            _, _, statistics = nnx.split(model, nnx.Param, ...)
            return loss, (logits, statistics)

        (loss, (logits, statistics)), gradients = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
        updates, optimizer_state = optimizer.update(gradients, state.optimizer, state.params)
        params = optax.apply_updates(state.params, updates)
        accuracy = (logits.argmax(-1) == labels).mean()
        state = type(state)(state.step + 1, params, statistics, optimizer_state)
        return state, {"loss": loss, "accuracy": accuracy}

    return jax.lax.scan(step, state, (images, labels))


def cross_entropy(
    logits: jax.Array, labels: jax.Array, smoothing: float = 0.0, weights: jax.Array | None = None
) -> jax.Array:
    """Computes the mean cross-entropy of a batch, with label smoothing.

    -sum_c q_c log softmax(logits)_c with q = (1 - a) onehot(label) + a / C (Szegedy et al., CVPR
    2016, section 7).

    Args:
      logits: float32 [B, C].
      labels: int [B].
      smoothing: a in [0, 1); 0 is the plain cross-entropy.
      weights: float32 [B], factors of the terms of the mean; None is 1 for all.
    """
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    if smoothing:
        even = jax.nn.logsumexp(logits, axis=-1) - logits.mean(-1)
        loss = (1 - smoothing) * loss + smoothing * even
    return (loss if weights is None else weights * loss).mean()
