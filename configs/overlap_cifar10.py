"""Overlap of twelve corruptions on CIFAR-10 by the papers' recipe: ResNet-18, 40 epochs, batch 256.

python overlap.py --config=configs/overlap_cifar10.py --workdir=runs/overlap_cifar10
python overlap.py --config=configs/overlap_cifar10.py:smoke --workdir=runs/overlap_smoke

with --config.dataset.data_dir=DIR or TFDS_DATA_DIR naming the folder that holds the tfds dataset.

Expected: the paper recipe has not been run yet (it wants an accelerator). The smoke variant, a
small network for 4 epochs, took 21 minutes on 2 CPU cores that were shared with other work: clean
accuracy 73.5 % (standard), gaussian and impulse noise overlap .85, hue overlaps with nothing
(docs/results/overlap_cifar10_smoke; JPEG copy of CIFAR-10, one seed).
"""

from configs import default

CORRUPTIONS = (
    "imagenet_c/gaussian_noise",
    "imagenet_c/impulse_noise",
    "imagenet_c/defocus_blur",
    "imagenet_c/fog",
    "imagenet_c/brightness",
    "imagenet_c/contrast",
    "imagenet_c/pixelate",
    "imagenet_c/jpeg_compression",
    "noc/border",
    "noc/obstruction",
    "noc/quantization",
    "noc/hue",
)


def get_config(variant="paper"):
    config = default.get_config()
    config.dataset.name = "cifar10"
    config.model.name = "cifar_resnet18"
    config.study.corruptions = CORRUPTIONS
    if variant == "smoke":
        config.model.name = "small_resnet"
        config.model.stem = 32
        config.model.widths = (64, 128)
        config.train.epochs = 4
        config.train.schedule = "cosine"
        config.train.warmup_epochs = 1
    elif variant != "paper":
        raise ValueError(f"expected overlap_cifar10.py, overlap_cifar10.py:paper or :smoke, found {variant!r}")
    return config
