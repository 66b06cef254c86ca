"""A block of training steps, the program that trains every model of a study, and its loss."""

import dataclasses
import functools
import operator
from collections.abc import Iterator
from typing import Any

import chex
import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import Mesh, PartitionSpec

from corruptions.core.batch import to_float
from models import condensenet, norms
from runtime import meshes
from training import augmentation
from training.sections import TrainSettings
from training.states import TrainState

PROGRAMS = ("train_models_block", "network_logits")
"""The compiled programs that all models of a study share."""
STABILITY_IN_STUDIES = (0.05, 0.05)
"""Weight and noise of `train=stability` in a study of enhancements: the middle of the draft's nine settings."""
# Purposes of keys folded from the key of a step; layers of dropout count from 0.
_NOISE, _MIXTURE = 2**31 - 1, 2**31 - 2


@dataclasses.dataclass(frozen=True)
class Loss:
    """The loss of a training step: hashable, a static argument of its program.

    Raises:
      ValueError: parts that exclude each other.
    """

    jsd_weight: float = 0.0  # weight of the consistency of three views (`jsd_loss`); 0 is only cross-entropy
    label_smoothing: float = 0.0  # share of the target that is spread evenly over all classes (`cross_entropy`)
    # weight a of stability training, 0 for none: CE(p(x), y) + a H(p(x), p(x')), H of `disagreement`, x' of
    # `with_noise` (S. Zheng et al., "Improving the Robustness of Deep Neural Networks via Stability Training",
    # CVPR 2016).
    stability_weight: float = 0.0
    # bound u of its uniform noise, as in Hendrycks's and Dietterich's draft on structural robustness, which
    # fine-tunes for 5 epochs with a and u of .01, .05 and .1
    stability_noise: float = 0.0
    # train on mixtures of two images (`mix`): mean(t CE(p(x'), y)) + mean((1 - t) CE(p(x'), y[order]))
    mixup: bool = False

    def __post_init__(self):
        for problem in _exclusive(self):
            raise ValueError(problem)

    @classmethod
    def of(cls, train: TrainSettings) -> "Loss":
        """Takes the loss from the settings of a training."""
        return cls(**{field.name: getattr(train, field.name) for field in dataclasses.fields(cls)})

    def prepare(self, images: jax.Array, key: jax.Array) -> tuple[jax.Array, Any]:
        """Makes the network's input [V, H, W, 3] of the images of a step, and the mixture that `__call__` takes."""
        mixture = draw_mixture(key, images.shape[0]) if self.mixup else None
        if self.stability_weight:
            images = with_noise(images, key, self.stability_noise)
        if mixture:
            images = mix(images, *mixture)
        return images.reshape(-1, *images.shape[-3:]), mixture

    def __call__(self, logits: jax.Array, labels: jax.Array, mixture: Any) -> tuple[jax.Array, jax.Array]:
        """Computes (loss, logits of the clean images) from the logits [V, C] of a step's input."""
        entropy = functools.partial(cross_entropy, smoothing=self.label_smoothing)
        if self.jsd_weight:
            views = jnp.moveaxis(logits.reshape(labels.shape[0], 3, -1), 1, 0)
            return jsd_loss(*views, labels, self.jsd_weight), views[0]
        if self.stability_weight:
            clean, noisy = jnp.moveaxis(logits.reshape(labels.shape[0], 2, -1), 1, 0)
            return entropy(clean, labels) + self.stability_weight * disagreement(clean, noisy), clean
        if self.mixup:
            share, order = mixture
            return entropy(logits, labels, weights=share) + entropy(logits, labels[order], weights=1 - share), logits
        return entropy(logits, labels), logits


def problems_of_loss(train: TrainSettings) -> Iterator[str]:
    """Yields the settings of a loss that exclude each other, as `expected ..., found ...`."""
    if train.jsd_weight and (not train.scheme or train.corruption != augmentation.STANDARD):
        yield (
            "expected config.train.jsd_weight with a config.train.scheme, whose views it compares, and without a "
            f"corruption, found scheme {train.scheme!r} and corruption {train.corruption!r}"
        )
    yield from _exclusive(train)
    if bool(train.stability_weight) != bool(train.stability_noise):
        yield (
            "expected config.train.stability_weight and train.stability_noise both above 0, or both 0, found "
            f"{train.stability_weight} and {train.stability_noise}"
        )


def _exclusive(loss: Loss | TrainSettings) -> Iterator[str]:
    if loss.jsd_weight and loss.label_smoothing:
        yield f"expected config.train.label_smoothing 0 with a train.jsd_weight, found {loss.label_smoothing}"
    if loss.jsd_weight and loss.stability_weight:
        yield f"expected config.train.stability_weight 0 with a train.jsd_weight, found {loss.stability_weight}"
    if loss.mixup and (loss.jsd_weight or loss.stability_weight):
        yield (
            "expected config.train.mixup False with a train.jsd_weight or train.stability_weight, found True with "
            f"{loss.jsd_weight} and {loss.stability_weight}"
        )


