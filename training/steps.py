"""The two device programs of a study: a block of training steps, and counting correct answers."""

import functools

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import PartitionSpec

from models import layers
from runtime import meshes
from training.jsd import jsd_loss

PROGRAMS = ("train_models_block", "correct_answers")  # what every model of a study runs


@functools.partial(
    jax.jit,
    static_argnames=("mesh", "graphdef", "optimizer", "jsd_weight", "norm_groups", "label_smoothing"),
    donate_argnames=("states",),
)
def train_models_block(
    mesh, graphdef, optimizer, states, images, labels, keys, jsd_weight=0.0, norm_groups=1, label_smoothing=0.0
):
    """Runs K steps of training of M models at once, `train_block` of each on a row of the mesh of its own.

    Compiled once per architecture, optimiser and shape; every model of a study runs this same program, which holds no
    communication between rows. Within a row the compiler splits the work as the batch is split.

    Args:
      mesh: (M, devices for each model).
      states: TrainState with leaves [M, ...], donated.
      images, labels: [M K, B, ...] and [M K, B], the models' blocks one after another, B split over 'data'.
      keys: typed keys [M].
      graphdef, optimizer, jsd_weight, norm_groups, label_smoothing: as `train_block`.

    Returns:
      (states, {"loss": [M K], "accuracy": [M K]}).
    """

    def one(state, images, labels, keys):
        state = jax.tree.map(lambda leaf: leaf[0], state)
        state, metrics = train_block(
            graphdef, optimizer, state, images, labels, keys[0], jsd_weight, norm_groups, label_smoothing
        )
        return jax.tree.map(lambda leaf: leaf[None], state), metrics

    row = PartitionSpec("model")
    # 'data' is left to the compiler: a batch's statistics and gradients are means over a whole row.
    trained = jax.shard_map(
        one, mesh=mesh, in_specs=(row, row, row, row), out_specs=(row, row), axis_names={"model"}, check_vma=False
    )
    states, metrics = trained(states, images, labels, keys)
    return jax.lax.with_sharding_constraint(states, meshes.by_model(mesh)), metrics


def train_block(graphdef, optimizer, state, images, labels, key, jsd_weight=0.0, norm_groups=1, label_smoothing=0.0):
    """K steps of training of one model in one `lax.scan`; pure, `train_models_block` is the program made of it.

    Args:
      graphdef: static half of the model.
      optimizer: optax transformation.
      state: TrainState.
      images: uint8, or float32 in [0, 1], [K, B, H, W, 3]; with a JSD weight [K, B, 3, H, W, 3], clean and two views.
      labels: int32 [K, B].
      key: root key of the run; dropout of step s uses `fold_in(key, s)`.
      jsd_weight: of the Jensen-Shannon consistency loss (`training.jsd`); 0 trains on cross-entropy alone.
      norm_groups: equal parts of each batch with BatchNorm statistics of their own, see `training.batch_norm`.
      label_smoothing: of the cross-entropy, see `cross_entropy`; not with a JSD weight.

    Returns:
      (state, {"loss": [K], "accuracy": [K]}), loss and accuracy over each whole batch (of clean images, with JSD).
    """

    def step(state, batch):
        images, labels = batch

        def loss_fn(params):
            model = nnx.merge(graphdef, params, state.statistics, copy=True)
            layers.group_batch_norm(model, norm_groups)
            views = images.reshape(-1, *images.shape[-3:])  # one forward pass, BatchNorm over all views
            logits, _ = model(views, train=True, key=jax.random.fold_in(key, state.step))
            if jsd_weight:
                logits, one, other = jnp.moveaxis(logits.reshape(labels.shape[0], 3, -1), 1, 0)
                loss = jsd_loss(logits, one, other, labels, jsd_weight)
            else:
                loss = cross_entropy(logits, labels, label_smoothing)
            _, _, statistics = nnx.split(model, nnx.Param, ...)
            return loss, (logits, statistics)

        (loss, (logits, statistics)), gradients = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
        updates, optimizer_state = optimizer.update(gradients, state.optimizer, state.params)
        params = optax.apply_updates(state.params, updates)
        accuracy = (logits.argmax(-1) == labels).mean()
        state = type(state)(state.step + 1, params, statistics, optimizer_state)
        return state, {"loss": loss, "accuracy": accuracy}

    return jax.lax.scan(step, state, (images, labels))


def cross_entropy(logits, labels, smoothing=0.0):
    """Mean over the batch of -sum_c q_c log softmax(logits)_c with q = (1 - a) onehot(label) + a / C.

    Label smoothing of Szegedy et al. (CVPR 2016), section 7.

    Args:
      logits: float32 [B, C].
      labels: int [B].
      smoothing: a in [0, 1); 0 is the plain cross-entropy.
    """
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    if smoothing:
        even = jax.nn.logsumexp(logits, axis=-1) - logits.mean(-1)
        loss = (1 - smoothing) * loss + smoothing * even
    return loss.mean()
