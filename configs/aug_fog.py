"""ResNet-18 (CIFAR stem) on CIFAR-10, half of each batch under ImageNet-C fog at random severities.

python train.py --config=configs/aug_fog.py --workdir=runs/aug_fog
"""

from configs import aug


def get_config():
    config = aug.get_config("imagenet_c/fog")
    config.dataset.name = "cifar10"
    config.model.name = "cifar_resnet18"
    return config
