"""A study of the overlap of 48 corruptions (49 at 224 pixels) from five benchmarks: what does each leave uncovered?

python -m projects.coverage --config=configs/coverage.py:cpu --workdir=runs/coverage
python -m projects.coverage --config=configs/coverage.py --config.ranges=RANGES --workdir=runs/coverage_resnet18
python -m projects.coverage --config=configs/coverage.py:imagenet100 --config.ranges=RANGES --workdir=runs/coverage_imagenet100

with TFDS_DATA_DIR naming the folder that holds the tfds datasets; LAION-C's tiles are images of CIFAR-10.

`cpu` is a small network for two CPU cores; docs/coverage.md says what it gave. Without a variant, or
with `:cifar10`, it is ResNet-18 on CIFAR-10, 20 epochs; `imagenet100` is ResNet-18 at 224
pixels, 40 epochs. Both want an accelerator and are not yet measured; benchmarks/results has their
memory and time by the compilers of a v5e-8 and an H100. Severities: `cpu` takes ranges that
tools.calibrate measured (configs/ranges/coverage_cpu.json); for the others RANGES is a file
of tools.calibrate (projects/coverage/README.md has the command).
"""

from configs import default

# NOC's candidates but for three. Two are others' twins once calibrated to the same robustness: salt_pepper and ImageNet-C's
# impulse_noise both set channel values to 0 or 1; both pixelates take means over square blocks. The third is a twin at 32
# pixels only, where rhombus and circle both paint a plus of five pixels.
NOC = tuple(
    f"noc/{name}"
    for name in (
        *("quantization", "gaussian", "blur", "thumbnail_resize", "artifacts", "vertical_artifacts", "rain"),
        *("circle", "obstruction", "border", "translation", "shear", "elastic", "rotation", "backlight", "brightness"),
        *("contrast", "color_distortion", "gray_scale", "hue"),
    )
)
CAMERA = ("camera/dark", "camera/iso_noise", "camera/color_quant")  # RoboDepth's three that no other benchmark has


def get_config(variant="cifar10"):
    if variant not in ("cifar10", "imagenet100", "cpu"):
        raise ValueError(f"expected coverage.py, coverage.py:cifar10, :imagenet100 or :cpu, found {variant!r}")
    config = default.get_config()
    noc = (*NOC, "noc/rhombus") if variant == "imagenet100" else NOC
    config.study.corruptions = ("imagenet_c", *noc, "laion_c", "optics", *CAMERA)
    config.study.mixtures = ("mixture=imagenet_c", "mixture=imagenet_noc", "mixture=laion_c")
    config.study.seeds = (0, 1)
    config.imports = ("projects.coverage.bank",)
    train = config.train
    if variant == "imagenet100":
        config.dataset.name, config.dataset.image_size = "imagenet100", 224
        config.model.name = "resnet18"
        train.random_resized_crop, train.epochs, train.milestones = 0, 40, (20, 30)
        return config
    config.dataset.name, config.model.name = "cifar10", "cifar_resnet18"
    train.epochs, train.schedule, train.warmup_epochs = 20, "cosine", 1
    if variant == "cpu":
        config.model.name = "fast_cifar_cpu"
        config.ranges = "configs/ranges/coverage_cpu.json"
        train.batch_size, train.learning_rate = 250, 0.3
        train.schedule, train.epochs, train.warmup_epochs = "triangle", 4, 1
        train.nesterov, train.weight_decay, train.label_smoothing = True, 5e-4, 0.1
        train.flip_alternates = True
    return config
