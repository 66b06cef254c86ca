"""A model trained with an augmentation scheme: WRN-40-2 on CIFAR-10, or ResNet-50 on ImageNet
(Mintun 2021).

python train.py --config=configs/scheme.py:augmix --workdir=runs/augmix
python train.py --config=configs/scheme.py:augmix+jsd --workdir=runs/augmix_jsd
python train.py --config=configs/scheme.py:patch_gaussian --workdir=runs/patch_gaussian
python train.py --config=configs/scheme.py:augmix=rotate+equalize --workdir=runs/two_operations
python train.py --config=configs/scheme.py:autoaugment_cifar,cpu --workdir=runs/autoaugment_cpu
python train.py --config=configs/scheme.py:stored=runs/baseline/subsets/closest_100.npz --workdir=runs/closest_100
python train.py --config=configs/scheme.py:augmix_imagenet+jsd --workdir=runs/imagenet_augmix
python train.py --config=configs/scheme.py:stylized=DIR --workdir=runs/stylized

with --config.dataset.data_dir=DIR or TFDS_DATA_DIR naming the folder that holds the tfds dataset.
`baseline` has only mirror and crop; `,cpu` is a small network for 12 epochs. Schemes made for
ImageNet (`augmix_imagenet`, `autoaugment_imagenet`, `patch_gaussian_imagenet`, and
`baseline_imagenet`) train a ResNet-50 by the released code's recipe: 100 epochs of batches of 256,
BatchNorm over eight parts of 32, a tenth of the learning rate after 30, 60 and 90, images of
`python -m data.prepare --dataset=imagenet --train_size=256`.

`stylized=DIR` mixes a stylised copy of ImageNet in (Stylized-ImageNet), prepared in DIR by the same
command with --source=COPY: an epoch shows all images of both, and there are half as many, 50, with
steps after 15, 30 and 45. Any dataset of the same classes and size can be mixed into any config,
with config.train.mix_in.

The cosine moves with every step, theirs with every epoch. Stored transforms are files of
tools.msd. configs/scheme_study.py trains many schemes.
"""

from configs import default

_BASELINE = "baseline"
_STYLIZED = "stylized="
JSD_WEIGHT = 12.0


def get_config(argument="augmix"):
    scheme, _, variant = argument.partition(",")
    if variant not in ("", "cpu"):
        raise ValueError(f"expected scheme.py:SCHEME or scheme.py:SCHEME,cpu, found {argument!r}")
    if scheme.startswith(_STYLIZED) and not variant:
        return stylized(scheme.removeprefix(_STYLIZED))
    scheme, jsd = scheme.removesuffix("+jsd"), scheme.endswith("+jsd")
    of_imagenet = scheme.partition("=")[0].endswith("_imagenet")
    if of_imagenet and variant:
        raise ValueError(f"expected a scheme for CIFAR-10 with ,cpu, found {argument!r}")
    config = imagenet() if of_imagenet else cifar10()
    config.train.scheme = "" if scheme.removesuffix("_imagenet") == _BASELINE else scheme
    config.train.jsd_weight = JSD_WEIGHT if jsd else 0.0
    if variant == "cpu":
        config.model.name = "small_resnet"
        config.model.stem = 32
        config.model.widths = (64, 128)
        config.train.epochs = 12
        config.train.warmup_epochs = 1
    return config


def cifar10():
    """The recipe of CIFAR-10, without a scheme."""
    config = _both("cifar10", "wrn_40_2")
    train = config.train
    train.crop = 4
    train.batch_size = 128
    train.schedule = "cosine"
    train.weight_decay = 5e-4
    return config


def imagenet():
    """The recipe of ImageNet, without a scheme."""
    config = _both("imagenet", "resnet50")
    config.dataset.image_size = 224
    config.dataset.train_size = 256
    config.model.init = "goyal"
    train = config.train
    train.random_resized_crop = 224
    train.batch_size = 256
    train.batch_norm = "groups=8"
    train.milestones = (30, 60, 90)
    train.weight_decay = 1e-4
    config.eval.batch_size = 100
    return config


def _both(dataset, model):
    """The common part of both recipes."""
    config = default.get_config()
    config.dataset.name = dataset
    config.model.name = model
    config.train.epochs = 100
    config.train.nesterov = True
    config.eval.corruptions = ("imagenet_c",)
    config.eval.severity = "levels"
    return config


def stylized(folder):
    """The recipe of ImageNet for its images and the stylised images prepared in `folder`."""
    if not folder:
        raise ValueError("expected stylized=DIR, the folder of the prepared stylised images, found stylized=")
    config = imagenet()
    config.train.mix_in.name, config.train.mix_in.data_dir = "imagenet", folder
    config.train.epochs, config.train.milestones = 50, (15, 30, 45)
    return config


def shrink(config):
    """Makes small networks on the embedded dataset, for variants that only show that a command runs."""
    config.dataset.name = "shapes"
    config.dataset.train_limit, config.dataset.test_limit = 600, 200
    config.model.name = "small_resnet"
    config.train.crop = 2
    config.train.epochs, config.train.batch_size, config.train.learning_rate = 2, 50, 0.05
