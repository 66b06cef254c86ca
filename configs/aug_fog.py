"""ResNet-18 (CIFAR stem) on CIFAR-10, half of each batch under ImageNet-C fog at random severities.

python train.py --config=configs/aug_fog.py --workdir=runs/aug_fog

--config.dataset.data_dir=DIR, or TFDS_DATA_DIR, names the folder of CIFAR-10 as TensorFlow Datasets (tfds) stores it;
python -m data.prepare --dataset=cifar10 --data_dir=DIR makes it.
On a CPU an epoch of this network takes minutes; --config.model.name=small_resnet
--config.train.epochs=4 is over in a few.
"""

from configs import aug


def get_config():
    config = aug.get_config("imagenet_c/fog")
    config.dataset.name = "cifar10"
    config.model.name = "cifar_resnet18"
    return config
