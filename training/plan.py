"""The plan of a training run: its steps, their blocks, and the shapes and options that every step shares."""

import math

import jax

import corruptions
from training import names
from training.sections import TrainSettings

_BLOCK_BYTES = 2**31  # images of one block on an accelerator
_CPU_BLOCK_STEPS, _CPU_BLOCK_BYTES = 64, 2**28  # on a CPU, where making the images should end within seconds


class Plan:
    """How the epochs of a run are cut into blocks of equal length.

    Args:
      train: settings of the run, checked by `training.rules`.
      shape: shape of the training images, (N, H, W, 3).

    Attributes:
      train: as given.
      number: number of training images.
      views: images of an epoch.
      batch_size: images of a step.
      steps_per_epoch, total_steps, block_steps: steps of an epoch, of the run, and of a block,
        which divides the epoch.
      box: side in pixels of the boxes cut from training images; 0 for none.
      image_size: side of the network's input in pixels.
      scheme: the augmentation scheme, or None.
      norm_groups: parts of a batch with BatchNorm statistics of their own, see `steps.train_block`.

    Raises:
      ValueError: settings that do not fit the images; they are named.
    """

    def __init__(self, train: TrainSettings, shape: tuple[int, ...]):
        self.train, self.batch_size = train, train.batch_size
        self.scheme = scheme_of(train)
        self.norm_groups = names.norm_groups(train.batch_norm)
        self.box = train.random_resized_crop or train.random_crop
        self.image_size = self.box or shape[1]
        if self.box and (train.crop or not 0 < self.box <= min(shape[1:3])):
            name = "random_crop" if train.random_crop else "random_resized_crop"
            raise ValueError(
                f"expected config.train.{name} up to the side {min(shape[1:3])} of the training images "
                f"(config.dataset.train_size) and config.train.crop 0, found {self.box} and {train.crop}"
            )
        self.number = shape[0]
        # Code reading: one epoch shows every image twice, once clean and once corrupted, in one
        # shuffled list.
        self.views = 2 * self.number if train.reading == "code" else self.number
        self.steps_per_epoch = self.views // train.batch_size
        if self.steps_per_epoch == 0:
            raise ValueError(
                f"expected config.train.batch_size up to {self.views}, the images of an epoch, found {train.batch_size}"
            )
        self.total_steps = train.epochs * self.steps_per_epoch
        # A scheme makes values between 8-bit levels, in float32; the JSD loss sees three views of each image.
        copies = (4 if train.scheme else 1) * (3 if train.jsd_weight else 1)
        batch_bytes = train.batch_size * math.prod(shape[1:]) * copies
        cpu = jax.default_backend() == "cpu"
        limit = max(1, (_CPU_BLOCK_BYTES if cpu else _BLOCK_BYTES) // batch_bytes)
        limit = min(limit, _CPU_BLOCK_STEPS) if cpu else limit
        # Blocks divide the epoch evenly, so that one shape (one compile) serves all of them.
        self.block_steps = max(
            d for d in range(1, min(limit, self.steps_per_epoch) + 1) if self.steps_per_epoch % d == 0
        )

    def place(self, step: int) -> tuple[int, int]:
        """Returns (epoch, step within the epoch) of a step of the run."""
        return divmod(step, self.steps_per_epoch)


def scheme_of(train: TrainSettings) -> corruptions.augment.Scheme | None:
    """Makes the augmentation scheme of a training; stored transforms are read from its `transforms`.

    Raises:
      ValueError: the digest of the transforms is not the one in the scheme's name.
    """
    if not train.scheme:
        return None
    if not (corruptions.augment.is_stored(train.scheme) and train.transforms):
        return corruptions.augment.get(train.scheme)
    scheme = corruptions.augment.get(f"stored={train.transforms}")
    if scheme.name != corruptions.augment.canonical(train.scheme):
        raise ValueError(f"expected the transforms {train.scheme} in {train.transforms}, found {scheme.name}")
    return scheme


def keeps_levels(scheme: corruptions.augment.Scheme | None, jsd_weight: float) -> bool:
    """Says whether training images stay uint8.

    Those of Patch Gaussian for CIFAR do: it comes before the crop and is truncated. Those of other schemes, and
    the views of the JSD loss, are float32.
    """
    return scheme is None or ("patch_gaussian" in (scheme.name, scheme.drawn_from) and not jsd_weight)