PLAIN = Loss()


@functools.partial(
    jax.jit,
    static_argnames=("mesh", "graphdef", "optimizer", "loss", "norm_groups", "condense_steps"),
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
    loss: Loss = PLAIN,
    norm_groups: int = 1,
    condense_steps: int = 0,
    spans: jax.Array | None = None,
) -> tuple[TrainState, dict[str, jax.Array]]:
    """Runs K steps of training of M models at once: `train_block` of each on its row of the mesh.

    Compiled once per architecture, optimiser and shape; every model of a study runs this same program, which holds no
    communication between rows. Within a row the compiler splits the work as the batch is split.

    Args:
      mesh: (M, devices for each model).
      states: TrainState with leaves [M, ...], donated.
      images, labels: [M K, B, ...] and [M K, B], the models' blocks one after another, B split over 'data'.
      keys, spans: typed keys [M] and int32 [M, 2], the `key` and `span` of each model; others as `train_block`.

    Returns:
      (states, {"loss": [M K], "accuracy": [M K]}).
    """

    def train_one(state, images, labels, keys, spans):
        state = jax.tree.map(lambda leaf: leaf[0], state)
        span = None if spans is None else spans[0]
        state, metrics = train_block(
            graphdef, optimizer, state, images, labels, keys[0], loss, norm_groups, condense_steps, span
        )
        return jax.tree.map(lambda leaf: leaf[None], state), metrics

    row = PartitionSpec("model")
    # The compiler splits 'data': a batch's statistics and gradients are means over a whole row.
    trained = jax.shard_map(
        train_one, mesh=mesh, in_specs=(row,) * 5, out_specs=(row, row), axis_names={"model"}, check_vma=False
    )
    states, metrics = trained(states, images, labels, keys, spans)
    return jax.lax.with_sharding_constraint(states, meshes.by_model(mesh)), metrics


def train_block(
    graphdef: nnx.GraphDef,
    optimizer: optax.GradientTransformation,
    state: TrainState,
    images: jax.Array,
    labels: jax.Array,
    key: jax.Array,
    loss: Loss = PLAIN,
    norm_groups: int = 1,
    condense_steps: int = 0,
    span: jax.Array | None = None,
) -> tuple[TrainState, dict[str, jax.Array]]:
    """Runs K steps of training of one model, or some of them, in one loop on the device.

    A pure function; `train_models_block` is the program made of it. A network with several exits is
    trained on the sum of their losses; the accuracy is the last exit's.

    Args:
      graphdef, optimizer, state: static half of the model, optax transformation, TrainState.
      images: uint8, or float32 in [0, 1], [K, B, H, W, 3]; with a JSD weight [K, B, 3, H, W, 3], clean and two views.
      labels: int32 [K, B].
      key: root key of the run; dropout, noise and mixtures of step s use `fold_in(key, s)`.
      loss: `Loss` of each step.
      norm_groups: equal parts of each batch with separate BatchNorm statistics (`augmentation.batch_norm`).
      condense_steps: steps of the whole training, where the network learns its groups
        (`models.condensenet`); 0 where it does not.
      span: int32 [2], the steps begin .. end - 1 of the block are run, with one program for all spans and to the same
        bits; metrics of the others are 0. None is all of them.

    Returns:
      (state, {"loss": [K], "accuracy": [K]}), loss and accuracy over each whole batch (of clean
      images, with JSD; of mixtures against their first labels, with mixup).
    """
    chex.assert_rank([images, labels], [6 if loss.jsd_weight else 5, 2])
    chex.assert_equal_shape_prefix([images, labels], 2)
    chex.assert_type(labels, int)

    def step(state, batch):
        images, labels = batch

        def loss_fn(params):
            model = nnx.merge(graphdef, params, state.statistics, copy=True)
            norms.group_batch_norm(model, norm_groups)
            if condense_steps:
                condensenet.condense(model, state.step, condense_steps)
            step_key = jax.random.fold_in(key, state.step)
            views, mixture = loss.prepare(images, step_key)
            logits, features = model(views, train=True, key=step_key)  # BatchNorm sees all views at once
            by_exit = [loss(answers, labels, mixture) for answers in features.get("exits", (logits,))]
            total = functools.reduce(operator.add, [value for value, _ in by_exit])
            if condense_steps:
                total += condensenet.LASSO * condensenet.group_lasso(model)
            _, _, statistics = nnx.split(model, nnx.Param, ...)
            return total, (by_exit[-1][1], statistics)

        (total, (logits, statistics)), gradients = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
        updates, optimizer_state = optimizer.update(gradients, state.optimizer, state.params)
        params = optax.apply_updates(state.params, updates)
        accuracy = (logits.argmax(-1) == labels).mean()
        state = type(state)(state.step + 1, params, statistics, optimizer_state)
        return state, {"loss": total, "accuracy": accuracy}

    if span is None:  # a loop of known length needs no answer of the device after each step
        return jax.lax.scan(step, state, (images, labels))

    def step_of_span(number, carry):
        state, metrics = carry
        state, ours = step(state, (images[number], labels[number]))
        return state, jax.tree.map(lambda values, value: values.at[number].set(value), metrics, ours)

    metrics = {name: jnp.zeros(len(images)) for name in ("loss", "accuracy")}
    return jax.lax.fori_loop(span[0], span[1], step_of_span, (state, metrics))


