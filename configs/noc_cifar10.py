"""The 23 candidates of ImageNet-NOC on CIFAR-10: overlap of all pairs, and the selected benchmark.

python overlap.py --config=configs/noc_cifar10.py --workdir=runs/noc_cifar10
python overlap.py --config=configs/noc_cifar10.py:cpu --workdir=runs/noc_cpu \\
    --config.ranges=configs/ranges/cifar10_cpu.json
python overlap.py --config=configs/noc_cifar10.py:cpu --workdir=runs/noc_finetuned --config.train.init_from=standard \\
    --config.ranges=configs/ranges/cifar10_cpu.json

with --config.dataset.data_dir=DIR or TFDS_DATA_DIR naming the folder that holds the tfds dataset.
The first is the papers' recipe (ResNet-18, 40 epochs), for an accelerator, not yet measured; `cpu`
is a small network for 4 epochs.

Expected of `cpu`: clean accuracy 73.1 %, a benchmark of six, in 53 minutes on 2 shared CPU cores
(docs/noc_cifar10.md).
"""

from configs import overlap_cifar10


def get_config(variant="paper"):
    if variant not in ("paper", "cpu"):
        raise ValueError(f"expected noc_cifar10.py, noc_cifar10.py:paper or :cpu, found {variant!r}")
    config = overlap_cifar10.get_config("smoke" if variant == "cpu" else "paper")
    config.study.corruptions = ("noc_candidates",)
    return config
