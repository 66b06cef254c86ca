"""Distances of augmentation schemes to ImageNet-C's corruptions, in a standard model's features.

python -m tools.msd --config=configs/msd.py --workdir=runs/overlap_shapes
python -m tools.msd --config=configs/msd.py:paper --workdir=runs/subsets
python -m tools.msd --config=configs/msd.py:bridge --workdir=runs/overlap_shapes
python -m tools.msd --config=configs/msd.py:shapes --workdir=runs/overlap_shapes
python -m tools.msd_subsets --config=configs/msd.py:subsets --workdir=runs/baseline

The workdir is one of train.py, overlap.py or tools.scheme_study; only the settings under `msd` are
used. Without a variant it is the size of the notebook of the paper's code: 1,000 transforms of four
schemes. `paper` has the paper's 100,000 transforms of each of 515: the 512 subsets of AugMix's
operations, AutoAugment, Patch Gaussian and none, 10 million images a scheme. The variant
`bridge` takes the corruptions themselves as schemes, each at its random severities: distances
between corruptions, to be compared with their overlap (analysis.comparison.prediction). `subsets`
has the pool and the sizes of the paper's subset experiment. `shapes` belongs to the demo: 1,000
transforms of each scheme, but fewer images and six corruptions of one severity.

The paper's features are those of a WRN-40-2 trained with mirror and crop alone, or of a VGG-19 with
BatchNorm. Distances do not come out alike in both; how well they agree is told by tools.compare:

python train.py --config=configs/scheme.py:baseline --workdir=runs/wrn
python train.py --config=configs/scheme.py:baseline --config.model.name=cifar_vgg19_bn --workdir=runs/vgg
python -m tools.msd --config=configs/msd.py --workdir=runs/wrn --config.msd.errors="runs/schemes/counts.csv"
python -m tools.msd --config=configs/msd.py --workdir=runs/vgg --config.msd.errors="runs/schemes/counts.csv"
python -m tools.compare --first=runs/wrn/msd --second=runs/vgg/msd
"""

from configs import default

PAPER_SIZES = (
    *range(1, 11), *range(20, 101, 10), *range(200, 1001, 100), *range(2000, 10_001, 1000),
    *range(20_000, 90_001, 10_000), 97_000, 99_000, 99_700, 99_900, 99_970, 99_990,
)  # fmt: skip


def get_config(variant="notebook"):
    config = default.get_config()
    if variant == "paper":
        config.msd.transforms = 100_000
        config.msd.schemes = ("standard", "augmix=*", "autoaugment_cifar", "patch_gaussian")
    elif variant == "bridge":
        config.msd.schemes = ("imagenet_c", "imagenet_noc")
        config.msd.corruptions = ("imagenet_c", "imagenet_noc")
        config.msd.severity = "random"
    elif variant == "subsets":
        config.msd.subsets.pool = 100_000
        config.msd.subsets.sizes = PAPER_SIZES
    elif variant == "shapes":
        config.msd.images = 32
        config.msd.draws = 50
        config.msd.corruptions = tuple(
            f"imagenet_c/{name}"
            for name in ("gaussian_noise", "impulse_noise", "defocus_blur", "fog", "contrast", "pixelate")
        )
        config.msd.severity = "3"
    elif variant != "notebook":
        raise ValueError(f"expected msd.py, msd.py:notebook, :paper, :bridge, :subsets or :shapes, found {variant!r}")
    return config
