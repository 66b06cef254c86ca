"""Distances of augmentation schemes to ImageNet-C's corruptions, in a standard model's features.

python -m tools.msd --config=configs/msd.py --workdir=runs/overlap_shapes
python -m tools.msd --config=configs/msd.py:paper --workdir=runs/subsets
python -m tools.msd --config=configs/msd.py:shapes --workdir=runs/overlap_shapes
python -m tools.msd --experiment=subsets --config=configs/msd.py:subsets --workdir=runs/baseline
python -m tools.msd --experiment=resampling --config=configs/msd.py:paper --workdir=runs/baseline

The workdir is one of train.py, overlap.py or tools.scheme_study; only the settings under `msd` are
used. Without a variant it is the size of the notebook of the paper's code: 1,000 transforms of four
schemes. `paper` has the paper's 100,000 transforms of each of 515: the 512 subsets of AugMix's
operations, AutoAugment, Patch Gaussian and none, 10 million images a scheme; of its resampling of
images and draws it has the 100 pairs and 100 resamplings, a million images a pair. The variant
`subsets` has the pool and the sizes of the paper's subset experiment. `shapes` belongs to the demo: 1,000
transforms of each scheme, but fewer images and six corruptions of one severity. `smoke` shows in
seconds that the commands run, nothing else.

The paper's features come from a WRN-40-2 trained only with mirror and crop, or from a VGG-19 with
BatchNorm. Their distances differ; tools.tables measures the agreement:

python train.py --config=configs/scheme.py:baseline --workdir=runs/wrn
python train.py --config=configs/scheme.py:baseline --config.model.name=cifar_vgg19_bn --workdir=runs/vgg
python -m tools.msd --config=configs/msd.py --workdir=runs/wrn --config.msd.errors="runs/schemes"
python -m tools.msd --config=configs/msd.py --workdir=runs/vgg --config.msd.errors="runs/schemes"
python -m tools.tables runs/wrn/msd runs/vgg/msd --table=distances
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
        config.msd.resampling.pairs = config.msd.resampling.resamplings = 100
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
    elif variant == "smoke":
        _shrink(config.msd)
    elif variant != "notebook":
        known = "msd.py, msd.py:notebook, :paper, :subsets, :shapes or :smoke"
        raise ValueError(f"expected {known}, found {variant!r}")
    return config


def _shrink(msd):
    msd.images, msd.transforms, msd.draws, msd.halves = 10, 20, 5, 2
    msd.schemes = ("standard", "augmix=rotate", "augmix", "patch_gaussian")
    msd.corruptions, msd.severity = ("imagenet_c/contrast", "imagenet_c/brightness"), "1,3"
    msd.subsets.pool, msd.subsets.sizes = 20, (1, 5)
    msd.resampling.pairs, msd.resampling.resamplings = 3, 4
    msd.resampling.images = msd.resampling.draws = (2, 5)
