"""A model trained with an augmentation scheme on CIFAR-10: WRN-40-2, 100 epochs (Mintun 2021).

python train.py --config=configs/scheme.py:augmix --workdir=runs/augmix
python train.py --config=configs/scheme.py:augmix+jsd --workdir=runs/augmix_jsd
python train.py --config=configs/scheme.py:patch_gaussian --workdir=runs/patch_gaussian
python train.py --config=configs/scheme.py:augmix=rotate+equalize --workdir=runs/two_operations
python train.py --config=configs/scheme.py:autoaugment_cifar,cpu --workdir=runs/autoaugment_cpu
python train.py --config=configs/scheme.py:stored=runs/baseline/subsets/closest_100.npz --workdir=runs/closest_100
python train.py --config=configs/scheme.py:baseline --config.train.mix_in.name=image_folder \\
    --config.train.mix_in.data_dir=DIR --workdir=runs/stylized

with --config.dataset.data_dir=DIR or TFDS_DATA_DIR naming the folder that holds the tfds dataset.
`baseline` is mirror and crop alone; `,cpu` is a small network for 12 epochs. The cosine moves with
every step, theirs with every epoch.

Stored transforms are files of tools.msd_subsets. Images that are mixed in come from any dataset
with the same classes and size, such as a stylised copy of the training images (Stylized-ImageNet):
an epoch shows all images of both.
"""

from configs import default


def get_config(argument="augmix"):
    scheme, _, variant = argument.partition(",")
    if variant not in ("", "cpu"):
        raise ValueError(f"expected scheme.py:SCHEME or scheme.py:SCHEME,cpu, found {argument!r}")
    config = default.get_config()
    config.dataset.name = "cifar10"
    config.model.name = "wrn_40_2"
    train = config.train
    train.crop = 4
    train.epochs = 100
    train.batch_size = 128
    train.schedule = "cosine"
    train.nesterov = True
    train.weight_decay = 5e-4
    if scheme.endswith("+jsd"):
        scheme, train.jsd_weight = scheme.removesuffix("+jsd"), 12.0
    train.scheme = "" if scheme == "baseline" else scheme
    config.eval.corruptions = ("imagenet_c",)
    config.eval.severity = "levels"
    if variant == "cpu":
        config.model.name = "small_resnet"
        config.model.stem = 32
        config.model.widths = (64, 128)
        train.epochs = 12
        train.warmup_epochs = 1
    return config