def cross_entropy(
    logits: jax.Array, labels: jax.Array, smoothing: float = 0.0, weights: jax.Array | None = None
) -> jax.Array:
    """Computes the mean cross-entropy of a batch, logits float32 [B, C] and labels int [B], with label smoothing.

    -sum_c q_c log softmax(logits)_c with q = (1 - a) onehot(label) + a / C (Szegedy et al., CVPR 2016, section 7), a =
    `smoothing` in [0, 1). `weights` float32 [B] are factors of the terms of the mean; None is 1 for all.
    """
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    if smoothing:
        even = jax.nn.logsumexp(logits, axis=-1) - logits.mean(-1)
        loss = (1 - smoothing) * loss + smoothing * even
    return (loss if weights is None else weights * loss).mean()


def jsd_loss(
    logits_clean: jax.Array, logits_one: jax.Array, logits_two: jax.Array, labels: jax.Array, weight: float = 12.0
) -> jax.Array:
    """Computes cross-entropy of the clean view plus the Jensen-Shannon divergence of three views.

    With p_i the softmax of view i and M = clip((p_1 + p_2 + p_3) / 3, 1e-7, 1):
    CE(clean) + weight (1/3) sum_i KL(p_i || M), both means over the batch (AugMix, Hendrycks et
    al., ICLR 2020, section 3; the clip as trained by Mintun et al., 2021).

    The logits, float [B, C], of a clean image and two augmented views of it come from one forward pass of 3 B images:
    BatchNorm sees them together. Labels int [B]; a `weight` of 0 leaves the cross-entropy.
    """
    chex.assert_equal_shape([logits_clean, logits_one, logits_two])
    chex.assert_shape(labels, logits_clean.shape[:-1])
    logits = jnp.stack([logits_clean, logits_one, logits_two]).astype(jnp.float32)
    entropy = optax.softmax_cross_entropy_with_integer_labels(logits[0], labels).mean()
    log_p = jax.nn.log_softmax(logits)
    p = jnp.exp(log_p)
    log_mixture = jnp.log(jnp.clip(p.mean(0, keepdims=True), 1e-7, 1.0))
    divergence = (p * (log_p - log_mixture)).sum(-1).mean()
    return entropy + weight * divergence


def with_noise(images: jax.Array, key: jax.Array, noise: float) -> jax.Array:
    """Puts a noisy copy x + U(-u, u), which may leave [0, 1], beside each image x: float32 [B, 2, H, W, 3].

    Images are uint8, or float32 in [0, 1], [B, H, W, 3]; the noise is drawn for each pixel and channel, u = `noise`.
    """
    clean = to_float(images)
    drawn = jax.random.uniform(jax.random.fold_in(key, _NOISE), images.shape, minval=-noise, maxval=noise)
    return jnp.stack([clean, clean + drawn], axis=1)


def disagreement(clean: jax.Array, noisy: jax.Array) -> jax.Array:
    """Computes the mean over a batch of H(p, q) = -sum_j p_j log q_j, p and q the softmax of two logits [B, C].

    Gradients flow through both: H holds the entropy of p, which training lowers too.
    """
    clean, noisy = clean.astype(jnp.float32), noisy.astype(jnp.float32)
    return optax.softmax_cross_entropy(noisy, jax.nn.softmax(clean)).mean()


def draw_mixture(key: jax.Array, number: int) -> tuple[jax.Array, jax.Array]:
    """Draws the mixtures of a batch for mixup.

    H. Zhang et al., "mixup: Beyond Empirical Risk Minimization", ICLR 2018, draw one t from Beta(a, a) for a batch; this
    draws t from U(0, 1), a = 1, for each image, as the code of Hendrycks's and Dietterich's draft. Returns (t, float32
    [B]; the partner of each of the B = `number` images, int32 [B]).
    """
    share_key, order_key = jax.random.split(jax.random.fold_in(key, _MIXTURE))
    return jax.random.uniform(share_key, (number,)), jax.random.permutation(order_key, number)


def mix(images: jax.Array, share: jax.Array, order: jax.Array) -> jax.Array:
    """Mixes images, uint8 or float32 in [0, 1], [B, H, W, 3], with their partners: t x + (1 - t) x[order], float32."""
    clean, t = to_float(images), share[:, None, None, None]
    return t * clean + (1 - t) * clean[order]
