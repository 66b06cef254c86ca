"""CIFAR-10 in as little time as we can: not the papers' recipe, and not for overlap studies.

python train.py --config=configs/fast_cifar10.py --workdir=runs/fast
python train.py --config=configs/fast_cifar10.py:cpu --workdir=runs/fast_cpu

with --config.dataset.data_dir=DIR or TFDS_DATA_DIR naming the folder that holds the tfds dataset.

Training images are cropped at random places: translation is a candidate corruption
(noc/translation), and a model that met it in training cannot measure overlaps with it.
Label smoothing and a large batch are not the papers' either.

It is fast by a first layer that whitens patches of the training images and is not learned,
bfloat16 with float32 BatchNorm, SGD with Nesterov momentum and a triangular learning rate, label
smoothing, mirroring that alternates between epochs, and crops. It does without test-time
augmentation, filtering of the data, tuning on the test set.

Expected: not yet measured; the aim is 94 % on a GPU. `cpu` is `small_resnet`, without the
whitening layer, with the other tricks for 4 epochs.
"""

from configs import default


def get_config(variant="gpu"):
    if variant not in ("gpu", "cpu"):
        raise ValueError(f"expected fast_cifar10.py, fast_cifar10.py:gpu or :cpu, found {variant!r}")
    config = default.get_config()
    config.dataset.name = "cifar10"
    config.model.name = "fast_cifar"
    train = config.train
    train.epochs = 10
    train.batch_size = 1000
    train.schedule = "triangle"
    train.learning_rate = 1.0
    train.warmup_epochs = 2
    train.momentum = 0.85
    train.nesterov = True
    train.weight_decay = 1e-3
    train.label_smoothing = 0.2
    train.flip_alternates = True
    train.crop = 2
    train.checkpoint_epochs = 10
    if variant == "cpu":
        config.model.name = "small_resnet"
        config.model.stem = 32
        config.model.widths = (64, 128)
        train.epochs = 4
        train.batch_size = 250
        train.learning_rate = 0.25
        train.warmup_epochs = 1
        train.label_smoothing = 0.1
        train.weight_decay = 5e-4
        train.checkpoint_epochs = 4
    return config
