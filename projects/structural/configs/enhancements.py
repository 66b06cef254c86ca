"""Mean error and mCE on CIFAR-10 with and without each enhancement, a small network, three seeds.

python -m projects.structural.enhancement_study --config=projects/structural/configs/enhancements.py --workdir=runs/enhancements
python -m projects.structural.enhancement_study --config=projects/structural/configs/enhancements.py:smoke --workdir=runs/enhancements_smoke

with --config.dataset.data_dir=DIR or TFDS_DATA_DIR for the folder of the tfds dataset. mCE is relative to the standard
networks. `train=clahe` are networks trained with equalised images, `train=stability` networks trained for stability
(weight and noise .05). Both train from the start; the draft on structural robustness fine-tunes one for 5 epochs.

docs/results/enhancements_cifar10_cpu.md has the table at smaller settings; these are not yet measured. Estimated from
the rates of its parts on two free CPU cores: 100 minutes of training (9 networks, 20 epochs; stability training shows
each image twice) and 75 of evaluation, 35 of them ten crops. `smoke` is a small network for two epochs on the embedded
dataset: it shows that the command runs.
"""

from configs import scheme

ENHANCEMENTS = ("clahe", "clahe_hsv", "clahe_rgb", "clahe_skimage", "nlm", "ten_crop", "train=clahe", "train=stability")


def get_config(variant="cifar10"):
    if variant not in ("cifar10", "smoke"):
        raise ValueError(f"expected enhancements.py, enhancements.py:cifar10 or :smoke, found {variant!r}")
    config = scheme.get_config("baseline,cpu")
    config.train.epochs = 20
    config.study.enhancements = ENHANCEMENTS
    config.study.seeds = (0, 1, 2)
    config.eval.corruptions = ("imagenet_c",)
    if variant == "smoke":
        scheme.shrink(config)
        config.study.enhancements = ("clahe", "ten_crop", "train=clahe")
        config.study.seeds = (0, 1)
        config.eval.corruptions = ("imagenet_c_extra",)
        config.eval.batch_size = 100
    return config
