"""Overlap of twelve corruptions on CIFAR-10 by the papers' recipe: ResNet-18, 40 epochs, batch 256.

python overlap.py --config=configs/overlap_cifar10.py --workdir=runs/overlap_cifar10
python overlap.py --config=configs/overlap_cifar10.py:smoke --workdir=runs/overlap_smoke
for a in small small_wide small_plain; do
  python overlap.py --config=configs/overlap_cifar10.py:$a --workdir=runs/architectures/$a
done
python -m tools.tables runs/architectures/small runs/architectures/small_wide runs/architectures/small_plain --table=overlaps \\
    --out=runs/architectures

with --config.dataset.data_dir=DIR or TFDS_DATA_DIR naming the folder that holds the tfds dataset.

Expected: the paper recipe has not been run yet (it wants an accelerator). The smoke variant, a
small network for 4 epochs, took 21 minutes on 2 CPU cores that were shared with other work: clean
accuracy 73.5 % (standard), gaussian and impulse noise overlap .85, hue overlaps with nothing
(docs/results/overlap_cifar10_smoke; JPEG copy of CIFAR-10, one seed). `small`, `small_wide` and
`small_plain` are three small networks, five corruptions, 38,400 images in each training: seven
minutes together on two shared CPU cores (docs/results/architectures_cifar10_cpu.md).
"""

from configs import default

SMALL = {  # variants that are compared with each other
    "small": {"name": "small_resnet"},
    "small_wide": {"name": "small_resnet", "widths": (72, 144)},
    "small_plain": {"name": "fast_cifar", "widths": (16, 32, 32)},  # without residuals
}
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
    elif variant in SMALL:
        config.dataset.train_limit, config.dataset.test_limit = 9600, 2500
        config.model.update(SMALL[variant])
        config.train.epochs, config.train.batch_size = 4, 128
        config.train.schedule, config.train.warmup_epochs = "cosine", 1
        if variant == "small_plain":
            config.train.learning_rate = 0.5  # its logits are scaled by 1/9
        config.study.corruptions = (*CORRUPTIONS[:2], "imagenet_c/fog", "imagenet_c/contrast", "noc/border")
    elif variant != "paper":
        known = f"paper, :smoke, :{', :'.join(SMALL)}"
        raise ValueError(f"expected overlap_cifar10.py, overlap_cifar10.py:{known}, found {variant!r}")
    return config
