"""CIFAR-100's superclasses, learnt without k of the five subclasses of each (draft of 2018).

python train.py --config=projects/structural/configs/subclass.py:k1 --workdir=runs/subclass_k1
python train.py --config=projects/structural/configs/subclass.py:k2 --workdir=runs/subclass_k2
python train.py --config=projects/structural/configs/subclass.py:k3 --workdir=runs/subclass_k3
python train.py --config=projects/structural/configs/subclass.py:smoke --workdir=runs/subclass_smoke

with --config.dataset.data_dir=DIR for the folder of tfds's cifar100, or of a stand-in (`python -m
projects.structural.standin --dataset=cifar100 --out=DIR`). Ends in the accuracies on test images of seen and of unseen
subclasses (parts.csv). WRN-40-2, 100 epochs of batches of 128, Nesterov, cosine from .1, weight decay 5e-4, dropout .3,
mirror and crop. The released code adds mixup, the draft does not: --config.train.mixup=True.

Published on unseen subclasses: 40.9, 26.78 and 25.3 %. Not yet measured here. `smoke` is a small network for two
epochs: it shows that this runs.
"""

from configs import default

VARIANTS = {"k1": 1, "k2": 2, "k3": 3, "k4": 4, "smoke": 1}


def get_config(variant="k1"):
    if variant not in VARIANTS:
        raise ValueError(f"expected subclass.py:{', :'.join(VARIANTS)}, found {variant!r}")
    config = default.get_config()
    config.imports = ("projects.structural.datasets",)
    config.dataset.name = f"cifar100_subclass_k{VARIANTS[variant]}"
    config.model.name = "wrn_40_2"
    config.model.dropout = 0.3
    train = config.train
    train.crop = 4
    train.epochs, train.batch_size = 100, 128
    train.schedule, train.learning_rate, train.nesterov = "cosine", 0.1, True
    train.weight_decay = 5e-4
    if variant == "smoke":
        config.model.name = "small_resnet"
        del config.model.dropout
        train.epochs = 2
    return config
