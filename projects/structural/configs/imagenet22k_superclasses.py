"""25 superclasses of ImageNet-22K by a linear probe (draft of 2018).

A last layer is trained on their subclasses in ImageNet-1K and tested on these and on unseen ones.

python train.py --config=projects/structural/configs/imagenet22k_superclasses.py:resnet50 --workdir=runs/superclasses_resnet50 \\
    --config.train.init_from=resnet50-0676ba61.pth --config.dataset.data_dir=DIR
python train.py --config=projects/structural/configs/imagenet22k_superclasses.py:smoke --workdir=runs/superclasses_smoke \\
    --config.train.init_from=runs/superclasses_backbone --config.dataset.data_dir=DIR

The variant is any network of models.names(); its weights are a file, or the workdir of a trained one. DIR is laid out
as in projects/structural/superclasses.py. One epoch of batches of 128, Nesterov, cosine from .01, weight decay 5e-4 of the
last layer, images of shorter side 256, boxes of 224 cut at random, mirrored. All weights but the last layer's stay. As
in the released code BatchNorm normalises by the batch and its running statistics drift, and dropout drops;
--config.train.batch_norm=running keeps the statistics. Ends in the accuracies on seen and on unseen subclasses, with
intervals (parts.csv).

Published, seen and unseen: AlexNet 84.95, 70.47; SqueezeNet 1.1 82.97, 68.97; ResNet-18 90.77, 79.23; VGG-19 93.95,
81.32, with BatchNorm 94.37, 82.74; ResNet-50 94.20, 82.91; ResNeXt-101 64x4d 95.80, 84.51 %. Not yet measured here.
`smoke` is a small network on a stand-in (`python -m projects.structural.standin --dataset=imagenet22k_superclasses
--out=DIR`): it shows that this runs.
"""

from configs import default


def get_config(variant="resnet50"):
    config = default.get_config()
    config.imports = ("projects.structural.datasets",)
    config.dataset.name = "imagenet22k_superclasses"
    train = config.train
    train.frozen = "backbone"
    train.epochs, train.batch_size = 1, 128
    train.schedule, train.learning_rate, train.nesterov = "cosine", 0.01, True
    train.weight_decay = 5e-4
    if variant == "smoke":
        config.dataset.train_size = 36
        train.random_crop = 32
        train.epochs, train.batch_size = 4, 32
        return config
    config.model.name = variant
    config.dataset.image_size, config.dataset.train_size = 224, 256
    train.random_crop = 224
    config.eval.batch_size = 100
    return config
