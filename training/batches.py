"""What a training step sees: blocks of batches, mirrored, cropped, augmented, corrupted in part."""

import functools
import math
from typing import NamedTuple

import chex
import dm_pix
import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from ml_collections import ConfigDict

from corruptions.batch import from_float
from data.dataset import Split
from runtime import meshes
from training import augmentation, batch_norm, stream
from training.resized_crop import random_resized_crop

_BLOCK_BYTES = 2**31  # images of one block on an accelerator
_CPU_BLOCK_STEPS = 64  # on a CPU a block should end within seconds, for the progress bar


class Plan:
    """How an epoch is cut into blocks of equal length.

    Args:
      recipe: config.train.
      shape: of the training images, (N, H, W, 3).

    Attributes:
      views: images shown in an epoch.
      steps_per_epoch, total_steps, block_steps: steps of an epoch, of the run, and of a block,
        which divides the epoch.
      image_size: side of the network's input in pixels.
      scheme: the augmentation scheme, or None.
      norm_groups, label_smoothing: as `training.steps.train_block` takes them.

    Raises:
      ValueError: settings that do not go together; they are named.
    """

    def __init__(self, recipe: ConfigDict, shape: tuple[int, ...]):
        if recipe.reading not in ("paper", "code"):
            raise ValueError(f"expected config.train.reading 'paper' or 'code', found {recipe.reading!r}")
        if recipe.jsd_weight and (not recipe.scheme or recipe.corruption != augmentation.STANDARD):
            raise ValueError(
                "expected config.train.jsd_weight with a config.train.scheme, whose views it compares, and without a "
                f"corruption, found scheme {recipe.scheme!r} and corruption {recipe.corruption!r}"
            )
        self.label_smoothing = recipe.label_smoothing
        if not 0 <= self.label_smoothing < 1 or (recipe.jsd_weight and self.label_smoothing):
            raise ValueError(
                "expected config.train.label_smoothing in [0, 1), and 0 with a config.train.jsd_weight, found "
                f"{self.label_smoothing}"
            )
        self.scheme = augmentation.scheme_of(recipe)
        self.norm_groups = batch_norm.groups(recipe.batch_norm)
        if self.norm_groups and recipe.batch_size % self.norm_groups:
            raise ValueError(
                f"expected config.train.batch_size to be a multiple of the {self.norm_groups} parts of "
                f"config.train.batch_norm, found {recipe.batch_size}"
            )
        self.box = recipe.random_resized_crop or recipe.random_crop
        self.image_size = self.box or shape[1]  # side of the network's input
        if self.box and (recipe.crop or not 0 < self.box <= min(shape[1:3])):
            name = "random_crop" if recipe.random_crop else "random_resized_crop"
            raise ValueError(
                f"expected config.train.{name} up to the side {min(shape[1:3])} of the training images "
                f"(config.dataset.train_size) and config.train.crop 0, found {self.box} and {recipe.crop}"
            )
        self.number = number = shape[0]
        # Code reading: one epoch shows every image twice, once clean and once corrupted, in one
        # shuffled list.
        self.views = 2 * number if recipe.reading == "code" else number
        self.steps_per_epoch = self.views // recipe.batch_size
        if self.steps_per_epoch == 0:
            raise ValueError(
                f"expected config.train.batch_size up to {self.views}, the images of an epoch, found "
                f"{recipe.batch_size}"
            )
        self.total_steps = recipe.epochs * self.steps_per_epoch
        # A scheme makes values between 8-bit levels, in float32; the JSD loss sees three views of
        # each image.
        copies = (4 if recipe.scheme else 1) * (3 if recipe.jsd_weight else 1)
        batch_bytes = recipe.batch_size * math.prod(shape[1:]) * copies
        limit = _CPU_BLOCK_STEPS if jax.default_backend() == "cpu" else max(1, _BLOCK_BYTES // batch_bytes)
        # Blocks divide the epoch evenly, so that one shape (one compile) serves all of them.
        self.block_steps = max(
            d for d in range(1, min(limit, self.steps_per_epoch) + 1) if self.steps_per_epoch % d == 0
        )


class Keys(NamedTuple):
    """Root keys of what is random in the images of a run."""

    flip: jax.Array
    corruption: jax.Array
    crop: jax.Array
    scheme: jax.Array


@functools.partial(jax.jit, static_argnames=("views",))
def epoch_order(key: jax.Array, views: int) -> jax.Array:
    """Draws the order of the views of an epoch, int32 [views]."""
    return jax.random.permutation(key, views)


def block(
    recipe: ConfigDict,
    plan: Plan,
    split: Split | stream.Stream,
    order: jax.Array,
    offset: int,
    begin: int,
    keys: Keys,
    mesh: Mesh,
) -> tuple[jax.Array, jax.Array]:
    """Makes images and labels of the steps begin .. begin + K - 1.

    Order of work: random box, resized or not, mirror, crop, scheme (on every image), corruption (on its
    part of each batch), enhancement. Patch Gaussian for CIFAR comes before mirror and crop and is
    truncated to 8 bits, as its authors do; with a JSD weight it is a view like any other.

    Args:
      recipe: config.train.
      plan: `Plan` of the run.
      split: data.Split on the device, or a `stream.Stream` of one that is not.
      order: of this epoch, see `epoch_order`.
      offset: step within the epoch.
      begin: step within the run.
      keys: `Keys`.
      mesh: the batch lies split over its 'data' axis.

    Returns:
      (images, labels): images [K, B, H, W, 3], with the JSD loss [K, B, 3, H, W, 3], clean and two
      views; uint8, or float32 in [0, 1] with a scheme. Labels int32 [K, B].
    """
    size, count = recipe.batch_size, plan.block_steps
    identity = jnp.arange(count * size) + begin * size  # of each view within the run
    if isinstance(split, stream.Stream):
        images, labels, doubled = split.take(begin)
    else:
        images, labels, doubled = _gather(split.images, split.labels, order, offset * size, identity)
    chex.assert_shape(images, (count * size, None, None, 3))
    chex.assert_shape(labels, (count * size,))
    scheme = plan.scheme
    first = scheme and augmentation.keeps_levels(scheme, recipe.jsd_weight)
    if first:  # its authors train on whole levels, truncated
        noisy = augmentation.scheme_on_mesh(mesh, scheme, keys.scheme, images, identity)
        images = from_float(noisy, jnp.uint8, "truncate")
    if recipe.random_resized_crop:
        images = random_resized_crop(images, keys.crop, identity, plan.box)
    elif recipe.random_crop:
        images = _cut(images, keys.crop, identity, plan.box)
    if recipe.flip and recipe.flip_alternates:
        image_number = jax.lax.dynamic_slice_in_dim(order, offset * size, count * size) % plan.number
        images = _mirror(images, keys.flip, image_number, begin // plan.steps_per_epoch)
    elif recipe.flip:
        images = _mirror(images, keys.flip, identity)
    if recipe.crop:
        images = _crop(images, keys.crop, identity, recipe.crop)
    if recipe.jsd_weight:
        views = [
            augmentation.scheme_on_mesh(mesh, scheme, jax.random.fold_in(keys.scheme, view), images, identity)
            for view in (1, 2)
        ]
        images = jnp.stack([images.astype(jnp.float32) / 255, *views], axis=1)
    elif scheme and not first:
        images = augmentation.scheme_on_mesh(mesh, scheme, keys.scheme, images, identity)
    if recipe.corruption != augmentation.STANDARD:
        images = _corrupt_part(recipe, plan, images, doubled, identity, keys.corruption, mesh)
    if recipe.enhance:
        views = images.reshape(-1, *images.shape[-3:])
        images = augmentation.enhance_on_mesh(mesh, recipe.enhance, views).reshape(images.shape)
    sharding = meshes.batch_sharding(mesh, axis=1)
    images = jax.device_put(images.reshape(count, size, *images.shape[1:]), sharding)
    return images, jax.device_put(labels.reshape(count, size), sharding)


def _corrupt_part(recipe, plan, images, doubled, identity, key, mesh):
    options = augmentation.static_options(recipe)
    if recipe.reading == "code":
        corrupted = augmentation.augment(mesh, recipe.corruption, key, images, identity, options)
        return jnp.where(doubled[:, None, None, None], corrupted, images)
    # Paper reading: the first part of each batch (a random part, batches are shuffled) is
    # corrupted; where BatchNorm takes its statistics over parts of a batch, the first part of each
    # of these, so that all hold the same mixture.
    groups = plan.norm_groups or 1
    number = plan.block_steps * groups
    part = round(recipe.corrupted_fraction * recipe.batch_size / groups)
    by_group = images.reshape(number, -1, *images.shape[1:])
    clean = by_group[:, :part].reshape(-1, *images.shape[1:])
    index = identity.reshape(number, -1)[:, :part].reshape(-1)
    corrupted = augmentation.augment(mesh, recipe.corruption, key, clean, index, options)
    corrupted = corrupted.reshape(number, part, *images.shape[1:])
    return jnp.concatenate([corrupted, by_group[:, part:]], axis=1).reshape(images.shape)


@jax.jit
def _gather(images, labels, order, start, identity):
    """Images and labels of the views order[start:...], and which views are the corrupted copies."""
    views = jax.lax.dynamic_slice_in_dim(order, start, identity.shape[0])
    image_number = views % images.shape[0]
    return images[image_number], labels[image_number], views >= images.shape[0]


@functools.partial(jax.jit, donate_argnames=("images",))
def _mirror(images, key, identity, turn=0):
    """Mirrors each image [M, H, W, 3] with probability 1/2, in an odd `turn` the others.

    The result takes the memory of `images`. (dm_pix.random_flip_left_right image by image draws the
    same bits in twice the time, and knows no turns.)
    """
    mirrored = jax.vmap(lambda i: jax.random.bernoulli(jax.random.fold_in(key, i)))(identity) ^ (turn % 2 == 1)
    return jnp.where(mirrored[:, None, None, None], dm_pix.flip_left_right(images), images)


@functools.partial(jax.jit, static_argnames=("padding",), donate_argnames=("images",))
def _crop(images, key, identity, padding):
    """Pads each image with zeros on all sides and cuts it back at a uniform place.

    The result takes the memory of `images`. (dm_pix.random_crop draws row and column from other
    keys: runs begun before would not continue to the same parameters. It takes 1.3 times as long.)
    """
    padded = jnp.pad(images, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    return _cut(padded, key, identity, images.shape[1])


@functools.partial(jax.jit, static_argnames=("side",))
def _cut(images, key, identity, side):
    """Cuts a square out of each square image [M, H, H, 3] at a uniform place: [M, side, side, 3]."""

    def cut(image, i):
        row, column = jax.random.randint(jax.random.fold_in(key, i), (2,), 0, image.shape[0] - side + 1)
        return jax.lax.dynamic_slice(image, (row, column, 0), (side, side, 3))

    return jax.vmap(cut)(images, identity)
