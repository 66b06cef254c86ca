"""Distances of augmentation schemes to the 15 corruptions of ImageNet-C, in the features of a standard model.

python msd.py --config=configs/msd.py --workdir=runs/overlap_shapes
python msd.py --config=configs/msd.py:bridge --workdir=runs/overlap_shapes

The workdir is one of train.py or overlap.py; only the settings under `msd` are used. The variant `bridge` takes the
corruptions themselves as schemes, each at its random severities: distances between corruptions, to be compared with
their overlap (analysis.bridge).
"""

from configs import default


def get_config(variant="paper"):
    config = default.get_config()
    if variant == "bridge":
        config.msd.schemes = ("imagenet_c", "imagenet_noc")
        config.msd.corruptions = ("imagenet_c", "imagenet_noc")
        config.msd.severity = "random"
    elif variant != "paper":
        raise ValueError(f"expected msd.py, msd.py:paper or msd.py:bridge, found {variant!r}")
    return config
