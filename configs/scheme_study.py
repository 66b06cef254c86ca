"""Studies of augmentation schemes by the recipes of Mintun, Kirillov and Xie (2021).

python -m tools.scheme_study --config=configs/scheme_study.py:cifar10 --workdir=runs/schemes
python -m tools.scheme_study --config=configs/scheme_study.py:subsets --workdir=runs/subsets
python -m tools.scheme_study --config=configs/scheme_study.py:closest_random_farthest --workdir=runs/transforms
python -m tools.scheme_study --config=configs/scheme_study.py:imagenet --workdir=runs/schemes_imagenet
python -m tools.scheme_study --config=configs/scheme_study.py:stylized=DIR --workdir=runs/stylized_imagenet
python -m tools.scheme_study --config=configs/scheme_study.py:cpu --workdir=runs/subsets_cpu
python -m tools.scheme_study --config=configs/scheme_study.py:smoke --workdir=runs/schemes_smoke

with --config.dataset.data_dir=DIR or TFDS_DATA_DIR naming the folder that holds the dataset.

cifar10                  none, AutoAugment, AugMix with its JSD loss and Patch Gaussian; WRN-40-2 for
                         100 epochs, 10 seeds; CIFAR-10-C and C-bar (supplement, Tables 2 and 3)
subsets                  AugMix with each of the 512 subsets of its operations, without JSD, and the
                         other schemes, one seed (main figures 2 and 3)
closest_random_farthest  every file of stored transforms that tools.msd wrote to
                         runs/schemes/subsets, or `closest_random_farthest=FOLDER`, beside all of AugMix
                         (supplement A)
imagenet                 the four schemes as made for ImageNet; ResNet-50 for 100 epochs, 5 seeds
stylized=DIR             none, with the stylised images prepared in DIR mixed in; 50 epochs, 5 seeds (see
                         configs/scheme.py)
cpu                      plain training, and AugMix with each of the 15 non-empty subsets of four
                         operations, two seeds, for two CPU cores: the network and recipe of
                         configs/coverage.py:cpu, with the crop of the paper
smoke                    six schemes with two seeds on the embedded dataset, a small network for two
                         epochs: shows that the command runs, nothing else

Expected: `cpu` as in docs/results/subsets_cifar10_cpu.md; the others are not yet measured. The authors'
time is 45 to 60 minutes on a V100 for one model on CIFAR-10, about 20 hours on eight V100 for one on
ImageNet.
"""

import itertools

from configs import coverage, scheme

STORED = "closest_random_farthest"
STYLIZED = "stylized"
VARIANTS = ("cifar10", "subsets", STORED, "imagenet", "cpu", "smoke")


def get_config(argument="cifar10"):
    variant, equals, folder = argument.partition("=")
    of_folder = variant in (STORED, STYLIZED) and folder
    if not of_folder and (variant not in VARIANTS or equals):
        known = f"{', :'.join(VARIANTS)}, :{STORED}=FOLDER or :{STYLIZED}=DIR"
        raise ValueError(f"expected scheme_study.py:{known}, found {argument!r}")
    if variant in ("imagenet", STYLIZED):
        config = scheme.stylized(folder) if variant == STYLIZED else scheme.imagenet()
        config.study.schemes = ("standard",)
        if variant == "imagenet":
            config.study.schemes += ("autoaugment_imagenet", "augmix_imagenet+jsd", "patch_gaussian_imagenet")
        config.study.seeds = tuple(range(5))
        config.eval.corruptions = ("imagenet_c", "imagenet_c_bar")
        return config
    config = scheme.cifar10()
    config.eval.corruptions = ("imagenet_c", "cifar10_c_bar")
    if variant == "cifar10":
        config.study.schemes = ("standard", "autoaugment_cifar", "augmix+jsd", "patch_gaussian")
        config.study.seeds = tuple(range(10))
    elif variant == "subsets":
        config.study.schemes = ("standard", "augmix=*", "autoaugment_cifar", "patch_gaussian")
    elif variant == STORED:
        config.study.schemes = ("standard", "augmix", f"stored={folder or 'runs/schemes/subsets'}/*.npz")
    elif variant == "cpu":
        _fit_two_cores(config)
    else:
        _shrink(config)
    return config


def _fit_two_cores(config):
    config.dataset.test_limit = 2_000
    of_coverage = coverage.get_config("cpu")
    config.model.name = of_coverage.model.name
    config.train = of_coverage.train
    config.train.crop = 4
    operations = ("posterize", "solarize", "shear_x", "rotate")
    subsets = itertools.chain.from_iterable(itertools.combinations(operations, n) for n in range(1, 5))
    config.study.schemes = ("standard", *(f"augmix={'+'.join(subset)}" for subset in subsets))
    config.study.seeds = (0, 1)
    config.eval.corruptions = ("imagenet_c",)
    config.msd.schemes = config.study.schemes
    config.msd.images, config.msd.transforms, config.msd.draws = 50, 200, 25


def _shrink(config):
    scheme.shrink(config)
    config.study.schemes = ("standard", "augmix=rotate", "augmix=posterize", "augmix", "patch_gaussian", "augmix+jsd")
    config.study.seeds = (0, 1)
    config.eval.severity = "random"
    config.eval.batch_size = 100
    config.msd.images, config.msd.transforms, config.msd.draws, config.msd.halves = 20, 50, 10, 0
    config.msd.schemes = ("standard", "augmix=rotate", "augmix=posterize", "augmix", "patch_gaussian")
    config.msd.severity = "random"
