"""Distances of augmentation schemes to the 15 corruptions of ImageNet-C, in the features of a standard model.

python msd.py --config=configs/msd.py --workdir=runs/overlap_shapes
python msd.py --config=configs/msd.py:bridge --workdir=runs/overlap_shapes
python msd.py --config=configs/msd.py:shapes --workdir=runs/overlap_shapes

The workdir is one of train.py or overlap.py; only the settings under `msd` are used. The variant `bridge` takes the
corruptions themselves as schemes, each at its random severities: distances between corruptions, to be compared with
their overlap (analysis.bridge). `shapes` belongs to the demo: 1,000 transforms of each scheme as in `paper`, but fewer
images and six corruptions of one severity.
"""

from configs import default


def get_config(variant="paper"):
    config = default.get_config()
    if variant == "bridge":
        config.msd.schemes = ("imagenet_c", "imagenet_noc")
        config.msd.corruptions = ("imagenet_c", "imagenet_noc")
        config.msd.severity = "random"
    elif variant == "shapes":
        config.msd.images = 32
        config.msd.draws = 50
        config.msd.corruptions = tuple(
            f"imagenet_c/{name}"
            for name in ("gaussian_noise", "impulse_noise", "defocus_blur", "fog", "contrast", "pixelate")
        )
        config.msd.severity = "3"
    elif variant != "paper":
        raise ValueError(f"expected msd.py, msd.py:paper, msd.py:bridge or msd.py:shapes, found {variant!r}")
    return config
