"""Distances of augmentation schemes to the 15 corruptions of ImageNet-C, in the features of a standard model.

python msd.py --config=configs/msd.py --workdir=runs/overlap_shapes
python msd.py --config=configs/msd.py:bridge --workdir=runs/overlap_shapes

The workdir is one of train.py or overlap.py; only the settings under `msd` are used. The variant `bridge` takes the
corruptions themselves as schemes, each at its random severities: distances between corruptions, to be compared with
their overlap (analysis.bridge).
"""

from ml_collections import ConfigDict

from configs import default


def get_config(variant="paper"):
    config = default.get_config()
    config.msd = ConfigDict(
        {
            "model": "standard",  # which model of the workdir gives the features: what it was trained with
            "model_seed": 0,
            "seed": 0,  # of the images and of all draws
            "images": 100,  # training images, without mirroring or cropping
            # standard (no augmentation), schemes (corruptions.augment.names), augmix=* (512), corruptions, benchmarks
            "schemes": ("standard", "autoaugment_cifar", "augmix", "patch_gaussian"),
            "transforms": 1000,  # drawn for each scheme; the paper's figures take 100,000
            "corruptions": ("imagenet_c",),  # corruptions and benchmarks
            "severity": "levels",  # as config.eval.severity
            "draws": 100,  # for each corruption and severity, averaged to its centre
            "halves": 20,  # random halves of images, transforms and draws behind the spread; 0 is none
            "chunk": 0,  # transforms at a time, for speed and memory only; 0 fits the device
            "errors": "",  # counts.csv with the schemes as models: correlates distance with error
            "out": "msd",  # folder of results in the workdir
        }
    )
    if variant == "bridge":
        config.msd.schemes = ("imagenet_c", "imagenet_noc")
        config.msd.corruptions = ("imagenet_c", "imagenet_noc")
        config.msd.severity = "random"
    elif variant != "paper":
        raise ValueError(f"expected msd.py, msd.py:paper or msd.py:bridge, found {variant!r}")
    return config
