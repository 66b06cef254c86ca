"""The two device programs of a study: a block of training steps, and counting correct answers."""

import functools

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from training.jsd import jsd_loss


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


@functools.partial(
    jax.jit,
    static_argnames=("graphdef", "optimizer", "jsd_weight", "label_smoothing"),
    donate_argnames=("state",),
)
def train_block(graphdef, optimizer, state, images, labels, key, jsd_weight=0.0, label_smoothing=0.0):
    """Runs K steps of training in one `lax.scan`.

    Compiled once per architecture, optimiser and shape; every corruption of a study runs this same program.

    Args:
      graphdef: static half of the model.
      optimizer: optax transformation.
      state: TrainState, donated.
      images: uint8, or float32 in [0, 1], [K, B, H, W, 3]; with a JSD weight [K, B, 3, H, W, 3], clean and two views.
      labels: int32 [K, B].
      key: root key of the run; dropout of step s uses `fold_in(key, s)`.
      jsd_weight: of the Jensen-Shannon consistency loss (`training.jsd`); 0 trains on cross-entropy alone.
      label_smoothing: of the cross-entropy; not with a JSD weight.

    Returns:
      (state, {"loss": [K], "accuracy": [K]}), loss and accuracy over each whole batch (of clean images, with JSD).
    """

    def step(state, batch):
        images, labels = batch

        def loss_fn(params):
            model = nnx.merge(graphdef, params, state.statistics, copy=True)
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


@functools.partial(jax.jit, static_argnames=("graphdef",))
def correct_answers(graphdef, params, statistics, images, labels):
    """Which images are classified correctly.

    Args:
      images: uint8 [M, B, H, W, 3], padded to whole batches.
      labels: int32 [M, B], -1 where padded (never correct).

    Returns:
      bool [M, B].
    """
    model = nnx.merge(graphdef, params, statistics, copy=True)

    def batch_correct(batch):
        images, labels = batch
        logits, _ = model(images, train=False)
        return logits.argmax(-1) == labels

    return jax.lax.map(batch_correct, (images, labels))


def pad_to_batches(array, batch_size, fill):
    """[N, ...] to [ceil(N / B), B, ...], the tail filled with `fill`; nothing is dropped."""
    number = array.shape[0]
    padding = -number % batch_size
    array = jnp.pad(array, [(0, padding)] + [(0, 0)] * (array.ndim - 1), constant_values=fill)
    return array.reshape(-1, batch_size, *array.shape[1:])
