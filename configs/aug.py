"""Corruption as data augmentation (aug): half of each batch goes through one corruption or a benchmark's mixture.

python train.py --config=configs/aug.py:noc/border --workdir=runs/border
python train.py --config=configs/aug.py:mixture=imagenet_noc --workdir=runs/m_inoc

Settings and time as of configs/default.py, on the embedded dataset unless --config.dataset.name names another.
"""

from configs import default


def get_config(augmentation="imagenet_c/fog"):
    config = default.get_config()
    config.train.corruption = augmentation
    return config
