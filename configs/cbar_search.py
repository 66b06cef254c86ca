"""C-bar's search for ten corruptions far from ImageNet-C (Mintun, Kirillov and Xie 2021, supplement
D).

python -m tools.cbar --config=configs/cbar_search.py:cifar10 --workdir=runs/cbar_cifar10
python -m tools.cbar --config=configs/cbar_search.py:imagenet --workdir=runs/cbar_imagenet
python -m tools.cbar --config=configs/cbar_search.py:smoke --workdir=runs/cbar_smoke

with --config.dataset.data_dir=DIR or TFDS_DATA_DIR naming the folder that holds the dataset.

cifar10   10 runs, each of two WRN-40-2 (100 epochs); 100 draws applied to the same 100 images
imagenet  5 runs, each of two ResNet-50 (100 epochs); 10,000 images, each with its own draw
smoke     two runs of small networks on the embedded dataset: shows that the command runs, nothing
          else

The seeds of M, for the errors, come first; the seeds of Phi, for the features, follow. Expected: not yet measured
except `smoke`.
"""

from configs import scheme


def get_config(variant="cifar10"):
    if variant == "imagenet":
        config, runs = scheme.imagenet(), 5
        config.search.images, config.search.draws = 10_000, 0
    elif variant in ("cifar10", "smoke"):
        config, runs = scheme.cifar10(), 10
    else:
        raise ValueError(f"expected cbar_search.py:cifar10, :imagenet or :smoke, found {variant!r}")
    if variant == "smoke":
        runs = 2
        scheme.shrink(config)
        config.eval.batch_size = config.search.images = 200  # as many as test images: the same programs
        config.search.draws = 0
    config.study.seeds, config.search.seeds = tuple(range(runs)), tuple(range(runs, 2 * runs))
    return config
