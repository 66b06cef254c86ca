"""The plan of a run, and the images of its steps: mirrored, cropped, augmented, corrupted in part."""

import functools
import math
from typing import Any, NamedTuple

import chex
import dm_pix
import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from corruptions.core.batch import from_float
from corruptions.primitives.resizing import triangle_matrix
from data.dataset import Split
from runtime import meshes
from training import augmentation
from training.sections import TrainSettings

_AREA = (0.08, 1.0)  # area of a random box, as a fraction of the image's
_ASPECT = (3 / 4, 4 / 3)  # width by height of a random box
_TRIES = 10
_CHUNK = 256  # images in floating point at a time
_BLOCK_BYTES = 2**31  # images of one block on an accelerator
_CPU_BLOCK_STEPS, _CPU_BLOCK_BYTES = 64, 2**28  # on a CPU, so that making the images takes only seconds


class Plan:
    """How the epochs of a run are cut into blocks of equal length.

    Args:
      train: settings of the run, checked by `training.cli`; an attribute too.
      shape: shape of the training images, (N, H, W, 3).

    Attributes:
      training_images, images_per_epoch, batch_size: numbers of images of the split, of an epoch, and of a step. With config.train.reading
        `code` an epoch shows every training image twice, clean and corrupted, in one shuffled list.
      steps_per_epoch, total_steps, block_steps: steps of an epoch, of the run, and of a block,
        which divides the epoch.
      box: side in pixels of the boxes cut from training images; 0 for none.
      image_size: side of the network's input in pixels.
      step_bytes: bytes of the training images of a step.
      scheme: the augmentation scheme, or None.
      norm_groups: parts of a batch with separate BatchNorm statistics, see `augmentation.batch_norm`.
      corrupted_part: images of a batch, or of each of these parts, that are corrupted where config.train.reading is `paper`.

    Raises:
      ValueError: settings that do not fit the images; they are named.
    """

    def __init__(self, train: TrainSettings, shape: tuple[int, ...]):
        self.train, self.batch_size = train, train.batch_size
        self.scheme = augmentation.scheme_of(train.scheme, train.transforms)
        self.norm_groups = augmentation.norm_groups(train.batch_norm)
        together = train.batch_size / (self.norm_groups or 1)  # images of a batch, or of each part
        self.corrupted_part = round(train.corrupted_fraction * together)
        in_parts = train.reading == "paper" and train.corruption != augmentation.STANDARD
        if in_parts and train.corrupted_fraction and not self.corrupted_part:
            raise ValueError(
                f"expected a config.train.corrupted_fraction that corrupts an image of each batch, or 0, found "
                f"{train.corrupted_fraction} of {together:g}"
            )
        self.box = train.random_resized_crop or train.random_crop
        self.image_size = self.box or shape[1]
        if self.box and (train.crop or not 0 < self.box <= min(shape[1:3])):
            name = "random_crop" if train.random_crop else "random_resized_crop"
            raise ValueError(
                f"expected config.train.{name} up to the side {min(shape[1:3])} of the training images "
                f"(config.dataset.train_size) and config.train.crop 0, found {self.box} and {train.crop}"
            )
        self.training_images = shape[0]
        self.images_per_epoch = shape[0] * (2 if train.reading == "code" else 1)
        self.steps_per_epoch = self.images_per_epoch // train.batch_size
        if self.steps_per_epoch == 0:
            raise ValueError(
                f"expected config.train.batch_size up to {self.images_per_epoch}, the images of an epoch, found "
                f"{train.batch_size}"
            )
        self.total_steps = train.epochs * self.steps_per_epoch
        # A scheme makes values between 8-bit levels, in float32; the JSD loss sees three views of each image.
        copies = (4 if train.scheme else 1) * (3 if train.jsd_weight else 1)
        self.step_bytes = train.batch_size * math.prod(shape[1:])
        batch_bytes = self.step_bytes * copies
        cpu = jax.default_backend() == "cpu"
        limit = max(1, (_CPU_BLOCK_BYTES if cpu else _BLOCK_BYTES) // batch_bytes)
        limit = min(limit, self.steps_per_epoch, _CPU_BLOCK_STEPS if cpu else limit)
        # Blocks divide the epoch evenly, so that one shape (one compile) serves all of them.
        self.block_steps = max(d for d in range(1, limit + 1) if self.steps_per_epoch % d == 0)

    def place(self, step: int) -> tuple[int, int]:
        """Returns (epoch, step within the epoch) of a step of the run."""
        return divmod(step, self.steps_per_epoch)


class Keys(NamedTuple):
    """Root keys of the draws that make the images of a run."""

    flip: jax.Array
    corruption: jax.Array
    crop: jax.Array
    scheme: jax.Array


@functools.partial(jax.jit, static_argnames=("number",))
def epoch_order(key: jax.Array, number: int) -> jax.Array:
    """Draws the order of an epoch of `number` images: int32 [number], each of 0 .. number - 1 once.

    Of N training images, i stands for image i, and N + i for its corrupted copy (`Plan.images_per_epoch`).
    """
    return jax.random.permutation(key, number)


def block(plan: Plan, source: Any, order: jax.Array, begin: int, keys: Keys, mesh: Mesh) -> tuple[jax.Array, jax.Array]:
    """Makes images and labels of the steps begin .. begin + K - 1, a block of one epoch.

    Order of work: random box, resized or not, mirror, crop, scheme (on every image), corruption (on its
    part of each batch), enhancement. Patch Gaussian for CIFAR comes first and is truncated to 8 bits, as its authors
    do; with a JSD weight it comes where other schemes do.

    Args:
      plan, keys: plan and root keys of the run.
      source: a `data.Split` on the device, or the `memory.Stream` of a split on the host (`memory.source`).
      order: order of this epoch, see `epoch_order`.
      begin: step within the run.
      mesh: the batch lies split over its 'data' axis.

    Returns:
      (images, labels): images [K, B, H, W, 3], with the JSD loss [K, B, 3, H, W, 3], clean and two
      views; uint8, or float32 in [0, 1] with a scheme. Labels int32 [K, B].
    """
    train, scheme, size, count = plan.train, plan.scheme, plan.batch_size, plan.block_steps
    epoch, offset = plan.place(begin)
    # The number of each image within the run, by which it draws: it draws anew in each epoch, as it would not by its
    # `Split.index`, the place in the dataset.
    index = jnp.arange(count * size) + begin * size
    if isinstance(source, Split):
        images, labels, is_copy = _gather(source.images, source.labels, order, offset * size, count * size)
    else:
        images, labels, is_copy = source.take(begin)
    chex.assert_shape(images, (count * size, None, None, 3))
    chex.assert_shape(labels, (count * size,))
    augment = functools.partial(augmentation.scheme_on_mesh, mesh, scheme)
    comes_first = scheme and augmentation.stays_uint8(scheme, train.jsd_weight)
    if comes_first:
        images = from_float(augment(keys.scheme, images, index), jnp.uint8, "truncate")
    if train.random_resized_crop:
        images = random_resized_crop(images, keys.crop, index, plan.box)
    elif train.random_crop:
        images = _cut(images, keys.crop, index, plan.box)
    if train.flip and train.flip_alternates:
        image_number = jax.lax.dynamic_slice_in_dim(order, offset * size, count * size) % plan.training_images
        images = _mirror(images, keys.flip, image_number, epoch)
    elif train.flip:
        images = _mirror(images, keys.flip, index)
    if train.crop:
        images = _crop(images, keys.crop, index, train.crop)
    if train.jsd_weight:
        views = [augment(jax.random.fold_in(keys.scheme, view), images, index) for view in (1, 2)]
        images = jnp.stack([images.astype(jnp.float32) / 255, *views], axis=1)
    elif scheme and not comes_first:
        images = augment(keys.scheme, images, index)
    if train.corruption != augmentation.STANDARD:
        images = _corrupt_part(plan, images, is_copy, index, keys.corruption, mesh)
    if train.enhance:
        flat = images.reshape(-1, *images.shape[-3:])
        images = augmentation.enhance_on_mesh(mesh, train.enhance, flat).reshape(images.shape)
    sharding = meshes.batch_sharding(mesh, axis=1)
    images = jax.device_put(images.reshape(count, size, *images.shape[1:]), sharding)
    return images, jax.device_put(labels.reshape(count, size), sharding)


def _corrupt_part(plan, images, is_copy, index, key, mesh):
    train = plan.train

    def corrupt(images, index):
        return augmentation.corrupt_or_mix(mesh, train.corruption, key, images, index, train.corruption_options)

    if train.reading == "code":
        return jnp.where(is_copy[:, None, None, None], corrupt(images, index), images)
    # Paper reading: the first part of each batch is corrupted, a random part, since batches are shuffled. Where BatchNorm
    # takes its statistics over groups of a batch, the first part of each group is, so that groups hold the same mixture.
    groups = plan.norm_groups or 1
    number = plan.block_steps * groups
    part = plan.corrupted_part
    by_group = images.reshape(number, -1, *images.shape[1:])
    clean = by_group[:, :part].reshape(-1, *images.shape[1:])
    index = index.reshape(number, -1)[:, :part].reshape(-1)
    corrupted = corrupt(clean, index).reshape(number, part, *images.shape[1:])
    return jnp.concatenate([corrupted, by_group[:, part:]], axis=1).reshape(images.shape)


@functools.partial(jax.jit, static_argnames=("number",))
def _gather(images, labels, order, start, number):
    """Takes the images and labels of `number` places in the order, and tells which are corrupted copies."""
    places = jax.lax.dynamic_slice_in_dim(order, start, number)
    image_number = places % images.shape[0]
    return images[image_number], labels[image_number], places >= images.shape[0]


@functools.partial(jax.jit, donate_argnames=("images",))
def _mirror(images, key, index, turn=0):
    """Mirrors each image [M, H, W, 3] with probability 1/2, in an odd `turn` the others.

    The result takes the memory of `images`. (dm_pix.random_flip_left_right image by image draws the
    same bits in twice the time, and knows no turns.)
    """
    mirrored = jax.vmap(lambda i: jax.random.bernoulli(jax.random.fold_in(key, i)))(index) ^ (turn % 2 == 1)
    return jnp.where(mirrored[:, None, None, None], dm_pix.flip_left_right(images), images)


@functools.partial(jax.jit, static_argnames=("padding",), donate_argnames=("images",))
def _crop(images, key, index, padding):
    """Pads each image with zeros on all sides and cuts it back at a uniform place.

    The result takes the memory of `images`. (dm_pix.random_crop draws row and column from other
    keys: runs begun before would not continue to the same parameters. It takes 1.3 times as long.)
    """
    padded = jnp.pad(images, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    return _cut(padded, key, index, images.shape[1])


@functools.partial(jax.jit, static_argnames=("side",))
def _cut(images, key, index, side):
    """Cuts a square out of each square image [M, H, H, 3] at a uniform place: [M, side, side, 3]."""

    def cut(image, i):
        row, column = jax.random.randint(jax.random.fold_in(key, i), (2,), 0, image.shape[0] - side + 1)
        return jax.lax.dynamic_slice(image, (row, column, 0), (side, side, 3))

    return jax.vmap(cut)(images, index)


def random_box(key: jax.Array, height: int, width: int) -> jax.Array:
    """Draws the random box (top, left, height, width), int32 [4], of the ImageNet recipes.

    Szegedy et al., "Going Deeper with Convolutions", CVPR 2015, section 6; area and aspect as in torchvision's
    RandomResizedCrop. Area uniform in _AREA of the image's, logarithm of the aspect uniform in _ASPECT, sides rounded,
    corner uniform. A box that sticks out is drawn again, up to 10 times; then it is the largest centre box with an
    aspect in _ASPECT.
    """
    area_key, aspect_key, corner_key = jax.random.split(key, 3)
    area = jax.random.uniform(area_key, (_TRIES,), minval=_AREA[0], maxval=_AREA[1]) * (height * width)
    bounds = [math.log(bound) for bound in _ASPECT]
    aspect = jnp.exp(jax.random.uniform(aspect_key, (_TRIES,), minval=bounds[0], maxval=bounds[1]))
    sides = jnp.round(jnp.stack([jnp.sqrt(area / aspect), jnp.sqrt(area * aspect)], axis=1)).astype(jnp.int32)
    fits = jnp.all((sides > 0) & (sides <= jnp.array([[height, width]])), axis=1)
    last = jnp.array([min(height, round(width / _ASPECT[0])), min(width, round(height * _ASPECT[1]))])
    box = jnp.where(fits.any(), sides[jnp.argmax(fits)], last)
    room = jnp.array([height, width]) - box
    drawn = jax.random.randint(corner_key, (2,), 0, room + 1)
    corner = jnp.where(fits.any(), drawn, room // 2)
    return jnp.concatenate([corner, box])


def resize_box(image: jax.Array, box: jax.Array, size: int) -> jax.Array:
    """Resizes a box of an image, bilinear with antialiasing as Pillow's BILINEAR, rounded to nearest.

    Args:
      image: uint8 [H, W, 3].
      box: int32 [4], see `random_box`; may be traced.
      size: static side of the result in pixels, uint8 [size, size, 3].
    """
    top, left, height, width = box
    rows = triangle_matrix(size, height, size, image.shape[0], top)
    columns = triangle_matrix(size, width, size, image.shape[1], left)
    exact = functools.partial(jnp.einsum, precision=jax.lax.Precision.HIGHEST)
    wide = exact("ij,jkc->ikc", rows, image.astype(jnp.float32))
    return jnp.round(exact("lk,ikc->ilc", columns, wide)).astype(jnp.uint8)


@functools.partial(jax.jit, static_argnames="size")
def random_resized_crop(images: jax.Array, key: jax.Array, index: jax.Array, size: int) -> jax.Array:
    """Cuts each image [M, H, W, 3] to its own random box, resized: uint8 [M, size, size, 3], size at most H and W.

    Image i draws with `fold_in(key, index[i])`.
    """

    def crop(numbered_image):
        image, i = numbered_image
        return resize_box(image, random_box(jax.random.fold_in(key, i), *image.shape[:2]), size)

    return jax.lax.map(crop, (images, index), batch_size=min(_CHUNK, images.shape[0]))
